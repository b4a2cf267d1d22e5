"""How many requests an endpoint that answers 429 may have in flight. No I/O; the clock is a parameter.

A limiter (so many at once, or so many a second) is obeyed; refusals that come at random, whatever is in flight, must
not throttle the run. What tells them apart is a *second opinion*: right after a refusal, with no reply in between, one
request is sent all the same. A limiter that just refused refuses again; chance mostly does not.

- Limited: the limit falls to what is in flight without the refused request, and the endpoint is left alone for a while
  that grows with each round of refusals and shrinks with what is accepted, so that about one request in six is refused
  at most. The limit rises by 1, 2, 4 … every second (or two round trips of a refusal, if that is more) from the last
  refusal on; after a rise that was refused one waits twice as long, up to `LONGEST_RISE_S`.
- At random: nothing is lowered and nobody waits, until so many are refused that it can be no accident.

Cut streams and 5xx say nothing about pace and are not told to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

SETTLED_S = 1.0
MOST_SETTLED_S = 60.0
"""A request that has not been refused after so many seconds, or twice the time that a refusal took, is taken as
accepted, long before its reply is complete."""

LONGEST_RISE_S = 60.0
"""Seconds from a refusal, or from the last rise, to the next rise of the limit, at most; at least until the last rise
has settled."""

OPINION_S = 0.25
"""Older than this, a refusal is no occasion for a second opinion."""

OPINIONS = 6.0
"""So many second opinions decide; older ones fade."""

ACCEPTED_AGAIN = 0.45
"""Above this share of second opinions accepted, refusals come at random."""

TOO_MANY_REFUSED = 0.75
LATELY = 100.0
"""Above this share of about so many last requests refused, refusals are no longer taken for chance."""

MOST_WAITS = 12.0

RELIEF = 0.2
"""So much of one refusal's longer wait does one accepted request undo."""

DISTRUST_S = 120.0
"""So long after that they are taken for a limiter's, whatever second opinions say."""


@dataclass(slots=True, eq=False)
class Ticket:
    """One request on its way. place: the endpoint's; n_replies: of the endpoint when it was sent."""

    place: int
    sent_at: float
    n_replies: int
    opinion: bool = False
    settled: bool = False
    ended: bool = False


