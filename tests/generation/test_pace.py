"""Limiters are obeyed, chance is not taken for one: simulated runs against servers that refuse some requests."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.reply import RequestFailed
from harness.generation.dispatch.flight import Flight, Work
from harness.generation.dispatch.lanes import Lanes
from harness.generation.dispatch.too_many_requests import Pace
from harness.generation.settings import Patience
from harness.runs.record import Task

ROUND_TRIP_S = 0.005

Accepts = Callable[[float, int, random.Random], bool]
"""(second, requests that the server works on, chance) → whether it takes one more."""


class Result(NamedTuple):
    """seconds: of the whole run; refused: 429s for each sample."""

    seconds: float
    refused: float


def slots(n: int) -> Accepts:
    return lambda now, working, chance: working < n


def a_second(rate: float) -> Accepts:
    """A bucket of one second's worth."""
    state = {"at": 0.0, "left": rate}

    def accepts(now: float, working: int, chance: random.Random) -> bool:
        state["left"] = min(rate, state["left"] + (now - state["at"]) * rate)
        state["at"] = now
        taken = state["left"] >= 1
        state["left"] -= taken
        return taken

    return accepts


def at_random(share: float) -> Accepts:
    return lambda now, working, chance: chance.random() >= share


def simulate(
    accepts: Accepts,
    *,
    samples: int,
    mean_s: float,
    concurrency: int,
    seed: int = 1,
    refusal_s: float = ROUND_TRIP_S / 2,
) -> Result:
    """Ask for all samples (lengths of exponential distribution), as the network thread does."""
    chance, now, counter = random.Random(seed), 0.0, itertools.count()
    endpoint = replace(Endpoint.parse("http://server:80"))
    lanes = Lanes([endpoint], concurrency, Patience(), lambda: now, chance.uniform)
    due: list[tuple[float, int, str, Flight | None]] = []
    waiting, done, working, n_refused = samples, 0, 0, 0

    def later(seconds: float, what: str, flight: Flight | None = None) -> None:
        heapq.heappush(due, (now + seconds, next(counter), what, flight))

    later(0.0, "look")
    wakes_at = -1.0
    while done < samples:
        now, _, what, flight = heapq.heappop(due)
        if what == "look":
            later(0.5, "look")
        elif flight is None:
            pass
        elif what == "arrive" and accepts(now, working, chance):
            working += 1
            later(max(mean_s / 20, chance.expovariate(1 / mean_s)), "end", flight)
        elif what == "arrive":
            later(refusal_s, "refused", flight)
        elif what == "end":
            working -= 1
            done += 1
            lanes.answered_by(flight)
        else:
            n_refused += 1
            waiting += 1
            lanes.failed(flight, RequestFailed("rate_limited", "slow down"))
        lanes.advance()
        while waiting and lanes.with_room():
            waiting -= 1
            later(ROUND_TRIP_S / 2, "arrive", lanes.sent(next(iter(lanes)), Work(Task("b", "q", waiting))))
        change = lanes.next_change()
        if change is not None and not now < wakes_at <= now + change:
            wakes_at = now + max(0.001, change)
            later(max(0.001, change), "wake")
    return Result(now, n_refused / samples)


SERVERS = [
    # make, samples, mean seconds, requests in flight, seconds without the limiter's refusals
    (lambda: slots(16), 2000, 0.1, 64, 2000 * 0.1 / 16),
    (lambda: slots(16), 1000, 3.0, 64, 1000 * 3.0 / 16),
    (lambda: slots(100), 1000, 60.0, 256, 1000 * 60.0 / 100),
    (lambda: slots(1), 200, 0.5, 8, 200 * 0.5),
    (lambda: a_second(5), 500, 0.1, 64, 500 / 5),
    (lambda: a_second(5), 500, 3.0, 64, 500 / 5),
    (lambda: a_second(50), 3000, 1.0, 64, 3000 / 50),
]


@pytest.mark.parametrize(("make", "samples", "mean_s", "concurrency", "ideal_s"), SERVERS)
def test_a_limiter_is_obeyed_and_used(
    make: Callable[[], Accepts], samples: int, mean_s: float, concurrency: int, ideal_s: float
) -> None:
    result = simulate(make(), samples=samples, mean_s=mean_s, concurrency=concurrency)
    assert result.refused <= 2.0
    tail = 8 * mean_s  # the longest of them
    assert result.seconds <= 1.2 * ideal_s + tail


@pytest.mark.parametrize(("mean_s", "samples"), [(0.1, 4000), (3.0, 2000), (100.0, 1000)])
@pytest.mark.parametrize(("share", "times"), [(0.02, 1.1), (0.1, 1.2), (0.3, 1.7), (0.5, 4.0)])
def test_refusals_at_random_do_not_throttle(share: float, times: float, mean_s: float, samples: int) -> None:
    result = simulate(at_random(share), samples=samples, mean_s=mean_s, concurrency=64)
    ideal_s, tail = samples * mean_s / 64, 8 * mean_s
    assert result.seconds <= (times if mean_s < 1 else min(times, 1.3)) * ideal_s + tail
    assert result.refused <= 1.2 * share / (1 - share) + 0.05


def test_a_server_that_refused_for_a_minute_is_used_whole_some_minutes_later() -> None:
    """Slots that sleep come back without an accepted request: the replies last for hours."""
    now = 0.0
    pace = Pace(16, lambda: now, lambda low, high: high)
    first = [pace.sent() for _ in range(16)]
    for ticket in first[1:]:
        pace.refused(ticket)
    for second in range(600):
        now = float(second)
        pace.advance(now)
        while pace.in_flight < pace.limit:
            ticket = pace.sent()
            if now < 60:
                pace.refused(ticket)
    assert pace.in_flight == 16


def test_a_slot_that_has_no_credit_rests_again_and_longer() -> None:
    pace = Pace(2, lambda: 0.0, lambda low, high: high)
    refused, _ = pace.sent(), pace.sent()
    pace.refused(refused)
    for now, rest_ends in ((0.1, 0.27), (0.27, 0.559)):
        pace.advance(now)
        assert pace.rest_ends == pytest.approx(rest_ends)


def played(word: str) -> float:
    """Seconds that a slot rests after requests that were refused (R), accepted (A) or cut (C) one after the other."""
    now, rest = 0.0, 0.0
    pace = Pace(1, lambda: now, lambda low, high: high)
    for letter in word:
        now += rest
        pace.advance(now)
        assert (pace.limit, pace.in_flight) == (1, 0)
        ticket, rest = pace.sent(), 0.0
        if letter == "R":
            pace.refused(ticket)
            assert pace.rest_ends is not None
            assert pace.limit == 0
            rest = pace.rest_ends - now
        elif letter == "A":
            pace.answered(ticket)
        else:
            pace.ended(ticket)
    return rest


@pytest.mark.parametrize(
    ("word", "rest"),
    [
        ("A", 0.0), ("C", 0.0), ("R", 0.1), ("RR", 0.17), ("RRR", 0.289), ("R" * 12, 34.27), ("R" * 40, 60.0),
        ("R" * 2000, 60.0), ("RRRCR", 0.4913), ("RRRAR", 0.17), ("RRRAAR", 0.1), ("AAAR", 0.1),
    ],
)  # fmt: skip
def test_a_slot_rests_longer_after_each_refusal_and_an_accepted_request_takes_two_back(word: str, rest: float) -> None:
    assert played(word) == pytest.approx(rest, rel=1e-3)
