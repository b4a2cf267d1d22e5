"""The tokens of requests in flight: how many have come, how fast they come, and how long finished samples are.

The transports count token events, which are read from time to time; servers state tokens only when a sample has
finished. So each event counts as many tokens as in the finished samples, on average.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

import msgspec

from harness.generation.forecast import Outlook, QuestionKey, Streaming
from harness.runs.record import Task

NOW_S = 10.0
"""Seconds over which the present rate (tokens per second) is measured."""

PACE_S = 60.0
"""Seconds over which an endpoint's present seconds per token are measured."""


class _Arriving(msgspec.Struct, eq=False):
    """One request in flight. events: received up to the last `look`; tokens: the number that these are counted as."""

    lane_number: int
    started: float
    events: int = 0
    tokens: float = 0.0


class _Stream:
    """The tokens from one endpoint. n: requests in flight. busy: seconds in flight of all of them. tokens: received."""

    def __init__(self, now: float) -> None:
        self.n = 0
        self.busy = 0.0
        self.tokens = 0.0
        self._since = now
        self._looks: deque[tuple[float, float, float]] = deque([(now, 0.0, 0.0)])

    def advance(self, now: float) -> None:
        """Add the time since the last call, during which `n` requests were in flight."""
        self.busy += self.n * (now - self._since)
        self._since = now

    def look(self, now: float) -> None:
        """Remember the present counts; `pace` is measured from them. now: in seconds, on the session's clock."""
        self.advance(now)
        self._looks.append((now, self.busy, self.tokens))
        # The first look stays until the second is old enough, so the pace is measured over the whole period.
        while len(self._looks) > 2 and self._looks[1][0] <= now - PACE_S:
            self._looks.popleft()

    @property
    def pace(self) -> float | None:
        """Recent seconds per token of one stream; None before the first token."""
        _, busy, tokens = self._looks[0]
        if self.tokens > tokens:
            return (self.busy - busy) / (self.tokens - tokens)
        return self.busy / self.tokens if self.tokens else None


class Arrivals:
    """How much of the requests in flight has arrived, how fast it comes, and how long finished samples are.

    `began` and `ended` come in pairs; `look` is called from time to time.

    prior: expected lengths by question from an earlier run. max_tokens: by benchmark. longest_first: the order of
    asking.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        prior: Mapping[QuestionKey, float],
        max_tokens: Mapping[str, int],
        *,
        longest_first: bool,
    ) -> None:
        self._clock = clock
        self._prior = prior
        self._max_tokens = max_tokens
        self._longest_first = longest_first
        self._started = clock()
        self._flights: dict[Task, _Arriving] = {}
        self._streams: dict[int, _Stream] = {}
        self._lengths: dict[QuestionKey, list[float]] = {}
        self._looks: deque[tuple[float, float]] = deque([(self._started, 0.0)])
        self._finished_tokens = 0.0
        self._finished_events = 0
        self._any_events = False

    def began(self, task: Task, lane_number: int) -> None:
        """Note a request for `task` that is sent to the endpoint with this lane number."""
        now = self._clock()
        self._flights[task] = _Arriving(lane_number, now)
        # Endpoints may join during the session, so a stream begins with its first request.
        stream = self._streams.get(lane_number)
        if stream is None:
            stream = self._streams[lane_number] = _Stream(now)
        stream.advance(now)
        stream.n += 1

    def end(self, task: Task) -> int:
        """Note that the request for `task` failed; the tokens that had arrived stay counted.

        Returns the token events that had come at the last look.
        """
        flight = self._flights.pop(task)
        stream = self._streams[flight.lane_number]
        stream.advance(self._clock())
        stream.n -= 1
        return flight.events

    def finished(self, task: Task, tokens: int, events: int) -> None:
        """Note that the request became a sample of `tokens` tokens in `events` events. Called instead of `ended`."""
        flight = self._flights[task]
        # The server's number replaces what the events were counted as, so that the end agrees with the server's books.
        self._streams[flight.lane_number].tokens += tokens - flight.tokens
        self._lengths.setdefault((task.benchmark, task.question_id), []).append(float(tokens))
        # A reply in one piece does not say how many tokens an event has.
        if events > 1:
            self._finished_tokens += tokens
            self._finished_events += events
        self.end(task)

    def look(self, events: Mapping[Task, int]) -> None:
        """Record the token events counted so far for requests in flight."""
        now = self._clock()
        each = self._finished_tokens / self._finished_events if self._finished_events else 1.0
        for task, n in events.items():
            flight = self._flights.get(task)
            if flight is not None and n > flight.events:
                flight.events = n
                self._any_events = True
                # The mean may have fallen since the last look; what was counted is not taken back.
                if n * each > flight.tokens:
                    self._streams[flight.lane_number].tokens += n * each - flight.tokens
                    flight.tokens = n * each
        for stream in self._streams.values():
            stream.look(now)
        self._looks.append((now, self.tokens))
        while len(self._looks) > 2 and self._looks[1][0] <= now - NOW_S:
            self._looks.popleft()

    # ---- facts

    @property
    def tokens(self) -> float:
        """Tokens received in this session."""
        return sum([stream.tokens for stream in self._streams.values()])

    @property
    def rate(self) -> float | None:
        """Tokens per second since the beginning; None before the first token."""
        tokens, seconds = self.tokens, self._clock() - self._started
        return tokens / seconds if tokens and seconds > 0 else None

    @property
    def rate_now(self) -> float | None:
        """Recent tokens per second; None before the first token."""
        (then, tokens_then), (now, tokens_now) = self._looks[0], self._looks[-1]
        # Fewer tokens than at the last look are a correction of the count.
        return max(0.0, tokens_now - tokens_then) / (now - then) if tokens_now and now > then else None

    @property
    def oldest(self) -> tuple[Task, float, float] | None:
        """(sample, seconds in flight, tokens) of the oldest request in flight; None if none is in flight."""
        for task, flight in self._flights.items():  # In the order in which they were sent.
            return task, self._clock() - flight.started, self._tokens_of(flight)
        return None

    def outlook(self, waiting: Mapping[QuestionKey, int], again: Iterable[Task]) -> Outlook:
        """The facts from which the time to the end of the session is estimated.

        waiting: by question, how many samples can be handed out. again: further samples, which wait for a retry.
        """
        to_come = dict(waiting)
        for task in again:
            question = task.benchmark, task.question_id
            to_come[question] = to_come.get(question, 0) + 1
        paces = {lane_number: stream.pace for lane_number, stream in self._streams.items()}
        # An endpoint that has sent nothing yet is expected to be as fast as the mean of the others.
        measured = [pace for pace in paces.values() if pace is not None]
        usual = sum(measured) / len(measured) if measured else 0.0
        return Outlook(
            finished={question: tuple(lengths) for question, lengths in self._lengths.items()},
            running=[
                Streaming(
                    (task.benchmark, task.question_id), self._tokens_of(flight), paces[flight.lane_number] or usual
                )
                for task, flight in self._flights.items()
            ],
            waiting=to_come,
            prior=self._prior,
            max_tokens=self._max_tokens,
            longest_first=self._longest_first,
        )

    def _tokens_of(self, flight: _Arriving) -> float:
        """Tokens of a request so far; estimated from its age if the servers send each reply in one piece."""
        if self._any_events or not (pace := self._streams[flight.lane_number].pace):
            return flight.tokens
        return (self._clock() - flight.started) / pace