class Pace:
    """The limit of one endpoint: at least 1, at most `ceiling`. `clock`: monotonic seconds."""

    def __init__(self, ceiling: int, clock: Callable[[], float]) -> None:
        self.ceiling = ceiling
        self.in_flight = 0
        self.at_random = False
        """Whether refusals are taken for chance."""
        self.waits = 0.0
        """Rounds of refusals, less what has been accepted since: the pause after one doubles with each."""
        self._clock = clock
        self._limit = float(ceiling)
        self._unsettled: deque[Ticket] = deque()
        self._n_settled = 0
        self._settled_s = SETTLED_S
        self._n_replies = 0
        self._lowered_at = float("-inf")
        self._rise_at = float("-inf")
        self._rise_after = SETTLED_S
        self._rise_by = 1.0
        self._risen_at = float("-inf")
        self._opinion_until = float("-inf")
        self._opinion_on: Ticket | None = None
        self._asking: Ticket | None = None
        self._ask_after = SETTLED_S / 2
        self._ask_again_at = float("-inf")
        self._asked_again = 0.0
        self._accepted_again = 0.0
        self._lately_sent = 0.0
        self._lately_refused = 0.0
        self._distrust_until = float("-inf")

    @property
    def limit(self) -> int:
        """Requests that may be in flight."""
        return max(1, int(self._limit))

    def set_ceiling(self, ceiling: int, *, at_once: bool = False) -> None:
        """at_once: the limit follows; otherwise it rises step by step, as after a refusal."""
        if at_once and self._limit >= self.ceiling:
            self._limit = float(ceiling)
        self._rise_by = 1.0
        self.ceiling = ceiling
        self._limit = min(self._limit, float(ceiling))

    def advance(self) -> None:
        """Let time pass: requests settle, the limit rises."""
        now = self._clock()
        while self._unsettled and (self._unsettled[0].ended or self._unsettled[0].sent_at <= now - self._settled_s):
            ticket = self._unsettled.popleft()
            if not ticket.ended:
                ticket.settled = True
                self._n_settled += 1
                self._judged(ticket, refused=False)
        if self._limit < self.ceiling and now >= self._rise_at and self.in_flight >= self.limit:
            if self._risen_at > self._lowered_at:  # the last rise was not refused
                self._rise_by *= 2
                self._rise_after = self._settled_s
            self._limit = min(float(self.ceiling), self._limit + self._rise_by)
            self._risen_at = now
            self._rise_at = now + self._rise_after

    @property
    def wants_opinion(self) -> bool:
        """Whether one request is to be sent now, whatever the limit and the pause."""
        return self._clock() < self._opinion_until

    def sent(self, place: int) -> Ticket:
        """A request goes out."""
        now = self._clock()
        ticket = Ticket(place, now, self._n_replies)
        if now < self._opinion_until:
            refused, self._opinion_until = self._opinion_on, float("-inf")
            # A reply in between has made room: then an acceptance would prove nothing.
            ticket.opinion = refused is not None and refused.n_replies == self._n_replies
            self._asking = ticket if ticket.opinion else None
        self._lately_sent = (1 - 1 / LATELY) * self._lately_sent + 1
        self._lately_refused *= 1 - 1 / LATELY
        self._unsettled.append(ticket)
        self.in_flight += 1
        return ticket

    def ended(self, ticket: Ticket) -> None:
        """It ended in a way that says nothing about the pace."""
        assert not ticket.ended
        ticket.ended = True
        self.in_flight -= 1
        self._n_settled -= ticket.settled
        if self._asking is ticket:
            self._asking = None

    def answered(self, ticket: Ticket) -> None:
        """It was replied to."""
        self.ended(ticket)
        self._n_replies += 1
        if not ticket.settled:
            self._judged(ticket, refused=False)

    def refused(self, ticket: Ticket, *, told_when: bool) -> bool:
        """It met a 429; told_when: the endpoint said when to come back. Whether to leave the endpoint alone a while."""
        self.advance()
        self.ended(ticket)
        self._judged(ticket, refused=True)
        self._settled_s = max(self._settled_s, min(MOST_SETTLED_S, 2 * (self._clock() - ticket.sent_at)))
        if told_when:
            self.at_random = False
        elif self.at_random:
            return False
        now = self._clock()
        self._limit = min(self._limit, max(1.0, self.in_flight))
        if ticket.sent_at > self._lowered_at:
            self.waits = min(MOST_WAITS, self.waits + 1)
            failed = ticket.sent_at >= self._risen_at > self._lowered_at
            doubled = min(LONGEST_RISE_S, 2 * self._rise_after)
            self._rise_after = max(self._settled_s, doubled if failed else self._rise_after)
            self._lowered_at = now
        self._rise_by = 1.0
        self._rise_at = now + self._rise_after
        # One at a time: refusals are known sooner than acceptances, and would be counted first.
        free = self._asking is None and now >= max(self._distrust_until, self._ask_again_at)
        if free and not told_when and ticket.n_replies == self._n_replies:
            self._opinion_until = now + OPINION_S
            self._opinion_on = ticket
        return True

    def _judged(self, ticket: Ticket, *, refused: bool) -> None:
        """It is known whether the endpoint takes this request."""
        now = self._clock()
        if not refused:
            self.waits = max(0.0, self.waits - RELIEF)
        self._lately_refused += refused
        if self.at_random and self._lately_refused > TOO_MANY_REFUSED * max(self._lately_sent, LATELY / 2):
            self.at_random = False
            self._asked_again = self._accepted_again = 0.0
            self._distrust_until = now + DISTRUST_S
        if not ticket.opinion:
            return
        self._asking = None
        self._ask_after = min(LONGEST_RISE_S, 2 * self._ask_after) if refused else SETTLED_S / 2
        self._ask_again_at = now + self._ask_after if refused else now
        fade = 1 - 1 / (2 * OPINIONS)
        self._asked_again = fade * self._asked_again + 1
        self._accepted_again = fade * self._accepted_again + (not refused)
        if not self.at_random and self._asked_again >= OPINIONS - 1:
            self.at_random = self._accepted_again > ACCEPTED_AGAIN * self._asked_again and now >= self._distrust_until
            if self.at_random:
                self._limit = float(self.ceiling)
                self._lately_sent = self._lately_refused = 0.0
