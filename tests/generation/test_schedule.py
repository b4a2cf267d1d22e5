"""The scheduler as a state machine: every owed sample once, rounds in order, short work for slow endpoints."""

from __future__ import annotations

import heapq
import importlib.util
import itertools
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records import Key
from harness.generation.dispatch.schedule import WORN, Scheduler
from harness.generation.plan import Order
from harness.runs.record import Owed, Task, missing_samples


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def plan(questions: int, samples: int, benchmark: str = "b") -> list[Owed]:
    return missing_samples(benchmark, [f"q{i}" for i in range(questions)], samples, set())


def all_tasks(rows: list[Owed]) -> set[Task]:
    return {Task(o.benchmark, o.question_id, i) for o in rows for i in o.indices}


def hand_out(scheduler: Scheduler, endpoint: int = 0) -> list[Task]:
    """Everything, each sample finished at once."""
    out = []
    while (task := scheduler.next(endpoint)) is not None:
        out.append(task)
        scheduler.finish(task, 100)
    return out


rows = st.lists(st.sets(st.integers(0, 5), min_size=1), max_size=6).map(
    lambda indices: [Owed(f"b{i % 2}", f"q{i}", tuple(sorted(s))) for i, s in enumerate(indices)]
)
orders = st.sampled_from(["longest", "rounds"])
moves = st.lists(
    st.tuples(st.sampled_from(["next", "next", "probe", "finish", "finish", "give back", "drop"]), st.integers(0, 99)),
    max_size=80,
)


@given(
    rows=rows,
    order=orders,
    moves=moves,
    endpoints=st.integers(1, 3),
    away=st.sets(st.integers(0, 2)),
    long=st.booleans(),
)
def test_every_owed_sample_is_handed_out_exactly_once_whatever_happens(
    rows: list[Owed], order: Order, moves: list[tuple[str, int]], endpoints: int, away: set[int], long: bool
) -> None:
    clock = Clock()
    long_prompts = {(o.benchmark, o.question_id) for o in rows if long}
    scheduler = Scheduler(rows, clock, order=order, n_endpoints=endpoints, long_prompts=long_prompts)
    scheduler.set_available([place not in away for place in range(endpoints)])
    running: list[Task] = []
    handed: Counter[Task] = Counter()
    returned: Counter[Task] = Counter()

    def take(place: int, probe: bool = False) -> None:
        task = scheduler.next(place, probe=probe)
        if task is not None:
            assert task not in running
            running.append(task)
            handed[task] += 1

    for what, number in moves:
        clock.now += 1 + number % 7
        if what in ("next", "probe"):
            take(number % endpoints, probe=what == "probe")
        elif running:
            task = running.pop(number % len(running))
            if what == "finish":
                scheduler.finish(task, 1 + number * 10)
            elif what == "give back":
                scheduler.give_back(task)
                returned[task] += 1
            else:
                scheduler.drop(task)
        assert sum(scheduler.waiting_by_question().values()) == scheduler.n_waiting
    while scheduler.n_waiting:
        n = scheduler.n_waiting
        for place in range(endpoints):
            take(place)
        if running:
            clock.now += 5
            scheduler.finish(running.pop(), 50)
        assert scheduler.n_waiting < n or running or scheduler.n_waiting == 0
    assert {task: n - returned[task] for task, n in handed.items()} == dict.fromkeys(all_tasks(rows), 1)
    assert all(scheduler.next(place) is None for place in range(endpoints))


@given(rows=rows, lengths=st.lists(st.integers(1, 30000), min_size=1), window=st.integers(1, 8))
def test_in_rounds_no_sample_goes_out_before_those_of_a_lower_index(
    rows: list[Owed], lengths: list[int], window: int
) -> None:
    clock = Clock()
    scheduler = Scheduler(rows, clock, order="rounds")
    handed: list[Task] = []
    running: list[Task] = []
    length = itertools.cycle(lengths)
    while (task := scheduler.next()) is not None:
        handed.append(task)
        running.append(task)
        if len(running) == window:
            clock.now += 1
            scheduler.finish(running.pop(0), next(length))
    indices = [task.sample_index for task in handed]
    assert indices == sorted(indices)


