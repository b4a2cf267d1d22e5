"""The dispatcher: the time until the end that is printed, and what a session shows of itself, on a clock of the test's.
The scheduler as a state machine: every missing sample once, rounds that wait, short work for slow endpoints.

For: harness.generation.dispatch.dispatcher, harness.generation.dispatch.state, harness.generation.dispatch.budget,
harness.generation.dispatch.rate, harness.client.request_fields, harness.core.number_text.
"""

from __future__ import annotations

import heapq
import json
import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import schedule
from harness.client.address.endpoint import Endpoint
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.request_fields import TEMPLATE_TOKENS, prompt_bytes
from harness.core.errors import StoppedByRule
from harness.core.hidden_limit import EarlyCut
from harness.core.literals import Order
from harness.core.number_text import Prices
from harness.core.records import Timing, Usage
from harness.generation.dispatch.budget import Billing, Budget
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.rate import PoissonArrivals
from harness.generation.dispatch.schedule import UNKNOWN_LENGTH, Scheduler
from harness.generation.dispatch.state import Flight, Lane, SessionPlan, Work
from harness.generation.dispatch.too_many_requests import Pace
from harness.generation.run_progress import Account, Progress, Spent
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling
from harness.progress.lines import line, percent
from harness.runs.layout import RunFolder, RunLog
from harness.runs.log_events import spent_so_far
from harness.runs.missing import Missing, Task, missing_samples
from harness.testing import FakeServer, Request, delta, event_stream
from tests.generation.small_runs import changed, question_set, run, run_settings, samples_of, well
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
        self.dispatcher.handle_end(flight, (sample, reply))


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


def test_the_time_left_is_accurate_until_the_last_samples_start() -> None:
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


# -- the dispatcher step by step ---------------------------------------------------------------------------------------


def test_cuts_below_max_tokens_are_told_by_their_length() -> None:
    play = Play(questions=5, max_tokens=64, concurrency=10)
    last, *others = play.begin()
    play.now += 4.0
    for flight in others:
        play.answer(flight, 40, "length")
    oldest = play.dispatcher.progress().oldest
    assert (oldest and oldest.tokens) == 36, "by its age: replies in one piece took 0.11 s a token"
    play.answer(last, 40, "length")
    assert play.dispatcher.cuts.early_cut(10) == EarlyCut(tokens=40, max_tokens=64, n_at=10, n_samples=10)


def test_what_has_come_and_what_is_left_are_shown_while_a_session_ends() -> None:
    play = Play(questions=6, concurrency=10)
    first, *others = play.begin()
    for seconds in (10.0, 5.0, 5.0):
        progress = play.dispatcher.progress()
        assert (progress.tokens_per_s_now, progress.eta, progress.oldest and progress.oldest.tokens) == (None, None, 0)
        play.now += seconds
    play.dispatcher.handle_end(others.pop(), RequestFailed("cut", "reset"))
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


def endpoint(seconds: float = 0.0, tokens: float = 0.0, n: int = 0) -> Lane:
    """An endpoint of this speed with n requests in flight."""
    lane = Lane(endpoint=Endpoint.parse("http://a"), pace=Pace(99, lambda: 0.0), seconds=seconds, tokens=tokens)
    lane.pace.in_flight = n
    return lane


def plan(questions: int, samples: int) -> list[Missing]:
    return missing_samples("b", [f"q{i}" for i in range(questions)], samples, set())


rows = st.lists(st.sets(st.integers(0, 5), min_size=1), max_size=6).map(
    lambda indices: [Missing(f"b{i % 2}", f"q{i}", tuple(sorted(s))) for i, s in enumerate(indices)]
)
moves = st.lists(
    st.tuples(st.sampled_from(["next", "next", "probe", "finish", "finish", "give back", "drop"]), st.integers(0, 99)),
    max_size=80,
)


