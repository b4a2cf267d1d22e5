"""The endpoints of a run as the network thread sees them: who has room, who must be left alone, for how long. No I/O.

Two signals, two answers: 429 means "slow down" (`harness.client.retry.Pace`: pause the endpoint, halve what it is
given, grow back slowly); other failures mean "it may be down": after several in a row the endpoint is set aside and
probed by single requests at growing intervals. Work goes to the endpoint with the least outstanding by weight.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.client.endpoint import Endpoint
from harness.client.reply import RequestFailed
from harness.client.retry import Pace
from harness.generation.progress import EndpointProgress, EndpointState
from harness.generation.settings import Patience

SET_ASIDE_AFTER = 5
"""Failures in a row after which an endpoint is set aside; a quarter of its share if that is more."""


@dataclass(slots=True)
class Lane:
    """One endpoint. share: requests in flight it gets when all is well; pace: what it gets at present.

    refusals_in_row: 429s since the last answer. waits: times it was held since then.
    until: monotonic second before which nothing is sent. asked_until: the same, as far as the server asked for it.
    down_at: when it was set aside; requests sent before that tell nothing new.
    """

    endpoint: Endpoint
    share: int
    pace: Pace
    in_flight: int = 0
    failures_in_row: int = 0
    refusals_in_row: int = 0
    waits: int = 0
    until: float = float("-inf")
    asked_until: float = float("-inf")
    set_aside: bool = False
    down_at: float = float("-inf")
    n_done: int = 0
    n_failed: int = 0
    last_failure: RequestFailed | None = None

    @property
    def limit(self) -> int:
        """Requests in flight that it is given at present."""
        return 1 if self.set_aside else self.pace.limit

    def has_room(self, now: float) -> bool:
        return self.in_flight < self.limit and self.pause(now) <= 0

    def pause(self, now: float) -> float:
        """Seconds until a request may be sent; 0 or less: now."""
        return max(self.until - now, self.pace.pause())

    def state(self, now: float) -> EndpointState:
        return "set aside" if self.set_aside else "paused" if self.pause(now) > 0 else "open"


class Lanes:
    """All endpoints of a run. `clock`: monotonic seconds; `jitter`: a random number between two bounds."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        concurrency: int,
        patience: Patience,
        clock: Callable[[], float],
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        total = sum(e.weight for e in endpoints)
        shares = [max(1, round(concurrency * e.weight / total)) for e in endpoints]
        self._lanes = [Lane(e, s, Pace(s, clock)) for e, s in zip(endpoints, shares, strict=True)]
        self._patience = patience
        self._clock = clock
        self._jitter = jitter
        self._down_since: float | None = None
        self.answered = False
        """Whether any request of this session was answered."""

    def __getitem__(self, place: int) -> Lane:
        return self._lanes[place]

    def __len__(self) -> int:
        return len(self._lanes)

    def with_room(self) -> list[int]:
        """Places of the endpoints that may be sent a request now, least outstanding by weight first."""
        now = self._clock()
        free = [i for i, lane in enumerate(self._lanes) if lane.has_room(now)]
        return sorted(free, key=lambda i: (self._lanes[i].in_flight + 1) / self._lanes[i].endpoint.weight)

    def available(self, place: int) -> bool:
        """Whether the endpoint is working off the queue, as far as one knows."""
        return self._lanes[place].state(self._clock()) == "open"

    def sent(self, place: int) -> None:
        self._lanes[place].in_flight += 1

    def cancelled(self, place: int) -> None:
        """A request was ended by us: it says nothing about the endpoint."""
        self._lanes[place].in_flight -= 1

    def answered_by(self, place: int) -> None:
        """The endpoint answered, be it with a refusal of one payload."""
        lane = self._lanes[place]
        lane.in_flight -= 1
        lane.n_done += 1
        lane.failures_in_row = lane.refusals_in_row = lane.waits = 0
        lane.set_aside = False
        lane.pace.succeeded()
        self._down_since = None
        self.answered = True

    def failed(self, place: int, failure: RequestFailed, sent_at: float) -> None:
        """The request sent at `sent_at` came to nothing for a reason that lies with the endpoint or the way to it."""
        now, lane = self._clock(), self._lanes[place]
        lane.in_flight -= 1
        lane.n_failed += 1
        lane.last_failure = failure
        asked = failure.retry_after
        if asked is not None:  # and a little more, so that not all clients come back at once
            asked += self._jitter(0.0, min(1.0, 0.1 * asked))
            lane.asked_until = max(lane.asked_until, now + asked)
            lane.until = max(lane.until, lane.asked_until)
        if failure.kind == "rate_limited":
            slowest = lane.pace.limit == 1  # slower is impossible: an endpoint that says no for ever is down
            lane.pace.rate_limited(asked if asked is not None else self._unasked_pause(lane))
            lane.refusals_in_row += 1
            lane.failures_in_row += slowest
        else:
            lane.failures_in_row += 1
        if lane.failures_in_row >= max(SET_ASIDE_AFTER, lane.share // 4) and sent_at >= lane.down_at:
            lane.set_aside = True
            lane.down_at = now
            self.hold(place)
        if self._down_since is None and all(one.set_aside for one in self._lanes):
            self._down_since = now

    def hold(self, place: int) -> None:
        """Leave the endpoint alone for a while, longer each time until it answers."""
        lane = self._lanes[place]
        ceiling = min(self._patience.longest_wait, self._patience.first_wait * 2.0 ** min(lane.waits, 30))
        lane.waits += 1
        lane.until = max(lane.until, self._clock() + self._jitter(ceiling / 2, ceiling))

    def gave_up(self) -> str | None:
        """Why no more is to be hoped for: every endpoint has been set aside for longer than the patience lasts."""
        now = self._clock()
        if self._down_since is None or any(now < lane.asked_until for lane in self._lanes):
            return None
        if now - self._down_since < self._patience_now():
            return None
        last = "; ".join(f"{lane.endpoint.base_url}: {lane.last_failure}" for lane in self._lanes)
        return f"no request has been answered for {now - self._down_since:.0f} s ({last})"

    @property
    def unreachable(self) -> bool:
        """Nothing was ever answered, and every endpoint's last failure was that it could not be reached at all."""
        return not self.answered and all(e.last_failure and e.last_failure.kind == "connect" for e in self._lanes)

    def next_change(self) -> float | None:
        """Seconds until an endpoint may be sent something again, or the patience ends; None if nothing is pending."""
        now = self._clock()
        times = [pause for lane in self._lanes if (pause := lane.pause(now)) > 0]
        if self._down_since is not None and (left := self._down_since + self._patience_now() - now) > 0:
            times.append(left)
        return min(times) if times else None

    def progress(self) -> tuple[EndpointProgress, ...]:
        now = self._clock()
        return tuple(
            EndpointProgress(
                base_url=lane.endpoint.base_url,
                state=lane.state(now),
                in_flight=lane.in_flight,
                limit=lane.limit,
                done=lane.n_done,
                failed=lane.n_failed,
            )
            for lane in self._lanes
        )

    def _unasked_pause(self, lane: Lane) -> float:
        """Seconds to wait after a 429 that names no time: short at first, since one may be an accident."""
        ceiling = min(self._patience.longest_wait, self._patience.first_wait * 2.0 ** min(lane.refusals_in_row - 2, 30))
        return self._jitter(ceiling / 2, ceiling)

    def _patience_now(self) -> float:
        return self._patience.outage if self.answered else self._patience.start_up
