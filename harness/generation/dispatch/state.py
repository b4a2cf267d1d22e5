"""Shared by the dispatcher's parts: the session's plan, an endpoint and its history, a sample in progress, a request.

An endpoint's history shows whose fault a failure is (the table of `retry`): the question's if other questions succeed,
the endpoint's if others fail, too. No I/O.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Arriving
from harness.client.protocol.failures import RequestFailed
from harness.generation.dispatch.too_many_requests import Pace
from harness.generation.run_progress import EndpointState, OldestInFlight, Spent
from harness.runs.missing import Missing, Task

# ---- what one endpoint has answered lately, and what each question has met there


Past = Literal["new", "hopeless", "spare", "known", "alone", "others pass"]
"""The history of an endpoint and a question before a failure.

new: the endpoint has answered nothing (for a rejected request: nothing of the same benchmark). hopeless: new, and it
fails `HOPELESS_QUESTIONS` alike. spare: new, but another endpoint may answer. known: it has answered. alone: since its
last answer, only this question has failed, and no sample of the question was ever answered. others pass: since the
question's first failure, more requests for other questions were answered than failed, and the last one was answered.
"""

HOPELESS_QUESTIONS = 3
"""An endpoint without a reply must have failed this many questions, or all, before it is assumed to fail every one."""

MAX_FAILURES = 3
"""Number of failures of one question that are kept, so that no two questions excuse each other forever."""

RECENT = 64
"""Number of ended requests in an endpoint's history."""

Question = tuple[str, str]


class _End(NamedTuple):
    """A request that ended. number: its number in order of sending; nth: in order of ending; both count from 1."""

    number: int
    nth: int
    question: Question
    answered: bool


class History(msgspec.Struct, eq=False):
    """The history of one endpoint in a session.

    n_sent: number of requests so far; a request's number is the value of `n_sent` after sending it. in_flight: number
    of each request → its question. answers: number of replies by benchmark. recent: the last requests that ended.
    alike: questions that failed alike, by signature, and by benchmark if only its requests may be affected.
    first_failed: the first failure of each question since any endpoint answered it; the owner removes it.
    """

    n_sent: int = 0
    n_ended: int = 0
    in_flight: dict[int, Question] = msgspec.field(default_factory=dict)
    answers: Counter[str] = msgspec.field(default_factory=Counter)
    recent: deque[_End] = msgspec.field(default_factory=lambda: deque(maxlen=RECENT))
    alike: defaultdict[tuple[object, ...], set[Question]] = msgspec.field(default_factory=lambda: defaultdict(set))
    first_failed: dict[Question, _End] = msgspec.field(default_factory=dict)

    def has_answered(self, benchmark: str | None) -> bool:
        """Whether any request was answered. benchmark: count only requests of this benchmark."""
        return bool(self.answers if benchmark is None else self.answers[benchmark])

    def answered(self, number: int, question: Question) -> None:
        """Record a reply to the request of this number."""
        self.answers[question[0]] += 1
        self.recent.append(self._end(number, question, answered=True))

    def failed(self, number: int, question: Question, *, proven: bool) -> Past:
        """Record a failure, and return what came before it. proven: whether a sample of the question was ever answered.

        If requests for other questions succeed, the failure is not noted, so that it makes no other question look
        innocent.
        """
        end = self._end(number, question, answered=False)
        first = self.first_failed.setdefault(question, end)
        # Requests that were under way when the question was first asked say nothing: a server that is shutting down
        # finishes them but refuses later ones. Nor do replies before its failure.
        others = [o for o in self.recent if o.number > first.number and o.nth > first.nth and o.question != question]
        if others and others[-1].answered and 2 * sum(other.answered for other in others) > len(others):
            return "others pass"
        if sum(other.question == question and not other.answered for other in self.recent) < MAX_FAILURES:
            self.recent.append(end)
        for other in reversed(self.recent):
            if other.answered:
                break
            if other.question != question:
                return "known"
        return "known" if proven else "alone"

    def _end(self, number: int, question: Question, *, answered: bool) -> _End:
        self.n_ended += 1
        return _End(number, self.n_ended, question, answered)


