"""The deadline of a process's answer. Time in which the machine gives the process no processor does not count."""

from __future__ import annotations

import os
import time


class Deadline:
    """When the answer of a process is late; `close` it with the process.

    ends_at: when it is late, by the monotonic clock, as far as is known. `_waited`: seconds for which the process had
    waited for a processor when `ends_at` was set.
    """

    def __init__(self, pid: int) -> None:
        self.ends_at = 0.0
        self._schedstat = _schedstat_of(pid)
        self._waited = 0.0

    def start(self, seconds: float) -> None:
        """The next answer is late `seconds` from now."""
        self.ends_at = time.monotonic() + seconds
        self._waited = self._seconds_without_processor()

    def is_over(self) -> bool:
        """Whether the answer is late.

        Time without a processor puts `ends_at` off, so that a busy machine changes no verdict.
        """
        if time.monotonic() < self.ends_at:
            return False
        waited = self._seconds_without_processor()
        self.ends_at += waited - self._waited
        self._waited = waited
        return time.monotonic() >= self.ends_at

    def close(self) -> None:
        """Close the file of the system's report."""
        if self._schedstat is not None:
            os.close(self._schedstat)
            self._schedstat = None

    def _seconds_without_processor(self) -> float:
        """Seconds for which the process was ready to run and had none; 0 if the system does not report them."""
        if self._schedstat is None:
            return 0.0
        try:
            return int(os.pread(self._schedstat, 100, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0


def _schedstat_of(pid: int) -> int | None:
    """The open file in which Linux reports how long a process waited for a processor; None on other systems."""
    try:
        return os.open(f"/proc/{pid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