@given(rows=rows, order=st.sampled_from(["longest", "rounds"]), moves=moves, n=st.integers(1, 3), n_away=st.integers(0))
def test_every_owed_sample_is_handed_out_exactly_once_whatever_happens(
    rows: list[Missing], order: Order, moves: list[tuple[str, int]], n: int, n_away: int
) -> None:
    now = 0.0
    scheduler = Scheduler(rows, order=order)
    missing = {Task(o.benchmark, o.question_id, i) for o in rows for i in o.indices}
    endpoints = [endpoint() for _ in range(n)]
    at_work = endpoints[n_away:]
    running: list[Work] = []
    handed: Counter[Task] = Counter()
    returned: Counter[Task] = Counter()

    def take(lane: Lane, probe: bool = False) -> None:
        lane.set_aside = probe
        work = scheduler.next(lane, at_work)
        if work is not None:
            assert work.task not in {one.task for one in running}
            running.append(work)
            handed[work.task] += 1

    for what, number in moves:
        now += 1 + number % 7
        scheduler.advance(now)
        if what in ("next", "probe"):
            take(endpoints[number % n], probe=what == "probe")
        elif running:
            work = running.pop(number % len(running))
            if what == "finish":
                scheduler.finish(work, 1 + number * 10)
            elif what == "give back":
                if number % 2:
                    work.failed_at = endpoints[number % n]
                scheduler.give_back(work, now + (0 if number % 3 else number))
                returned[work.task] += 1
        assert scheduler.n_waiting == len(missing) + returned.total() - handed.total()
        assert scheduler.tokens_left >= -1e-6
    scheduler.advance(now + 100)
    while scheduler.n_waiting:
        n_waiting = scheduler.n_waiting
        for lane in endpoints:
            take(lane)
        if running:
            scheduler.finish(running.pop(), 50)
        assert scheduler.n_waiting < n_waiting or running or scheduler.n_waiting == 0
    assert {task: n - returned[task] for task, n in handed.items()} == dict.fromkeys(missing, 1)
    assert all(scheduler.next(lane) is None for lane in endpoints)


def test_a_probe_is_of_a_sample_that_did_not_fail_yet() -> None:
    scheduler, lane = Scheduler(plan(2, 2)), endpoint()
    works = [work for _ in range(2) if (work := scheduler.next(lane))]
    for work, until in zip(works, (3.0, 5.0), strict=True):
        scheduler.give_back(work, until)
    assert scheduler.next_due == 3.0
    scheduler.advance(5.0)
    lane.set_aside = True
    probed = [work.task[1:] for _ in range(4) if (work := scheduler.next(lane))]
    assert probed == [("q0", 1), ("q1", 1), ("q0", 0), ("q1", 0)]


@pytest.mark.parametrize("n_finished", range(76, 80))
def test_the_longest_question_goes_first_whatever_has_finished(n_finished: int) -> None:
    scheduler = Scheduler(plan(12, 100))
    for n in (12, n_finished, 100):
        works = [work for _ in range(n) if (work := scheduler.next(endpoint())) is not None]
        for work in works:
            scheduler.finish(work, 50 + int(work.task.question_id[1:]))
    assert [work.task.question_id for work in works] == ["q11"] * (99 - n_finished) + ["q10"] * (n_finished + 1)


def test_the_tokens_left_use_known_questions_and_the_mean_of_the_others() -> None:
    scheduler = Scheduler(plan(2, 3))
    assert scheduler.tokens_left == 6 * UNKNOWN_LENGTH
    works = [scheduler.next(endpoint()) for _ in range(2)]
    assert scheduler.tokens_left == 4 * UNKNOWN_LENGTH
    for work, tokens, left in zip(works, (100, 300), (200 + 200, 200 + 600), strict=True):
        assert work is not None
        scheduler.finish(work, tokens)
        assert scheduler.tokens_left == left
    assert scheduler.drop_question("b", "q0") == [Task("b", "q0", 1), Task("b", "q0", 2)]
    assert scheduler.tokens_left == 600


