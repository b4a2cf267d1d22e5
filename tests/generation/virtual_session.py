"""A session in virtual time: the real dispatcher, and servers that stream at a steady pace samples of given lengths."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from harness.client.address.endpoint import Endpoint
from harness.client.asker import Asker
from harness.client.protocol.reply import Reply
from harness.core.records import Sample, Timing, Usage
from harness.generation.dispatch.actions import Ask, Done, Wait
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.plan import SessionPlan
from harness.generation.progress import Progress
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling
from harness.runs.record import Owed, Task

SECONDS_PER_TOKEN = 0.02
MAX_TOKENS = 32768

LENGTHS: dict[str, Callable[[Random, float], float]] = {
    # centre: the logarithm that is the question's own
    "lognormal": lambda random, centre: math.exp(random.gauss(centre, 0.5)),
    "wide": lambda random, centre: math.exp(random.gauss(centre, 0.9)),
    "pareto": lambda random, _: 800 * random.paretovariate(1.3),
    "now and then eight times": lambda random, centre: (
        math.exp(random.gauss(centre, 0.4)) * (8 if random.random() < 0.06 else 1)
    ),
    "exponential": lambda random, _: random.expovariate(1 / 3000),
}
"""How long samples are, in tokens; cut at `MAX_TOKENS`."""


class Moment(NamedTuple):
    """What is known at `now`, in seconds."""

    now: float
    progress: Progress


def lengths(kind: str, seed: int, questions: int, samples: int) -> dict[Task, int]:
    """Of every sample. The questions differ by a factor of 2.2 in either direction."""
    random = Random(seed)
    by_question = {}
    for q in range(questions):
        centre = random.gauss(8.0, 0.8)
        for index in range(samples):
            tokens = round(min(MAX_TOKENS, max(5.0, LENGTHS[kind](random, centre))))
            by_question[Task("sums", f"q{q}", index)] = tokens
    return by_question


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
    ends: list[tuple[float, Task]] = []
    begun: dict[Task, float] = {}
    due = step
    while True:
        action = dispatcher.next()
        if isinstance(action, Ask):
            begun[action.task] = now
            heapq.heappush(ends, (now + tokens[action.task] * SECONDS_PER_TOKEN, action.task))
        elif isinstance(action, Wait):
            while due < ends[0][0]:
                now, due = due, due + step
                dispatcher.arrived({task: int((now - begun[task]) / SECONDS_PER_TOKEN) for _, task in ends})
                yield Moment(now, dispatcher.progress())
            now, task = heapq.heappop(ends)
            n, begin = tokens[task], begun.pop(task)
            timing = Timing(started=begin, total=now - begin, events=n)
            reply = Reply(
                text=f"{task}",
                reasoning=None,
                finish_reason="stop" if n < MAX_TOKENS else "length",
                usage=Usage(completion_tokens=n),
                timing=timing,
            )
            sample = Sample(
                benchmark=task.benchmark, question_id=task.question_id, sample_index=task.sample_index,
                text=reply.text, reasoning=None, finish_reason=reply.finish_reason, usage=reply.usage, timing=timing,
                endpoint="http://a/v1",
            )  # fmt: skip
            dispatcher.answered(task, sample, reply)
        elif isinstance(action, Done):
            yield Moment(now, dispatcher.progress())
            return
