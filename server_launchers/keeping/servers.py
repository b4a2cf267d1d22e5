"""The servers on this machine: their state files, and the ways to list them, find one, show its logs and end it.

A state file is what a later command needs to find the server, and to take no other process for it. It is
`servers/HOST/NAME.json` in the state folder: machines may share a home folder, and the process numbers in a file
mean something on one of them only. Beside it lie `NAME.log` (`NAME-0.log`, … of several processes) and
`NAME.guard.log`. The states that the file names, and who writes each:

    (none) ──supervisor──▶ starting ──guard──▶ ready ──guard──▶ exited ──stop──▶ (none)
                              └────────────────guard─────────────▶┘
    a reader also says `exited` of a file whose processes are all gone: the machine went down, or the guard was killed

Invariant: nothing in the file is believed beyond what the processes that it names confirm. No command in it is ever run
and no path in it opened: logs are found by the server's name, which is the file's. A process counts as the server's
only if both its number and its start time are recorded. A container is removed only if its own environment holds the
server's mark. No key and no variable's value stands in the file. `private_files` says who may have written it.

Not covered: a file that its user put there and that names a living process of that user by number and start time.

A process is signalled only if its number and start time are the recorded ones, or if its environment holds the mark of
the server to end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import signal
import socket
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from harness.core.about import state_folder
from server_launchers import shown
from server_launchers.errors import LaunchError
from server_launchers.keeping import engine_log, private_files, processes
from server_launchers.machine import accelerators, containers

MAX_STATE_BYTES = 16 * 1024 * 1024
"""Most bytes of a state file; a longer one is not read."""


_FIRST_NAMESPACE = "4026531836"
"""Number of the process namespace in which Linux boots (PROC_PID_INIT_INO in linux/proc_ns.h)."""


class MemberState(msgspec.Struct, frozen=True):
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
    """Number and start time of the descendants that were last seen."""
    container: str | None = None
    """Name of the container, if the process is only the client that started it (`docker run`); the container outlives
    its client.
    """


class ServerState(msgspec.Struct, frozen=True):
    """What is recorded about one server."""

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
    """Whether the server was told to end; False while it runs, and if it ended by itself."""
    survivors: list[str] = []
    """Processes that could not be ended, as text."""
    versions: dict[str, str] = {}
    """Engine version, devices and driver, for the manifest of a run."""

    @property
    def guard(self) -> processes.Process:
        """The guard process of this server."""
        return processes.Process(self.guard_pid, self.guard_started)

    @property
    def logs(self) -> list[Path]:
        """The log file of each member."""
        return log_files(self.name, len(self.members))

    @property
    def log(self) -> Path:
        """The log file to look at first."""
        return self.logs[0]

    @property
    def ended(self) -> tuple[MemberState, Path] | None:
        """The first process (member) of the server that has ended, with its log; None if all run."""
        pairs = zip(self.members, self.logs, strict=True)
        return next((pair for pair in pairs if pair[0].exit_code is not None), None)

    @property
    def commands(self) -> list[str]:
        """The commands that were started, one line per process, without keys and passwords."""
        return [shlex.join(shown.words(member.argv)) for member in self.members]

    @property
    def running(self) -> bool:
        """Whether the guard or any recorded process of the server lives."""
        return self.guard.alive() or bool(self.leftovers())

    def leftovers(self) -> list[processes.Process]:
        """Living processes of this server, each proven by number and start time to be one that was started."""
        mains = [(m.pid, m.started) for m in self.members if m.pid is not None and m.started]
        pairs = [*mains, *(pair for m in self.members for pair in m.family)]
        recorded = [processes.Process(pid, started) for pid, started in pairs]
        return [process for process in recorded if process.alive()]


def servers_folder() -> Path:
    """The folder of the state files and logs of this machine's servers; created if missing.

    Raises LaunchError where others could have written there.
    """
    folder = state_folder() / "servers" / _host()
    private_files.make_folder(folder)
    return folder


def _host() -> str:
    """The name of this machine; in a process namespace of its own, as in a container, with the namespace's number."""
    host = re.sub(r"[^A-Za-z0-9.-]+", "-", socket.gethostname()).strip(".") or "localhost"
    with contextlib.suppress(OSError):
        # Containers may have their machine's name, and process numbers of their own.
        namespace = re.sub(r"\D", "", str(Path("/proc/self/ns/pid").readlink()))
        return host if namespace == _FIRST_NAMESPACE else f"{host}-{namespace}"
    return host


