"""When requests may be sent: at most so many per minute, or at random times with a mean rate. No I/O."""

from __future__ import annotations

import random
from collections.abc import Callable

MINUTE_S = 60.0

SHORTEST_WAIT_S = 1e-6
"""A wait of at most this many seconds counts as no wait, because it is a rounding error in a sum of times."""


class RateLimit:
    """Says when the next request may be sent under a limit on requests per minute (a token bucket).

    The capacity of the bucket is the number of requests allowed in one second (at least 1). It fills evenly, so at most
    `per_minute` are sent in any 60 seconds. per_minute: above 0; None = no limit. clock: monotonic seconds.
    """

    def __init__(self, per_minute: float | None, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._capacity = max(1.0, (per_minute or 0.0) / MINUTE_S)
        # A full bucket can be emptied at once: capacity + 60 s × per_second = per_minute.
        spread = (per_minute or 0.0) - (self._capacity if self._capacity > 1 else 0.0)
        self._per_second = spread / MINUTE_S
        self._level = self._capacity
        self._at = clock()

    def wait(self) -> float:
        """Seconds until a request may be sent; 0: now."""
        if not self._per_second:
            return 0.0
        now = self._clock()
        self._level = min(self._capacity, self._level + (now - self._at) * self._per_second)
        self._at = now
        wait = (1.0 - self._level) / self._per_second
        return wait if wait > SHORTEST_WAIT_S else 0.0

    def record_sent(self) -> float | None:
        """Charge for a request that is sent. Returns the time for which it was planned; None: it was not planned."""
        self.wait()
        self._level -= 1.0
        return None


class PoissonArrivals(RateLimit):
    """Plans requests at random times, `per_second` on average, whether or not earlier ones have ended (an open loop).

    A request that cannot be sent at its time is sent as soon as possible, and the later ones keep their times. seed: of
    the times.
    """

    def __init__(self, per_second: float, clock: Callable[[], float], seed: str) -> None:
        super().__init__(None, clock)
        self._random, self._rate = random.Random(seed), per_second  # noqa: S311 - times, not secrets
        self._next = self._clock() + self._random.expovariate(self._rate)

    def wait(self) -> float:
        """Seconds until the next request arrives; 0: it has arrived."""
        wait = self._next - self._clock()
        return wait if wait > SHORTEST_WAIT_S else 0.0

    def record_sent(self) -> float:
        """The time for which the request that is sent was planned; plan the next one."""
        planned = self._next
        self._next += self._random.expovariate(self._rate)
        return planned
