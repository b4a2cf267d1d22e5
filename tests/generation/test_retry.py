"""What a failed request costs its sample and the run, without a clock that runs."""

from __future__ import annotations

import random

import pytest

from harness.client.protocol.reply import FailureKind, RequestFailed
from harness.generation.dispatch.retry import (
    Fault,
    Retries,
    RetryDecision,
    fault_of,
    longest_backoff,
)
from harness.generation.settings import Patience
from harness.runs.record import Task

TASK = Task("sums", "q0", 0)


def started(attempts: int = 6) -> Retries:
    """The retries of a session that has asked for one sample."""
    retries = Retries(Patience(attempts=attempts), random.Random(1).uniform)
    retries.begin(TASK)
    return retries


@pytest.mark.parametrize(
    ("kind", "status", "probing", "fault"),
    [
        ("out_of_files", None, False, "machine"),
        ("connect", None, False, "endpoint"),
        ("server", 502, False, "endpoint"),
        ("server", 503, False, "endpoint"),
        ("server", 504, False, "endpoint"),
        ("server", 501, False, "chance"),
        ("server", 505, False, "chance"),
        ("timeout", None, True, "endpoint"),
        ("timeout", None, False, "chance"),
        ("server", 500, False, "chance"),
        ("server", None, True, "chance"),
        ("cut", None, False, "chance"),
        ("malformed", None, False, "chance"),
        ("rate_limited", 429, False, "pace"),
        ("too_long", 400, False, "payload"),
        ("rejected", 400, False, "payload"),
        ("runaway", None, False, "payload"),
        ("refused", 401, False, "run"),
    ],
)
def test_each_failure_has_one_fault(kind: FailureKind, status: int | None, probing: bool, fault: Fault) -> None:
    assert fault_of(RequestFailed(kind, "no", status=status), probing=probing) == fault


def test_an_endpoints_fault_costs_no_attempt_and_ends_a_sample_whose_attempts_are_used_up() -> None:
    retries = started(1)
    assert retries.failed(TASK, "endpoint").again_after == 0
    assert retries.failed(TASK, "chance").again_after is None
    assert retries.failed(TASK, "endpoint").again_after is None


def test_attempts_are_bounded() -> None:
    retries = started()
    decisions: list[RetryDecision] = []
    while not decisions or decisions[-1].again_after is not None:
        retries.begin(TASK)
        decisions.append(retries.failed(TASK))
    assert len(decisions) == 6
    assert "given up after 7 attempts" in decisions[-1].why


def test_samples_wait_for_their_time_in_its_order() -> None:
    retries = started()
    tasks = [Task("sums", f"q{n}", 0) for n in range(4)]
    for until, task in zip([30.0, 10.0, 20.0, 40.0], tasks, strict=True):
        retries.postpone(task, until)
    assert retries.next_due == 10.0
    assert retries.due(9.9) == []
    assert retries.due(30.0) == [tasks[1], tasks[2], tasks[0]]
    assert retries.postponed == [tasks[3]]


def test_a_backoff_doubles_from_a_second_to_a_minute_and_may_be_none_at_all() -> None:
    assert [longest_backoff(Patience(), n) for n in (1, 2, 6, 7, 5000)] == [1, 2, 32, 60, 60]
    shortest = Retries(Patience(), lambda low, high: low)
    shortest.begin(TASK)
    assert shortest.failed(TASK).again_after == 0
