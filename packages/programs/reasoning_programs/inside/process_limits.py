"""The process of a program, with the limits of its job and the clocks that measure them. All times are in seconds.

A program has a CPU time limit, measured with its process clock (`clock_gettime`), and a sleep limit. Sleep is wall time
minus its CPU time and minus the time in which it, or its supervisor, waited for a processor (`/proc/…/schedstat`). So a
busy machine does not change any verdict.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any


def _open(path: str) -> int:
    """An open descriptor of the file; -1 if it cannot be opened."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


def _processor_wait(schedstat: int, *, if_unreadable: float) -> float:
    """Total seconds for which a process has waited for a processor, from its `schedstat` file."""
    try:
        return int(os.pread(schedstat, 100, 0).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return if_unreadable


class LimitedProcess:
    """The process of a program, and what it has used of its limits.

    pid                         the process's id; 0 if there is none
    limits                      the limits of the job (`grading._job`)
    base                        CPU time of earlier tests, which does not count against this test's limit
    slept                       the program's sleep before its latest answer
    _schedstat, _own_schedstat  descriptors of the files that say how long the program and this process have waited
                                for a processor; -1 for none
    _since, _spent              when the latest request was sent, and the program's CPU time then
    _waited, _own_waited        how long the program and this process had waited for a processor by then
    _last_cpu                   the program's CPU time at the last check
    """

    def __init__(self) -> None:
        self.pid = 0
        self.limits: dict[str, Any] = {}
        self._schedstat, self._own_schedstat = -1, _open("/proc/self/schedstat")
        self.base = self.slept = 0.0
        self._since = self._spent = self._waited = self._own_waited = self._last_cpu = 0.0

    def start_clock(self) -> None:
        """Start measuring the program's sleep until its next answer: record its current wall, CPU and waiting times.

        The CPU time limit is measured from `base`.
        """
        if self._schedstat < 0:
            self._schedstat = _open(f"/proc/{self.pid}/schedstat")
        self._since = time.monotonic()
        self._spent = self.cpu_seconds()
        self._waited = _processor_wait(self._schedstat, if_unreadable=self._waited)
        self._own_waited = _processor_wait(self._own_schedstat, if_unreadable=self._own_waited)

    def cpu_seconds(self) -> float:
        """CPU seconds of all the program's threads; after its end, the last measured value."""
        if self.pid:
            with contextlib.suppress(OSError):  # the process has just ended, and its clock with it
                self._last_cpu = time.clock_gettime((~self.pid << 3) | 2)  # as clock_getcpuclockid(3) makes it
        return self._last_cpu

    def sleeping(self) -> float:
        """Seconds for which the program has slept since the latest request.

        This is wall time minus CPU time and minus the time for which it or this process waited for a processor, because
        a program that has answered cannot continue before this process runs.
        """
        cpu = self.cpu_seconds()
        waited = _processor_wait(self._schedstat, if_unreadable=self._waited) - self._waited
        waited += _processor_wait(self._own_schedstat, if_unreadable=self._own_waited) - self._own_waited
        return max(0.0, time.monotonic() - self._since - (cpu - self._spent) - waited)

    def over(self) -> str:
        """The rule of the limit that the program has exceeded; "" if none."""
        if self.cpu_seconds() - self.base > self.limits["cpu"]:
            return "time limit"
        return "sleep limit" if self.slept + self.sleeping() > self.limits["sleep"] else ""

    def forget(self) -> None:
        """Begin a test or call whose limits do not count earlier ones; its clock has just been started."""
        self.base, self.slept = self._spent, 0.0

    def wait_seconds(self) -> float:
        """Seconds after which the limits must be checked again."""
        cpu_allowed = float(self.limits["cpu"]) - (self.cpu_seconds() - self.base)
        # At least 10 ms, to avoid a busy loop near the limit; at most 1 s, because sleep has a limit too.
        return max(0.01, min(cpu_allowed + 0.01, 1.0))
