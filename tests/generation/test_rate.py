"""Requests per minute: the limit holds in every minute, and what it allows is used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.generation.dispatch.budget import MINUTE_S, RateLimit


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def sent_at(limit: RateLimit, clock: Clock, seconds: float, late: float = 0.0) -> list[float]:
    """Times of the requests of an eager sender that wakes up `late` seconds after it may send."""
    times = []
    end = clock.now + seconds
    while clock.now < end:
        if (pause := limit.wait()) > 0:
            clock.now += max(pause, 1e-6) + late
            continue
        limit.sent()
        times.append(clock.now)
    return times


@given(st.integers(1, 5000), st.floats(0, 0.4))
def test_no_minute_holds_more_requests_than_allowed(per_minute: int, late: float) -> None:
    clock = Clock()
    times = sent_at(RateLimit(per_minute, clock), clock, 150.0 if per_minute < 600 else 61.0, late)
    first = 0
    for last, time in enumerate(times):
        while time - times[first] >= MINUTE_S - 1e-3:
            first += 1
        assert last - first + 1 <= per_minute


@pytest.mark.parametrize("per_minute", [6, 60, 600, 3000])
def test_an_eager_sender_gets_what_is_allowed(per_minute: int) -> None:
    clock = Clock()
    times = sent_at(RateLimit(per_minute, clock), clock, 600.0)
    assert 0.97 * per_minute <= len(times) / 10 <= per_minute


def test_what_was_not_used_does_not_add_up() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    clock.now += 3600.0
    limit.sent()
    assert limit.wait() == pytest.approx(1.0)


def test_without_limits_nobody_waits() -> None:
    limit = RateLimit(None, Clock())
    for _ in range(3):
        limit.sent()
        assert limit.wait() == 0.0
