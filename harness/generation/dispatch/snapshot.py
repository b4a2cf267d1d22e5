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

from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.errors import Sentence
from harness.core.records import Sample
from harness.generation.dispatch.budget import Ending
from harness.generation.dispatch.canary import ends_in_loop
from harness.generation.dispatch.lanes import Lanes
from harness.generation.forecast import Streaming, TimeLeft
from harness.generation.lengths import completion_tokens, tokens_before
from harness.generation.progress import (
    BenchmarkProgress,
    Continued,
    FailureProgress,
    OldestInFlight,
    Progress,
)
from harness.generation.spending import Billed, Spent
from harness.runs.record import Task

# ---- tokens under way

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
    """How much of the requests in flight has arrived, and how fast it comes.

    `began` and `ended` come in pairs; `look` is called from time to time. max_tokens: by benchmark.
    """

    def __init__(self, clock: Callable[[], float], max_tokens: Mapping[str, int]) -> None:
        self._clock = clock
        self._max_tokens = max_tokens
        self.started = clock()
        self._flights: dict[Task, _Arriving] = {}
        self._streams: dict[int, _Stream] = {}
        self.n_finished = 0
        self.longest = 0.0
        """Tokens of the longest finished sample."""
        self._looks: deque[tuple[float, float]] = deque([(self.started, 0.0)])
        self._finished_tokens = 0.0
        self._finished_events = 0
        self._any_events = False

    def began(self, task: Task, lane_number: int) -> None:
        """Note a request for `task` that is sent to the endpoint with this lane number."""
        now = self._clock()
        self._flights[task] = _Arriving(lane_number, now)
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
        self.n_finished += 1
        self.longest = max(self.longest, tokens)
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
        tokens, seconds = self.tokens, self._clock() - self.started
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

    @property
    def streams(self) -> list[Streaming]:
        """The samples in flight, for a forecast of the session's end."""
        paces = {lane_number: stream.pace for lane_number, stream in self._streams.items()}
        # An endpoint that has sent nothing yet is expected to be as fast as the mean of the others.
        measured = [pace for pace in paces.values() if pace is not None]
        usual = sum(measured) / len(measured) if measured else 0.0
        bounds = self._max_tokens
        return [
            Streaming(self._tokens_of(flight), paces[flight.lane_number] or usual, bounds.get(task.benchmark, math.inf))
            for task, flight in self._flights.items()
        ]

    def _tokens_of(self, flight: _Arriving) -> float:
        """Tokens of a request so far; estimated from its age if the servers send each reply in one piece."""
        if self._any_events or not (pace := self._streams[flight.lane_number].pace):
            return flight.tokens
        return (self._clock() - flight.started) / pace


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

    def last(self, task: Task) -> tuple[str, int | None, str]:
        """Return (kind, status, message) of the last failure of `task`, which must have failed before."""
        return self._failures[task]

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


# ---- counts


class Counts:
    """Counts the samples, tokens and failures of a session.

    done: samples on disk by benchmark, earlier sessions included. total: samples expected, by benchmark. finished:
    replies of this session; truncated: those cut at max_tokens; loops: those that end in a loop. tokens: completion
    tokens of the finished replies, without a part that an earlier request had written. continued: samples that
    continued such a part; kept_tokens: the tokens of these parts. spent: by the finished samples; beside: by
    fingerprints, and by requests that ended without a sample. failures, retries: failed requests, and requests made
    again. notes: oddities of replies → how often.
    """

    def __init__(self, done: Mapping[str, int], total: Mapping[str, int]) -> None:
        self.done = dict(done)
        self.total = dict(total)
        self.finished = 0
        self.truncated = 0
        self.loops = 0
        self.tokens = 0
        self.continued = 0
        self.kept_tokens = 0
        self.spent, self.beside = Spent(), Spent()
        self.failures = 0
        self.failed: dict[str, tuple[int, str, float]] = {}
        """By kind: number of failed requests, the latest cause, and its time."""
        self.retries = 0
        self.notes: dict[str, int] = {}

    def add(self, sample: Sample, reply: Reply, billed: Billed) -> None:
        """Count a finished sample, its reply and what this was billed for."""
        self.finished += 1
        self.truncated += sample.truncated
        self.loops += ends_in_loop(reply)
        n_before = tokens_before(sample)
        self.continued += bool(sample.salvaged_at)
        self.kept_tokens += n_before
        self.tokens += max(0, completion_tokens(sample) - n_before)
        self.spent.add(billed)
        for note in reply.notes:
            self.note(note, 1)

    def note(self, note: str, n: int) -> None:
        """Count `n` replies that have this note."""
        if n:
            self.notes[note] = self.notes.get(note, 0) + n

    def fail(self, failure: RequestFailed, now: float) -> None:
        """Count a failed request."""
        self.failures += 1
        self.failed[failure.kind] = (self.failed.get(failure.kind, (0,))[0] + 1, failure.message, now)


# ---- the snapshot


def snapshot(
    now: float,
    *,
    counts: Counts,
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

    retrying: samples that wait for another attempt. n_waiting:
    number of samples that nobody has asked yet. concurrency: the present limit of requests in flight. eta: when the
    session ends.
    """
    flying, again = _by_benchmark(in_flight), _by_benchmark(retrying)
    oldest = arrivals.oldest
    return Progress(
        elapsed_s=now - arrivals.started,
        done=sum(counts.done.values()),
        total=sum(counts.total.values()),
        in_flight=len(in_flight),
        waiting=n_waiting,
        given_up=causes.n_given_up,
        failures=counts.failures,
        retries=counts.retries,
        finished=counts.finished,
        truncated=counts.truncated,
        tokens=counts.tokens,
        arrived=round(arrivals.tokens),
        tokens_per_s=arrivals.rate,
        tokens_per_s_now=arrivals.rate_now,
        benchmarks=tuple(
            BenchmarkProgress(
                name=name,
                done=counts.done[name],
                total=total,
                in_flight=flying.get(name, 0),
                retrying=again.get(name, 0),
                given_up=causes.n_given_up_of(name),
            )
            for name, total in counts.total.items()
        ),
        endpoints=lanes.progress(),
        failed=tuple(
            FailureProgress(kind=kind, count=n, latest=message, ago_s=now - failed_at)
            for kind, (n, message, failed_at) in sorted(counts.failed.items(), key=lambda item: -item[1][2])
        ),
        oldest=oldest and _oldest(*oldest),
        eta=eta,
        concurrency=concurrency,
        paused=paused,
        stopping=not ending.asking,
        continued=Continued(counts.continued, counts.kept_tokens),
        why=ending.why,
        grace_s=None if ending.grace_ends is None or ending.asking else max(0.0, ending.grace_ends - now),
        patience_s=lanes.patience_left,
    )


def _by_benchmark(tasks: Collection[Task]) -> Mapping[str, int]:
    """Return the number of these samples by benchmark; a benchmark without samples is left out."""
    return Counter([task.benchmark for task in tasks]) if tasks else {}


def _oldest(task: Task, seconds: float, tokens: float) -> OldestInFlight:
    """The oldest request in flight, as the display shows it."""
    return OldestInFlight(
        benchmark=task.benchmark,
        question_id=task.question_id,
        sample_index=task.sample_index,
        seconds=seconds,
        tokens=round(tokens),
    )