@pytest.mark.parametrize(
    ("shape", "two", "peer", "limit"),
    [
        ((30, 64, 256), False, "clairvoyant", 1.18),
        ((198, 8, 128), False, "clairvoyant", 1.18),
        ((198, 8, 128), False, "fifo", 0.95),
        ((198, 8, 256), True, "least outstanding", 0.88),
    ],
)
def test_simulated_runs_are_nearly_optimal(shape: tuple[int, int, int], two: bool, peer: str, limit: float) -> None:
    """The simulation itself checks that every sample is asked once; bench/schedule.py prints all rows."""
    spans = schedule.simulate(shape, 1, two)
    assert spans["ours"] <= limit * spans[peer]


def test_an_endpoint_of_unknown_speed_takes_samples_a_slow_one_leaves() -> None:
    scheduler, fast, slow = Scheduler(plan(1, 2)), endpoint(10, 1000, n=1), endpoint(10, 20)
    assert scheduler.next(slow, [fast, slow]) is None
    assert scheduler.next(endpoint(), [fast, slow]) is not None


def cpu_of_a_hand_out(questions: int) -> float:
    """Seconds of one `next` and `finish` of a slow endpoint, beside a fast one at work."""
    scheduler, fast, slow = Scheduler(plan(questions, 2)), endpoint(10, 1000, n=1), endpoint(10, 200)
    before = time.thread_time()
    for _ in range(200):
        work = scheduler.next(slow, [fast, slow])
        assert work is not None
        scheduler.finish(work, 200)
    return (time.thread_time() - before) / 200


def test_a_hand_out_takes_no_longer_with_more_questions() -> None:
    few, many = (min(cpu_of_a_hand_out(n) for _ in range(3)) for n in (1_000, 30_000))
    assert many < 5 * few


# -- the budget of a run -----------------------------------------------------------------------------------------------


PROMPT_BYTES = 36
"""Bytes of each prompt; with the template's share a prompt has at most 100 tokens."""


class Limits(Budget):
    """The budget of a session of ten questions, and what its replies are billed."""

    def __init__(self, settings: RunSettings, rows: list[Missing]) -> None:
        prompts = dict.fromkeys(((row.benchmark, row.question_id) for row in rows), PROMPT_BYTES)
        self.billing = Billing(settings, SessionPlan(missing=rows, done={}, total={}, prompt_bytes=prompts))
        self.flights: set[Task] = set()
        super().__init__(settings, rows, self.billing, Account(), self.flights)


def budget(*max_tokens: int | None, rounds: int = 4, **limits: object) -> Limits:
    """Of a session of ten questions. max_tokens: of its benchmark, and of others that are done."""
    benchmarks = {
        name: BenchmarkSettings(samples=rounds, sampling=Sampling(max_tokens=most))
        for name, most in zip(("sums", "done"), max_tokens, strict=False)
    }
    settings: RunSettings = replace(run_settings(Path("nowhere")), benchmarks=benchmarks, **limits)  # type: ignore[arg-type]
    return Limits(settings, [Missing("sums", f"q{n}", tuple(range(rounds))) for n in range(10)])


def send(limits: Limits, n: int, index: int = 0) -> list[Task]:
    """As many requests as fit, at most `n`."""
    sent: list[Task] = []
    while len(sent) < n and limits.fits():
        sent.append(Task("sums", f"q{len(sent)}", index))
        limits.record_sent(sent[-1], 1)
        limits.flights.add(sent[-1])
    return sent


def finish(limits: Limits, task: Task, tokens: int | None, prompt: int | None = 10) -> None:
    usage = Usage(prompt_tokens=prompt, completion_tokens=tokens)
    sample = recorded.sample(task.question_id, task.sample_index, "4", benchmark="sums", usage=usage)
    limits.flights.discard(task)
    limits.finished(task, limits.billing.last_bill(sample))


