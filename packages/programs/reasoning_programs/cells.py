"""The caller's side of a sandbox: a `SandboxCell` keeps a sandbox running and executes one job after another in it.

`sandbox_maker` returns the maker for the kind of sandbox that a caller names. If a sandbox dies, sends an
unexpected message or is silent for too long, it is killed, and the job is repeated in a new sandbox. If that fails too,
`SandboxFailedError` is raised, which says nothing about the program. A sandbox that dies during startup is started
again (`ATTEMPTS`).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import threading
import time
from typing import Any, Protocol

from reasoning_programs import bubblewrap
from reasoning_programs.containers import ENGINES, ContainerEngine
from reasoning_programs.errors import LostError, UnavailableError
from reasoning_programs.inside import frames
from reasoning_programs.text import visible

START_WAITS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0)
"""Seconds to wait before each attempt to start a sandbox; a busy machine may kill one that starts."""

_TRIED = 2
"""Number of attempts to start a sandbox that says why it ended, before anything has been executed."""

_JOB_ATTEMPTS = 2
"""Number of sandboxes in which a job is executed if the first one dies with it."""

_START_SECONDS = 60.0
"""Maximum time for starting a sandbox."""

SILENCE_SECONDS = 60.0
SILENCE_FACTOR = 40.0
"""A sandbox counts as stuck if it is silent for longer than `SILENCE_SECONDS` plus `SILENCE_FACTOR` times the time
limits of all cases of the job. No healthy sandbox has been silent that long, even with 20 processes per core."""

_MAX_COMPLAINT_BYTES = 2_000
"""Maximum number of bytes of a sandbox's standard error that a message quotes."""

MEMORY_MARGIN = 512 << 20
"""Bytes that a sandbox needs in addition to a program and its tests, for two Python interpreter processes."""


class SandboxFailedError(Exception):
    """The sandbox itself failed; nothing is known about the program in it."""


FAILURES = (SandboxFailedError, frames.ClosedError, OSError)
"""The exceptions that a call of a `SandboxCell` can raise if its sandbox fails."""