def path_of(name: str) -> Path:
    """The state file of server `name`."""
    return servers_folder() / f"{name}.json"


def log_files(name: str, n_processes: int) -> list[Path]:
    """The log of each process of server `name`."""
    endings = [""] if n_processes == 1 else [f"-{index}" for index in range(n_processes)]
    return [servers_folder() / f"{name}{ending}.log" for ending in endings]


def guard_log(name: str) -> Path:
    """Path of the log of the guard itself, which stays empty unless the guard fails."""
    return servers_folder() / f"{name}.guard.log"


def read(path: Path) -> ServerState | None:
    """The state in `path`; None if the file is missing, a link, another user's, or no state file."""
    data = private_files.read(path, MAX_STATE_BYTES + 1)
    if data is None:
        return None
    try:
        state = msgspec.json.decode(data, type=ServerState)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    # A name other than the file's would lead to foreign files: a log to print, a state file to remove.
    return state if state.name == path.stem and state.members else None


def _files() -> list[Path]:
    return sorted(servers_folder().glob("[!.]*.json"))


def write(state: ServerState) -> None:
    """Replace the state file of this server in one step."""
    private_files.replace(path_of(state.name), msgspec.json.format(msgspec.json.encode(state), indent=1))


def read_all() -> list[ServerState]:
    """All recorded servers, oldest first; a server whose processes are all gone has the state `exited`."""
    states = [state for path in _files() if (state := read(path)) is not None]
    return sorted(map(_as_it_is, states), key=lambda state: state.created)


def _as_it_is(state: ServerState) -> ServerState:
    """The state with the status `exited` if all processes of the server are gone."""
    gone = state.status != "exited" and not state.running
    return msgspec.structs.replace(state, status="exited") if gone else state


@contextlib.contextmanager
def naming_lock() -> Iterator[None]:
    """Context manager that holds a lock while a start chooses its server's name, so that two starts never share one."""
    descriptor = private_files.open_for_lock(servers_folder() / ".lock")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


SURE_SECONDS = 10.0
"""Seconds beyond its server's grace that a guard may take to end; also the seconds for killed processes to end."""
POLL_SECONDS = 0.02
"""Seconds between two looks at a guard that should end."""


def status() -> list[ServerState]:
    """All running servers, and those that ended without being asked to."""
    return read_all()


def find(name: str | None = None) -> ServerState:
    """The only running server, or the one called `name`. Raises LaunchError that lists the running servers."""
    ready = {server.name: server for server in status() if server.status == "ready"}
    problem = "without a name there must be exactly one ready server" if name is None else f"no server {name} is ready"
    return ready[_only([*ready], name, problem, listed="running")]


def why_ended(name: str, guard_pid: int) -> str | None:
    """Why the server called `name` has ended for good by itself, in a sentence.

    None while it runs or restarts, if it was told to stop, and if nothing is known: its state file is gone, or belongs
    to a later server of that name. guard_pid: number of the server's guard; the guard of a later server has another.
    """
    now = None
    with contextlib.suppress(LaunchError):  # The state folder is gone, which says nothing about the server.
        now = read(path_of(name))
    if now is None or now.guard_pid != guard_pid or now.stopped:
        return None
    if now.status != "exited":
        return (
            None if now.guard.alive() else "its guard, the process that watches it, was killed, and the server with it"
        )
    # If the file records the end of no member, the first member's log says most.
    member, log = now.ended or (now.members[0], now.log)
    return f"{engine_log.cause(log, member.exit_code)}; its log is {log}"


