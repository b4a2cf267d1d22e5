"""Runs forked child processes that try mutants: each has a pipe for its messages and a deadline, and everything that it
started ends with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Say = Callable[[Message], None]

DONE: Message = {"done": True}

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux

IDLE_SECONDS = 20.0
"""A child also counts as late after it and all processes that it started have slept for this many seconds."""

_LOOK_SECONDS = 1.0
"""Seconds between two looks at what the children do."""

_IDLE_SHARE = 0.05
"""A child that uses less than this fraction of a processor only polls, which counts as sleep."""

MAX_BYTES = 6 * 2**30
"""Memory that a child may write to: a mutant that fills more meets a MemoryError. The address space has no limit: what
draws plots reserves 32 GiB of it and ends the process where it gets less."""


@dataclass
class Job:
    """The work of a child process. act: the function that it runs. seconds: message → seconds that the child may stay
    silent after it. idle_seconds: for how long the child may sleep. speaks: whether it may write to standard error.
    """

    key: str
    act: Callable[[Say], None]
    seconds: Callable[[Message], float]
    idle_seconds: float = IDLE_SECONDS
    speaks: bool = False


@dataclass
class _Child:
    job: Job
    pid: int
    folder: Path
    deadline: float
    started: float = field(default_factory=time.monotonic)
    asleep_since: float = field(default_factory=time.monotonic)
    busy_then: float = 0.0
    unread: bytes = b""
    messages: list[Message] = field(default_factory=list)


@dataclass
class Ended:
    """A child that has ended. late: it was killed at its deadline."""

    key: str
    messages: list[Message]
    late: bool
    seconds: float


def ended(jobs: Iterator[Job], n_at_once: int) -> Iterator[Ended]:
    """Run the jobs, each in a forked child process; yield each child with its messages when it has ended. n_at_once:
    children at the same time.
    """
    with selectors.DefaultSelector() as selector:
        n_running = 0
        more = True
        looked = time.monotonic()
        while more or n_running:
            while more and n_running < n_at_once:
                job = next(jobs, None)
                more = job is not None
                if job is not None:
                    _start(job, selector)
                    n_running += 1
            for key in [key for key, _ in selector.select(0.2)]:
                child: _Child = key.data
                if not _has_spoken(child, key.fd):
                    n_running -= 1
                    yield _finish(child, key.fd, selector, late=False)
            keys = [*selector.get_map().values()]
            if (now := time.monotonic()) > looked + _LOOK_SECONDS:
                looked = now
                for key in keys:
                    _look(key.data, now)
            for key in keys:
                child = key.data
                if now > child.deadline or now - child.asleep_since > child.job.idle_seconds:
                    n_running -= 1
                    yield _finish(child, key.fd, selector, late=True)


def _look(child: _Child, now: float) -> None:
    """Note since when the child and all processes that it started sleep. A process that waits for the CPU is awake."""
    states: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            states[int(path.name)] = _state(path / "stat")
    family = {child.pid}
    for pid, state in sorted(states.items()):  # a process has a higher number than its parent, but for a rare turn
        if int(state[3]) == child.pid or int(state[1]) in family:
            family.add(pid)
    busy, runs = 0.0, False
    for pid in family & states.keys():
        busy += (int(states[pid][11]) + int(states[pid][12])) / os.sysconf("SC_CLK_TCK")
        with contextlib.suppress(OSError):
            runs = runs or any(_state(thread / "stat")[0] in "RD" for thread in Path(f"/proc/{pid}/task").iterdir())
    if runs or busy - child.busy_then > _IDLE_SHARE * (now - child.asleep_since):
        child.asleep_since, child.busy_then = now, busy


def _state(path: Path) -> list[str]:
    """The fields of `stat` behind the name (proc(5)): state, parent, group, session, …"""
    return path.read_text("ascii", "replace").rpartition(")")[2].split()


def _start(job: Job, selector: selectors.BaseSelector) -> None:
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(reader)
        _be_child(job, folder, writer)
    os.close(writer)
    selector.register(reader, selectors.EVENT_READ, _Child(job, pid, folder, time.monotonic() + job.seconds({})))


def _be_child(job: Job, folder: Path, writer: int) -> None:
    """Run the job in this child process, in a new process group and temporary folder, without output; never return."""
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1) if job.speaks else (0, 1, 2):
            os.dup2(silent, descriptor)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)

        def say(message: Message) -> None:
            os.write(writer, json.dumps(message).encode() + b"\n")

        try:
            job.act(say)
        except BaseException as error:  # noqa: BLE001 - a mutant may raise anything; the parent counts it
            say({"crash": f"{type(error).__name__}: {error}"[:200]})
        say(DONE)
    finally:
        os._exit(0)


def _has_spoken(child: _Child, descriptor: int) -> bool:
    """Read what the child process wrote, and set its deadline anew. Returns False when it has finished or is dead;
    processes that it started may keep the pipe open longer.
    """
    read = os.read(descriptor, 1 << 16)
    *lines, child.unread = (child.unread + read).split(b"\n")
    for line in lines:
        child.messages.append(json.loads(line))
        child.asleep_since = time.monotonic()
        child.deadline = time.monotonic() + child.job.seconds(child.messages[-1])
    return bool(read) and DONE not in child.messages


def _finish(child: _Child, descriptor: int, selector: selectors.BaseSelector, *, late: bool) -> Ended:
    selector.unregister(descriptor)
    os.close(descriptor)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    _, status = os.waitpid(child.pid, 0)
    late = late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF)
    shutil.rmtree(child.folder, ignore_errors=True)
    return Ended(child.job.key, child.messages, late, time.monotonic() - child.started)
