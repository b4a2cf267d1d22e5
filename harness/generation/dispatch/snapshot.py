"""What has happened in a session so far: counts, causes of failures, and `Progress`, the value that displays show.

RequestFailed ──▶ Causes   why samples are still owed, one example a cause in the server's own words ─┐
Sample, Reply ──▶ Counts   done, truncated, tokens, retries, oddities ────────────────────────────────┼─▶ Progress
tokens under way ─▶ Arrivals (`arrivals`), the phase (`budget.Ending`) ───────────────────────────────┘
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.records import Sample, Usage
from harness.generation.dispatch.arrivals import Arrivals
from harness.generation.dispatch.budget import Ending
from harness.generation.dispatch.canary import ends_in_loop
from harness.generation.lengths import completion_tokens, tokens_before
from harness.generation.plan import Task
from harness.generation.progress import (
    BenchmarkProgress,
    Continued,
    EndpointProgress,
    FailureProgress,
    OldestInFlight,
    Progress,
)
from harness.generation.spending import Spent

# ---- causes


@dataclass(frozen=True, slots=True)
class Cause:
    """Why samples are missing: a kind of failure, how many samples it cost, and an example that is safe to print.

    kind: a `FailureKind`, "internal" (a bug of the harness) or "not asked".
    """

    kind: str
    count: int
    example: str

    def __str__(self) -> str:
        return f"{self.count} × {self.kind}: {self.example}"


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
        return sum(task.benchmark == benchmark for task in self._given_up)

    def given_up(self) -> dict[Task, str]:
        """The samples that are not asked again, with the kind of their last failure."""
        return {task: self._failures[task][0] for task in self._given_up}

    def met(self, task: Task, failure: RequestFailed) -> None:
        """Note a failure of `task`, which will be asked again."""
        self._failures[task] = (failure.kind, failure.status, failure.message)

    def gave_up(self, task: Task, kind: str, message: str, status: int | None = None) -> None:
        """Note the failure after which `task` is not asked again and stays owed."""
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

    def listed(self, n_owed: int, not_asked_because: str) -> list[Cause]:
        """All causes, the most frequent first; missing samples without a failure count as not asked."""
        groups: dict[tuple[str, int | None], list[str]] = {}
        for kind, status, message in self._failures.values():
            groups.setdefault((kind, status), []).append(message)
        causes = [Cause(kind, len(messages), messages[0]) for (kind, _), messages in groups.items()]
        if n_owed > len(self._failures):
            causes.append(Cause("not asked", n_owed - len(self._failures), not_asked_because))
        return sorted(causes, key=lambda cause: -cause.count)


# ---- counts


class Counts:
    """Counts the samples, tokens and failures of a session.

    done: samples on disk by benchmark, earlier sessions included. total: samples expected, by benchmark. finished:
    replies of this session; truncated: those cut at max_tokens; loops: those that end in a loop of the same words.
    tokens: completion tokens of the finished replies, without a part that an earlier request had written. continued:
    samples that continued such a part; kept_tokens: the tokens of these parts. failures, retries: failed requests, and
    requests made again. notes: oddities of replies, each with how often it occurred.
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
        self.spent = Spent()
        self.failures = 0
        self.failed: dict[str, tuple[int, str, float]] = {}
        """By kind: number of failed requests, the latest cause, and its time."""
        self.retries = 0
        self.notes: dict[str, int] = {}

    def add(self, sample: Sample, reply: Reply) -> None:
        """Count a finished sample and its reply."""
        self.finished += 1
        self.truncated += sample.truncated
        self.loops += ends_in_loop(reply)
        n_before = tokens_before(sample)
        self.continued += bool(sample.salvaged_at)
        self.kept_tokens += n_before
        self.tokens += max(0, completion_tokens(sample) - n_before)
        self.spent.add(_billed(sample.usage, n_before))
        for note in reply.notes:
            self.notes[note] = self.notes.get(note, 0) + 1

    def fail(self, failure: RequestFailed, now: float) -> None:
        """Count a failed request."""
        self.failures += 1
        self.failed[failure.kind] = (self.failed.get(failure.kind, (0,))[0] + 1, failure.message, now)

    @property
    def tokens_per_request(self) -> float | None:
        """Mean tokens of a prompt and its reply; None before the first one has finished."""
        return (self.tokens + self.spent.prompt_tokens) / self.finished if self.finished else None


def _billed(usage: Usage, n_before: int) -> Usage:
    """Return the usage of the last request alone; the part written before it (`n_before` tokens) was in its prompt."""
    if not n_before:
        return usage
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return msgspec.structs.replace(
        usage,
        prompt_tokens=None if prompt is None else prompt + n_before,
        completion_tokens=None if completion is None else max(0, completion - n_before),
    )


# ---- the snapshot


def snapshot(
    now: float,
    started: float,
    *,
    counts: Counts,
    causes: Causes,
    arrivals: Arrivals,
    ending: Ending,
    endpoints: tuple[EndpointProgress, ...],
    in_flight: Collection[Task],
    retrying: Collection[Task],
    n_waiting: int,
    concurrency: int,
    paused: bool,
) -> Progress:
    """Return the state of the session at `now`, a monotonic second, as one value."""
    flying = Counter(task.benchmark for task in in_flight)
    again = Counter(task.benchmark for task in retrying)
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
                in_flight=flying[name],
                retrying=again[name],
                given_up=causes.n_given_up_of(name),
            )
            for name, total in counts.total.items()
        ),
        endpoints=endpoints,
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
    )


def _oldest(task: Task, seconds: float, tokens: float) -> OldestInFlight:
    return OldestInFlight(
        benchmark=task.benchmark,
        question_id=task.question_id,
        sample_index=task.sample_index,
        seconds=seconds,
        tokens=round(tokens),
    )
