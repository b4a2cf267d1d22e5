"""The servers on this machine: list them, find one, show its logs, end it.

A process is signalled only if its number and start time are the recorded ones, or if its environment holds the mark of
the server to end.
"""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

from server_launchers.errors import LaunchError
from server_launchers.keeping import engine_log, processes, state
from server_launchers.keeping.state import ServerState
from server_launchers.machine import accelerators, containers

SURE_SECONDS = 10.0
"""Seconds beyond its server's grace that a guard may take to end; also the seconds for killed processes to end."""
POLL_SECONDS = 0.02
"""Seconds between two looks at a guard that should end."""


def status() -> list[ServerState]:
    """All running servers, and those that ended without being asked to."""
    return state.read_all()


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
        now = state.read(state.path_of(name))
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
    server = state.read(state.path_of(server.name)) or server
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
        state.path_of(name).unlink()
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
