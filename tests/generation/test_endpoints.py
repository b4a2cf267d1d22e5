"""Endpoints that slow down, fail, come back: who may be sent what, on a clock of the test's own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.endpoint import Endpoint
from harness.client.reply import FailureKind, RequestFailed
from harness.generation.endpoints import SET_ASIDE_AFTER, Lanes
from harness.generation.settings import Patience

PATIENCE = Patience(start_up=30.0, outage=600.0, first_wait=1.0, longest_wait=60.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def two(concurrency: int = 16, weights: tuple[float, ...] = (1.0, 1.0)) -> tuple[Lanes, Clock]:
    clock = Clock()
    endpoints = [replace(Endpoint.parse(f"http://server{i}:80"), weight=w) for i, w in enumerate(weights)]
    return Lanes(endpoints, concurrency, PATIENCE, clock, jitter=lambda low, high: high), clock


def fail(lanes: Lanes, clock: Clock, place: int, kind: FailureKind, times: int = 1, after: float | None = None) -> None:
    for _ in range(times):
        lanes.sent(place)
        lanes.failed(place, RequestFailed(kind, f"{kind}!", retry_after=after), clock.now)


def fill(lanes: Lanes) -> list[int]:
    """Send as much as there is room for; requests in flight by endpoint."""
    while free := lanes.with_room():
        lanes.sent(free[0])
    return [lanes[i].in_flight for i in range(len(lanes))]


@pytest.mark.parametrize(
    ("weights", "shares"),
    [((1.0, 1.0), [8, 8]), ((3.0, 1.0), [12, 4]), ((1.0,), [16]), ((100.0, 1.0), [16, 1])],
)
def test_requests_in_flight_follow_the_weights(weights: tuple[float, ...], shares: list[int]) -> None:
    lanes, _ = two(16, weights)
    assert fill(lanes) == shares


def test_work_goes_to_the_least_outstanding_by_weight() -> None:
    lanes, _ = two(16, (1.0, 3.0))
    order = []
    for _ in range(8):
        order.append(lanes.with_room()[0])
        lanes.sent(order[-1])
    assert order.count(1) == 6


def test_a_429_pauses_and_halves_and_success_brings_the_share_back() -> None:
    lanes, clock = two()
    fail(lanes, clock, 0, "rate_limited", after=20.0)
    assert lanes.with_room() == [1]
    assert lanes[0].state(clock.now) == "paused"
    clock.now += 20.5
    assert lanes.with_room() == [1], "a little more than asked, so that not all clients come back at once"
    clock.now += 1
    assert 0 in lanes.with_room()
    assert lanes[0].limit == 4
    for _ in range(100):
        lanes.sent(0)
        lanes.answered_by(0)
    assert lanes[0].limit == 8


def test_cut_streams_and_5xx_lower_nothing() -> None:
    lanes, clock = two()
    for kind in ("cut", "server", "timeout"):
        fail(lanes, clock, 0, kind)  # type: ignore[arg-type]
    assert lanes[0].limit == 8
    assert lanes[0].state(clock.now) == "open"


def test_failures_in_a_row_set_an_endpoint_aside_and_single_probes_find_it_again() -> None:
    lanes, clock = two()
    fail(lanes, clock, 0, "connect", SET_ASIDE_AFTER)
    assert lanes[0].state(clock.now) == "set aside"
    assert not lanes.available(0)
    waits = []
    for _ in range(8):
        start = clock.now
        while 0 not in lanes.with_room():
            pause = lanes.next_change()
            assert pause is not None
            clock.now += pause + 1e-6
        waits.append(round(clock.now - start))
        lanes.sent(0)
        assert lanes.with_room() == [1], "one probe at a time"
        lanes.failed(0, RequestFailed("connect", "refused"), clock.now)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    clock.now += 61
    lanes.sent(0)
    lanes.answered_by(0)
    assert lanes[0].state(clock.now) == "open"
    assert fill(lanes) == [8, 8]


def test_one_restart_that_cuts_every_request_counts_as_one_outage() -> None:
    lanes, clock = two(1024)
    fill(lanes)
    sent_at = clock.now
    clock.now += 10
    for _ in range(512):
        lanes.failed(0, RequestFailed("cut", "reset"), sent_at)
    assert lanes[0].pause(clock.now) <= PATIENCE.first_wait


def test_patience_ends_sooner_before_the_first_answer_than_after() -> None:
    for answered, patience in ((False, 30.0), (True, 600.0)):
        lanes, clock = two(weights=(1.0,))
        if answered:
            lanes.sent(0)
            lanes.answered_by(0)
        fail(lanes, clock, 0, "connect", SET_ASIDE_AFTER)
        clock.now += patience - 0.1
        assert lanes.gave_up() is None
        clock.now += 0.2
        said = lanes.gave_up()
        assert said is not None
        assert "http://server0:80/v1: connect!" in said
        assert lanes.unreachable is not answered


def test_one_endpoint_that_lives_is_hope_enough() -> None:
    lanes, clock = two()
    fail(lanes, clock, 0, "connect", 50)
    clock.now += 10_000
    assert lanes.gave_up() is None


def test_a_server_that_asks_for_a_long_pause_gets_it() -> None:
    lanes, clock = two(1, weights=(1.0,))
    for _ in range(SET_ASIDE_AFTER + 1):
        fail(lanes, clock, 0, "rate_limited", after=3600.0)
    clock.now += 3599
    assert lanes.gave_up() is None
    change = lanes.next_change()
    assert change is not None
    assert change > 0.5, "who waits for it must not spin"
    assert lanes.with_room() == []


def test_a_server_that_says_429_for_ever_ends_the_run() -> None:
    lanes, clock = two(weights=(1.0,))
    for _ in range(200):
        if lanes.gave_up():
            break
        clock.now += max(0.001, lanes[0].pause(clock.now))
        fail(lanes, clock, 0, "rate_limited")
    else:
        pytest.fail("it never gave up")


outcomes = st.sampled_from(["good", "connect", "cut", "server", "rate_limited"])


@given(steps=st.lists(st.tuples(st.integers(0, 1), outcomes, st.floats(0, 5)), max_size=200))
def test_limits_stay_between_one_and_the_share_and_some_endpoint_always_opens_again(
    steps: list[tuple[int, str, float]],
) -> None:
    lanes, clock = two()
    for place, what, seconds in steps:
        clock.now += seconds
        if place not in lanes.with_room():
            continue
        lanes.sent(place)
        if what == "good":
            lanes.answered_by(place)
        else:
            lanes.failed(place, RequestFailed(what, what), clock.now)  # type: ignore[arg-type]
        assert 1 <= lanes[place].limit <= lanes[place].share
        assert lanes[place].in_flight == 0
    clock.now += 61
    assert set(lanes.with_room()) == {0, 1}