def test_the_first_to_finish_do_not_pass_for_all() -> None:
    for last, is_known in ((19, False), (20, True)):
        limits = budget(1000, budget_tokens=40_000)
        sent = send(limits, 40)
        for task in [*sent[:last], *sent[last + 1 :]]:
            finish(limits, task, 780)
        # 30,420 and either 11 × 1000, since one of the first 20 is out, or 10 × 780, the mean, and 1000 for the last
        assert limits.may_start(1) is is_known
        finish(limits, sent[last], 780)
        assert not limits.holds_round
        assert limits.may_start(1)


def test_a_prompt_that_a_reply_shows_to_be_longer_is_reserved_for() -> None:
    limits = budget(100, budget_usd=0.05, prices=Prices(10.0, 20.0))
    for prompt, longest in ((50, 100), (None, 100), (160, 160)):
        (task,) = send(limits, 1)
        finish(limits, task, 100, prompt=prompt)
        assert limits.billing.longest_prompt == longest


def test_all_texts_of_a_request_can_be_a_part_of_its_prompt_and_no_number() -> None:
    plain = {"model": "m", "messages": [{"role": "user", "content": "four"}]}
    assert prompt_bytes(plain) == len('[{"role":"user","content":"four"}]')
    assert prompt_bytes({**plain, "max_tokens": 10**9, "stream": True, "seed": None}) <= prompt_bytes(plain) + 4
    assert prompt_bytes({**plain, "tools": ["é"]}) == prompt_bytes(plain) + len('["é"]'.encode())


def test_a_budget_below_the_first_round_names_one_that_is_enough() -> None:
    small = budget(64, budget_tokens=50)
    assert not small.fits()
    assert small.sentence() == (
        "stopped by the budget: 0 of 50 tokens used. No request may exceed the budget, and a reply may use "
        "64. The "
        "first round has 10 replies: set `budget_tokens` to at least 640, or lower `max_tokens`"
    )
    assert not budget(64, budget_tokens=639).may_start(0)
    enough = budget(64, budget_tokens=640)
    assert enough.may_start(0)
    assert len(send(enough, 64)) == 10


PRICES = Prices(1.0, 10.0)


def silent(request: Request) -> Iterator[bytes]:
    """A reply that states no usage."""
    return event_stream(delta(f"seed {request.json.get('seed')}"), delta(finish="stop"))


def test_samples_without_usage_count_with_the_most_that_they_can_cost(tmp_path: Path) -> None:
    benchmarks = {"sums": BenchmarkSettings(samples=2, sampling=Sampling(max_tokens=30))}
    with FakeServer(silent) as server:
        settings = run_settings(tmp_path / "run", server.base_url, prices=PRICES, benchmarks=benchmarks)
        outcome = run(settings, question_set(tmp_path, 3))
        bodies = [request.body for request in server.requests if request.method == "POST"]
    text = json.loads(bodies[0])["messages"][0]["content"]
    spent = outcome.spent
    assert len(text.encode()) * 6 <= spent.prompt_tokens <= sum(map(len, bodies)) + 6 * TEMPLATE_TOKENS
    assert (spent.completion_tokens, spent.n_unstated) == (6 * 30, 6)
    assert re.match(
        r"at most 0\.00\d\d USD for at most [\d,]+ tokens in, 180 out; 6 requests without reported ",
        spent.sentence(PRICES),
    )


def test_an_end_of_a_session_with_many_words_is_read(tmp_path: Path) -> None:
    spent = {"prompt_tokens": 7}
    with RunLog(RunFolder(tmp_path)) as log:
        log.write("session_ended", notes={"n" * 1000 + str(n): 1 for n in range(500)}, spent=spent)
    assert list(spent_so_far(RunFolder(tmp_path))) == [spent]
    former = [{"prompt_tokens": 7, "n_bounded": 1}, {"n_estimated": 2}, {"n_unstated": 4}]
    assert Spent.of_all(former) == Spent(7, 0, 1 + 2 + 4), "of earlier versions"


