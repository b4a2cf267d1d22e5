"""The servers on this machine: their state files, and functions to list them, show their logs and stop them.

A state file contains what a later command needs to find the server without mistaking another process for it. It is
`servers/HOST/NAME.json` in the state folder: machines may share a home folder, and the process ids in a file are valid
on only one of them. Next to it are `NAME.log` (`NAME-0.log`, … for several processes) and `NAME.guard.log`. The states
in the file, and who writes each:

    (none) ──launch──▶ starting ──guard──▶ ready ──guard──▶ exited ──stop──▶ (none)
                          └────────────────guard─────────────▶┘
    a reader also reports `exited` for a file whose processes are all gone: the machine went down, or the guard was
    killed

Invariant: nothing in the file is trusted unless the processes that it lists confirm it. No command in it is ever run
and no path in it opened: logs are found by the server's name, which is the file's name. A process is signaled only if
its process id and start time match the recorded ones, if it descends from such a process, or if its environment
contains the mark of the server to stop. A container is removed only if its own environment contains that mark. The file
contains no keys and no variable values.

The files list processes to kill. So the folder and each file in it must belong to this user, must not be a link, and
must not be writable by anyone else; a file has one name. The parent folders need no check: anything that someone could
put there would fail this check. Nothing is opened, written or truncated through a symbolic link, or through a second
name of somebody's file.

Not covered: access control lists (ACLs), and a file that its user put there (an unpacked archive) and that identifies
one of that user's running processes by process id and start time.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import stat
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from harness.core import channel
from harness.core.files import wait_for_lock
from harness.core.installation import state_folder
from harness.core.sanitize import visible
from server_launchers.command_line import shown_words
from server_launchers.errors import LaunchError, log_cause
from server_launchers.machine import accelerators, processes
from server_launchers.machine.processes import Process
from server_launchers.machine.programs import end_container

MAX_STATE_BYTES = 16 * 1024 * 1024
"""Maximum size of a state file, in bytes; a longer one is not read."""
LOG_TAIL_BYTES = 256 << 10
"""Number of bytes from the end of a log that are shown, and searched for causes."""
SURE_SECONDS = 10.0
"""Seconds beyond its server's grace period that a guard may take to end; also the time for killed processes to end."""
POLL_SECONDS = 0.02
"""Seconds between checks of a guard that should end."""

_FIRST_NAMESPACE = "4026531836"
"""Inode number of the initial Linux process namespace (PROC_PID_INIT_INO in linux/proc_ns.h)."""


class MemberState(msgspec.Struct):
    """One process of a server."""

    role: Literal["engine", "router"]
    argv: list[str]
    """The command; keys and passwords in it are hidden."""
    port: int | None
    devices: list[str] | None = None
    pid: int | None = None
    started: str | None = None
    exit_code: int | None = None
    """Exit code; negative: the signal that ended the process. None while it runs."""
    restarts: int = 0
    family: list[tuple[int, str]] = []
    """Process id and start time of the last known descendants."""
    container: str | None = None
    """Name of the container, if the process is only the client that started it (`docker run`); the container outlives
    its client.
    """

    @property
    def recorded(self) -> set[Process]:
        """The process and its last known descendants, dead or alive."""
        main = [] if self.pid is None or self.started is None else [(self.pid, self.started)]
        return {Process(pid, started) for pid, started in (*main, *self.family)}


class ServerState(msgspec.Struct):
    """The record of one server."""

    name: str
    engine: str
    model: str
    """The name that clients use."""
    source: str
    """The model as the user gave it: a hub name, a folder, a file."""
    base_urls: list[str]
    """Addresses for requests, without `/v1`: one per replica, or the router's."""
    api_key_env: str | None
    created: datetime
    mark: str
    """A random text, new for each start. The processes and the container of member i have `mark:i` as the value of the
    environment variable `MARK`.
    """
    grace: float
    """Seconds between SIGTERM and SIGKILL when the server is stopped."""
    guard_pid: int
    guard_started: str
    status: Literal["starting", "ready", "exited"]
    members: list[MemberState]
    stopped: bool = False
    """Whether the server was asked to stop; False while it runs, or if it ended on its own."""
    versions: dict[str, str] = {}
    """Engine version, devices and driver, for the manifest of a run."""
    environment: str = ""
    """Checksum of the variables that were set for the server, without keys and passwords."""

    @property
    def guard(self) -> Process:
        """The guard process of this server."""
        return Process(self.guard_pid, self.guard_started)

    @property
    def logs(self) -> list[Path]:
        """The log file of each member."""
        endings = [""] if len(self.members) == 1 else [f"-{index}" for index in range(len(self.members))]
        return [servers_folder() / f"{self.name}{ending}.log" for ending in endings]

    @property
    def log(self) -> Path:
        """The log file to check first."""
        return self.logs[0]

    @property
    def ended(self) -> tuple[MemberState, Path] | None:
        """The first process (member) of the server that has ended, with its log; None if all are running."""
        pairs = zip(self.members, self.logs, strict=True)
        return next((pair for pair in pairs if pair[0].exit_code is not None), None)

    @property
    def commands(self) -> list[str]:
        """The commands that were started, one line per process, without keys and passwords."""
        return [shlex.join(shown_words(member.argv)) for member in self.members]

    @property
    def running(self) -> bool:
        """Whether the guard or any recorded process of the server is alive."""
        recorded = {self.guard}.union(*(member.recorded for member in self.members))
        return any(process.alive() for process in recorded)


