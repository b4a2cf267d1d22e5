"""When a run ends: the range that is printed holds, and nothing reads as done before it is."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.address.endpoint import Endpoint
from harness.client.asker import Asker
from harness.client.protocol.reply import Reply
from harness.core.records import Sample, Timing, Usage
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.flight import Flight
from harness.generation.forecast import Streaming, TimeLeft, time_left
from harness.generation.plan import SessionPlan
from harness.generation.progress import Progress
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling
from harness.runs.record import Owed, Task
from harness.showing.lines import line, percent, printed_range, time_range

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
        sample = Sample(
            benchmark=task.benchmark, question_id=task.question_id, sample_index=task.sample_index,
            text=reply.text, reasoning=None, finish_reason=reply.finish_reason, usage=reply.usage, timing=timing,
            endpoint="http://a/v1",
        )  # fmt: skip
        dispatcher.landed(flight, (sample, reply))


MOMENTS = 12


def late(moments: list[Moment]) -> list[Moment]:
    """From a fifth of the samples on."""
    past_a_fifth = [one for one in moments if one.progress.done >= 0.2 * one.progress.total]
    return past_a_fifth[:: max(1, len(past_a_fifth) // MOMENTS)]


def test_the_true_end_lies_in_the_printed_range_at_seven_moments_in_ten() -> None:
    held = []
    for kind in LENGTHS:
        *moments, end = played(lengths(kind, 0, 35, 16), concurrency=32, step=5.0)
        for one in late(moments):
            assert one.progress.eta is not None
            least, most = printed_range(one.progress.eta)
            held.append(least <= end.now - one.now <= most)
    assert len(held) > 50
    assert sum(held) / len(held) >= 0.7


def test_a_run_never_reads_as_done_before_its_last_sample() -> None:
    *moments, end = played(lengths("pareto", 1, 10, 20), concurrency=32, step=20.0)
    for one in moments:
        assert (percent(one.progress.done, one.progress.total) == "100%") == (one.progress.done == one.progress.total)
    assert percent(559, 560) == "99%"
    assert "(100%)" in line(end.progress)


def test_arrived_tokens_and_both_rates_are_those_of_the_streams() -> None:
    *moments, _ = played(lengths("lognormal", 0, 10, 4), concurrency=8, step=10.0)
    busy = [one.progress for one in moments if one.progress.in_flight == 8]
    assert len(busy) > 5
    for one in busy[2:]:
        assert one.tokens_per_s_now == pytest.approx(8 * 50, rel=0.02)
        assert one.tokens_per_s == pytest.approx(8 * 50, rel=0.02)
        assert one.arrived > one.tokens
        assert one.oldest is not None
        assert one.oldest.tokens == pytest.approx(one.oldest.seconds * 50, abs=2)


def test_before_eight_samples_have_finished_nothing_is_promised() -> None:
    *moments, _ = played(lengths("lognormal", 0, 10, 4), concurrency=8, step=5.0)
    assert all((one.progress.eta is not None) == (one.progress.done >= 8) for one in moments[3:])
    assert {one.progress.done >= 8 for one in moments[3:]} == {True, False}


@pytest.mark.parametrize(
    ("waiting", "tokens", "longest", "least", "most", "why"),
    [
        (0, 10, 1000, 490, 1990, "as long as the mean, or twice the longest"),
        (0, 1000, 800, 0, 1000, "twice as long as it is, since it is the longest"),
        (0, 3900, 800, 0, 100, "never beyond its budget"),
        (5000, 500, 1000, 500, 2550, "10 tokens a second, and one more of twice the longest; the mean may be 50 more"),
    ],
)
def test_the_range_is_from_the_tokens_left_to_the_longest_stream(
    waiting: float, tokens: float, longest: float, least: float, most: float, why: str
) -> None:
    left = time_left(waiting, [Streaming(tokens, 4000)], 1.0, 10.0, mean=500.0, n=10, longest=longest)
    assert left == TimeLeft(least, most), why


@given(
    waiting=st.floats(0, 1e9),
    streams=st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), max_size=6),
    pace=st.floats(1e-4, 10),
    rate=st.none() | st.just(0.0) | st.floats(1e-6, 1e6),
    mean=st.floats(1, 1e6),
    more=st.floats(0, 1e6),
)
def test_whatever_the_lengths_the_range_is_one(
    waiting: float, streams: list[tuple[float, float]], pace: float, rate: float | None, mean: float, more: float
) -> None:
    left = time_left(waiting, [Streaming(*each) for each in streams], pace, rate, mean=mean, n=8, longest=mean + more)
    if left is None:
        assert not streams or not rate
    else:
        assert 0 <= left.least_s <= left.most_s
        assert time_range(left)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ((12.9, 44.1), "12 to 45 s"),
        ((0.2, 59.9), "0 to 60 s"),
        ((40, 170), "40 s to 3 min"),
        ((540, 780.1), "9 to 14 min"),
        ((540, 9000), "9 min to 2 h 30 min"),
        ((7200, 9000), "2 h 00 min to 2 h 30 min"),
        ((99.9, 99.9), "99 s to 2 min"),
        ((30, 30), "30 s"),
    ],
)
def test_the_range_in_words_is_rounded_outwards(left: tuple[float, float], words: str) -> None:
    assert time_range(TimeLeft(*left)) == words
