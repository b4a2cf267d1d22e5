"""What has happened in a session so far: counts, causes of failures, and `Progress`, the value that displays show.

    RequestFailed ──▶ Causes   why samples are missing, one example a cause in the server's own words ───┐
    Sample, Reply ──▶ Counts   done, truncated, tokens, retries, oddities ────────────────────────────────┼─▶ Progress
    tokens under way ─▶ Arrivals, the phase (`budget.Ending`) ────────────────────────────────────────────────┘

The transports count token events, which are read from time to time; servers state tokens only when a sample has
finished. So each event counts as many tokens as in the finished samples, on average.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import msgspec

from harness.client.protocol.reply import RequestFailed
from harness.core.errors import Sentence
from harness.generation.dispatch.budget import Ending
from harness.generation.dispatch.lanes import Lanes
from harness.generation.forecast import Streaming, TimeLeft
from harness.generation.progress import BenchmarkProgress, FailureProgress, OldestInFlight, Progress, Tally
from harness.runs.record import Task

# ---- tokens under way

NOW_S = 10.0
"""Seconds over which the present rates are measured."""


class _Arriving(msgspec.Struct, eq=False):
    """One request in flight. events: received up to the last `look`; tokens: the number that these are counted as."""

    started: float
    events: int = 0
    tokens: float = 0.0


class Arrivals:
    """How much of the requests in flight has arrived, and how fast it comes.

    `began` and `end` or `finished` come in pairs; `look` is called from time to time. max_tokens: by benchmark. tokens:
    received in this session. longest: tokens of the longest of the n_finished samples.
    """

    def __init__(self, clock: Callable[[], float], max_tokens: Mapping[str, int]) -> None:
        self._clock = clock
        self._max_tokens = max_tokens
        self.started = clock()
        self.tokens = 0.0
        self.n_finished = 0
        self.longest = 0.0
        self._flights: dict[Task, _Arriving] = {}
        self._busy, self._since = 0.0, self.started  # seconds in flight of all requests, up to a moment
        self._looks: deque[tuple[float, float, float]] = deque([(self.started, 0.0, 0.0)])  # (moment, busy, tokens)
        self._finished_tokens = self._finished_events = 0
        self._any_events = False

    def began(self, task: Task) -> None:
        """Note a request for `task` that is sent."""
        self._flights[task] = _Arriving(self._advance())

    def end(self, task: Task) -> int:
        """Note that the request for `task` failed; the tokens that had arrived stay counted.

        Returns the token events that had come at the last look.
        """
        self._advance()
        return self._flights.pop(task).events

    def finished(self, task: Task, tokens: int, events: int) -> None:
        """Note that the request became a sample of `tokens` tokens in `events` events. Called instead of `end`."""
        # The server's number replaces what the events were counted as, so that the end agrees with the server's books.
        self.tokens += tokens - self._flights[task].tokens
        self.n_finished += 1
        self.longest = max(self.longest, tokens)
        # A reply in one piece does not say how many tokens an event has.
        if events > 1:
            self._finished_tokens += tokens
            self._finished_events += events
        self.end(task)

    def look(self, events: Mapping[Task, int]) -> None:
        """Record the token events counted so far for requests in flight."""
        each = self._finished_tokens / self._finished_events if self._finished_events else 1.0
        for task, n in events.items():
            flight = self._flights.get(task)
            if flight is not None and n > flight.events:
                flight.events = n
                self._any_events = True
                # The mean may have fallen since the last look; what was counted is not taken back.
                self.tokens += max(0.0, n * each - flight.tokens)
                flight.tokens = max(flight.tokens, n * each)
        now = self._advance()
        self._looks.append((now, self._busy, self.tokens))
        # The first look stays until the second is old enough, so the rates are measured over the whole period.
        while len(self._looks) > 2 and self._looks[1][0] <= now - NOW_S:
            self._looks.popleft()

    def _advance(self) -> float:
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
        """Recent tokens per second; None before the first token."""
        (then, _, tokens_then), (now, _, tokens_now) = self._looks[0], self._looks[-1]
        # Fewer tokens than at the last look are a correction of the count.
        return max(0.0, tokens_now - tokens_then) / (now - then) if tokens_now and now > then else None

    @property
    def pace(self) -> float:
        """Recent seconds per token of one stream; 0 before the first token."""
        _, busy, tokens = self._looks[0]
        if self.tokens > tokens:
            return (self._busy - busy) / (self.tokens - tokens)
        return self._busy / self.tokens if self.tokens else 0.0

    @property
    def oldest(self) -> tuple[Task, float, float] | None:
        """(sample, seconds in flight, tokens) of the oldest request in flight; None if none is in flight."""
        for task, flight in self._flights.items():  # In the order in which they were sent.
            return task, self._clock() - flight.started, self._tokens_of(flight, self.pace)
        return None

    @property
    def streams(self) -> list[Streaming]:
        """The samples in flight, for a forecast of the session's end."""
        pace, bounds = self.pace, self._max_tokens
        return [
            Streaming(self._tokens_of(flight, pace), bounds.get(task.benchmark, math.inf))
            for task, flight in self._flights.items()
        ]

    def _tokens_of(self, flight: _Arriving, pace: float) -> float:
        """Tokens of a request so far; estimated from its age if the servers send each reply in one piece."""
        return flight.tokens if self._any_events or not pace else (self._clock() - flight.started) / pace


# ---- causes