class SandboxMaker(Protocol):
    """Starts and ends sandboxes of one kind."""

    def start(self, channel: int, memory: int, packages: tuple[str, ...] = (), /) -> subprocess.Popen[bytes]:
        """Start a sandbox that communicates over the descriptor `channel`; its standard error is a pipe.

        memory: bytes for a program, its tests and the interpreter. packages: a tool's packages, which a container's
        image must include. Raises `UnavailableError` if no sandbox can be started here.
        """
        ...

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Remove the remains of a sandbox after `process`, which started it, was killed."""
        ...


class SandboxCell:
    """A sandbox that is kept running from job to job. It belongs to one thread at a time.

    packages: the packages that a tool's code can import. _fd: our end of the connection. _memory: memory of the running
    sandbox, in bytes.
    """

    def __init__(self, maker: SandboxMaker, packages: tuple[str, ...] = ()) -> None:
        self._maker, self._packages = maker, packages
        self._process: subprocess.Popen[bytes] | None = None
        self._fd, self._memory = -1, 0
        self._is_dismissed = False
        self._abandoned = threading.Event()
        self.version = ""
        """Version of the sandbox's Python; "" before the first start."""
        self.packages: dict[str, str] = {}
        """Packages that a tool's code can import → their versions."""

    def run_job(self, job: dict[str, Any], work: dict[str, Any]) -> dict[str, Any]:
        """Execute a job and return its report. work: the tests, which are sent once the program's process has started.

        Raises `SandboxFailedError` if two sandboxes failed, `LostError` if none can be started.
        """
        limits = job["limits"]
        silence = SILENCE_SECONDS + SILENCE_FACTOR * (limits["cpu_total"] + limits["sleep"])
        memory = limits["memory"] + limits["tests_memory"] + MEMORY_MARGIN
        if self._process is not None and memory > self._memory:
            self.close()
        # A second attempt, because a sandbox can die when the machine runs out of memory, which is not the program's
        # fault.
        why = ""
        for _ in range(_JOB_ATTEMPTS):
            try:
                report = self.begin(job, memory, silence)
                if "end" in report:  # the program ended before it was ready for its tests
                    report["begun"] = False
                else:
                    report = self.exchange(work, silence)
                self.end(silence)
                return report
            except BaseException as error:
                # Messages from an interrupted job would be read as messages of the next one.
                self.close()
                if not isinstance(error, FAILURES):
                    raise
                why = str(error)
        raise SandboxFailedError(why)

    def begin(self, job: dict[str, Any], memory: int, silence: float) -> dict[str, Any]:
        """Begin a job, in a sandbox that is started if none is running; return the job's first report."""
        if self._is_dismissed:
            self._is_dismissed = False
            self.end(silence)
        self.start(memory)
        # The cell forks when it reads this byte, so the fork reads the job itself, which never enters the cell's
        # memory.
        os.write(self._fd, b"j")
        return self.exchange(job, silence)

    def exchange(self, message: dict[str, Any], silence: float) -> dict[str, Any]:
        """Send the job a message and return its report.

        Raises `SandboxFailedError` if the job ends, or `silence` seconds pass, without a report.
        """
        frames.send(self._fd, message)
        report = self._receive(silence)
        if "over" in report:
            raise SandboxFailedError(f"the job ended without a report (wait status {report['over']})")
        return report

    def dismiss(self) -> None:
        """Tell an interpreter to end, without waiting: `begin` waits. Raises one of `FAILURES`."""
        self._is_dismissed = True
        frames.send(self._fd, {"code": None})

    def end(self, silence: float) -> None:
        """Wait until the job is over; close the sandbox if the job left files behind."""
        while "over" not in (last := self._receive(silence)):
            pass  # another message from the job that has ended
        if last.get("used"):  # the job left files that the next program would find
            self.close()

    def abandon(self) -> None:
        """Kill the sandbox's processes permanently, from any thread; the sandbox's own thread then fails and closes
        it."""
        self._abandoned.set()
        if (process := self._process) is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def _receive(self, seconds: float) -> dict[str, Any]:
        """The next message from the sandbox. Raises `SandboxFailedError` if none arrives within `seconds`."""
        deadline = time.monotonic() + seconds
        # poll instead of select, which fails for descriptors above 1023; a grading pool has many.
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)

        def wait() -> None:
            if not poller.poll(max(deadline - time.monotonic(), 0.0) * 1000):
                raise SandboxFailedError(f"the sandbox sent no message for {seconds:.0f} s")

        try:
            message = frames.receive(self._fd, wait=wait)
        except frames.ClosedError as error:
            raise SandboxFailedError(f"the sandbox ended: {error}") from error
        if not isinstance(message, dict):
            raise SandboxFailedError("the sandbox sent a message that is not a JSON object")
        return message

    def start(self, memory: int, attempts: int = len(START_WAITS)) -> None:
        """Start the sandbox if none is running. Raises `LostError` if it does not start.

        attempts: number of attempts for a sandbox that reports why it ended. A sandbox that ends without a message was
        killed, and gets as many attempts as in the middle of a run.
        """
        why = ""
        for n, wait in enumerate(START_WAITS if self._process is None else ()):
            if self._abandoned.wait(wait):
                raise SandboxFailedError("the sandbox is no longer needed")
            try:
                return self._start(memory)
            except UnavailableError as error:
                raise LostError(str(error)) from error
            except FAILURES as error:
                complaint = self.close()
                why = complaint or str(error)
                if complaint and n + 1 >= attempts:
                    break
        if why:
            raise LostError(f"could not start a sandbox: {visible(why, 300)}")

    def _start(self, memory: int) -> None:
        """Start the sandbox. Raises one of `FAILURES` if it does not start, or `UnavailableError` if none can start
        here.
        """
        ours, theirs = socket.socketpair()
        # Our reads end with the sandbox only if no other process keeps its end of the socket pair open.
        with ours, theirs:
            self._process = self._maker.start(theirs.fileno(), memory, self._packages)
            self._fd, self._memory = ours.detach(), memory
        ready = self._receive(_START_SECONDS)
        self.version, self.packages = str(ready.get("ready")), ready.get("packages", {})

    def close(self) -> str:
        """Kill the sandbox with all its processes; return what it wrote to standard error, "" if none is running."""
        process, self._process, self._is_dismissed = self._process, None, False
        if process is None:
            return ""
        os.close(self._fd)
        # The group may be gone already; macOS reports a group of zombies as not permitted.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # A container outlives the killed `docker run` that started it.
        self._maker.end(process)
        assert process.stderr is not None
        with process.stderr as errors:
            return errors.read(_MAX_COMPLAINT_BYTES).decode(errors="replace").strip()


# ---- the kinds of sandboxes


BUBBLEWRAP = "bwrap"
"""The default kind of sandbox."""

_MEMORY_OF_QUESTION = 512 << 20
"""Memory in bytes for a container that is started only to determine its versions."""


def try_sandbox(maker: SandboxMaker, packages: tuple[str, ...] = ()) -> SandboxCell:
    """A sandbox that has been started and stopped, to determine its `version` and `packages`.

    Raises `UnavailableError` if such a sandbox does not work on this machine.
    """
    cell = SandboxCell(maker, packages)
    try:
        cell.start(_MEMORY_OF_QUESTION, _TRIED)
    except LostError as error:
        raise UnavailableError(f"{error}; nothing was executed") from error
    finally:
        cell.close()
    return cell


def name_of(kind: str, maker: SandboxMaker) -> str:
    """The sandbox's name in grades: its kind and its Python version. Raises `UnavailableError` as `try_sandbox`."""
    return f"{kind} python{try_sandbox(maker).version}"


def sandbox_status() -> str:
    """A sentence that says which sandbox works on this machine, or why none does. Bubblewrap is tried."""
    try:
        return f"programs run in {name_of(BUBBLEWRAP, bubblewrap)}"
    except UnavailableError as error:
        return f"programs: {error}"


def sandbox_maker(word: str | None) -> tuple[str, SandboxMaker]:
    """Return the kind of sandbox that `word` names, by default bubblewrap, and its maker. Raises `UnavailableError`."""
    kind, _, image = (word or BUBBLEWRAP).partition(":")
    if kind == BUBBLEWRAP and not image:
        return kind, bubblewrap
    if kind in ENGINES:
        return kind, ContainerEngine(kind, image)
    raise UnavailableError(
        f"unknown sandbox {visible(kind, 60)!r}; expected one of bwrap, {', '.join(ENGINES)} ({ENGINES[0]}:IMAGE)"
    )