def stop(name: str | None = None, *, all: bool = False) -> tuple[list[str], list[str]]:
    """End the server called `name` (None: the only server), or all.

    Returns the names of the servers, and the processes that could not be ended, as text.
    """
    remembered = {server.name: server for server in status()}
    problem = "say which server to stop, or --all" if name is None else f"no server is called {name}"
    names = [*remembered] if all else [_only([*remembered], name, problem)]
    left = [process for each in names for process in end(remembered[each])]
    return names, left


def logs(name: str | None = None) -> list[Path]:
    """The log files of the server called `name` (or the only one), one per process; also of an ended server."""
    problem = "say whose log to show" if name is None else f"no server is called {name}"
    remembered = {server.name: server for server in status()}
    return remembered[_only([*remembered], name, problem)].logs


def end(server: ServerState) -> list[str]:
    """End all living processes of this server and remove its state file.

    Returns the processes that cannot be ended, as text; if there are any, the state file stays.
    """
    _end_guard(server.guard, server.grace)
    # Read again: the guard has written its survivors since the caller read the file.
    server = read(path_of(server.name)) or server
    left = list(server.survivors)
    if server.status != "exited":
        # The guard was killed before it ended its server.
        left = [processes.describe(process.pid) for process in _end_orphans(server)]
    return _forget(server.name, left)


def _end_guard(guard: processes.Process, grace: float) -> None:
    """Ask a guard by SIGTERM to end its server, and wait until the guard has ended.

    grace: seconds that the server has to end after its own SIGTERM. A guard that takes longer is killed.
    """
    guard.signal(signal.SIGTERM)
    deadline = time.monotonic() + SURE_SECONDS + grace
    while guard.alive():
        time.sleep(POLL_SECONDS)
        if time.monotonic() > deadline:
            # SIGKILL is sent again at each look: a process that hangs in the kernel obeys only when it comes back.
            guard.signal(signal.SIGKILL)


def _forget(name: str, left: list[str]) -> list[str]:
    """Remove the state file if nothing is left; else return what is left, and who holds the devices' memory."""
    if left:
        return left + [f"device memory is held by {row}" for row in accelerators.memory_holders()]
    with contextlib.suppress(OSError):
        path_of(name).unlink()
    return []


def _only(names: list[str], name: str | None, problem: str, listed: str = "known") -> str:
    """The entry of `names` equal to `name` (None: the only entry).

    Raises LaunchError: `problem`, then the names under the word `listed`.
    """
    fitting = [each for each in names if name in (None, each)]
    if len(fitting) != 1:
        raise LaunchError(f"{problem}; {listed}: {', '.join(names) or 'none'}")
    return fitting[0]


def _end_orphans(server: ServerState) -> list[processes.Process]:
    """End a server whose guard was killed; return the processes that cannot be ended.

    Its processes are those whose number and start time are recorded, their descendants, and those whose environment
    holds the server's mark; its containers are ended, too.
    """
    numbers: set[int] = set()
    for index, member in enumerate(server.members):
        mark = f"{server.mark}:{index}"
        proven = [processes.Process(pid, started) for pid, started in member.family]
        if member.pid is not None and member.started is not None:
            proven.append(processes.Process(member.pid, member.started))
        # A process that a member started after the guard's last look is not recorded, but is found as a descendant.
        alive = [process.pid for process in proven if process.alive()]
        numbers |= {*alive, *processes.find_marked(mark)}
        numbers |= {child for pid in alive for child in processes.descendants(pid)}
        if member.container:
            containers.end(member.container, mark)
    family = [process for process in map(processes.process, numbers) if process is not None]
    return processes.end(family, SURE_SECONDS)