def test_the_first_wave_asks_each_question_once_then_the_longest_first() -> None:
    clock = Clock()
    scheduler = Scheduler(plan(3, 10), clock)
    first = [scheduler.next() for _ in range(3)]
    assert [t.question_id for t in first if t] == ["q0", "q1", "q2"]
    for task, tokens in zip(first, [100, 9000, 2000], strict=True):
        assert task is not None
        scheduler.finish(task, tokens)
    order = [t.question_id for t in hand_out(scheduler)]
    # Each sample handed out here comes back short, so only the first picks follow the first wave's lengths.
    assert order[0] == "q1"


def test_within_a_wave_the_longest_expected_goes_first_by_a_former_runs_lengths() -> None:
    prior = {("b", "q0"): 500.0, ("b", "q1"): 8000.0, ("b", "q2"): 2000.0}
    for order in ("longest", "rounds"):
        scheduler = Scheduler(plan(3, 1), Clock(), order=order, prior=prior)  # type: ignore[arg-type]
        assert [t.question_id for t in hand_out(scheduler)] == ["q1", "q2", "q0"]


def test_a_sample_that_runs_on_makes_its_question_long() -> None:
    clock = Clock()
    scheduler = Scheduler(plan(10, 3), clock)
    first = [scheduler.next() for _ in range(10)]
    clock.now = 10
    for task in first[:9]:
        assert task is not None
        scheduler.finish(task, 1000)  # 100 tokens/s
    clock.now = 100  # the tenth would have about 10,000 by now
    following = [scheduler.next() for _ in range(3)]
    assert next(t.question_id for t in following if t) == "q9"


def test_before_any_length_is_known_none_is_expected_beyond_max_tokens() -> None:
    rows = [*plan(5, 4, "short"), *plan(5, 4, "long")]
    scheduler = Scheduler(rows, lambda: 0.0, max_tokens={"short": 64, "long": 100_000})
    for _ in rows:  # the first of each question, whose length nobody knows
        scheduler.next()
    assert [task and task.benchmark for task in (scheduler.next(), scheduler.next())] == ["long", "long"]


def test_a_sample_given_back_goes_before_all_others() -> None:
    scheduler = Scheduler(plan(3, 2), Clock())
    task = scheduler.next()
    assert task is not None
    scheduler.give_back(task)
    assert scheduler.next() == task


def test_a_probe_is_of_the_question_that_failed_least() -> None:
    scheduler = Scheduler(plan(3, 3), Clock(), prior={("b", "q0"): 9.0, ("b", "q1"): 5.0, ("b", "q2"): 7.0})
    probed = []
    for _ in range(4):
        task = scheduler.next(probe=True)
        assert task is not None
        probed.append(task.question_id)
        scheduler.give_back(task)
    assert probed == ["q1", "q2", "q0", "q1"]


def test_a_dropped_question_returns_its_waiting_samples_and_is_not_asked() -> None:
    scheduler = Scheduler(plan(3, 3), Clock())
    task = scheduler.next()
    assert task is not None
    scheduler.drop(task)
    waiting = scheduler.drop_question("b", task.question_id)
    assert {t.sample_index for t in waiting} == {0, 1, 2} - {task.sample_index}
    assert scheduler.n_waiting == 6
    assert {t.question_id for t in hand_out(scheduler)} == {"q0", "q1", "q2"} - {task.question_id}


def test_a_question_whose_samples_were_all_dropped_keeps_no_failing_sample_waiting() -> None:
    """Failing samples of a hopeless question wait while another question was never asked; a dropped one is none."""
    scheduler = Scheduler(plan(2, 6), Clock(), order="rounds")
    for index in range(6):
        assert scheduler.drop_waiting(Task("b", "q1", index))
    failed = [task for _ in range(WORN) if (task := scheduler.next()) is not None]
    for task in failed:
        scheduler.give_back(task)
    assert scheduler.next() in failed


def test_a_round_that_may_not_start_waits_and_is_asked_for_again() -> None:
    indices: list[int] = []

    def may_start(number: int) -> bool:
        indices.append(number)
        return number < last

    last = 2
    scheduler = Scheduler(plan(4, 5), Clock(), order="rounds", may_start_round=may_start)
    assert {t.sample_index for t in hand_out(scheduler)} == {0, 1}
    assert scheduler.n_waiting == 12
    assert indices == [0, 1, 2]
    last = 3
    assert {t.sample_index for t in hand_out(scheduler)} == {2}
    assert indices == [0, 1, 2, 2, 3]


