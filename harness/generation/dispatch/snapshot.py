"""The facts of a session, put together for whoever watches it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from harness.generation.dispatch.arrivals import Arrivals
from harness.generation.dispatch.causes import Causes
from harness.generation.dispatch.counts import Counts
from harness.generation.dispatch.ending import Ending
from harness.generation.plan import Task
from harness.generation.progress import (
    BenchmarkProgress,
    Continued,
    EndpointProgress,
    FailureProgress,
    OldestInFlight,
    Progress,
)


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
    """What is going on at `now`, a monotonic second."""
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
