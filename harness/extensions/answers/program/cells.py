"""The harness's side of a sandbox: one `SandboxCell` keeps a sandbox running and does one job after the other in it.

If a sandbox dies, sends an unexpected message or is silent for too long, it is killed, and the job is done again in a
new one. If that fails too, `SandboxFailedError` is raised, which says nothing about the program.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any, Protocol

from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.extensions.answers.program.inside import frames

_START_SECONDS = 60.0
"""Longest time for starting a sandbox."""

_SILENCE_SECONDS = 60.0
_SILENCE_FACTOR = 40.0
"""A sandbox counts as stuck if it is silent for longer than `_SILENCE_SECONDS` plus `_SILENCE_FACTOR` times the time
limits of all cases of the job. No sound sandbox took as long, even with 20 processes per core."""

_MAX_COMPLAINT_BYTES = 2_000

_MEMORY_MARGIN = 512 << 20
"""Bytes that a sandbox needs beside a program and its tests: two processes of the Python interpreter."""


class SandboxFailedError(Exception):
    """The sandbox itself failed; nothing is known about the program in it."""


class SandboxMaker(Protocol):
    """Starts and ends sandboxes of one kind."""

    def start(self, channel: int, memory: int, /) -> subprocess.Popen[bytes]:
        """Start a sandbox that speaks over the descriptor `channel`; its standard error is a pipe.

        memory: bytes for a program, its tests and the interpreter. Raises `UsageError` if none can be started here.
        """
        ...

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Remove what is left of a sandbox after `process`, which started it, was killed."""
        ...


class SandboxCell:
    """A sandbox that is kept running from job to job. It belongs to one thread.

    _memory: bytes that the running sandbox has. _silence: seconds without a message after which it counts as stuck.
    """

    def __init__(self, maker: SandboxMaker) -> None:
        self._maker = maker
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._memory = 0
        self._silence = _SILENCE_SECONDS
        self.version = ""
        """Version of the sandbox's Python; "" before the first start."""

    def do(self, job: dict[str, Any], work: dict[str, Any]) -> dict[str, Any]:
        """Do a job and return its report. work: the tests, which are sent once the program's process has begun.

        Raises `SandboxFailedError` if two sandboxes failed, `UsageError` if no sandbox can be started.
        """
        limits = job["limits"]
        self._silence = _SILENCE_SECONDS + _SILENCE_FACTOR * (limits["cpu_total"] + limits["sleep"])
        memory = limits["memory"] + limits["tests_memory"] + _MEMORY_MARGIN
        if self._process is not None and memory > self._memory:
            self.close()
        # A second attempt, because a sandbox can die when the machine's memory ends, which is no fault of the program.
        for attempt in (1, 2):
            try:
                with self._job(memory):
                    # At this byte the cell forks, so the job itself is read by the fork and never enters the cell's
                    # memory.
                    self._open_socket().sendall(b"j")
                    self._say(job)
                    begun = self._report()
                    # The program ended before it was ready for its tests.
                    if "end" in begun:
                        return {**begun, "begun": False}
                    self._say(work)
                    return self._report()
            except (SandboxFailedError, OSError) as error:
                self.close()
                if attempt == 2:
                    raise SandboxFailedError(str(error)) from error
        raise AssertionError

    def start(self, memory: int) -> None:
        """Start the sandbox, if none runs. Raises `UsageError` if that fails."""
        if self._process is None:
            self._start(memory)

    @contextlib.contextmanager
    def _job(self, memory: int) -> Iterator[None]:
        """Context manager of a job: starts a sandbox if none runs. At the end the sandbox is ready for the next job, or
        closed if the job failed or left files."""
        self.start(memory)
        try:
            yield
        except BaseException:
            # Messages of a job that was cut off would be read as those of the next one.
            self.close()
            raise
        last = self._hear(self._silence)
        while "over" not in last:  # a further message of the job that has ended
            last = self._hear(self._silence)
        if last.get("used"):  # files are left that the next program would find
            self.close()

    def _say(self, message: Any) -> None:
        try:
            frames.send(self._open_socket().fileno(), message)
        except frames.ClosedError as error:
            raise SandboxFailedError(str(error)) from error

    def _report(self) -> dict[str, Any]:
        """The job's next message. Raises `SandboxFailedError` if the job ended without one or sent none in time."""
        message = self._hear(self._silence)
        if "over" in message:  # before its report
            raise SandboxFailedError(f"the job ended without a report, with the wait status {message['over']}")
        return message

    def _hear(self, seconds: float) -> dict[str, Any]:
        """The next message of the sandbox. Raises `SandboxFailedError` if none comes within `seconds`."""
        fd, deadline = self._open_socket().fileno(), time.monotonic() + seconds
        # poll, not select: select fails for descriptors above 1023, and a grading pool has many.
        poller = select.poll()
        poller.register(fd, select.POLLIN)

        def wait() -> None:
            if not poller.poll(max(deadline - time.monotonic(), 0.0) * 1000):
                raise SandboxFailedError(f"the sandbox sent no message for {seconds:.0f} s")

        try:
            message = frames.receive(fd, wait=wait)
        except frames.ClosedError as error:
            raise SandboxFailedError(f"the sandbox ended: {error}") from error
        if not isinstance(message, dict):
            raise SandboxFailedError("the sandbox sent a message that is no JSON object")
        return message

    def _open_socket(self) -> socket.socket:
        assert self._socket is not None
        return self._socket

    def _start(self, memory: int) -> None:
        """Start a sandbox. Raises `UsageError` if it does not come up."""
        ours, theirs = socket.socketpair()
        try:
            self._process = self._maker.start(theirs.fileno(), memory)
        except BaseException:
            ours.close()
            raise
        finally:
            # Our reads end with the sandbox only if no other process holds its end of the socket pair open.
            theirs.close()
        self._socket, self._memory = ours, memory
        try:
            self.version = str(self._hear(_START_SECONDS).get("ready"))
        except SandboxFailedError as error:
            why = self.close() or str(error)
            # Without a sandbox every verdict would be "undecided", so the command ends instead.
            raise UsageError(f"no sandbox could be started: {visible(why, 300)}; nothing was executed") from error

    def close(self) -> str:
        """Kill the sandbox with all its processes; returns what it wrote to its standard error."""
        process, self._process = self._process, None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if process is None:
            return ""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._maker.end(process)
        assert process.stderr is not None
        with process.stderr as errors:
            return errors.read(_MAX_COMPLAINT_BYTES).decode(errors="replace").strip()