def two_speeds(rows: list[Owed], prior: dict[tuple[str, str], float]) -> Scheduler:
    """Endpoint 0 at 100 tokens/s, endpoint 1 at 20."""
    clock = Clock()
    scheduler = Scheduler(rows, clock, n_endpoints=2, prior=prior)
    fast, slow = scheduler.next(0), scheduler.next(1)
    assert fast is not None
    assert slow is not None
    clock.now = 10
    scheduler.finish(fast, 1000)
    scheduler.finish(slow, 200)
    return scheduler


def test_endpoints_get_samples_of_every_kind_so_that_a_score_can_compare_them() -> None:
    prior = {("b", f"q{i}"): 100.0 * (i + 1) for i in range(20)}

    def lengths(scheduler: Scheduler, endpoint: int, n: int) -> list[float]:
        taken = [task for _ in range(n) if (task := scheduler.next(endpoint)) is not None]
        return [prior["b", task.question_id] for task in taken]

    slow = lengths(two_speeds(plan(20, 20), prior), 1, 40)
    assert (min(slow) <= 400, max(slow) >= 1600) == (True, True), "any samples, not only the shortest"
    scheduler = two_speeds(plan(20, 20), prior)
    fast = lengths(scheduler, 0, 41)  # one was handed out before, while the speeds were measured
    longest, any_ = (
        [length for number, length in enumerate(fast, start=2) if bool(number % 8) is of] for of in (True, False)
    )
    assert min(any_) < min(longest), "one in eight is any sample"
    assert sum(longest) / len(longest) > 1300


def test_a_slow_endpoint_leaves_the_end_to_the_fast_one() -> None:
    prior = {("b", f"q{i}"): 100.0 * (i + 1) for i in range(20)}
    scheduler = two_speeds(plan(20, 20), prior)
    while scheduler.next(0) is not None:
        pass
    assert scheduler.n_waiting == 0

    scheduler = two_speeds(plan(1, 4), {("b", "q0"): 1000.0})
    assert scheduler.next(0) is not None
    assert scheduler.next(1) is None, "it would need 50 s or more for what the fast one does in 10"
    assert scheduler.n_waiting == 1


@pytest.mark.parametrize(
    ("tokens", "takes", "why"),
    [
        (
            200.0,
            True,
            "16 s: longer than the drain and than the running sample, but not than both, one after the other",
        ),
        (450.0, False, "36 s, beside 27 s of drain and 8 s of the running sample"),
    ],
)
def test_a_slow_endpoint_has_the_time_of_the_queue_and_of_the_longest_running_sample(
    tokens: float, takes: bool, why: str
) -> None:
    rows = [Owed("b", "long", (0, 1, 2)), Owed("b", "short", tuple(range(6)))]
    scheduler = two_speeds(rows, {("b", "long"): 1000.0, ("b", "short"): tokens})
    # The two finished samples, of 1000 and 200 tokens, make 800 of the expected length: 8 s on the fast endpoint.
    assert scheduler.next(0) == Task("b", "long", 2)
    # The fast endpoint works off six short samples, one after the other, in 6 x tokens / 100 s; the slow one needs
    # tokens / 20 s for one, and is assumed to need 1.6 times that.
    assert (scheduler.next(1) is not None) is takes, why


def test_a_slow_endpoint_takes_what_is_left_once_the_fast_one_is_gone() -> None:
    scheduler = two_speeds(plan(1, 4), {("b", "q0"): 1000.0})
    assert scheduler.next(0) is not None
    assert scheduler.next(1) is None
    scheduler.set_available([False, True])
    assert scheduler.next(1) is not None


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
    spec = importlib.util.spec_from_file_location("bench_schedule", Path(__file__).parents[2] / "bench" / "schedule.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = bench
    spec.loader.exec_module(bench)
    spans = bench.simulate(shape, 1, two)
    assert spans["ours"] <= limit * spans[peer]


def test_a_question_twice_in_the_plan_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="twice"):
        Scheduler([Owed("b", "q", (0,)), Owed("b", "q", (1,))], Clock())


