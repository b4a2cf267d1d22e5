"""The state file of each server: what a later command needs to find it, and never to mistake a stranger for it.

Written by the server's guard (first by the supervisor, before the guard has its orders). No key and no
variable's value stands in it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from server_launchers.errors import LaunchError
from server_launchers.folders import state_folder
from server_launchers.keeping import processes

MAX_STATE_BYTES = 16 * 1024 * 1024
"""Longest state file that is read."""

_HIDDEN = "HIDDEN"
_SENSITIVE = r"(?:key|token|secret|password|passwd|hft)"
_NAMES_A_SECRET = re.compile(rf"(?:^|[-_]){_SENSITIVE}$", re.IGNORECASE)
_SECRET_IN_JSON = re.compile(rf'("[^"]*{_SENSITIVE}"\s*:\s*)"[^"]*"', re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")


class Member(msgspec.Struct, frozen=True):
    """One process of a server."""

    role: Literal["engine", "router"]
    argv: list[str]
    port: int | None
    log: Path
    devices: list[str] | None = None
    pid: int | None = None
    started: str | None = None
    exit_code: int | None = None
    """Negative: the signal that ended it. None while it runs."""
    restarts: int = 0
    family: list[tuple[int, str]] = []
    """Descendants last seen, by number and start."""
    cleanup: list[str] | None = None
    """Run after the process was stopped, for what its end does not end (a container)."""


class ServerState(msgspec.Struct, frozen=True):
    """What is known of one server."""

    name: str
    engine: str
    model: str
    """The name that clients use."""
    source: str
    """The model as it was given: a hub name, a folder, a file."""
    base_urls: list[str]
    """Where clients send requests: one a replica, or the router's. Without `/v1`."""
    api_key_env: str | None
    created: datetime
    mark: str
    grace: float
    """Seconds between TERM and KILL."""
    guard_pid: int
    guard_started: str
    status: Literal["starting", "ready", "exited"]
    members: list[Member]
    survivors: list[str] = []
    """Processes that could not be ended, as text."""
    versions: dict[str, str] = {}
    """Engine version, devices and driver, for the manifest of a run."""

    @property
    def guard(self) -> processes.Process:
        """The process that keeps this server."""
        return processes.Process(self.guard_pid, self.guard_started)

    @property
    def log(self) -> Path:
        """The log to look at first."""
        return self.members[0].log

    @property
    def commands(self) -> list[str]:
        """What was started, a line a process, without keys and passwords."""
        return [shlex.join(_without_keys(member.argv)) for member in self.members]

    @property
    def running(self) -> bool:
        """Whether anything of this server lives: its guard, or a main process whose guard was killed."""
        return self.guard.alive() or bool(self.leftovers())

    def leftovers(self) -> list[processes.Process]:
        """Living processes of it; each proven by number and start time to be one that was started."""
        mains = [(m.pid, m.started) for m in self.members if m.pid is not None and m.started]
        everyone = [*mains, *(pair for m in self.members for pair in m.family)]
        return [one for pair in everyone if (one := processes.Process(*pair)).alive()]


def servers_folder() -> Path:
    """The folder of state files and logs, created when it is not there. Raises `LaunchError` for one of another user:
    what stands in it names processes to end and commands to run."""
    folder = state_folder() / "servers"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise LaunchError(
            f"cannot keep server state in {folder}: {error.strerror}; HARNESS_STATE names another folder"
        ) from None
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        whose = "is a link" if stat.S_ISLNK(found.st_mode) else f"belongs to the user with the number {found.st_uid}"
        raise LaunchError(f"{folder} {whose}, so its state is not to be trusted; HARNESS_STATE names another folder")
    return folder


def path_of(name: str) -> Path:
    """The state file of server `name`."""
    return servers_folder() / f"{name}.json"


def read(path: Path) -> ServerState | None:
    """The state in `path`; None where it is gone or not one of ours: a link, another user's, no state file."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                return None
            data = file.read(MAX_STATE_BYTES + 1)
        return msgspec.json.decode(data, type=ServerState, dec_hook=lambda kind, text: kind(text))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def unreadable() -> list[Path]:
    """Files where a server's state should stand and does not: the server itself may be running."""
    return [path for path in _files() if read(path) is None and path.is_file()]


def _files() -> list[Path]:
    return sorted(servers_folder().glob("[!.]*.json"))


def write(state: ServerState) -> None:
    """Replace the state file of this server in one step."""
    path = path_of(state.name)
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)  # it may be a link, which must not be written through
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(state, enc_hook=str), indent=1))
    temporary.replace(path)


def read_all() -> list[ServerState]:
    """All servers that are remembered, oldest first; one whose processes are all gone says `exited`."""
    found = []
    for path in _files():
        state = read(path)
        if state is not None:
            if state.status != "exited" and not state.running:
                state = msgspec.structs.replace(state, status="exited")
            found.append(state)
    return sorted(found, key=lambda state: state.created)


@contextmanager
def naming_lock() -> Iterator[None]:
    """Held while a name is chosen and taken, so that two starts never share one."""
    with (servers_folder() / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _without_keys(argv: Iterable[str]) -> Iterator[str]:
    """The words of a command line; what an option or a variable that is named like a key holds is hidden."""
    hide = first = False
    for word in argv:
        name, equals, _ = word.partition("=")
        if hide and (first or not word.startswith("-")):  # one that takes several takes them up to the next option
            first = False
            yield _HIDDEN
        elif equals and _NAMES_A_SECRET.search(name):
            hide = False
            yield f"{name}={_HIDDEN}"
        else:
            hide = first = word.startswith("-") and bool(_NAMES_A_SECRET.search(word))
            yield _USER_INFO.sub("", _SECRET_IN_JSON.sub(rf'\1"{_HIDDEN}"', word))
