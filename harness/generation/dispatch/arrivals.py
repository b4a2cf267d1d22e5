"""How much of the requests in flight has arrived, and how fast it comes. No I/O.

The transports count token events, which are read from time to time; servers state tokens only when a sample has
finished. So each event counts as many tokens as in the finished samples, on average.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from harness.generation.dispatch.flight import Flight
from harness.generation.run_progress import OldestInFlight
from harness.runs.record import Task

NOW_S = 10.0
"""Seconds over which the present rates are measured."""


class Arrivals:
    """How much of the requests in flight has arrived, and how fast it comes.

    flights: the requests in flight, in the order in which they were sent; its owner calls `advance` before it changes.
    tokens: received in this session.
    """

    def __init__(self, clock: Callable[[], float], flights: Mapping[Task, Flight]) -> None:
        self._clock = clock
        self._flights = flights
        self.started = clock()
        self.tokens = 0.0
        self._busy, self._since = 0.0, self.started  # seconds in flight of all requests, up to a moment
        self._looks: deque[tuple[float, float, float]] = deque([(self.started, 0.0, 0.0)])  # (moment, busy, tokens)
        self._finished_tokens = self._finished_events = 0
        self._any_events = False

    def finished(self, flight: Flight, tokens: int, events: int) -> None:
        """Note that a request became a sample of `tokens` tokens in `events` events."""
        # The server's number replaces what the events were counted as, so that the end agrees with the server's books.
        self.tokens += tokens - flight.tokens
        # A reply in one piece does not say how many tokens an event has.
        if events > 1:
            self._finished_tokens += tokens
            self._finished_events += events

    def look(self) -> None:
        """Count the tokens that have come so far."""
        tokens_per_event = self._finished_tokens / self._finished_events if self._finished_events else 1.0
        for flight in self._flights.values():
            if (n := flight.arriving.count()) > flight.events:
                flight.events = n
                self._any_events = True
                # The mean may have fallen since the last look; what was counted is not taken back.
                counted = max(flight.tokens, n * tokens_per_event)
                self.tokens += counted - flight.tokens
                flight.tokens = counted
        now = self.advance()
        self._looks.append((now, self._busy, self.tokens))
        # The first look stays until the second is old enough, so the rates are measured over the whole period.
        while len(self._looks) > 2 and self._looks[1][0] <= now - NOW_S:
            self._looks.popleft()

    def advance(self) -> float:
        """Count the time since the last call, and return the present second."""
        now = self._clock()
        self._busy += len(self._flights) * (now - self._since)
        self._since = now
        return now

    # ---- facts

    @property
    def rate(self) -> float | None:
        """Tokens per second since the beginning; None before the first token."""
        seconds = self._clock() - self.started
        return self.tokens / seconds if self.tokens and seconds > 0 else None

    @property
    def rate_now(self) -> float | None:
        """Tokens per second over about the last `NOW_S` seconds; None before the first token."""
        (then, _, tokens_then), (now, _, tokens_now) = self._looks[0], self._looks[-1]
        # `finished` may lower the count, when the server states fewer tokens than were counted; no rate is below 0.
        return max(0.0, tokens_now - tokens_then) / (now - then) if tokens_now and now > then else None

    @property
    def pace(self) -> float:
        """Recent seconds per token of one stream; 0 before the first token."""
        _, busy, tokens = self._looks[0]
        if self.tokens > tokens:
            return (self._busy - busy) / (self.tokens - tokens)
        return self._busy / self.tokens if self.tokens else 0.0

    @property
    def oldest(self) -> OldestInFlight | None:
        """The sample that has been in flight longest; None if none is in flight."""
        for task, flight in self._flights.items():  # In the order in which they were sent.
            seconds, tokens = self._clock() - flight.sent_at, self._tokens_of(flight, self.pace)
            return OldestInFlight(**task._asdict(), seconds=seconds, tokens=round(tokens))
        return None

    def missing(self, mean: float) -> float:
        """Tokens that the requests in flight still bring if each sample becomes as long as `mean`, in tokens."""
        pace = self.pace
        return sum(max(0.0, mean - self._tokens_of(flight, pace)) for flight in self._flights.values())

    def _tokens_of(self, flight: Flight, pace: float) -> float:
        """Tokens of a request so far; estimated from its age if the servers send each reply in one piece."""
        return flight.tokens if self._any_events or not pace else (self._clock() - flight.sent_at) / pace
