"""What a session does next, by hand: no thread, no socket, no clock that runs. Whole runs are in tests/simulation.

For: harness.generation.dispatch.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.reply import FailureKind, Reply, RequestFailed
from harness.core.errors import StoreError
from harness.core.records import Sample, Timing, Usage
from harness.generation.dispatch.actions import Action, Ask, Cancel, Done, Log, Store, Wait
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.dispatch.lanes import SET_ASIDE_AFTER, Lanes
from harness.generation.dispatch.retry import RetryPolicy
from harness.generation.dispatch.schedule import WORN
from harness.generation.dispatch.snapshot import Arrivals
from harness.generation.plan import SessionPlan
from harness.generation.settings import Patience, RunSettings
from harness.runs.record import RecordRefused, Task, missing_samples
from tests.generation.small_runs import run_settings


class Played:
    """A dispatcher and its clock. `do` collects what it wants done now; `told` answers one request."""

    def __init__(self, questions: int = 1, samples: int = 1, policy: RetryPolicy | None = None, **settings: Any):
        self.now = 0.0
        tested_settings: RunSettings = replace(run_settings(Path("nowhere"), samples=samples), **settings)
        total = {"sums": questions * samples}
        rows = missing_samples("sums", [f"q{n}" for n in range(questions)], samples, set())
        plan = SessionPlan(owed=rows, done={"sums": 0}, total=total)
        self.dispatcher = Dispatcher(
            tested_settings, plan, clock=lambda: self.now, jitter=lambda low, high: high, policy=policy
        )

    def do(self) -> list[Action]:
        """Everything up to the next `Wait` or `Done`, that one included; no log."""
        actions: list[Action] = []
        while not actions or not isinstance(actions[-1], Wait | Done):
            actions.append(self.dispatcher.next())
        return [action for action in actions if not isinstance(action, Log)]

    def sleep(self) -> list[Action]:
        """As long as it says, and then what it does."""
        (wait,) = self.do()
        assert isinstance(wait, Wait)
        assert wait.seconds is not None, "it waits for an event"
        self.now += wait.seconds
        return self.do()

    def answer(self, task: Task) -> None:
        timing, usage = Timing(started=0, total=1), Usage(completion_tokens=5)
        sample = Sample(
            benchmark=task.benchmark, question_id=task.question_id, sample_index=task.sample_index,
            text="4", reasoning=None, finish_reason="stop", usage=usage, timing=timing, endpoint="http://a/v1",
        )  # fmt: skip
        reply = Reply(text="4", reasoning=None, finish_reason="stop", usage=usage, timing=timing)
        self.dispatcher.answered(task, sample, reply)

    def fail(self, task: Task, kind: FailureKind, status: int | None = None, words: str = "no") -> None:
        self.dispatcher.failed(task, RequestFailed(kind, words, status=status))


TASK = Task("sums", "q0", 0)


def test_a_session_asks_stores_and_is_done_when_all_is_on_disk() -> None:
    played = Played()
    ask, wait = played.do()
    assert isinstance(ask, Ask)
    assert (ask.task, ask.attempt, wait) == (TASK, 1, Wait(None))
    played.answer(TASK)
    store, wait = played.do()
    assert isinstance(store, Store)
    assert wait == Wait(None), "not before it is on disk"
    played.dispatcher.written(TASK)
    assert played.do() == [Done()]
    assert played.dispatcher.counts.done == {"sums": 1}


@pytest.mark.parametrize(
    ("kind", "status"), [("rate_limited", 429), ("connect", None), ("server", 503), ("out_of_files", None)]
)
def test_what_is_not_the_samples_fault_costs_it_no_attempt(kind: FailureKind, status: int | None) -> None:
    played = Played(policy=RetryPolicy(attempts=2))
    actions = played.do()
    for number in range(1, 4):
        assert [a.attempt for a in actions if isinstance(a, Ask)] == [number]
        played.fail(TASK, kind, status)
        actions = played.do()
        if not isinstance(actions[0], Ask):
            actions = played.sleep()
    played.fail(TASK, "cut", words="a first accident")
    while not isinstance((actions := played.sleep())[0], Ask):
        assert isinstance(actions[0], Wait), "one attempt of two is left"


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize(("kind", "status"), [("connect", None), ("server", 504), ("rate_limited", 429)])
def test_a_sample_that_can_never_be_answered_keeps_no_other_from_its_turn(
    kind: FailureKind, status: int | None, concurrency: int
) -> None:
    played = Played(questions=60, concurrency=concurrency, canary=False, patience=Patience())
    n_answered = n_asked = 0
    while n_answered < 59:
        for action in played.do():
            assert not isinstance(action, Done)
            match action:
                case Ask(task) if task == TASK:
                    n_asked += 1
                    played.fail(task, kind, status)
                case Ask(task):
                    played.answer(task)
                    n_answered += 1
                case Store(task):
                    played.dispatcher.written(task)
        played.now += 1.0
    assert n_asked <= WORN + 1, "the last time beside the last of the others"
    assert not played.dispatcher.causes.given_up(), "it costs no attempt"
    played.now += 60.0
    assert any(isinstance(action, Ask) for action in played.do()), "it is asked once all else is done"


def test_a_request_that_nobody_cancelled_and_that_is_cancelled_is_listed() -> None:
    played = Played()
    played.do()
    played.dispatcher.cancelled(TASK)
    assert played.do() == [Done()]
    assert played.dispatcher.causes.given_up() == {TASK: "internal"}


def test_a_stop_cancels_each_request_once_and_waits_for_the_disk() -> None:
    played = Played(questions=3)
    first, second, third = (a.task for a in played.do() if isinstance(a, Ask))
    played.answer(first)
    played.dispatcher.drain("ctrl-c", grace=5.0)
    assert played.do()[-1] == Wait(5.0)
    played.dispatcher.stop("again")
    played.dispatcher.stop("and again")
    assert [a for a in played.do() if isinstance(a, Cancel)] == [Cancel(second), Cancel(third)]
    played.dispatcher.cancelled(second)
    played.answer(third)
    played.do()
    played.dispatcher.written(first)
    assert played.do() == [Wait(None)]
    played.dispatcher.written(third)
    assert played.do() == [Done()]
    assert played.dispatcher.ending.why == "ctrl-c"


def test_a_record_that_is_refused_is_listed_and_a_journal_that_stops_ends_the_session() -> None:
    played = Played(questions=2, concurrency=1)
    played.do()
    played.answer(TASK)
    played.do()
    played.dispatcher.written(TASK, RecordRefused("a lone surrogate"))
    assert played.dispatcher.causes.given_up() == {TASK: "malformed"}
    second = Task("sums", "q1", 0)
    played.answer(second)
    played.do()
    played.dispatcher.written(second, StoreError("no space left"))
    assert played.do() == [Done()]
    assert isinstance(played.dispatcher.ending.error, StoreError)


def test_while_the_disk_is_behind_nothing_more_is_asked() -> None:
    played = Played(questions=9, concurrency=2)
    n_asked = 0
    for _ in range(9):
        tasks = [a.task for a in played.do() if isinstance(a, Ask)]
        n_asked += len(tasks)
        for task in tasks:
            played.answer(task)
    assert n_asked == 4, "two in flight, when up to two were on their way to the disk"


def test_endpoints_that_are_replaced_are_asked_from_then_on() -> None:
    played = Played(questions=2, concurrency=1)
    played.do()
    played.dispatcher.replace_endpoints([Endpoint.parse("http://other:1/v1")])
    played.answer(TASK)
    (ask,) = (a for a in played.do() if isinstance(a, Ask))
    assert ask.endpoint.base_url == "http://other:1/v1"


# ---- continuations that fail


def test_a_retry_after_holds_the_endpoint_and_not_the_sample() -> None:
    first, second = Endpoint.parse("http://a/v1"), Endpoint.parse("http://b/v1")
    played = Played(endpoints=(first, second), canary=False)
    (ask, _) = played.do()
    assert isinstance(ask, Ask)
    played.dispatcher.failed(ask.task, RequestFailed("server", "restart", status=500, retry_after=400.0))
    (again, _) = played.sleep()
    assert isinstance(again, Ask)
    assert played.now < 2
    assert again.endpoint != ask.endpoint


def test_a_failed_request_stands_in_the_log_with_what_failed() -> None:
    played = Played()
    (ask, _) = played.do()
    assert isinstance(ask, Ask)
    played.fail(ask.task, "cut", words="reset")
    log = played.dispatcher.next()
    assert isinstance(log, Log)
    assert (log.event, log.facts["task"], log.facts["kind"]) == ("request_failed", ["sums", "q0", 0], "cut")
    assert (log.facts["message"], log.facts["attempt"]) == ("reset", 1)


def test_tokens_of_events_are_counted_by_the_mean_of_finished_replies() -> None:
    now = 0.0
    arrivals = Arrivals(lambda: now, {})
    second = TASK._replace(question_id="q1")
    arrivals.began(TASK, 0)
    now = 10.0
    arrivals.finished(TASK, 10, 5)
    arrivals.began(second, 0)
    for n, tokens in ((3, 16.0), (4, 18.0), (2, 18.0)):
        arrivals.look({second: n})
        assert arrivals.tokens == tokens
    now = 26.0
    arrivals.look({})
    (running,) = arrivals.streams
    assert running.tokens == 8.0
    assert running.pace == pytest.approx(26.0 / 18.0), "one stream was busy for 26 s"


def lanes_of(n: int, concurrency: int, now: list[float]) -> Lanes:
    endpoints = [Endpoint.parse(f"http://{n}:1") for n in range(n)]
    return Lanes(endpoints, concurrency, Patience(outage=100.0, start_up=100.0), lambda: now[0], lambda low, high: high)


def set_aside(lanes: Lanes, lane_number: int) -> None:
    tickets = [lanes.sent(lane_number) for _ in range(SET_ASIDE_AFTER)]
    for ticket in tickets:
        lanes.failed(ticket, RequestFailed("connect", "refused"))
    assert lanes[lane_number].set_aside


def test_an_answer_begins_the_patience_anew() -> None:
    now = [0.0]
    lanes = lanes_of(1, 8, now)
    set_aside(lanes, 0)
    now[0] = 60.0
    lanes.answered_by(lanes.sent(0))
    now[0] = 110.0
    assert lanes.gave_up() is None
    set_aside(lanes, 0)
    now[0] = 209.0
    assert lanes.gave_up() is None
    now[0] = 211.0
    assert lanes.gave_up() is not None


def test_the_share_of_an_endpoint_set_aside_goes_to_the_others_up_to_twice_theirs() -> None:
    now = [0.0]
    lanes = lanes_of(3, 30, now)
    for lane_number in (0, 1):
        set_aside(lanes, lane_number)
    for _ in range(100):
        now[0] += 1.0
        lanes.advance()
        while lanes[2].in_flight < lanes[2].limit:
            lanes.sent(2)
    assert lanes[2].in_flight == 20


def test_without_file_descriptors_the_run_goes_on_for_its_patience_with_one_warning() -> None:
    played = Played(questions=12, patience=Patience())
    played.now = 1_000.0
    tasks = [action.task for action in played.do() if isinstance(action, Ask)]
    assert len(tasks) > 4
    for seconds in (0, 5, 20):
        played.now = 1_000.0 + seconds
        played.fail(tasks.pop(), "out_of_files", words="too many open files")
        played.do()
        assert played.dispatcher.ending.asking
    lowered = [warning for warning in played.dispatcher.warnings if "too many open files" in warning]
    assert len(lowered) == 1
    played.now = 1_000.0 + Patience().start_up + 1
    played.fail(tasks.pop(), "out_of_files", words="too many open files")
    played.do()
    assert not played.dispatcher.ending.asking


def test_lengths_of_answers_decide_which_question_is_next() -> None:
    played = Played(questions=2, samples=3, concurrency=1)
    lengths, order, actions = {"q0": 5, "q1": 5_000}, list[str](), played.do()
    for _ in range(6):
        (task,) = [action.task for action in actions if isinstance(action, Ask)]
        order.append(task.question_id)
        usage = Usage(completion_tokens=lengths[task.question_id])
        timing = Timing(started=0, total=1)
        texts: dict[str, Any] = {"text": f"4 {len(order)}", "reasoning": None, "finish_reason": "stop"}
        sample = Sample(
            benchmark=task.benchmark, question_id=task.question_id, sample_index=task.sample_index,
            usage=usage, timing=timing, endpoint="http://a/v1", **texts,
        )  # fmt: skip
        played.dispatcher.answered(task, sample, Reply(usage=usage, timing=timing, **texts))
        played.dispatcher.written(task)
        actions = played.do()
    assert sorted(order[:2]) == ["q0", "q1"]
    assert order[2:4] == ["q1", "q1"], "the longer one first"
