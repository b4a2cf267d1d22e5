"""How many requests an endpoint that answers 429 ("too many requests") may have in flight.

No I/O; the clock is a parameter. `lanes` holds one `Pace` for each endpoint. `retry` decides what happens to the
refused sample itself.

A refusal has one of two causes. A limiter allows a number of requests at once, or in a second, and must be obeyed.
Other servers refuse at random, whatever is in flight, and must not slow the run down. A *second opinion* tells the two
apart: one request that is sent right after a refusal, with no reply in between. A limiter that just refused will refuse
again; a server that refuses at random mostly accepts.

| state | a refusal | the state ends |
| --- | --- | --- |
| limited | lowers the limit, pauses the endpoint, asks for an opinion | a third of the opinions accepted: "at random" |
| at random | does nothing | most of the last ~100 requests refused, or one with a Retry-After: "limited" |

A refusal lowers the limit to the number of requests in flight without the refused one. From the last refusal on the
limit rises by 1, 2, 4 … every second, or every two round trips of a refusal if that is longer; after a rise that was
refused, the next rise waits twice as long. The pause doubles with each round of refusals and halves with each accepted
request, so that at most about one request in six is refused. Cut streams and 5xx say nothing about the pace and do not
change it.

Each part of this control is there because simulated runs need it (tests/generation/test_pace.py). In the table, "times"
are the seconds of the run, divided by the seconds in which the limiter would allow it:

| changed | what it costs |
| --- | --- |
| no pause between second opinions that were refused | a limiter of one slot: 37 times, 29 refusals a sample |
| no longer wait after a rise that was refused | a limiter of one slot: 91 times, 1.7 refusals a sample |
| accepted requests do not shorten the pause | five requests a second allowed: 11 to 27 times |
| "at random" never ends | a limiter that sets in later is never obeyed: no end |
| "at random" ends by the last ~30, not ~100 | 50 % refused at random, replies of 0.1 s: up to 541 times, now ≤ 5 |
| it begins at 45 % of 6 opinions, not 1/3 of 4 | 30 % refused at random, replies of 0.1 s: up to 7 times, now 2.6 |
| no second opinions (plain AIMD) | replies of 3 s: 10 times at 10 % refused at random, 296 times at 30 % |
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

import msgspec

State = Literal["limited", "at random"]
"""How the endpoint is believed to refuse: by a limit that must be obeyed, or at random (the module's first table)."""

SETTLED_S = 1.0
"""A request counts as accepted after this many seconds without a refusal, long before its reply is complete.

If refusals take longer, it is twice the time of the slowest refusal.
"""

LONGEST_S = 60.0
"""Upper bound, in seconds, of the time until a request counts as accepted, and of the wait before a rise or opinion."""

OPINIONS = 4.0
"""Number of second opinions that decide; older ones fade."""

ACCEPTED_AGAIN = 1 / 3
"""Refusals are random if more than this fraction of the second opinions is accepted. A limiter accepts few."""

MAX_REFUSED = 0.75
"""Refusals no longer count as random if more than this fraction of the last requests is refused."""

LATELY = 100.0
"""Approximate number of the last requests among which refusals are counted for `MAX_REFUSED`; older ones fade."""

_NEVER = float("-inf")


class Ticket(msgspec.Struct, eq=False):
    """One request in flight.

    lane_number: number of its endpoint. n_replies: how many replies the endpoint had given when the request was sent.
    opinion: the request is a second opinion. settled: it counts as accepted. ended: a reply or failure has come.
    """

    lane_number: int
    sent_at: float
    n_replies: int
    opinion: bool = False
    settled: bool = False
    ended: bool = False


class RisingLimit:
    """The limit on requests in flight, from 1 to `ceiling`, and when it next rises."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.value = ceiling
        self._lowered_at = _NEVER
        self._risen_at = _NEVER
        self._rise_at = _NEVER
        self._rise_after = SETTLED_S
        self._rise_by = 1

    def set_ceiling(self, ceiling: int, *, at_once: bool) -> None:
        """Set the largest number of requests in flight. at_once: raise the limit, unless refusals have lowered it."""
        # A limit that refusals have lowered stays: the user's number does not change what the server allows.
        if at_once and self.value >= self.ceiling:
            self.value = ceiling
        self._rise_by = 1
        self.ceiling = ceiling
        self.value = min(self.value, ceiling)

    def lift(self) -> None:
        """Raise the limit to the ceiling."""
        self.value = self.ceiling

    def rise(self, now: float, in_flight: int, settled_s: float) -> None:
        """Raise the limit by a step, if its last change is long enough ago and the present limit is fully used.

        now: seconds. in_flight: requests under way. settled_s: seconds after which the effect of a rise shows.
        """
        if self.value >= self.ceiling or now < self._rise_at or in_flight < self.value:
            return
        if self._risen_at > self._lowered_at:  # the last rise was not refused
            self._rise_by *= 2
            self._rise_after = settled_s
        self.value = min(self.ceiling, self.value + self._rise_by)
        self._risen_at = now
        self._rise_at = now + self._rise_after

    def fall(self, now: float, in_flight: int, sent_at: float, settled_s: float) -> bool:
        """Lower the limit after the refusal of a request sent at `sent_at`.

        Return whether this refusal begins a new round, which is so if the request was sent after the last round began.
        now: in seconds. in_flight: requests without a reply now. settled_s: smallest number of seconds before the limit
        rises again.
        """
        self.value = min(self.value, max(1, in_flight))
        # A request sent before the last fall met the old limit, so its refusal says nothing new.
        new_round = sent_at > self._lowered_at
        if new_round:
            rise_was_refused = sent_at >= self._risen_at > self._lowered_at
            longer = min(LONGEST_S, 2 * self._rise_after) if rise_was_refused else self._rise_after
            self._rise_after = max(settled_s, longer)
            self._lowered_at = now
        self._rise_by = 1
        self._rise_at = now + self._rise_after
        return new_round


class _SecondOpinions:
    """Decides whether an endpoint refuses requests (429) because of a limit or at random.

    A second opinion is a request that is sent right after a refusal: a limiter refuses it, too. The counts are sums in
    which older requests count less and less.
    """

    def __init__(self) -> None:
        self.state: State = "limited"
        self._refused: Ticket | None = None  # The refused request on which a second opinion is wanted.
        self._asking: Ticket | None = None  # The second opinion in flight.
        self._pause = SETTLED_S / 2
        self._next_at = _NEVER
        self._asked = 0.0
        self._accepted = 0.0
        self._lately_sent = 0.0
        self._lately_refused = 0.0

    @property
    def is_wanted(self) -> bool:
        return self._refused is not None

    def sent(self, ticket: Ticket) -> None:
        """Note a request that is sent; it is the second opinion if one is wanted and no reply came in between."""
        if self._refused is not None:
            # A reply in between has made room, so an acceptance would prove nothing.
            ticket.opinion = self._refused.n_replies == ticket.n_replies
            self._asking = ticket if ticket.opinion else None
            self._refused = None
        self._lately_sent = (1 - 1 / LATELY) * self._lately_sent + 1
        self._lately_refused *= 1 - 1 / LATELY

    def ended(self, ticket: Ticket) -> None:
        if self._asking is ticket:
            self._asking = None

    def note_limiter(self) -> None:
        """Note that a refusal named a time to come back (Retry-After), as only limiters do."""
        self.state = "limited"

    def want_opinion_on(self, refused: Ticket, now: float) -> None:
        """Let the next request be a second opinion on this refusal, unless one is in flight or it is too early for one.

        Only one is in flight at a time: refusals are known sooner than acceptances, so that of several opinions the
        refused ones would be counted first. An endpoint that refuses at random needs none. now: in seconds.
        """
        if self._asking is None and now >= self._next_at and self.state == "limited":
            self._refused = refused

    def record_decision(self, ticket: Ticket, now: float, *, refused: bool) -> bool:
        """Note whether the endpoint refused this request; return whether refusals have just proved to be random.

        now: in seconds.
        """
        self._lately_refused += refused
        # Counts all requests sent, not only decided ones: refusals are known sooner than acceptances.
        # The divisor is at least half a window: else the first few refusals would decide alone.
        if self.state == "at random" and self._lately_refused > MAX_REFUSED * max(self._lately_sent, LATELY / 2):
            self.state = "limited"
            self._asked = self._accepted = 0.0
        if not ticket.opinion:
            return False
        self._asking = None
        self._pause = min(LONGEST_S, 2 * self._pause) if refused else SETTLED_S / 2
        self._next_at = now + self._pause if refused else now
        fade = 1 - 1 / (2 * OPINIONS)  # older opinions count less: the sums never exceed 2 × OPINIONS
        self._asked = fade * self._asked + 1
        self._accepted = fade * self._accepted + (not refused)
        if self.state == "limited" and self._asked >= OPINIONS - 1 and self._accepted > ACCEPTED_AGAIN * self._asked:
            self.state = "at random"
            self._lately_sent = self._lately_refused = 0.0
            return True
        return False


class Pace:
    """How many requests one endpoint may have in flight: from 1 to `ceiling`. `clock`: monotonic seconds.

    The dispatcher reports each request (`sent`) and how it ended (`answered`, `refused`, or `ended` for all else).
    """

    def __init__(self, ceiling: int, clock: Callable[[], float]) -> None:
        self.in_flight = 0
        self.waits = 0
        """Rounds of refusals, less the requests accepted since; at least 0. Each doubles the pause after a refusal."""
        self._clock = clock
        self.rising = RisingLimit(ceiling)
        self._opinions = _SecondOpinions()
        self._unsettled: deque[Ticket] = deque()
        self._settled_s = SETTLED_S
        self._n_replies = 0

    @property
    def limit(self) -> int:
        """Requests that may be in flight."""
        return self.rising.value

    @property
    def state(self) -> State:
        """Why the endpoint seems to send 429s: "limited" (a rate limiter) or "at random" (whatever is in flight)."""
        return self._opinions.state

    @property
    def wants_opinion(self) -> bool:
        """Whether one request should be sent now, whatever the limit and the pause."""
        return self._opinions.is_wanted

    def set_ceiling(self, ceiling: int, *, at_once: bool = False) -> None:
        """Set the largest number of requests in flight.

        at_once: the limit follows; otherwise it rises step by step, as after a refusal.
        """
        self.rising.set_ceiling(ceiling, at_once=at_once)

    def advance(self, now: float) -> None:
        """Bring the state up to the second `now`: old requests count as accepted, and the limit may rise."""
        unsettled = self._unsettled
        while unsettled and ((ticket := unsettled[0]).ended or ticket.sent_at <= now - self._settled_s):
            del unsettled[0]
            if not ticket.ended:
                ticket.settled = True
                self._record_decision(ticket, refused=False)
        limit = self.rising
        if limit.value < limit.ceiling:
            limit.rise(now, self.in_flight, self._settled_s)

    def sent(self, lane_number: int) -> Ticket:
        """Note a request that is sent; return its ticket."""
        ticket = Ticket(lane_number, self._clock(), self._n_replies)
        self._opinions.sent(ticket)
        self._unsettled.append(ticket)
        self.in_flight += 1
        return ticket

    def ended(self, ticket: Ticket) -> None:
        """Note that a request ended in a way that says nothing about the pace, such as a cut stream."""
        assert not ticket.ended
        ticket.ended = True
        self.in_flight -= 1
        self._opinions.ended(ticket)

    def answered(self, ticket: Ticket) -> None:
        """Note that a request was answered."""
        self.ended(ticket)
        self._n_replies += 1
        if not ticket.settled:
            self._record_decision(ticket, refused=False)

    def refused(self, ticket: Ticket, *, names_time: bool) -> bool:
        """Note that a request got a 429; return whether to pause the endpoint.

        names_time: the refusal named a time to come back (Retry-After).
        """
        # Older requests first: they were accepted before this refusal came.
        now = self._clock()
        self.advance(now)
        self.ended(ticket)
        self._record_decision(ticket, refused=True)
        self._settled_s = max(self._settled_s, min(LONGEST_S, 2 * (now - ticket.sent_at)))
        if names_time:
            self._opinions.note_limiter()
        elif self.state == "at random":  # The server refuses whatever is in flight: slowing down would not help.
            return False
        if self.rising.fall(now, self.in_flight, ticket.sent_at, self._settled_s):
            self.waits += 1
        if not names_time and ticket.n_replies == self._n_replies:
            self._opinions.want_opinion_on(ticket, now)
        return True

    def _record_decision(self, ticket: Ticket, *, refused: bool) -> None:
        """Note whether the endpoint refused this request or accepted it."""
        if not refused:
            self.waits -= self.waits > 0
        if self._opinions.record_decision(ticket, self._clock(), refused=refused):
            self.rising.lift()
