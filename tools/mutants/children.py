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

MAX_BYTES = 6 * 2**30
"""Address space of a child: a mutant that fills the memory meets a MemoryError."""


@dataclass
class Job:
    """The work of a child process. act: the function that it runs. seconds: message → seconds that the child may stay
    silent after it.
    """

    key: str
    act: Callable[[Say], None]
    seconds: Callable[[Message], float]


@dataclass
class _Child:
    job: Job
    pid: int
    folder: Path
    deadline: float
    started: float = field(default_factory=time.monotonic)
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
            for key in [key for key in selector.get_map().values() if time.monotonic() > key.data.deadline]:
                n_running -= 1
                yield _finish(key.data, key.fd, selector, late=True)


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
        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
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
    """Read what the child wrote. Returns False when it has finished or is dead; processes that it started may keep the
    pipe open longer.
    """
    read = os.read(descriptor, 1 << 16)
    *lines, child.unread = (child.unread + read).split(b"\n")
    for line in lines:
        child.messages.append(json.loads(line))
        child.deadline = time.monotonic() + child.job.seconds(child.messages[-1])
    return bool(read) and DONE not in child.messages


def _finish(child: _Child, descriptor: int, selector: selectors.BaseSelector, *, late: bool) -> Ended:
    selector.unregister(descriptor)
    os.close(descriptor)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    _, status = os.waitpid(child.pid, 0)
    late = late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU)
    shutil.rmtree(child.folder, ignore_errors=True)
    return Ended(child.job.key, child.messages, late, time.monotonic() - child.started)
