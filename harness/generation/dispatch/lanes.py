"""The endpoints of a run: which of them may get a request now, and how long the others must wait. No I/O.

Each endpoint is a *lane*. What a failure means for it:

| state | requests in flight | begins | ends |
| --- | --- | --- | --- |
| open | at most `pace.limit` | | |
| paused | none new until `opens_at` | a Retry-After, or all slots rest after 429s | by time |
| set aside | one at a time, after pauses that double | failures in a row (`SET_ASIDE_AFTER`) | any answer: open |
| left | none new; those in flight finish | removed from the user's list | never: if it returns, it gets a new lane |

Two signals get two responses: a 429, 503 or 529 means "slow down" (`too_many_requests` lets slots rest); other failures
mean "it may be down". A request goes to the lane with the fewest requests in flight. The share of a lane that is set
aside is distributed among the others, whose shares at most double. When all lanes are set aside, the run's patience
starts to run out; any answer stops the count.

Invariant: each `Flight` that `sent` returns is passed to `answered_by`, `failed` or `cancelled` once, so that
`in_flight` is correct.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Arriving
from harness.client.protocol.failures import RequestFailed
from harness.generation.dispatch.retry import Sign, longest_backoff, sign_of
from harness.generation.dispatch.state import HOPELESS_QUESTIONS, Flight, Lane, Past, Work
from harness.generation.dispatch.too_many_requests import Pace
from harness.generation.run_progress import EndpointProgress
from harness.generation.settings import Patience

SET_ASIDE_AFTER = 5
"""An endpoint is set aside after this many failures in a row, or after a quarter of its share if that is more, since
many requests in flight may fail at the same time; after one unreadable reply, if no other reply has come: the next one
may cost as much.
"""

HOPELESS_REFUSALS = 7
"""A 429 counts as such a failure once its slot was refused this often, after a total of about 5 s of rests."""

LONGEST_PAUSE_S = 3600.0
"""Longest pause, in seconds, that a session waits out if a server requests it; a longer one ends the session."""

MAX_SHARES = 2.0
"""Largest share that an endpoint gets while others are down, as a multiple of its normal share."""


class Lanes:
    """All endpoints of a run. `clock`: monotonic seconds; `jitter`: returns a random number between two bounds.

    batches: whether requests are sent in batches, whose requests are answered together, not one after another.
    n_questions: number of questions in the session.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        concurrency: int,
        patience: Patience,
        clock: Callable[[], float],
        jitter: Callable[[float, float], float] = random.uniform,
        *,
        batches: bool = False,
        n_questions: int = HOPELESS_QUESTIONS,
    ) -> None:
        self._patience = patience
        self._clock = clock
        self._jitter = jitter
        self._batches = batches
        self._hopeless = min(HOPELESS_QUESTIONS, n_questions)
        self._down_since: float | None = None
        """Since when all endpoints have been set aside and the patience has run; None while any is not."""
        self._concurrency = concurrency
        self._lanes = [Lane(endpoint=endpoint, pace=Pace(concurrency, clock, jitter)) for endpoint in endpoints]
        self.answered = False
        """Whether any request of this session was answered."""
        self._share_out()

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes)

    # ---- changes while the run goes on

    def replace(self, endpoints: Sequence[Endpoint]) -> tuple[list[str], list[str]]:
        """Use these endpoints from now on, at least one. Returns the base URLs that (joined, left).

        A known base URL keeps its history; one that left and returns starts with an empty history.
        """
        listed = {endpoint.base_url: endpoint for endpoint in endpoints}
        joined, left = dict(listed), []
        for lane in self._present():
            url = lane.endpoint.base_url
            if url in listed:
                lane.endpoint = joined.pop(url)
            else:
                lane.has_left = True  # Marked, not removed, because it is shown as having left.
                left.append(url)
        for endpoint in joined.values():
            self._lanes.append(Lane(endpoint=endpoint, pace=Pace(1, self._clock, self._jitter)))
        self._share_out()
        self._update_patience()
        return list(joined), left

    # ---- sending

    def available(self) -> list[Lane]:
        """Lanes that may be sent a request now, those with the fewest requests in flight first."""
        now = self._clock()
        lanes = [lane for lane in self._lanes if now >= lane.opens_at and lane.in_flight < lane.limit]
        return sorted(lanes, key=lambda lane: lane.in_flight)

    def advance(self) -> None:
        """Advance the pace of every lane to the current time."""
        now = self._clock()
        for lane in self._lanes:
            lane.pace.advance(now)

    def working(self) -> list[Lane]:
        """The lanes whose endpoints are processing the queue, as far as is known."""
        now = self._clock()
        return [lane for lane in self._lanes if not (lane.has_left or lane.set_aside or now < lane.opens_at)]

    def record_sent(self, lane: Lane, work: Work) -> Flight:
        """Record a request for a sample to the endpoint of this lane, and return it.

        Pass it to exactly one of `cancelled`, `answered_by` and `failed`.
        """
        work.requests += 1
        lane.history.n_sent += 1
        lane.history.in_flight[lane.history.n_sent] = work.task[:2]
        return Flight(
            work, lane, self._clock(), work.requests, lane.pace.record_sent(), lane.history.n_sent, Arriving()
        )

    def cancelled(self, flight: Flight) -> None:
        """Record that we ended a request ourselves, which says nothing about the endpoint."""
        del flight.lane.history.in_flight[flight.number]
        flight.lane.pace.ended(flight.refusals)

    def answered_by(self, flight: Flight, *, is_reply: bool = True) -> None:
        """Record that the endpoint answered. is_reply: False if it rejected this one request."""
        lane = flight.lane
        lane.pace.answered(flight.refusals)
        del lane.history.in_flight[flight.number]
        if is_reply:
            for each in self._lanes:  # a question that was answered anywhere is valid
                each.history.first_failed.pop(flight.task[:2], None)
            lane.history.answered(flight.number, flight.task[:2])
        lane.n_done += 1
        self.note_answer(lane)
        if lane.set_aside:
            lane.set_aside = False
            self._share_out()

    def note_answer(self, lane: Lane) -> None:
        """Record that the endpoint works, as even a step of an unfinished sample shows."""
        lane.failures_in_row = lane.n_waits = 0
        lane.lists = False
        self._down_since = None
        self.answered = True

    def listed(self, url: str) -> None:
        """Record that the endpoint of this base URL lists the model."""
        for lane in self._present():
            lane.lists |= lane.endpoint.base_url == url

    def failed(self, flight: Flight, failure: RequestFailed, *, counts: bool = True) -> None:
        """Record a failed request that will be retried.

        The endpoint may be paused (Retry-After), lose slots for a while (429), or be set aside (too many failures).
        counts: whether the failure counts toward setting the endpoint aside; if the endpoint is set aside already, it
        does.
        """
        now, lane = self._clock(), flight.lane
        lane.n_failed += 1
        if now >= lane.retry_after_ends or failure.retry_after is not None:  # a stated pause is the best explanation
            lane.last_failure = failure
        # A request that was sent before the pause ended is not the attempt due after the pause.
        if flight.sent_at >= lane.retry_after_ends:
            lane.try_due = False
        if failure.retry_after is not None:
            self._pause(lane, now, failure.retry_after)
        if failure.kind == "rate_limited" and counts:
            # Waiting did not help; an endpoint that refuses forever counts as down.
            counts = self.has_waited(flight, failure)
            lane.pace.refused(flight.refusals)
        else:
            counts = counts or (lane.set_aside and not lane.lists)
            lane.pace.ended(flight.refusals)
        lane.failures_in_row += counts
        del lane.history.in_flight[flight.number]
        # Requests that were in flight when the lane was set aside fail together; they do not lengthen its pause.
        is_news = flight.sent_at >= lane.down_at
        is_doubtful = sign_of(failure) == "unreadable" and not lane.history.has_answered(None)
        threshold = 1 if is_doubtful else max(SET_ASIDE_AFTER, lane.share // 4)
        if counts and is_news and lane.failures_in_row >= threshold:
            self._set_aside(lane, now)
        self._update_patience()

    def _pause(self, lane: Lane, now: float, seconds: float) -> None:
        """Send this endpoint nothing for the number of seconds in its Retry-After."""
        # A little longer, so that not all clients return at the same time.
        until = now + seconds + self._jitter(0.0, min(1.0, 0.1 * seconds))
        lane.retry_after_ends = max(lane.retry_after_ends, until)
        lane.opens_at = max(lane.opens_at, until)
        # `failure_to_end` waits for one attempt after the pause; after the patience, a further pause earns no more.
        lane.try_due = self._down_since is None or now - self._down_since < self.patience

    def _set_aside(self, lane: Lane, now: float) -> None:
        """Send this endpoint one request at a time from now on, each after a pause that doubles until it answers."""
        lane.set_aside, lane.down_at = True, now
        lane.n_waits += 1
        longest = longest_backoff(self._patience, lane.n_waits)
        lane.opens_at = max(lane.opens_at, now + self._jitter(longest / 2, longest))
        self._share_out()

    def sign_and_past(self, flight: Flight, failure: RequestFailed, *, proven: bool) -> tuple[Sign, Past]:
        """What a failure shows by itself, and the history of its endpoint and question; notes the failure.

        Called once for each failure, before `failed` or `answered_by`. proven: whether a sample of the question was
        ever answered.
        """
        lane, history = flight.lane, flight.lane.history
        flight.work.refusals += failure.kind == "rate_limited"
        sign = sign_of(failure, probing=lane.set_aside, has_waited=self.has_waited(flight, failure))
        if self._batches and sign == "faulty":
            sign = "broken"  # the next batch may take hours
        is_news = sign not in ("too long", "runaway")
        past = history.failed(flight.number, flight.task[:2], proven=proven) if is_news else "known"
        if lane.lists and failure.status is None and past in ("known", "alone"):
            past = "others pass"  # the model list did: a server that is up closes, resets or stalls these requests
        # Sampling options differ by benchmark, so a server may reject all requests of one and answer those of another.
        benchmark = flight.task.benchmark if sign == "rejected" else None
        if self._batches or sign == "no account" or not history.has_answered(benchmark):
            alike = history.alike[benchmark, failure.signature]
            alike.add(flight.task[:2])
            # Earlier requests may still be answered; one that is sent alone shows that the failure outlasts them.
            is_last = next(iter(history.in_flight)) == flight.number
            is_proof = is_last if sign == "rejected" else lane.set_aside and flight.sent_at >= lane.down_at
            is_hopeless = (self._batches and sign != "unreadable") or (len(alike) >= self._hopeless and is_proof)
            ends_all = sign in ("refused", "no account", "unreadable")
            lane.refuses |= ends_all and is_hopeless
            others = [other for other in self._present() if other is not lane]
            if any(o.history.has_answered(benchmark) or (ends_all and not o.refuses) for o in others):
                return sign, "spare"
            return sign, "hopeless" if is_hopeless else "new"
        return sign, past

    @staticmethod
    def has_waited(flight: Flight, failure: RequestFailed) -> bool:
        """Whether a request that got a 429 was sent after a wait and with no other question in flight, or whether its
        sample has been refused often.
        """
        if flight.work.refusals % HOPELESS_REFUSALS == HOPELESS_REFUSALS - 1:
            return True
        # This request counts until `failed` removes it.
        is_alone = len({*flight.lane.history.in_flight.values()}) == 1
        return is_alone and (failure.retry_after is not None or flight.refusals >= HOPELESS_REFUSALS)

    # ---- hope

    def failure_to_end(self) -> str | None:
        """Return why the session should end if all endpoints have been set aside for longer than the patience, else
        None.

        It should not end while a request is in flight, since a long reply may outlast the patience (but not its own
        deadlines), nor before each endpoint that requested a pause has been tried once more.
        """
        if self._down_since is None:
            return None
        now, present = self._clock(), self._present()
        if now - self._down_since < self.patience or any(lane.try_due or lane.in_flight for lane in present):
            return None
        return f"no request has been answered for {now - self._down_since:.0f} s ({self._last_words})"

    def pause_to_end(self) -> str | None:
        """Return why the session should end if every endpoint requests a pause above `LONGEST_PAUSE_S`, else None.

        Requests in flight finish first.
        """
        now, present = self._clock(), self._present()
        soonest = min(lane.retry_after_ends for lane in present) - now
        if soonest <= LONGEST_PAUSE_S or any(lane.in_flight for lane in present):
            return None
        return (
            f"no endpoint will accept requests within the next hour: {self._last_words}; run the same command again "
            "later"
        )

    @property
    def _last_words(self) -> str:
        return "; ".join(f"{lane.endpoint.base_url}: {lane.last_failure}" for lane in self._present())

    @property
    def down(self) -> bool:
        """Whether every endpoint is set aside."""
        return all(lane.set_aside for lane in self._present())

    @property
    def last_failures(self) -> list[RequestFailed | None]:
        """The last failure of each endpoint in use; None for an endpoint without a failure."""
        return [lane.last_failure for lane in self._present()]

    @property
    def patience_left(self) -> float | None:
        """Seconds until `failure_to_end` ends the session if nothing is answered; None while an endpoint is in use."""
        if self._down_since is None:
            return None
        # An endpoint that requested a pause is tried once more after it, no matter how long the pause is.
        tries = (lane.opens_at for lane in self._present() if lane.try_due)
        return max(0.0, max((self._down_since + self.patience, *tries)) - self._clock())

    @property
    def unreachable(self) -> bool:
        """Whether nothing was ever answered, and each endpoint's last failure is that it could not be reached."""
        return not self.answered and all(failure and failure.kind == "connect" for failure in self.last_failures)

    def next_change(self) -> float | None:
        """Seconds until a paused endpoint may be sent a request; None if no endpoint is paused."""
        now = self._clock()
        changes = (lane.opens_at if lane.opens_at > now else lane.pace.rest_ends for lane in self._present())
        return min((change - now for change in changes if change is not None and change > now), default=None)

    @property
    def patience(self) -> float:
        """Seconds for which all endpoints may be set aside."""
        if self.answered:
            return self._patience.outage
        present = [(lane.endpoint, failure) for lane in self._present() if (failure := lane.last_failure)]
        refuses_here = any(endpoint.is_here and not failure.sent for endpoint, failure in present)
        return self._patience.before_reply("starting" if refuses_here else each.hope for _, each in present)

    def progress(self) -> tuple[EndpointProgress, ...]:
        """The state of each endpoint, for the display and `harness status`."""
        now = self._clock()
        return tuple(
            EndpointProgress(
                base_url=lane.endpoint.base_url,
                state=lane.state(now),
                in_flight=lane.in_flight,
                limit=lane.limit,
                done=lane.n_done,
                failed=lane.n_failed,
                why=lane.last_failure.message if lane.last_failure is not None and lane.state(now) != "open" else "",
                wait_s=max(0.0, lane.pause(now)),
            )
            for lane in self._lanes
        )

    def _present(self) -> list[Lane]:
        return [lane for lane in self._lanes if not lane.has_left]

    def _share_out(self) -> None:
        """Divide the concurrency among the lanes."""
        present = self._present()
        up = sum(not lane.set_aside for lane in present)
        for lane in present:
            share = self._concurrency / len(present)
            # At least one: otherwise one of many endpoints might never get a request, and would not be found to be
            # down.
            lane.share = max(1, round(share))
            most = lane.share
            if not lane.set_aside and up < len(present):
                most = max(most, round(min(MAX_SHARES * share, self._concurrency / up)))
            lane.pace.set_ceiling(most)

    def _update_patience(self) -> None:
        """Start the patience if every endpoint is now set aside; stop it if any is not."""
        if not self.down:
            self._down_since = None
        elif self._down_since is None:
            self._down_since = self._clock()
