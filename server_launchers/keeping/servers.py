"""The servers there are: list them, find one, show its logs, end it.

A process is signalled only where its number and start time are those that were recorded.
"""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

from server_launchers.errors import LaunchError
from server_launchers.keeping import processes, state
from server_launchers.keeping.state import ServerState
from server_launchers.machine import accelerators
from server_launchers.machine.programs import run_quietly

SURE_SECONDS = 10.0
"""Seconds beyond the grace that a guard may take to end its server, and the kernel to end what was killed."""


def status() -> list[ServerState]:
    """All servers that run, and those that ended without being asked to."""
    return state.read_all()


def unreadable() -> list[Path]:
    """Files in the place of a server's state that cannot be read as one: that server may be running unseen."""
    return state.unreadable()


def find(name: str | None = None) -> ServerState:
    """The one running server, or the one called `name`; raises LaunchError that names those there are."""
    ready = [one for one in status() if one.status == "ready"]
    which = "cannot tell which server is meant" if name is None else f"no server {name} is ready"
    return _only(ready, name, f"{which}; running")


def stop(name: str | None = None, *, all: bool = False) -> list[str]:
    """End the server called `name`, the only one there is, or all; returns what cannot be ended, as text."""
    known = status()
    which = "say which server to stop, or --all" if name is None else f"no server is called {name}"
    chosen = known if all else [_only(known, name, f"{which}; known")]
    return [text for one in chosen for text in end(one)]


def logs(name: str | None = None) -> list[Path]:
    """The logs of the server called `name` (or the only one), one a process; also of one that has ended."""
    which = "say whose log to show" if name is None else f"no server is called {name}"
    return [member.log for member in _only(status(), name, f"{which}; known").members]


def end(known: ServerState) -> list[str]:
    """End what lives of this server and forget it; what cannot be ended is returned and stays remembered."""
    known.guard.signal(signal.SIGTERM)
    deadline = time.monotonic() + SURE_SECONDS
    while known.guard.alive():
        time.sleep(0.02)
        # The guard's last act is to write its state; until then its ladder may still be running.
        if time.monotonic() > deadline + known.grace:
            known.guard.signal(signal.SIGKILL)
    known = state.read(state.path_of(known.name)) or known
    left = list(known.survivors)
    if known.status != "exited":
        # The guard was killed before it could end its server.
        left = [processes.describe(one.pid) for one in _end_orphans(known)]
    if not left:
        with contextlib.suppress(OSError):
            state.path_of(known.name).unlink()
        return []
    return left + [f"device memory is held by {row}" for row in accelerators.memory_holders()]


def _only(known: list[ServerState], name: str | None, complaint: str) -> ServerState:
    """The one of `known` that is called `name` (None: the only one); raises LaunchError that names all of them."""
    fitting = [one for one in known if name in (None, one.name)]
    if len(fitting) != 1:
        raise LaunchError(f"{complaint}: {', '.join(one.name for one in known) or 'none'}")
    return fitting[0]


def _end_orphans(known: ServerState) -> list[processes.Process]:
    """End a server whose guard was killed: what is proven ours by number and start time, or carries the mark."""
    numbers: set[int] = set()
    for index, member in enumerate(known.members):
        proven = [processes.Process(pid, started) for pid, started in member.family]
        if member.pid is not None and member.started is not None:
            proven.append(processes.Process(member.pid, member.started))
        alive = [one.pid for one in proven if one.alive()]
        numbers |= {*alive, *processes.marked(f"{known.mark}:{index}")}
        numbers |= {below for pid in alive for below in processes.descendants(pid)}
        if member.cleanup:
            run_quietly(tuple(member.cleanup))
    return processes.end([one for one in map(processes.process, numbers) if one is not None], SURE_SECONDS)