@dataclass(frozen=True, slots=True)
class Cause:
    """Why samples are missing: a kind of failure, how many samples it cost, and an example that is safe to print.

    kind: a `FailureKind`, "internal" (a bug of the harness) or "not asked". cure: the option to change, or empty.
    """

    kind: str
    count: int
    example: str
    cure: str = ""

    def __str__(self) -> str:
        return Sentence(f"{self.count} × {self.kind}: {self.example}{self.cure and f' ({self.cure})'}")


class Causes:
    """Keeps the last failure of every sample that failed and is not on disk, one entry for each such sample."""

    def __init__(self) -> None:
        self._failures: dict[Task, tuple[str, int | None, str]] = {}
        self._given_up: set[Task] = set()

    @property
    def n_given_up(self) -> int:
        """Samples that are not asked again in this session."""
        return len(self._given_up)

    def n_given_up_of(self, benchmark: str) -> int:
        """Return how many samples of one benchmark are not asked again in this session."""
        return sum([task.benchmark == benchmark for task in self._given_up])

    def given_up(self) -> dict[Task, str]:
        """Return the samples that are not asked again, with the kind of their last failure."""
        return {task: self._failures[task][0] for task in self._given_up}

    def met(self, task: Task, failure: RequestFailed) -> None:
        """Note a failure of `task`, which will be asked again."""
        self._failures[task] = (failure.kind, failure.status, failure.message)

    def gave_up(self, task: Task, kind: str, message: str, status: int | None = None) -> None:
        """Note the failure after which `task` is not asked again and stays missing."""
        self._failures[task] = (kind, status, message)
        self._given_up.add(task)

    def arrived(self, task: Task) -> None:
        """Forget the failures of `task`, which has succeeded."""
        self._failures.pop(task, None)

    def too_long(self) -> dict[str, dict[str, str]]:
        """Questions whose prompt exceeds the context: benchmark → question id → the server's words."""
        messages: dict[str, dict[str, str]] = {}
        for task in self._given_up:
            kind, _, message = self._failures[task]
            if kind == "too_long":
                messages.setdefault(task.benchmark, {})[task.question_id] = message
        return messages

    def listed(self, n_owed: int, not_asked_because: str, cure: Callable[..., str] = lambda *_: "") -> list[Cause]:
        """Return why samples are missing, with how many for each cause; the most frequent cause first.

        n_owed: missing samples. not_asked_because: the cause of those that were never asked. cure: of a last failure.
        """
        groups: dict[tuple[str, int | None], list[tuple[Task, str]]] = {}
        for task, (kind, status, message) in self._failures.items():
            groups.setdefault((kind, status), []).append((task, message))
        causes = [
            Cause(kind, len(each), each[0][1], cure(each[0][0], kind, each[0][1])) for (kind, _), each in groups.items()
        ]
        if n_owed > len(self._failures):
            causes.append(Cause("not asked", n_owed - len(self._failures), not_asked_because))
        return sorted(causes, key=lambda cause: -cause.count)


# ---- the snapshot


def snapshot(
    now: float,
    *,
    tally: Tally,
    done: Mapping[str, int],
    total: Mapping[str, int],
    failed: Mapping[str, tuple[int, str, float]],
    causes: Causes,
    arrivals: Arrivals,
    ending: Ending,
    lanes: Lanes,
    in_flight: Collection[Task],
    retrying: Collection[Task],
    n_waiting: int,
    concurrency: int,
    paused: bool,
    eta: TimeLeft | None,
) -> Progress:
    """Return the state of the session at `now`, a monotonic second, as one value.

    done, total: samples by benchmark. failed: by kind, the number of failed requests, the latest cause, and its time.
    retrying: samples that wait for another attempt. n_waiting: number of samples that nobody has asked yet.
    concurrency: the present limit of requests in flight. eta: when the session ends.
    """
    flying, again = Counter([task.benchmark for task in in_flight]), Counter([task.benchmark for task in retrying])
    oldest = arrivals.oldest
    # Notes are copied, because another thread reads the value.
    return Progress(
        **{**msgspec.structs.asdict(tally), "notes": dict(tally.notes)},
        elapsed_s=now - arrivals.started,
        done=sum(done.values()),
        total=sum(total.values()),
        in_flight=len(in_flight),
        waiting=n_waiting,
        given_up=causes.n_given_up,
        arrived=round(arrivals.tokens),
        tokens_per_s=arrivals.rate,
        tokens_per_s_now=arrivals.rate_now,
        benchmarks=tuple(
            BenchmarkProgress(
                name=name,
                done=done[name],
                total=n_total,
                in_flight=flying[name],
                retrying=again[name],
                given_up=causes.n_given_up_of(name),
            )
            for name, n_total in total.items()
        ),
        endpoints=lanes.progress(),
        failed=tuple(
            FailureProgress(kind=kind, count=n, latest=message, ago_s=now - failed_at)
            for kind, (n, message, failed_at) in sorted(failed.items(), key=lambda item: -item[1][2])
        ),
        oldest=oldest and OldestInFlight(**oldest[0]._asdict(), seconds=oldest[1], tokens=round(oldest[2])),
        eta=eta,
        concurrency=concurrency,
        paused=paused,
        stopping=not ending.asking,
        why=ending.why,
        grace_s=None if ending.grace_ends is None or ending.asking else max(0.0, ending.grace_ends - now),
        patience_s=lanes.patience_left,
    )
