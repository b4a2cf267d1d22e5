"""The scheduler as a state machine: every missing sample once, rounds that wait, short work for slow endpoints."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import schedule
from harness.client.address.endpoint import Endpoint
from harness.core.choices import Order
from harness.generation.dispatch.flight import Lane, Work
from harness.generation.dispatch.schedule import UNKNOWN_LENGTH, Scheduler
from harness.generation.dispatch.too_many_requests import Pace
from harness.runs.missing import Missing, Task, missing_samples


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
def test_the_longest_question_goes_first_however_many_samples_have_finished_meanwhile(n_finished: int) -> None:
    scheduler = Scheduler(plan(12, 100))
    for n in (12, n_finished, 100):
        works = [work for _ in range(n) if (work := scheduler.next(endpoint())) is not None]
        for work in works:
            scheduler.finish(work, 50 + int(work.task.question_id[1:]))
    assert [work.task.question_id for work in works] == ["q11"] * (99 - n_finished) + ["q10"] * (n_finished + 1)


def test_the_tokens_left_are_those_of_known_questions_and_the_mean_of_the_others() -> None:
    scheduler = Scheduler(plan(2, 3))
    assert scheduler.tokens_left == 6 * UNKNOWN_LENGTH
    works = [scheduler.next(endpoint()) for _ in range(2)]
    assert scheduler.tokens_left == 4 * UNKNOWN_LENGTH
    for work, tokens, left in zip(works, (100, 300), (200 + 200, 200 + 600), strict=True):
        assert work is not None
        scheduler.finish(work, tokens)
        assert scheduler.tokens_left == left
    assert (scheduler.drop_question("b", "q0"), scheduler.tokens_left) == (
        [Task("b", "q0", 1), Task("b", "q0", 2)],
        600,
    )


@pytest.mark.parametrize(
    ("shape", "two", "peer", "limit"),
    [
        ((30, 64, 256), False, "clairvoyant", 1.18),
        ((198, 8, 128), False, "clairvoyant", 1.18),
        ((198, 8, 128), False, "fifo", 0.95),
        ((198, 8, 256), True, "least outstanding", 0.88),
    ],
)
def test_simulated_runs_end_close_to_the_best_possible(
    shape: tuple[int, int, int], two: bool, peer: str, limit: float
) -> None:
    """The simulation itself checks that every sample is asked once; bench/schedule.py prints all rows."""
    spans = schedule.simulate(shape, 1, two)
    assert spans["ours"] <= limit * spans[peer]


def test_an_endpoint_of_unknown_speed_takes_a_sample_that_a_slow_one_leaves_to_the_fast() -> None:
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