def servers_folder() -> Path:
    """The folder of the state files and logs of this machine's servers; created if missing.

    Raises LaunchError if other users could have written there.
    """
    folder = state_folder() / "servers" / _host()
    make_folder(folder)
    return folder


def _host() -> str:
    """The name of this machine; in a separate process namespace, as in a container, with the namespace's number."""
    host = re.sub(r"[^A-Za-z0-9.-]+", "-", socket.gethostname()).strip(".") or "localhost"
    with contextlib.suppress(OSError):
        # Containers may have their machine's name, but their own process ids.
        namespace = re.sub(r"\D", "", str(Path("/proc/self/ns/pid").readlink()))
        return host if namespace == _FIRST_NAMESPACE else f"{host}-{namespace}"
    return host


def path_of(name: str) -> Path:
    """The state file of server `name`."""
    return servers_folder() / f"{name}.json"


def guard_log(name: str) -> Path:
    """Path of the guard's own log, which stays empty unless the guard fails."""
    return servers_folder() / f"{name}.guard.log"


def older_log(log: Path) -> Path:
    """The path to which a log is moved when it reaches its size limit and a new one begins."""
    return log.with_name(f"{log.name}.1")


def read(path: Path) -> ServerState | None:
    """The state in `path`; None if the file is missing, is a link, belongs to another user, or is not a state file."""
    data = _read(path, MAX_STATE_BYTES + 1)
    if data is None:
        return None
    try:
        state = msgspec.json.decode(data, type=ServerState)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    # A name other than the file's name would lead to other files: a log to print, a state file to remove.
    return state if state.name == path.stem and state.members else None


def write(path: Path, state: ServerState) -> None:
    """Write the state to `path` atomically: a reader sees either the old state or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    with os.fdopen(create(temporary), "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(state), indent=1))
    temporary.replace(path)


def status() -> list[ServerState]:
    """All running servers, and all servers that ended without being asked to stop, oldest first.

    A server whose processes are all gone has the state `exited`.
    """
    files = servers_folder().glob("[!.]*.json")
    states = [state for state in map(read, files) if state is not None]
    for state in states:
        if not state.running:
            state.status = "exited"
    return sorted(states, key=lambda state: (state.created, state.name))


@contextlib.contextmanager
def naming_lock() -> Iterator[None]:
    """Context manager that holds a lock while a start chooses its server's name, so that two starts never share one."""
    path = servers_folder() / ".lock"
    try:
        # No O_TRUNC or O_EXCL: other starts hold a lock on this same file.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _UNTRUSTED, 0o600)
    except OSError as error:
        raise LaunchError(f"cannot open the lock file {path}: {error.strerror}; remove it if it is a link") from None
    try:
        if not _is_ours(os.fstat(descriptor)):
            raise LaunchError(f"the lock file {path} is not a regular file owned by this user: remove it")
        wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def log_tail(path: Path) -> list[str]:
    """The last non-blank lines of a log, safe to print; empty if there is no log yet."""
    # In this order, because the guard may rotate the log between the two reads.
    newer, older = (_read(each, LOG_TAIL_BYTES, from_end=True) or b"" for each in (path, older_log(path)))
    # A truncated character, or binary noise from a crashed engine, must not hide the rest.
    text = (older + newer)[-LOG_TAIL_BYTES:].decode("utf-8", "replace")
    return [visible(line) for line in text.split("\n") if line.strip()]


def why_ended(name: str, guard_pid: int, *, lives: bool = False) -> str | None:
    """Why the server called `name` has permanently ended on its own, in a sentence.

    None while it runs or restarts, if it was asked to stop, or if nothing is known: its state file is gone, or belongs
    to a later server of that name. guard_pid: process id of the server's guard; a later server's guard has another.
    lives: the server is running, but its engine has died.
    """
    now = None
    with contextlib.suppress(LaunchError):  # The state folder is gone, which says nothing about the server.
        now = read(path_of(name))
    if now is None or now.guard_pid != guard_pid or now.stopped:
        return None
    if now.status != "exited" and not lives:
        return None if now.guard.alive() else "its guard (the process that watches it) was killed with the server"
    # If the file records no ended member, the first member's log is the most informative.
    member, log = now.ended or (now.members[0], now.log)
    from server_launchers.engines import table  # few servers end by themselves

    engine = table.find(now.engine)
    cause = log_cause(log_tail(log), member.exit_code, engine.takes if engine else ())
    return f"{cause}; its log is {log}"


