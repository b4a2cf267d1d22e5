"""How late a loop comes to its sockets: the share of time that it spends elsewhere, by the length of the absence.

A token that arrives while the loop is busy is stamped late by the rest of that absence (user stamps), or merged with
the next one (kernel stamps). So each absence counts by its length, and time spent waiting for sockets counts as 0.
Gaps between tokens that are shorter than some four times the lag say more about the client than about the server.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

_STEPS = 4
"""Buckets to a factor of two: a quantile is exact to 19 %, rounded up."""

_SHORTEST_S = 1e-6


class Lag(NamedTuple):
    """Seconds. A token that comes at a random moment waits for at most `p50` in half of all cases."""

    p50: float
    p99: float


class LagMeter:
    """Told when the loop polls its sockets and when it comes back from that."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._busy: dict[int, float] = {}  # seconds of absences by bucket
        self._waited = 0.0
        self._since: float | None = None
        self._polling_since = clock()

    def polls(self) -> None:
        """The loop looks at its sockets now."""
        now = self._polling_since = self._clock()
        if self._since is not None and (absent := now - self._since) > _SHORTEST_S:
            bucket = math.ceil(math.log2(absent / _SHORTEST_S) * _STEPS)
            self._busy[bucket] = self._busy.get(bucket, 0.0) + absent

    def polled(self) -> None:
        """It has looked; what came until now is read at once."""
        now = self._since = self._clock()
        self._waited += now - self._polling_since

    def lag(self) -> Lag:
        """The quantiles so far; zeros before the first poll."""
        return Lag(self._quantile(0.5), self._quantile(0.99))

    def _quantile(self, q: float) -> float:
        owed = q * (self._waited + sum(self._busy.values())) - self._waited
        if owed <= 0:
            return 0.0
        for bucket in sorted(self._busy):
            owed -= self._busy[bucket]
            if owed <= 1e-12:
                break
        return float(_SHORTEST_S * 2 ** (bucket / _STEPS))
