"""What a failed request costs its sample and the run, without a clock that runs."""

from __future__ import annotations

import random

import pytest

from harness.client.protocol.reply import FailureKind, RequestFailed
from harness.generation.dispatch.flight import Work
from harness.generation.dispatch.retry import (
    Fault,
    fault_of,
    seconds_to_retry,
)
from harness.generation.settings import Patience
from harness.runs.record import Task


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
    work, faults = Work(Task("sums", "q0", 0)), ("endpoint", "chance", "endpoint")
    pauses = [seconds_to_retry(work, fault, Patience(attempts=1), random.Random(1).uniform) for fault in faults]
    assert pauses == [0.0, None, None]
