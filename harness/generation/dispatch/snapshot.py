"""What has happened in a session so far: counts, causes of failures, and `Progress`, the value that displays show.

RequestFailed ──▶ Causes   why samples are missing, one example a cause in the server's own words ────┐
Sample, Reply ──▶ Counts   done, truncated, tokens, retries, oddities ────────────────────────────────┼─▶ Progress
tokens under way ─▶ Arrivals, the phase (`budget.Ending`) ────────────────────────────────────────────┘
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.errors import Sentence
from harness.core.records import Sample
from harness.generation.dispatch.arrivals import Arrivals
from harness.generation.dispatch.budget import Ending
from harness.generation.dispatch.canary import ends_in_loop
from harness.generation.dispatch.lanes import Lanes
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
        # What was never asked has not failed, so it needs a cause of its own.
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

    @property
    def tokens_per_request(self) -> float | None:
        """Mean tokens of a prompt and its reply; None before the first one has finished."""
        return (self.tokens + self.spent.prompt_tokens) / self.finished if self.finished else None


# ---- the snapshot


def snapshot(
    now: float,
    started: float,
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
) -> Progress:
    """Return the state of the session at `now`, a monotonic second, as one value.

    started: when the session began, on the same clock. retrying: samples that wait for another attempt. n_waiting:
    number of samples that nobody has asked yet. concurrency: the present limit of requests in flight.
    """
    flying, again = _by_benchmark(in_flight), _by_benchmark(retrying)
    oldest = arrivals.oldest
    return Progress(
        elapsed_s=now - started,
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
