"""Requests and tokens per minute as a policy: how long to wait before the next request. No I/O; the clock is given.

Two buckets that fill evenly. A request needs a whole request in the one and anything at all in the other; it is
charged what it is expected to cost, and the difference once its usage is known. So no minute holds more than
`requests` requests, and tokens stay at `tokens` a minute on average, one request's cost being the overshoot.
"""

from __future__ import annotations

from collections.abc import Callable

MINUTE_S = 60.0

SHORTEST_WAIT_S = 1e-6
"""Seconds; a shorter wait is none, since sums of floats stop that short of the whole."""


class _Bucket:
    """Holds up to one second's worth, one at least. Filled so that no minute takes out more than `per_minute`."""

    def __init__(self, per_minute: float, now: float) -> None:
        self.capacity = max(1.0, per_minute / MINUTE_S)
        spread = per_minute - self.capacity if self.capacity > 1 else per_minute
        self.per_second = spread / MINUTE_S
        self.level = self.capacity
        self._at = now

    def fill(self, now: float) -> None:
        self.level = min(self.capacity, self.level + max(0.0, now - self._at) * self.per_second)
        self._at = max(self._at, now)

    def seconds_to(self, level: float) -> float:
        return max(0.0, (level - self.level) / self.per_second)


class RateLimit:
    """requests, tokens: per minute, above 0; None = no limit. clock: monotonic seconds.

    Tokens are prompt and completion together, as providers count them.
    """

    def __init__(self, requests: float | None, tokens: float | None, clock: Callable[[], float]) -> None:
        self._clock = clock
        now = clock()
        self._requests = None if requests is None else _Bucket(requests, now)
        self._tokens = None if tokens is None else _Bucket(tokens, now)

    def wait(self) -> float:
        """Seconds until a request may be sent; 0: now."""
        if self._requests is None and self._tokens is None:
            return 0.0
        now = self._clock()
        waits = [0.0]
        if self._requests is not None:
            self._requests.fill(now)
            waits.append(self._requests.seconds_to(1.0))
        if self._tokens is not None:
            self._tokens.fill(now)
            waits.append(self._tokens.seconds_to(0.0))
        longest = max(waits)
        return longest if longest > SHORTEST_WAIT_S else 0.0

    def sent(self, expected_tokens: float) -> None:
        """A request was sent that is expected to cost `expected_tokens`."""
        self.wait()
        if self._requests is not None:
            self._requests.level -= 1.0
        self.settle(0.0, expected_tokens)

    def settle(self, expected_tokens: float, tokens: float) -> None:
        """A request that was expected to cost `expected_tokens` cost `tokens`: 0 when it was refused."""
        if self._tokens is not None:
            self._tokens.fill(self._clock())
            self._tokens.level = min(self._tokens.capacity, self._tokens.level + expected_tokens - tokens)
