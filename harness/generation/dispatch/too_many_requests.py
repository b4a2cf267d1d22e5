"""How many requests an endpoint that answers 429 ("too many requests") may have in flight.

No I/O; the clock is a parameter. `lanes` has one `Pace` per endpoint. `retry` decides what happens to the refused
sample itself.

An endpoint has as many *slots* as it may have requests in flight. The slot of a refused request rests before it sends
the next one, and each further refusal makes its rest `GROWTH` times as long; an accepted request takes back
`FORGIVEN` refusals of its slot. So with a limiter of 16 requests, about 16 slots keep working and the others sleep,
while with a server that refuses at random, regardless of what is in flight, every slot gets through after some short
rests. A slot whose rest is over needs *credit*, which is earned by accepted requests and over time; without credit, the
slot rests again without sending a request, unless nothing is in flight. This limits the refusals to about `CREDIT` for
each accepted request. Broken-off streams and 5xx say nothing about the pace and do not change it.

| a slot that is | and then | becomes |
| --- | --- | --- |
| awake | `sent` | in flight |
| in flight | `answered` | awake, with `FORGIVEN` fewer refusals; it earns `CREDIT` |
| in flight | `ended` | awake, with the same refusals |
| in flight | `refused` | resting, with one more refusal |
| resting | its rest is over, with credit or nothing in flight | awake; it uses a credit of 1 |
| resting | its rest is over, without credit | resting, with one more refusal |

Each part exists because simulated runs need it (tests/generation/test_failures.py):

| changed | what it costs |
| --- | --- |
| rests do not grow | a limiter of one slot: 1.3 refusals per sample instead of 0.3 |
| no refusal is forgiven | 50% refused at random, replies of 0.1 s: 2,300 s instead of 23 |
| no credit is needed | 5 requests per second allowed: 3.3 refusals per sample instead of 1.9 |
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

FIRST_REST_S = 0.1
"""Length in seconds of a slot's rest after its first refusal, reduced by a random part of up to half."""

LONGEST_REST_S = 60.0
"""Upper bound of a rest, in seconds."""

GROWTH = 1.7
"""Factor by which each refusal of a slot makes its next rest longer."""

FORGIVEN = 2
"""Refusals that one accepted request takes back. Slots fall asleep only above 2 random refusals in 3."""

CREDIT = 1.2
"""Number of rests that may end in a request for each accepted request."""

CREDIT_S = 5.0
"""Seconds after which one more rest may end in a request: a limiter may be gone long before an hour-long reply ends."""


class Pace:
    """How many requests one endpoint may have in flight: at most `ceiling`. `clock`: monotonic seconds.

    The owner reports each request (`sent`) and how it ended (`answered`, `refused`, or `ended` for anything else), with
    the refusals of its slot, minus those forgiven.
    """

    def __init__(
        self, ceiling: int, clock: Callable[[], float], jitter: Callable[[float, float], float] = random.uniform
    ) -> None:
        self.in_flight = 0
        self._ceiling = ceiling
        self._clock = clock
        self._jitter = jitter
        self._credit = 0.0
        self._credit_at = clock()
        self._resting: list[tuple[float, int]] = []
        """A heap: (monotonic second at which the rest ends, refusals of the slot)."""
        self._awake: list[int] = []
        """The refusals of each awake slot (not resting, no request in flight) that has any."""

    @property
    def limit(self) -> int:
        """Number of requests that may be in flight: one for each slot that is not resting."""
        return max(0, self._ceiling - len(self._resting))

    @property
    def rest_ends(self) -> float | None:
        """Monotonic second at which the next rest ends; None if no slot rests."""
        return self._resting[0][0] if self._resting else None

    def set_ceiling(self, ceiling: int) -> None:
        """Set the maximum number of requests in flight. Excess slots with the longest rests are removed."""
        self._ceiling = ceiling
        self._resting = heapq.nsmallest(max(0, ceiling - self.in_flight), self._resting)

    def advance(self, now: float) -> None:
        """Wake the slots whose rest is over at time `now` (in seconds); those without credit rest again."""
        self._credit = min(self._ceiling, self._credit + (now - self._credit_at) / CREDIT_S)
        self._credit_at = now
        while self._resting and self._resting[0][0] <= now:
            _, refusals = heapq.heappop(self._resting)
            if self._credit >= 1 or not (self.in_flight or self._awake):
                self._credit = max(0.0, self._credit - 1)
                self._awake.append(refusals)
            else:
                self._rest(refusals + 1, now)

    def record_sent(self) -> int:
        """Record that a request is sent; return the refusals of its slot, which the owner passes back when it ends.

        A slot with refusals is used before slots without any, which are not listed.
        """
        self.in_flight += 1
        return self._awake.pop() if self._awake else 0

    def ended(self, refusals: int, forgiven: int = 0) -> None:
        """Record that a request ended in a way that says nothing about the pace, such as a broken-off stream.

        refusals: as `sent` returned them. forgiven: how many of them are taken back.
        """
        self.in_flight -= 1
        if refusals > forgiven:
            self._awake.append(refusals - forgiven)

    def answered(self, refusals: int) -> None:
        """Record that a request was answered."""
        self.ended(refusals, FORGIVEN)
        self._credit = min(self._ceiling, self._credit + CREDIT)

    def refused(self, refusals: int) -> None:
        """Record that a request got a 429."""
        self.in_flight -= 1
        self._rest(refusals + 1, self._clock())

    def _rest(self, refusals: int, now: float) -> None:
        # A float overflows at 2 to the 1024th, which a long outage would reach.
        longest = min(LONGEST_REST_S, FIRST_REST_S * GROWTH ** min(refusals - 1, 30))
        heapq.heappush(self._resting, (now + self._jitter(longest / 2, longest), refusals))
