"""Facts about processes, so that only our own are ever signaled."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

_PROC = Path("/proc")

MARK = "REASONING_HARNESS_SERVER"
"""Every process and container of a server inherits this variable; its value is unique to one start of one member."""


@dataclass(frozen=True)
class Process:
    """One process, identified by process id and start time, because another process may get the same id later."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Whether this exact process is still running (a zombie is not)."""
        return start_of(self.pid) == self.started

    def signal(self, number: int) -> None:
        """Send the signal with this number to the process, unless it is gone."""
        if self.alive():
            # The process may have ended since the check, or may belong to another user after setuid.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)


def start_of(pid: int) -> str | None:
    """The start time of process `pid`, as a text that no later process with this id has; None if there is no such
    process."""
    try:
        system_process = psutil.Process(pid)
        if system_process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        if sys.platform != "linux":
            return repr(system_process.create_time())
        # Field 22 counts ticks since the boot, so the boot is named too. The library's `create_time` changes with the
        # clock. A program may put any bytes into its name, including spaces and parentheses.
        fields = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (psutil.Error, OSError, ValueError):  # the last one for a number below 0
        return None
    return f"{_boot()}:{fields[19]}"


def _boot() -> str:
    """A text that is different for each boot."""
    with contextlib.suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()[:8]
    # Inside some sandboxes the file is hidden; start times alone still distinguish processes of one boot.
    return "boot"


def process(pid: int) -> Process | None:
    """The running process with id `pid`; None if there is none."""
    started = start_of(pid)
    return None if started is None else Process(pid, started)


def _living(pids: Iterable[int]) -> set[Process]:
    """The running processes among those with these ids."""
    return {living for living in map(process, pids) if living is not None}


def descendants(pid: int) -> set[Process]:
    """All running descendants of `pid`: children, their children, and so on."""
    with contextlib.suppress(psutil.Error):
        return _living(child.pid for child in psutil.Process(pid).children(recursive=True))
    return set()


def _matching_processes(fits: Callable[[int], bool]) -> set[Process]:
    """The running processes whose ids fit. An `OSError` of `fits`: the process is gone, or of another user."""
    fitting = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            if fits(pid):
                fitting.append(pid)
    return _living(fitting)


def find_marked(mark: str) -> set[Process]:
    """The running processes whose environment contains `MARK=mark`. Linux only; empty on other systems."""
    pair = f"{MARK}={mark}".encode()
    # All bytes are read: the library stops at a title that an engine writes over its environment.
    return _matching_processes(lambda pid: pair in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"))


def group(pgid: int) -> set[Process]:
    """The running processes of one process group."""
    return _matching_processes(lambda pid: os.getpgid(pid) == pgid)


def kill_all(processes: Iterable[Process], seconds: float) -> list[Process]:
    """Send SIGKILL to the processes until all are gone, for at most `seconds`; return any that are still alive.

    The returned processes are stuck in the kernel.
    """
    living = [process for process in processes if process.alive()]
    deadline = time.monotonic() + seconds
    while living:
        for process in living:
            process.signal(signal.SIGKILL)
        # The kernel removes a killed process only when its memory is freed; this waits without a busy loop.
        time.sleep(0.02)
        living = [process for process in living if process.alive()]
        if time.monotonic() > deadline:
            break
    return living


def listeners(port: int) -> set[int] | None:
    """Ids of processes that listen on TCP `port`; None if the system does not show them."""
    try:
        sockets = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return None
    owners = {socket.pid for socket in sockets if socket.status == psutil.CONN_LISTEN and socket.laddr.port == port}
    visible_owners = {pid for pid in owners if pid is not None}
    # A socket without a visible owner belongs to another user or a container: the answer is "unknown", not "nobody".
    return visible_owners if visible_owners or not owners else None


def other_listeners(port: int, parent: int) -> list[int] | None:
    """Ids of the processes that listen on TCP `port` in place of `parent` and its descendants.

    Empty if `parent` or its descendants listen; None if no listeners are visible.
    """
    owners = listeners(port)
    if not owners:
        return None
    ours = {parent, *(process.pid for process in descendants(parent))}
    return [] if owners & ours else sorted(owners)


def describe(pid: int) -> str:
    """The process with its command line and memory, for a message."""
    command, memory = "unknown", ""
    with contextlib.suppress(psutil.Error):
        system_process = psutil.Process(pid)
        command = " ".join(system_process.cmdline()).strip()[:120] or "unknown"
        memory = f", {system_process.memory_info().rss >> 20} MiB"
    return f"process {pid} ({command}{memory})"
