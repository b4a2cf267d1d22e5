"""Endpoints that slow down, fail, come back: who may be sent what, on a clock of the test's own."""

from __future__ import annotations

import threading
import time

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.reply import FailureKind, RequestFailed
from harness.core.errors import ServerError
from harness.generation.dispatch.flight import Flight, Lane, Work
from harness.generation.dispatch.lanes import SET_ASIDE_AFTER, Lanes
from harness.generation.network import admission as admission_module
from harness.generation.network.admission import Admission
from harness.generation.settings import Patience
from harness.runs.record import Task

PATIENCE = Patience(start_up=30.0, outage=600.0, first_wait=1.0, longest_wait=60.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def two(concurrency: int = 16, n: int = 2) -> tuple[Lanes, Clock]:
    clock = Clock()
    endpoints = [Endpoint.parse(f"http://server{i}:80") for i in range(n)]
    return Lanes(endpoints, concurrency, PATIENCE, clock, jitter=lambda low, high: high), clock


def at(lanes: Lanes, place: int) -> Lane:
    return list(lanes)[place]


def room(lanes: Lanes) -> list[int]:
    """The places of the lanes that may be sent a request now, the least loaded first."""
    return [list(lanes).index(lane) for lane in lanes.with_room()]


def sent(lanes: Lanes, place: int) -> Flight:
    return lanes.sent(at(lanes, place), Work(Task("b", "q", 0)))


def fail(lanes: Lanes, clock: Clock, place: int, kind: FailureKind, times: int = 1, after: float | None = None) -> None:
    for _ in range(times):
        lanes.failed(sent(lanes, place), RequestFailed(kind, f"{kind}!", retry_after=after))


def answer(lanes: Lanes, place: int, times: int = 1) -> None:
    for _ in range(times):
        lanes.answered_by(sent(lanes, place))


def fill(lanes: Lanes) -> list[int]:
    """Send as much as there is room for; requests in flight by endpoint."""
    while free := room(lanes):
        sent(lanes, free[0])
    return [lane.in_flight for lane in lanes]


def test_a_429_pauses_and_lowers_and_time_brings_the_share_back() -> None:
    lanes, clock = two()
    tickets = [sent(lanes, 0) for _ in range(8)]
    for ticket in tickets[4:]:
        lanes.failed(ticket, RequestFailed("rate_limited", "slow down", retry_after=20.0))
    assert room(lanes) == [1]
    assert at(lanes, 0).state(clock.now) == "paused"
    clock.now += 20.5
    assert room(lanes) == [1], "a little more than asked, so that not all clients come back at once"
    clock.now += 1
    assert at(lanes, 0).limit == 4
    for ticket in tickets[:4]:
        lanes.answered_by(ticket)
    assert 0 in room(lanes)
    for _ in range(20):
        clock.now += 1
        lanes.advance()
        fill(lanes)
    assert at(lanes, 0).in_flight == at(lanes, 0).limit == 8


def test_one_restart_that_cuts_every_request_counts_as_one_outage() -> None:
    lanes, clock = two(1024)
    tickets = [sent(lanes, 0) for _ in range(512)]
    clock.now += 10
    for ticket in tickets:
        lanes.failed(ticket, RequestFailed("cut", "reset"))
    assert at(lanes, 0).pause(clock.now) <= PATIENCE.first_wait


def test_patience_ends_sooner_before_the_first_answer_than_after() -> None:
    for answered, patience in ((False, 30.0), (True, 600.0)):
        lanes, clock = two(n=1)
        if answered:
            answer(lanes, 0)
        fail(lanes, clock, 0, "connect", SET_ASIDE_AFTER - 1)
        assert not at(lanes, 0).set_aside
        fail(lanes, clock, 0, "connect")
        assert lanes.patience_left == pytest.approx(patience)
        clock.now += patience - 0.1
        assert lanes.gave_up() is None
        assert lanes.patience_left == pytest.approx(0.1)
        clock.now += 0.2
        message = lanes.gave_up()
        assert message is not None
        assert "http://server0:80/v1: connect!" in message
        assert lanes.unreachable is not answered


def test_a_server_that_asks_for_a_long_pause_gets_it() -> None:
    lanes, clock = two(1, n=1)
    for _ in range(SET_ASIDE_AFTER + 1):
        fail(lanes, clock, 0, "rate_limited", after=3600.0)
    assert (lanes.patience_left or 0.0) >= 3600.0, "longer than the patience"
    clock.now += 3599
    assert lanes.gave_up() is None
    change = lanes.next_change()
    assert change is not None
    assert change > 0.5, "who waits for it must not spin"
    assert room(lanes) == []


def test_the_share_of_a_dead_endpoint_goes_to_the_others_and_back() -> None:
    lanes, clock = two(24, 3)
    dead = [sent(lanes, 2) for _ in range(8)]
    assert fill(lanes) == [8, 8, 8]
    for ticket in dead:
        lanes.failed(ticket, RequestFailed("connect", "refused"))
    lanes.advance()
    at(lanes, 2).until = clock.now + 1000
    assert fill(lanes) == [12, 12, 0]
    at(lanes, 2).until = clock.now
    answer(lanes, 2)
    assert [at(lanes, i).limit for i in range(3)] == [8, 8, 8]


def test_an_endpoint_that_leaves_is_checked_no_more_and_a_late_verdict_is_not_believed() -> None:
    endpoint, late = Endpoint.parse("http://late:80"), threading.Event()
    begun: list[int] = []

    def check(_: Endpoint) -> str | None:
        begun.append(1)
        late.wait(10.0)
        return None

    admission = Admission(check, [endpoint], [], lambda *_, **__: None)
    assert admission.admitted([endpoint]) == []
    (first,) = [thread for thread in threading.enumerate() if thread.name == "admission"]
    assert admission.admitted([]) == []
    admission.stop()  # The next listing begins no check that asks anything.
    assert admission.admitted([endpoint]) == []
    late.set()
    first.join(10.0)
    assert admission.admitted([endpoint]) == [], "the verdict was of the listing before"
    assert len(begun) == 1


def test_an_endpoint_that_is_down_keeps_one_thread_however_often_it_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_: Endpoint) -> str | None:
        raise ServerError("down")

    monkeypatch.setattr(admission_module, "RETRY_S", 0.01)
    endpoint = Endpoint.parse("http://down:80")
    admission = Admission(check, [endpoint], [], lambda *_, **__: None)
    for _ in range(6):
        admission.admitted([endpoint])
        admission.admitted([])
    admission.admitted([endpoint])
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        n = sum(thread.name == "admission" for thread in threading.enumerate())
        if n <= 1:
            break
        time.sleep(0.01)
    admission.stop()
    assert n == 1
