"""Policies of asking again, without a clock that runs."""

from __future__ import annotations

import random

import pytest

from harness.client.protocol.reply import FailureKind, RequestFailed
from harness.generation.dispatch.retry import AsServerAsks, Attempts, FullJitter, RetryBudget, RetryPolicy


def failure(kind: FailureKind = "server", message: str = "", retry_after: float | None = None) -> RequestFailed:
    return RequestFailed(kind, message or str(random.random()), retry_after=retry_after)


POLICY = RetryPolicy(wait=AsServerAsks(FullJitter(rng=random.Random(1))))


def attempts(budget: RetryBudget | None = None) -> Attempts:
    return Attempts(POLICY, budget or RetryBudget())


def test_waits_grow_with_full_jitter_up_to_their_cap() -> None:
    waits = []
    for _ in range(300):
        of_one = attempts()
        waits.append([wait for n in range(5) if (wait := of_one.failed(failure(message=str(n)))) is not None])
    for n in range(5):
        at_n = [each[n] for each in waits]
        assert min(at_n) >= 0
        assert 2**n / 2 < max(at_n) <= 2**n


def test_the_servers_wait_is_a_floor() -> None:
    assert (attempts().failed(failure("rate_limited", retry_after=7)) or 0) >= 7


@pytest.mark.parametrize("kind", ["too_long", "rejected", "refused", "runaway"])
def test_what_cannot_succeed_is_final_at_once(kind: FailureKind) -> None:
    one = attempts()
    assert one.failed(failure(kind)) is None
    assert one.final


def test_attempts_are_bounded() -> None:
    one = attempts()
    outcomes = []
    while True:
        one.begin()
        outcomes.append(one.failed(failure()))
        if outcomes[-1] is None:
            break
    assert one.count == len(outcomes) == 6


def test_the_same_error_on_the_same_payload_is_final_sooner() -> None:
    one = attempts()
    waits = [one.failed(failure(message="bad token")) for _ in range(4)]
    assert [wait is None for wait in waits] == [False, False, False, True]


def test_rate_limits_use_up_none_of_the_other_attempts() -> None:
    one = attempts()
    for _ in range(20):
        assert one.failed(failure("rate_limited", "slow down")) is not None
    assert one.failed(failure()) is not None


def test_retries_of_a_run_are_a_fifth_of_its_requests_plus_a_floor() -> None:
    budget = RetryBudget(share=0.2, floor=10)
    granted = 0
    for _ in range(1000):
        one = attempts(budget)
        one.begin()
        granted += one.failed(failure()) is not None
    assert granted == 210


def test_failures_to_connect_are_not_charged_to_the_budget() -> None:
    budget = RetryBudget(share=0, floor=0)
    assert attempts(budget).failed(failure("connect")) is not None
    spent = attempts(budget)
    assert spent.failed(failure("cut")) is None
    assert "budget" in spent.final
