"""What a failed request costs its sample and the run, without a clock that runs."""

from __future__ import annotations

import random

import pytest

from harness.client.protocol.reply import FailureKind, RequestFailed
from harness.generation.dispatch.retry import (
    Fault,
    Retries,
    fault_of,
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