# ---- plan, endpoint, sample, request


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """The state from which one session starts.

    missing: the samples to request. done, total: numbers of samples by benchmark, on disk before the session and
    expected at the end. prompt_bytes: (benchmark, question_id) of each question with missing samples → size of its
    prompt in a request; empty if no prices are given. server_model: the model name in the run's first reply, in any
    session; None before that.
    """

    missing: Sequence[Missing]
    done: Mapping[str, int]
    total: Mapping[str, int]
    prompt_bytes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    server_model: str | None = None


class Lane(msgspec.Struct, kw_only=True, eq=False):
    """One endpoint: how fast it is, which requests it may get, and how its requests ended.

    Times are monotonic seconds. history: the outcomes of its requests. share: its share of the requests in flight when
    all endpoints work. pace: controls how many requests it gets at present. has_left: whether it was removed from the
    list. opens_at: nothing is sent before this time. retry_after_ends: the end of the pause that the server itself
    requested. try_due: whether it requested a pause while the session's patience lasted and has not been tried since.
    set_aside: whether it failed several times in a row and gets one request at a time. n_waits: how often it was set
    aside since its last answer. down_at: when it was last set aside; the failure of a request sent before that shows
    nothing new. lists: whether it has listed the model since its last answer, which shows that it is up. refuses:
    whether it fails all requests alike (a wrong key, say). n_done, n_failed: numbers of its requests. seconds, tokens:
    sums over its finished samples, with the highest weights for recent ones.
    """

    endpoint: Endpoint
    pace: Pace
    history: History = msgspec.field(default_factory=History)
    share: int = 1
    has_left: bool = False
    failures_in_row: int = 0
    n_waits: int = 0
    opens_at: float = float("-inf")
    retry_after_ends: float = float("-inf")
    try_due: bool = False
    set_aside: bool = False
    down_at: float = float("-inf")
    lists: bool = False
    refuses: bool = False
    n_done: int = 0
    n_failed: int = 0
    last_failure: RequestFailed | None = None
    seconds: float = 0.0
    tokens: float = 0.0

    @property
    def token_s(self) -> float:
        """Seconds per token; 0 while unknown."""
        return self.seconds / self.tokens if self.tokens else 0.0

    def finished(self, seconds: float, tokens: float) -> None:
        """Record how long a sample with this many tokens took on this server."""
        self.seconds = 0.98 * self.seconds + seconds
        self.tokens = 0.98 * self.tokens + tokens

    @property
    def in_flight(self) -> int:
        return self.pace.in_flight

    @property
    def limit(self) -> int:
        """Current maximum number of requests in flight to the endpoint."""
        if self.has_left:
            return 0
        return 1 if self.set_aside else self.pace.limit

    def pause(self, now: float) -> float:
        """Seconds until a request may be sent; 0 or less if it may be sent now."""
        rest_ends = self.pace.rest_ends
        if rest_ends is None or self.limit or self.has_left:  # a slot is free, or the endpoint gets no more requests
            return self.opens_at - now
        return max(self.opens_at, rest_ends) - now

    def state(self, now: float) -> EndpointState:
        if self.has_left:
            return "left"
        if self.set_aside:
            return "set aside"
        return "paused" if self.pause(now) > 0 else "open"


class Work(msgspec.Struct, eq=False):
    """A sample being requested, from its first request until it is stored or given up.

    requests: number of requests sent. failures: number of failures that cost an attempt (`retry`). refusals: number of
    429 replies. returned: how often the sample was returned to the queue. failed_at: the endpoint where it last failed,
    avoided while another is up. billed: tokens billed for all steps but the last, of a sample with a tool.
    prompt_bytes: prompt size of its next step. planned_at: when its first request was to be sent, in a run with a rate.
    """

    task: Task
    requests: int = 0
    failures: int = 0
    refusals: int = 0
    returned: int = 0
    failed_at: Lane | None = None
    billed: Spent = Spent()
    prompt_bytes: int = 0
    planned_at: float | None = None


