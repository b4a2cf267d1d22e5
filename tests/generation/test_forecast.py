"""When a run ends: the time that is printed, and nothing reads as done before it is."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.asker import Asker
from harness.client.protocol.reply import Reply
from harness.core.records import Timing, Usage
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.flight import Flight
from harness.generation.plan import SessionPlan
from harness.generation.progress import Progress
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling
from harness.runs.record import Owed, Task
from harness.showing.lines import line, percent
from tests.runs import recorded

SECONDS_PER_TOKEN = 0.02
MAX_TOKENS = 32768


class Moment(NamedTuple):
    """What is known at `now`, in seconds."""

    now: float
    progress: Progress


def lengths(seed: int, questions: int, samples: int) -> dict[Task, int]:
    """Of every sample, in tokens. The questions differ by a factor of 2.2 in either direction."""
    random = Random(seed)
    tokens = {}
    for q in range(questions):
        centre = random.gauss(8.0, 0.8)
        for index in range(samples):
            length = round(min(MAX_TOKENS, max(5.0, math.exp(random.gauss(centre, 0.5)))))
            tokens[Task("sums", f"q{q}", index)] = length
    return tokens


def played(tokens: dict[Task, int], concurrency: int, step: float) -> Iterator[Moment]:
    """Each `step` seconds of a session that asks for all of these samples; the last moment is its end."""
    ids = list(dict.fromkeys(task.question_id for task in tokens))
    samples = len(tokens) // len(ids)
    settings = RunSettings(
        asker=Asker(model="m"),
        endpoints=(Endpoint.parse("http://a"),),
        benchmarks={"sums": BenchmarkSettings(samples=samples, sampling=Sampling(max_tokens=MAX_TOKENS))},
        out=Path("nowhere"),
        concurrency=concurrency,
        canary=False,
    )
    plan = SessionPlan(
        owed=[Owed("sums", one, tuple(range(samples))) for one in ids], done={"sums": 0}, total={"sums": len(tokens)}
    )
    now = 0.0
    dispatcher = Dispatcher(
        settings, plan, store=lambda _: None, clock=lambda: now, jitter=lambda low, high: (low + high) / 2
    )

    def n_arrived(flight: Flight) -> int:
        return int((now - flight.sent_at) / SECONDS_PER_TOKEN)

    ends: list[tuple[float, Task, Flight]] = []
    due = step
    while True:
        for flight in dispatcher.begin():
            flight.arriving.count = partial(n_arrived, flight)
            heapq.heappush(ends, (now + tokens[flight.task] * SECONDS_PER_TOKEN, flight.task, flight))
        if dispatcher.ended:
            yield Moment(now, dispatcher.progress())
            return
        while due < ends[0][0]:
            now, due = due, due + step
            yield Moment(now, dispatcher.progress())
        now, task, flight = heapq.heappop(ends)
        n = tokens[task]
        timing = Timing(started=flight.sent_at, total=now - flight.sent_at, events=n)
        reply = Reply(
            text=f"{task}",
            reasoning=None,
            finish_reason="stop" if n < MAX_TOKENS else "length",
            usage=Usage(completion_tokens=n),
            timing=timing,
        )
        sample = recorded.sample(
            task.question_id, task.sample_index, reply.text,
            benchmark=task.benchmark, finish_reason=reply.finish_reason, usage=reply.usage, timing=timing,
        )  # fmt: skip
        dispatcher.landed(flight, (sample, reply))


def test_the_time_left_is_nearly_the_true_one_until_the_last_samples_are_asked_and_then_too_short() -> None:
    *moments, end = played(lengths(0, 35, 16), concurrency=32, step=5.0)
    for one in moments:
        left, progress = end.now - one.now, one.progress
        assert (progress.eta is None) == (progress.done < 8)
        if progress.eta is not None and progress.done > progress.total / 5:
            assert 0.5 * left < progress.eta < 1.3 * left or not progress.waiting
            assert progress.eta < 1.3 * left + 5
        assert (percent(progress.done, progress.total) == "100%") == (progress.done == progress.total)
        assert ("at least" in line(progress)) == (progress.eta is not None and not progress.waiting)
    assert "(100%)" in line(end.progress)
    assert percent(559, 560) == "99%"


def test_arrived_tokens_and_both_rates_are_those_of_the_streams() -> None:
    *moments, _ = played(lengths(0, 10, 4), concurrency=8, step=10.0)
    busy = [one.progress for one in moments if one.progress.in_flight == 8]
    assert len(busy) > 5
    for one in busy[2:]:
        assert one.tokens_per_s_now == pytest.approx(8 * 50, rel=0.02)
        assert one.tokens_per_s == pytest.approx(8 * 50, rel=0.02)
        assert one.arrived > one.tokens
        assert one.oldest is not None
        assert one.oldest.tokens == pytest.approx(one.oldest.seconds * 50, abs=2)
