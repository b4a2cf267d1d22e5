"""Receive stamps of the kernel as times of the monotonic clock."""

from __future__ import annotations

import struct
import time
from array import array
from collections.abc import Sequence

SO_TIMESTAMPNS = 35
"""Linux: a message brings a `struct timespec` of its receipt, by CLOCK_REALTIME."""


_TIMESPEC = struct.Struct("qq")


def stamp_now() -> bytes:
    """A stamp as the kernel's, of this moment."""
    return array("q", divmod(time.time_ns(), 1_000_000_000)).tobytes()


class ClockOffset:
    """Receive stamps (CLOCK_REALTIME) as seconds of the monotonic clock, whatever happens to the wall clock."""

    def __init__(self) -> None:
        self._seconds = 0
        self._nanoseconds = 0
        self._measure()

    def _measure(self) -> None:
        readings = []
        for _ in range(5):
            before = time.monotonic_ns()
            wall = time.time_ns()
            after = time.monotonic_ns()
            readings.append((after - before, wall - (before + after) // 2))
        self._seconds, self._nanoseconds = divmod(min(readings)[1], 1_000_000_000)
        self._measured = time.monotonic()

    def monotonic(self, stamps: list[bytes], since: float) -> Sequence[float]:
        """The stamps' times in order, all later than `since` or a little before it.

        Where one is not, or lies in the future, the wall clock was set meanwhile, and all are taken for now.
        """
        if not stamps:
            return ()
        now = time.monotonic()
        if now > self._measured + 1.0:
            self._measure()
        if len(stamps) == 1:
            second, nanosecond = _TIMESPEC.unpack(stamps[0])
            arrived = second - self._seconds + (nanosecond - self._nanoseconds) * 1e-9
            if since - 1.0 <= arrived <= now + 0.001:
                return (arrived,)
        seconds, offset = self._seconds, self._nanoseconds
        shift = seconds + offset * 1e-9  # rounded to a quarter of a microsecond, the same for all
        times = [second - shift + nanosecond * 1e-9 for second, nanosecond in _TIMESPEC.iter_unpack(b"".join(stamps))]
        if max(times) > now + 0.001 or min(times) < since - 1.0:
            self._measure()
            return [now] * len(times)
        times.sort()  # the wall clock is slewed while they come, and may go back by microseconds
        return times