def no_request() -> None:
    """The value of `Flight.cancel` once it has been called and once the request has ended."""


class Flight(msgspec.Struct, eq=False):
    """One request, from the moment at which it may be sent until it has ended.

    attempt: number of this request among the sample's requests in this session, from 1. refusals: of its slot, minus
    those forgiven. number: number of this request among those to its endpoint. arriving: reports how much has arrived.
    events: token events that had arrived at the last check. tokens: the number of tokens that these events count as.
    cancel: ends the request; set by whoever sends it.
    """

    work: Work
    lane: Lane
    sent_at: float
    attempt: int
    refusals: int
    number: int
    arriving: Arriving
    events: int = 0
    tokens: float = 0.0
    cancel: Callable[[], object] = no_request

    @property
    def task(self) -> Task:
        return self.work.task

    @property
    def endpoint(self) -> Endpoint:
        return self.lane.endpoint


# ---- how much of the requests in flight has arrived, and how fast it comes


NOW_S = 10.0
"""Seconds over which the current rates are measured."""


class Arrivals:
    """How much of the replies in flight has arrived, and how fast tokens arrive.

    flights: the requests in flight, in the order in which they were sent; the mapping's owner calls `advance` before
    changing it. tokens: number received in this session.

    The transports count token events, which are read from time to time; servers report tokens only when a sample has
    finished. So each event counts as the average number of tokens per event in the finished samples.
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
        """Record that a request resulted in a sample of `tokens` tokens in `events` events."""
        # The server's number replaces the estimate from events, so that the total agrees with the server's accounts.
        self.tokens += tokens - flight.tokens
        # A reply in one piece does not show how many tokens an event has.
        if events > 1:
            self._finished_tokens += tokens
            self._finished_events += events

    def count_arrived(self) -> None:
        """Count the tokens that have arrived so far."""
        tokens_per_event = self._finished_tokens / self._finished_events if self._finished_events else 1.0
        for flight in self._flights.values():
            if (n := flight.arriving.count()) > flight.events:
                flight.events = n
                self._any_events = True
                # The mean may have fallen since the last check; the previous count is not reduced.
                counted = max(flight.tokens, n * tokens_per_event)
                self.tokens += counted - flight.tokens
                flight.tokens = counted
        now = self.advance()
        self._looks.append((now, self._busy, self.tokens))
        # The first reading is kept until the second is old enough, so the rates are measured over the whole period.
        while len(self._looks) > 2 and self._looks[1][0] <= now - NOW_S:
            self._looks.popleft()

    def advance(self) -> float:
        """Count the time since the last call, and return the current time in seconds."""
        now = self._clock()
        self._busy += len(self._flights) * (now - self._since)
        self._since = now
        return now

    # ---- facts

    @property
    def rate(self) -> float | None:
        """Tokens per second since the start; None before the first token."""
        seconds = self._clock() - self.started
        return self.tokens / seconds if self.tokens and seconds > 0 else None

    @property
    def rate_now(self) -> float | None:
        """Tokens per second over about the last `NOW_S` seconds; None before the first token."""
        (then, _, tokens_then), (now, _, tokens_now) = self._looks[0], self._looks[-1]
        # `finished` may lower the count, if the server reports fewer tokens than were counted; no rate is below 0.
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
        """Tokens still to come from the requests in flight if each sample reaches a length of `mean` tokens."""
        pace = self.pace
        return sum(max(0.0, mean - self._tokens_of(flight, pace)) for flight in self._flights.values())

    def _tokens_of(self, flight: Flight, pace: float) -> float:
        """Tokens of a request so far; estimated from the request's age if the servers send each reply in one piece."""
        return flight.tokens if self._any_events or not pace else (self._clock() - flight.sent_at) / pace