@given(ids=st.lists(st.text(min_size=1), unique=True, max_size=8), samples=st.integers(1, 6), data=st.data())
def test_owed_and_on_disk_together_are_what_is_expected(ids: list[str], samples: int, data: st.DataObject) -> None:
    expected = {Key(q, i) for q in ids for i in range(samples)}
    foreign = {Key("another", 0), *(Key(q, samples + 3) for q in ids)} - expected
    on_disk = data.draw(st.sets(st.sampled_from(sorted(expected | foreign)))) if expected else foreign
    rows = missing_samples("b", ids, samples, on_disk)
    missing = {Key(o.question_id, i) for o in rows for i in o.indices}
    assert missing == expected - on_disk
    assert all(o.indices for o in rows)
    assert [o.question_id for o in rows] == [q for q in ids if any(k.question_id == q for k in missing)]


def simulated(long_prompts: set[tuple[str, str]], order: Order) -> tuple[float, Counter[tuple[str, int]]]:
    """(when the last of 12 × 8 samples ends, samples of each (question, endpoint)), on two endpoints of 4 streams."""
    rng = random.Random(7)
    clock = Clock()
    scheduler = Scheduler(plan(12, 8), clock, n_endpoints=2, order=order, long_prompts=long_prompts)
    running: list[tuple[float, int, Task]] = []
    counts: Counter[tuple[str, int]] = Counter()
    n_running = [0, 0]
    while True:
        for place in (0, 1):
            while n_running[place] < 4 and (task := scheduler.next(place)) is not None:
                counts[task.question_id, place] += 1
                n_running[place] += 1
                heapq.heappush(running, (clock.now + rng.uniform(50, 150), place, task))
        if not running:
            return clock.now, counts
        clock.now, place, task = heapq.heappop(running)
        n_running[place] -= 1
        scheduler.finish(task, 100)


@pytest.mark.parametrize("order", ["longest", "rounds"])
def test_samples_of_a_long_prompt_stay_where_it_was_read(order: Order) -> None:
    prompts = {("b", f"q{i}") for i in range(12)}
    spread_until, spread = simulated(set(), order)
    kept_until, kept_counts = simulated(prompts, order)
    assert spread.total() == kept_counts.total() == 96
    assert len(spread) >= 22  # nearly each question at both endpoints
    assert len(kept_counts) <= 20
    assert kept_until <= 1.1 * spread_until


def test_a_long_prompt_is_read_again_before_an_endpoint_stands_idle() -> None:
    scheduler = Scheduler(plan(1, 8), Clock(), n_endpoints=2, long_prompts={("b", "q0")})
    assert scheduler.next(0) is not None
    assert scheduler.next(1) is not None


def test_what_runs_is_not_looked_at_again_and_again_once_nothing_waits() -> None:
    """A batch hands everything out at once: a look at all that runs for every few ends would take n² looks."""
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return float(looks)

    n = 4000
    scheduler = Scheduler(plan(n // 4, 4), clock=clock)
    handed = list(iter(scheduler.next, None))
    assert len(handed) == n
    before = looks
    for task in handed:
        scheduler.finish(task, 100)
    assert looks - before < 5 * n


def test_samples_of_a_question_that_wait_are_named_with_their_benchmark() -> None:
    scheduler = Scheduler([Owed("sums", "q", (0, 2)), Owed("more", "p", (1,))], lambda: 0.0)
    assert scheduler.waiting("q") == [Task("sums", "q", 0), Task("sums", "q", 2)]


def test_a_length_is_expected_from_the_mean_of_its_benchmark_and_its_own_samples() -> None:
    """1,000 tokens, raised by a half after its first sample, come before 700 of a question that was not asked yet."""
    rows = [*(Owed("sums", f"q{n}", (0, 1)) for n in range(4)), Owed("more", "p", (0,))]
    scheduler = Scheduler(rows, lambda: 0.0, prior={("more", "p"): 700.0})
    for _ in range(4):
        task = scheduler.next()
        assert task is not None
        scheduler.finish(task, 1000)
    task = scheduler.next()
    assert task is not None
    assert task.benchmark == "sums"