def stop(name: str | None = None, *, all: bool = False) -> tuple[list[str], list[str]]:
    """Stop the server called `name` (None: the only server, or the only one that is still running), or all.

    Returns the names of the servers, and the processes that could not be stopped, as text.
    """
    running = [server for server in status() if server.status != "exited"]
    if name is None and len(running) == 1:
        name = running[0].name
    ending = status() if all else [_only(name, "specify the server to stop, or --all")]
    return [server.name for server in ending], [process for server in ending for process in end_server(server)]


def logs(name: str | None = None) -> list[Path]:
    """The log files of the server called `name` (or the only one), one per process; also for a server that has
    ended."""
    return _only(name, "specify the server whose log you want to see").logs


def _only(name: str | None, unnamed: str) -> ServerState:
    """The server called `name`; None: the only one. Raises LaunchError: `unnamed` if there are several, or none."""
    recorded = status()
    fitting = [server for server in recorded if name in (None, server.name)]
    if len(fitting) != 1:
        problem = unnamed if name is None else f"there is no server named {name}"
        names = ", ".join(server.name for server in recorded) or "none (no server is running here)"
        raise LaunchError(f"{problem}; known servers: {names}")
    return fitting[0]


def end_server(server: ServerState) -> list[str]:
    """Stop all running processes of this server and remove its state file. Returns the processes that cannot be
    stopped, as text; if there are any, the state file is kept.
    """
    server.guard.signal(signal.SIGTERM)
    seconds = SURE_SECONDS + server.grace
    deadline = time.monotonic() + seconds
    with channel.waiting(f"the server {visible(server.name, 80)} to stop (this may take {seconds:.0f} s)"):
        while server.guard.alive():
            time.sleep(POLL_SECONDS)
            if time.monotonic() > deadline:
                # SIGKILL is sent again at each check: a process that hangs in the kernel receives it when it returns.
                server.guard.signal(signal.SIGKILL)
    # Read again: the guard may have recorded more processes since the caller read the file.
    server = read(path_of(server.name)) or server
    if survivors := _end_orphans(server):
        return survivors + accelerators.memory_holders()
    with contextlib.suppress(OSError):
        path_of(server.name).unlink()
    return []


def _end_orphans(server: ServerState) -> list[str]:
    """Stop processes and containers that a guard left, because it was killed or could not stop them; return any that
    cannot be stopped, as text."""
    family, containers = set[Process](), list[str]()
    for index, member in enumerate(server.members):
        mark = f"{server.mark}:{index}"
        family |= processes.find_marked(mark)
        for process in member.recorded:
            if process.alive():
                # A process that a member started after the guard's last check is not recorded, but is a descendant.
                family |= {process, *processes.descendants(process.pid)}
        if member.container:
            containers.append(end_container(member.container, mark))
    left = [processes.describe(process.pid) for process in processes.kill_all(family, SURE_SECONDS)]
    return [*left, *filter(None, containers)]


# ---- folders and files that nobody else could have written

# NONBLOCK: opening a pipe that somebody put there would block forever.
_UNTRUSTED = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def make_folder(folder: Path) -> None:
    """Create `folder` and missing parent folders, accessible only to this user.

    Raises LaunchError if other users could have put files there.
    """
    missing = [folder, *(above for above in folder.parents if not above.exists())]
    try:
        # Folders are made one by one from the top down: `mkdir(parents=True)` would give the upper ones the default
        # mode.
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise LaunchError(
            f"cannot store server state in {folder}: {error.strerror}; set HARNESS_STATE to another folder"
        ) from None
    if stat.S_ISLNK(status.st_mode) or not _is_private(status):
        raise LaunchError(
            f"the state folder {folder} is not safe: it is a link, belongs to another user, or is writable by "
            "others; run chmod 700 on it, or set HARNESS_STATE to another folder"
        )


def create(path: Path) -> int:
    """A descriptor of a new, empty file at `path`, for appending.

    An older file of that name is left unchanged but is unlinked.
    """
    # Unlinked, not truncated: the name may be a hard link to somebody's file.
    path.unlink(missing_ok=True)
    # O_EXCL rejects a link that appears between the two lines.
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _read(path: Path, limit: int, *, from_end: bool = False) -> bytes | None:
    """The first (`from_end`: last) `limit` bytes of a file; None for a missing file, a link, a pipe, or a file that
    somebody else may have written.
    """
    try:
        # The open file is checked, not its path, which could name another file a moment later.
        with os.fdopen(os.open(path, os.O_RDONLY | _UNTRUSTED), "rb") as file:
            status = os.fstat(file.fileno())
            if not _is_ours(status):
                return None
            if from_end:
                file.seek(max(0, status.st_size - limit))
            return file.read(limit)
    except OSError:
        return None


def _is_ours(status: os.stat_result) -> bool:
    """Whether this is the status of a regular file without a second name that belongs to us and that no other user can
    write to."""
    # Without a name: a new state replaced it after it was opened.
    return stat.S_ISREG(status.st_mode) and status.st_nlink <= 1 and _is_private(status)


def _is_private(status: os.stat_result) -> bool:
    """Whether this is the status of something that belongs to us and that no other user can write to."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
