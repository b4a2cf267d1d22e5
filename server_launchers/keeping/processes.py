"""Facts about processes, so that only our own are ever signalled. Standard library only: the guard imports it.

On Linux, /proc answers. Elsewhere `ps` is asked, and what it cannot tell (who owns a port) stays unknown.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from server_launchers.variables import MARK

_PROC = Path("/proc")
_LINUX = sys.platform == "linux"


@dataclass(frozen=True)
class Process:
    """One process, identified by number and start time: another process may get the same number later."""

    pid: int
    started: str

    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        return start_of(self.pid) == self.started

    def signal(self, number: int) -> None:
        """Send the signal with this number to the process, unless it is gone."""
        if self.alive():
            # The process may have ended since the look, or may belong to another user after setuid.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)


def start_of(pid: int) -> str | None:
    """The start time of process `pid`, as a text that no later process with this number has; None if none lives."""
    if _LINUX:
        fields = _stat(pid)
        # Z is a zombie, X a process that the kernel is removing. Field 19 counts ticks since the boot, so the boot is
        # named too.
        return None if fields is None or fields[0] in "ZX" else f"{_boot()}:{fields[19]}"
    state_and_start = _ps("-o", "stat=,lstart=", "-p", str(pid)).split(None, 1)
    return None if len(state_and_start) != 2 or state_and_start[0].startswith("Z") else state_and_start[1].strip()


def process(pid: int) -> Process | None:
    """The living process of number `pid`; None if there is none."""
    started = start_of(pid)
    return None if started is None else Process(pid, started)


def descendants(pid: int) -> list[int]:
    """Numbers of all living descendants of `pid`: children, their children, and so on."""
    children: dict[int, list[int]] = {}
    # All parents are read first: a walk from process to process would miss one that gets another parent meanwhile.
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    family, unvisited = [], [pid]
    while unvisited:
        below = children.get(unvisited.pop(), [])
        family += below
        unvisited += below
    return family


def find_marked(mark: str) -> list[int]:
    """Numbers of the living processes whose environment contains `MARK=mark`. Linux only; elsewhere none."""
    pair, marked = f"{MARK}={mark}".encode(), []
    for pid in _pids():
        # An error: gone since the listing, or of another user, whose environment we may not read.
        with contextlib.suppress(OSError):
            if pair in (_PROC / str(pid) / "environ").read_bytes().split(b"\0") and start_of(pid) is not None:
                marked.append(pid)
    return marked


def group(pgid: int) -> list[int]:
    """Numbers of the living processes of one process group."""
    if _LINUX:
        return [pid for pid, fields in _living() if int(fields[2]) == pgid]
    rows = (line.split() for line in _ps("-A", "-o", "pid=,pgid=,stat=").splitlines())
    return [int(row[0]) for row in rows if len(row) == 3 and int(row[1]) == pgid and not row[2].startswith("Z")]


def end(processes: Iterable[Process], seconds: float) -> list[Process]:
    """Send SIGKILL to the processes until all are gone, for at most `seconds`; return those that still live.

    Such processes are stuck in the kernel.
    """
    left = [process for process in processes if process.alive()]
    deadline = time.monotonic() + seconds
    while left:
        for process in left:
            process.signal(signal.SIGKILL)
        # The kernel removes a killed process only when its memory is freed; this waits without a busy loop.
        time.sleep(0.02)
        left = [process for process in left if process.alive()]
        if time.monotonic() > deadline:
            break
    return left


def listeners(port: int) -> set[int] | None:
    """Numbers of the processes that listen on TCP `port`; None where the system does not show them."""
    if not _LINUX:
        return None
    sockets = set()
    # A server on `::` accepts IPv4 as well, and only tcp6 lists it.
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                # 0A is TCP_LISTEN in the kernel; addresses and ports stand there in hexadecimal.
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{fields[9]}]")
    owners = set()
    for pid in _pids() if sockets else ():
        # Descriptors of another user's processes cannot be read, nor those closed during the listing.
        with contextlib.suppress(OSError):
            for descriptor in (_PROC / str(pid) / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()) in sockets:
                        owners.add(pid)
    # A socket without a visible owner belongs to another user or a container: the answer is "unknown", not "nobody".
    return owners if owners or not sockets else None


def describe(pid: int) -> str:
    """The process with its command line and memory, for a message."""
    if not _LINUX:
        return f"process {pid} ({_ps('-o', 'command=', '-p', str(pid)).strip()[:120] or 'unknown'})"
    command, memory = "unknown", ""
    with contextlib.suppress(OSError):
        words = (_PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        command = " ".join(words).strip()[:120] or "unknown"
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
        # statm counts pages, whose size differs between machines (4, 16 or 64 KiB).
        memory = f", {pages * os.sysconf('SC_PAGE_SIZE') >> 20} MiB"
    return f"process {pid} ({command}{memory})"


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on: [0] state, [1] parent, [2] group, [19] start in ticks."""
    try:
        # A program may put any bytes into its name.
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command in parentheses may itself hold spaces and parentheses.
    return text.rpartition(")")[2].split()


def _boot() -> str:
    with contextlib.suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()[:8]
    # Inside some sandboxes the file is hidden; start times alone still tell processes of one boot apart.
    return "boot"


def _pids() -> list[int]:
    try:
        return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _living() -> Iterator[tuple[int, list[str]]]:
    """Yield (number, fields of `_stat`) of each process that is neither a zombie nor being removed. Linux only."""
    for pid in _pids():
        fields = _stat(pid)
        if fields and fields[0] not in "ZX":
            yield pid, fields


def _parents() -> list[tuple[int, int]]:
    """Return (number, number of the parent) of each living process."""
    if _LINUX:
        return [(pid, int(fields[1])) for pid, fields in _living()]
    rows = (line.split() for line in _ps("-A", "-o", "pid=,ppid=,stat=").splitlines())
    return [(int(row[0]), int(row[1])) for row in rows if len(row) == 3 and not row[2].startswith("Z")]


def _ps(*arguments: str) -> str:
    try:
        done = subprocess.run(["ps", *arguments], capture_output=True, text=True, errors="replace", check=False)  # noqa: S607 (POSIX names no absolute path for ps)
    except OSError:
        return ""
    return done.stdout
