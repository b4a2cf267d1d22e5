"""What a session does next, by hand: no thread, no socket, no clock that runs. Whole runs are in tests/simulation.

For: harness.generation.dispatch.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.reply import FailureKind, Reply, RequestFailed
from harness.core.records import Sample, Timing, Usage
from harness.generation.dispatch.actions import Action, Ask, Done, Wait
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.plan import SessionPlan
from harness.generation.settings import RunSettings
from harness.runs.record import Task, missing_samples
from tests.generation.small_runs import run_settings


class Played:
    """A dispatcher and its clock. `do` collects what it wants done now; `told` answers one request."""

    def __init__(self, questions: int = 1, samples: int = 1, **settings: Any):
        self.now = 0.0
        tested_settings: RunSettings = replace(run_settings(Path("nowhere"), samples=samples), **settings)
        total = {"sums": questions * samples}
        rows = missing_samples("sums", [f"q{n}" for n in range(questions)], samples, set())
        plan = SessionPlan(owed=rows, done={"sums": 0}, total=total)
        self.stored: list[Sample] = []
        self.disk: Exception | None = None
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.dispatcher = Dispatcher(
            tested_settings, plan, store=self.store, log=lambda event, **facts: self.log.append((event, facts)),
            clock=lambda: self.now, jitter=lambda low, high: high,
        )  # fmt: skip

    def store(self, sample: Sample) -> None:
        if self.disk is not None:
            raise self.disk
        self.stored.append(sample)

    def do(self) -> list[Action]:
        """Everything up to the next `Wait` or `Done`, that one included."""
        actions: list[Action] = []
        while not actions or not isinstance(actions[-1], Wait | Done):
            actions.append(self.dispatcher.next())
        return actions

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
    ((event, facts),) = played.log
    assert (event, facts["task"], facts["kind"]) == ("request_failed", ["sums", "q0", 0], "cut")
    assert (facts["message"], facts["attempt"]) == ("reset", 1)
