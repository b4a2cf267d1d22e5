"""The dispatcher and its parts, step by step on a clock of the test's own.

For: harness.generation.dispatch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.reply import FailureKind, Reply, RequestFailed
from harness.client.spelling import TEMPLATE_TOKENS
from harness.core.records import Sample, Timing, Usage
from harness.generation.dispatch.arrivals import Arrivals
from harness.generation.dispatch.budget import RateLimit
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.flight import Flight, Work
from harness.generation.dispatch.lanes import SET_ASIDE_AFTER, Lanes
from harness.generation.dispatch.too_many_requests import Pace
from harness.generation.plan import SessionPlan
from harness.generation.settings import BenchmarkSettings, Patience
from harness.generation.spending import Spent
from harness.presets.sampling import Sampling
from harness.runs.record import Owed, Task
from tests.generation.small_runs import changed, run_settings
from tests.runs import recorded


class Play:
    """A dispatcher whose clock is `now`. Random waits are the longest possible. logged: its events with their facts."""

    def __init__(self, endpoints: int = 1, questions: int = 3, max_tokens: int | None = None, **more: Any) -> None:
        self.now, self.stored = 100.0, list[Sample]()
        self.logged = list[tuple[str, dict[str, Any]]]()
        benchmarks = {"sums": BenchmarkSettings(samples=2, sampling=Sampling(max_tokens=max_tokens))}
        settings = run_settings(Path("nowhere"), *(f"http://server{n}" for n in range(endpoints)))
        owed = [Owed("sums", f"q{n}", (0, 1)) for n in range(questions)]
        self.dispatcher = Dispatcher(
            changed(settings, **{"benchmarks": benchmarks, "canary": False, **more}),
            SessionPlan(owed=owed, done={"sums": 0}, total={"sums": 2 * questions}),
            store=self.stored.append,
            log=lambda event, **facts: self.logged.append((event, facts)),
            clock=lambda: self.now,
            jitter=lambda low, high: high,
        )

    def begin(self) -> list[Flight]:
        return [*self.dispatcher.begin()]

    def answer(self, flight: Flight, tokens: int | None = 10, finish: str = "stop", events: int = 10) -> bool:
        usage, timing = Usage(completion_tokens=tokens), Timing(started=0.0, total=1.0, events=events)
        task, text = flight.task, f"{flight.task}"
        sample = recorded.sample(
            task.question_id, task.sample_index, text,
            benchmark=task.benchmark, finish_reason=finish, usage=usage, timing=timing,
        )  # fmt: skip
        reply = Reply(text=text, reasoning=None, finish_reason=finish, usage=usage, timing=timing)
        return self.dispatcher.landed(flight, (sample, reply))

    def fail(self, flight: Flight, kind: FailureKind, status: int | None = None, after: float | None = None) -> None:
        self.dispatcher.landed(flight, RequestFailed(kind, f"{kind}!", status=status, retry_after=after))


def test_a_grace_that_is_over_is_shown_as_none_left() -> None:
    play = Play()
    play.begin()
    play.dispatcher.drain("enough", grace=5.0)
    for seconds, left in ((2.0, 3.0), (6.0, 0.0)):
        play.now = 100.0 + seconds
        assert play.dispatcher.progress().grace_s == left


def test_who_waits_for_two_things_wakes_for_the_first() -> None:
    play = Play(concurrency=2)
    first, second = play.begin()
    play.fail(first, "cut")
    play.fail(second, "rate_limited", after=3.0)
    assert play.begin() == []
    assert play.dispatcher.pause() == pytest.approx(0.01), "a backoff of 0.01 s, and a pause of 3 s"
    play.now += 0.02
    assert play.begin() == []
    assert play.dispatcher.pause() == pytest.approx(3.28)


def test_the_rate_counts_from_the_beginning_of_the_session() -> None:
    play = Play()
    flight, *_ = play.begin()
    play.now += 10.0
    play.answer(flight, tokens=40)
    progress = play.dispatcher.progress()
    assert (progress.arrived, progress.tokens_per_s, progress.elapsed_s) == (40, 4.0, 10.0)
    assert flight.lane.token_s == 0.25
    assert progress.spent == Spent(TEMPLATE_TOKENS, 40, 1), "the server stated no prompt, whose bytes nobody counted"


def test_a_drained_session_ends_with_what_is_in_flight() -> None:
    play = Play(questions=6, concurrency=10)
    flights = play.begin()
    play.now += 10.0
    for flight in flights[1:]:
        play.answer(flight, tokens=40)
    play.dispatcher.drain("enough")
    # 36 tokens a second; the last one has 36 of 40 tokens by its age, and two samples are not asked any more.
    assert play.dispatcher.progress().eta == pytest.approx(4 / 36)


def test_cuts_below_max_tokens_are_told_by_their_length() -> None:
    play = Play(questions=5, max_tokens=64, concurrency=10)
    for flight in play.begin():
        play.answer(flight, tokens=40, finish="length")
    early = play.dispatcher.cut_lengths.early(10)
    assert early is not None
    assert (early.tokens, early.max_tokens, early.n_at) == (40, 64, 10)


# -- the parts


@pytest.mark.parametrize(
    ("kinds", "answered", "unreachable"),
    [
        (("connect", "connect"), False, True),
        (("connect", "connect"), True, False),
        (("connect", "server"), False, False),
        (("connect", None), False, False),
    ],
)
def test_only_endpoints_that_were_never_reached_are_unreachable(
    kinds: tuple[FailureKind | None, ...], answered: bool, unreachable: bool
) -> None:
    lanes = Lanes([Endpoint.parse(f"http://server{n}") for n in range(2)], 8, Patience(), lambda: 0.0)
    for lane, kind in zip(lanes, kinds, strict=True):
        if answered:
            lanes.answered_by(lanes.sent(lane, Work(Task("b", "q", 0))))
        if kind is not None:
            lanes.failed(lanes.sent(lane, Work(Task("b", "q", 0))), RequestFailed(kind, "no"))
    assert lanes.unreachable is unreachable


def test_while_one_probe_is_in_flight_the_session_does_not_give_up() -> None:
    now = 0.0
    lanes = Lanes([Endpoint.parse(f"http://server{n}") for n in range(2)], 8, Patience(), lambda: now)
    for lane in lanes:
        for _ in range(SET_ASIDE_AFTER):
            lanes.failed(lanes.sent(lane, Work(Task("b", "q", 0))), RequestFailed("connect", "refused"))
    probe = lanes.sent(next(iter(lanes)), Work(Task("b", "q", 0)))
    now = Patience().start_up + 1
    assert lanes.gave_up() is None
    lanes.failed(probe, RequestFailed("connect", "refused"))
    assert str(lanes.gave_up()).startswith("no request has been answered for 31 s (http://server0/v1: refused; ")


@pytest.mark.parametrize(("asked_s", "pause_s"), [(5.0, 5.5), (100.0, 101.0)])
def test_a_pause_is_a_tenth_longer_than_it_was_asked_for_or_a_second(asked_s: float, pause_s: float) -> None:
    lanes = Lanes([Endpoint.parse("http://server")], 8, Patience(), lambda: 0.0, lambda low, high: high)
    (lane,) = lanes
    lanes.failed(lanes.sent(lane, Work(Task("b", "q", 0))), RequestFailed("rate_limited", "no", retry_after=asked_s))
    assert lane.pause(0.0) == pytest.approx(pause_s)


def resting(n: int, credit_s: float) -> Pace:
    """A pace with one request in flight, after `n` others were refused, when their rests are over after `credit_s`."""
    now = 0.0
    pace = Pace(n + 1, lambda: now, lambda low, high: high)
    for refusals in [pace.sent() for _ in range(n + 1)][1:]:
        pace.refused(refusals)
    pace.advance(credit_s)
    return pace


@pytest.mark.parametrize(("credit_s", "n_awake"), [(4.9, 0), (5.1, 1), (14.9, 2), (15.1, 3)])
def test_each_slot_that_wakes_beside_a_request_in_flight_takes_a_credit(credit_s: float, n_awake: int) -> None:
    assert resting(4, credit_s).limit == 1 + n_awake


def test_a_slot_that_wakes_because_nothing_is_in_flight_leaves_no_debt() -> None:
    pace = Pace(2, lambda: 0.0, lambda low, high: high)
    for refusals in [pace.sent(), pace.sent()]:
        pace.refused(refusals)
    pace.advance(0.2)
    assert (pace.limit, pace.sent()) == (1, 1)
    pace.advance(5.3)
    assert pace.limit == 2, "5.1 seconds give a credit"


@pytest.mark.parametrize(("per_minute", "wait_s"), [(None, 0.0), (30.0, 2.0), (60.0, 1.0), (120.0, 60 / 118)])
def test_an_empty_bucket_holds_the_next_request_after_its_part_of_a_minute(
    per_minute: float | None, wait_s: float
) -> None:
    rate = RateLimit(per_minute, lambda: 0.0)
    n_sent = 0
    while not rate.wait() and n_sent < 3:
        rate.sent()
        n_sent += 1
    assert (n_sent, rate.wait()) == ({None: 3, 120.0: 2}.get(per_minute, 1), pytest.approx(wait_s))


def test_no_rate_is_known_before_the_first_token() -> None:
    seconds = iter(range(100))
    arrivals = Arrivals(lambda: float(next(seconds)), {})
    arrivals.look()
    assert (arrivals.rate, arrivals.rate_now) == (None, None)


def test_the_present_rate_is_that_of_the_last_ten_seconds() -> None:
    play = Play()
    flight, *_ = play.begin()
    play.dispatcher.progress()
    play.now += 10.0
    play.dispatcher.progress()
    play.now += 10.0
    play.answer(flight, tokens=100)
    progress = play.dispatcher.progress()
    assert (progress.tokens_per_s, progress.tokens_per_s_now) == (5.0, 10.0)