def test_a_session_that_a_budget_stops_tells_its_warnings(tmp_path: Path) -> None:
    benchmarks = {"sums": BenchmarkSettings(samples=4, sampling=Sampling(max_tokens=7))}
    warnings: list[str] = []

    def cut(request: Request) -> Iterator[bytes]:
        return event_stream(delta(f"seed {request.json.get('seed')}"), delta(finish="length"))

    with FakeServer(cut) as server:
        settings = run_settings(
            tmp_path / "run", server.base_url, budget_tokens=30, benchmarks=benchmarks, canary=False
        )
        with pytest.raises(StoppedByRule):
            run(settings, question_set(tmp_path, 4), on_warning=lambda warning: warnings.append(str(warning)))
    (warning,) = warnings
    assert warning.startswith("4 of 4 samples (100%) are truncated")


def test_a_budget_in_money_ends_at_a_whole_round_and_says_what_was_spent(tmp_path: Path) -> None:
    each = PRICES.usd(9, 7)
    with FakeServer(well) as server:
        settings = run_settings(
            tmp_path / "run", server.base_url, samples=10, concurrency=3, prices=PRICES, budget_usd=each * 28
        )
        with pytest.raises(StoppedByRule, match=r"0.001185 of .* USD used.* for 135 tokens in, 105 out\).* 15 of 50"):
            run(settings, question_set(tmp_path, 5))
    assert set(Counter(s.question_id for s in samples_of(settings)).values()) == {3}


@pytest.mark.parametrize(("cached", "n_finished"), [(0.1, 50), (None, 35)])
def test_cached_tokens_use_the_budget_at_their_price(tmp_path: Path, cached: float | None, n_finished: int) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}

    def warm(request: Request) -> Iterator[bytes]:
        return event_stream(delta(f"seed {request.json.get('seed')}"), delta(finish="stop", usage=usage))

    prices, discounted = Prices(1.0, 10.0, cached), (40 + 60 * 0.1 + 7 * 10) / 1e6
    with FakeServer(warm) as server:
        most = discounted * 50 + 4e-4
        settings = run_settings(tmp_path / "run", server.base_url, samples=10, prices=prices, budget_usd=most)
        with nullcontext() if cached else pytest.raises(StoppedByRule):
            run(settings, question_set(tmp_path, 5))
    assert len(samples_of(settings)) == n_finished
    (logged,) = spent_so_far(RunFolder(settings.out))
    spent = Spent.of_all([logged, logged])
    assert spent == Spent(200 * n_finished, 14 * n_finished, 0, 120 * n_finished)
    assert spent.usd(prices) == pytest.approx(2 * n_finished * (discounted if cached else 170 / 1e6))
    assert ("tokens in (6,000 cached)" in spent.sentence(prices)) == bool(cached)
    assert "cached" in (settings.out / "manifest.json").read_text() or not cached


# -- arrivals at a rate


def planned(rate: float, seed: str, n: int, step: float = 0.0) -> list[float]:
    """The times for which `n` requests are planned. step: seconds that each takes to be sent."""
    now = [0.0]
    arrivals = PoissonArrivals(rate, lambda: now[0], seed)
    times = []
    for _ in range(n):
        now[0] += arrivals.wait() + step
        times.append(arrivals.record_sent())
    return times


def test_arrivals_are_random_at_the_rate_even_if_sent_late() -> None:
    times = planned(4.0, "seed", 4000)
    gaps = [later - earlier for earlier, later in pairwise([0.0, *times])]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert (mean, deviation) == pytest.approx((0.25, 0.25), rel=0.08), "exponential: as spread as long"
    assert times == planned(4.0, "seed", 4000) != planned(4.0, "other", 4000)
    assert times == pytest.approx(planned(4.0, "seed", 4000, step=0.5)), "a slow client shifts no arrival"
