"""The dispatcher: the time until the end that is printed, and what a session shows of itself, on a clock of the test's.

For: harness.generation.dispatch.dispatcher, harness.generation.dispatch.flight.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.spelling import TEMPLATE_TOKENS
from harness.core.hidden_limit import EarlyCut
from harness.core.records import Timing, Usage
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.flight import Flight, SessionPlan
from harness.generation.run_progress import Progress, Spent
from harness.generation.settings import BenchmarkSettings
from harness.presets.sampling import Sampling
from harness.progress.lines import line, percent
from harness.runs.missing import Missing, Task
from tests.generation.small_runs import changed, run_settings
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
        center = random.gauss(8.0, 0.8)
        for index in range(samples):
            length = round(min(MAX_TOKENS, max(5.0, math.exp(random.gauss(center, 0.5)))))
            tokens[Task("sums", f"q{q}", index)] = length
    return tokens


class Play:
    """A dispatcher whose clock is `now`, and whose random waits are the longest possible."""

    def __init__(self, questions: int = 3, samples: int = 2, max_tokens: int | None = None, **more: Any) -> None:
        self.now = 100.0
        benchmarks = {"sums": BenchmarkSettings(samples=samples, sampling=Sampling(max_tokens=max_tokens))}
        self.dispatcher = Dispatcher(
            changed(run_settings(Path("nowhere")), benchmarks=benchmarks, canary=False, **more),
            SessionPlan(
                missing=[Missing("sums", f"q{n}", tuple(range(samples))) for n in range(questions)],
                done={"sums": 0},
                total={"sums": samples * questions},
            ),
            store=lambda _: None,
            clock=lambda: self.now,
            jitter=lambda low, high: high,
        )

    def begin(self) -> list[Flight]:
        return [*self.dispatcher.begin()]

    def answer(self, flight: Flight, tokens: int, finish: str = "stop") -> None:
        """End the request with a reply of `tokens` tokens, one an event."""
        usage, timing = Usage(completion_tokens=tokens), Timing(started=0.0, total=1.0, events=tokens)
        task, text = flight.task, f"{flight.task}"
        sample = recorded.sample(
            task.question_id,
            task.sample_index,
            text,
            benchmark=task.benchmark,
            finish_reason=finish,
            usage=usage,
            timing=timing,
        )
        reply = Reply(text=text, reasoning=None, finish_reason=finish, usage=usage, timing=timing)
        self.dispatcher.landed(flight, (sample, reply))


def played(tokens: dict[Task, int], concurrency: int, step: float) -> Iterator[Moment]:
    """Each `step` seconds of a session that asks for all of these samples; the last moment is its end."""
    n_questions = len({task.question_id for task in tokens})
    play = Play(n_questions, len(tokens) // n_questions, MAX_TOKENS, concurrency=concurrency)

    def n_arrived(flight: Flight) -> int:
        return int((play.now - flight.sent_at) / SECONDS_PER_TOKEN)

    ends: list[tuple[float, Task, Flight]] = []
    due = play.now + step
    while True:
        for flight in play.begin():
            flight.arriving.count = partial(n_arrived, flight)
            heapq.heappush(ends, (play.now + tokens[flight.task] * SECONDS_PER_TOKEN, flight.task, flight))
        if play.dispatcher.ended:
            yield Moment(play.now, play.dispatcher.progress())
            return
        while due < ends[0][0]:
            play.now, due = due, due + step
            yield Moment(play.now, play.dispatcher.progress())
        play.now, task, flight = heapq.heappop(ends)
        play.answer(flight, tokens[task], "stop" if tokens[task] < MAX_TOKENS else "length")


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


# -- step by step


def test_cuts_below_max_tokens_are_told_by_their_length() -> None:
    play = Play(questions=5, max_tokens=64, concurrency=10)
    last, *others = play.begin()
    play.now += 4.0
    for flight in others:
        play.answer(flight, 40, "length")
    oldest = play.dispatcher.progress().oldest
    assert (oldest and oldest.tokens) == 36, "by its age: replies in one piece took 0.11 s a token"
    play.answer(last, 40, "length")
    assert play.dispatcher.cuts.early(10) == EarlyCut(tokens=40, max_tokens=64, n_at=10, n_samples=10)


def test_what_has_come_and_what_is_left_are_shown_while_a_session_ends() -> None:
    play = Play(questions=6, concurrency=10)
    first, *others = play.begin()
    for seconds in (10.0, 5.0, 5.0):
        progress = play.dispatcher.progress()
        assert (progress.tokens_per_s_now, progress.eta, progress.oldest and progress.oldest.tokens) == (None, None, 0)
        play.now += seconds
    play.dispatcher.landed(others.pop(), RequestFailed("cut", "reset"))
    for flight in others:
        play.answer(flight, 40)
    first.arriving.count = lambda: 4
    progress = play.dispatcher.progress()
    assert (progress.arrived, progress.tokens_per_s, progress.tokens_per_s_now) == (324, 16.2, 32.4)
    assert progress.eta == pytest.approx((36 + 40 + 80) / 32.4), "of those in flight, cut, and not asked yet"
    assert progress.spent == Spent(8 * TEMPLATE_TOKENS, 320, 8), "nobody stated or counted the prompts"
    play.dispatcher.drain("enough", grace=5.0)
    assert play.dispatcher.progress().eta == pytest.approx(36 / 32.4)
    assert first.lane.token_s == pytest.approx(0.5)
    for seconds, grace in ((2.0, 3.0), (4.0, 0.0)):
        play.now += seconds
        assert play.dispatcher.progress().grace_s == grace
