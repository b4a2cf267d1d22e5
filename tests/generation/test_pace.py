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
from harness.generation.dispatch.lanes import Lanes
from harness.generation.dispatch.too_many_requests import Ticket
from harness.generation.settings import Patience

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
    due: list[tuple[float, int, str, Ticket | None]] = []
    waiting, done, working, n_refused = samples, 0, 0, 0

    def later(seconds: float, what: str, ticket: Ticket | None = None) -> None:
        heapq.heappush(due, (now + seconds, next(counter), what, ticket))

    later(0.0, "look")
    while done < samples:
        now, _, what, ticket = heapq.heappop(due)
        if what == "look":
            later(0.5, "look")
        elif ticket is None:
            pass
        elif what == "arrive" and accepts(now, working, chance):
            working += 1
            later(max(mean_s / 20, chance.expovariate(1 / mean_s)), "end", ticket)
        elif what == "arrive":
            later(refusal_s, "refused", ticket)
        elif what == "end":
            working -= 1
            done += 1
            lanes.answered_by(ticket)
        else:
            n_refused += 1
            waiting += 1
            lanes.failed(ticket, RequestFailed("rate_limited", "slow down"))
        if lanes.next_change() is not None:
            later(max(0.001, lanes.next_change() or 0.0), "wake")
        lanes.advance()
        while waiting and lanes.with_room():
            waiting -= 1
            later(ROUND_TRIP_S / 2, "arrive", lanes.sent(0))
    return Result(now, n_refused / samples)


LIMITED = [
    (lambda: slots(16), 2000, 0.1, 64, 2000 * 0.1 / 16),
    (lambda: slots(16), 1000, 3.0, 64, 1000 * 3.0 / 16),
    (lambda: slots(100), 1000, 60.0, 256, 1000 * 60.0 / 100),
    (lambda: slots(1), 200, 0.5, 8, 200 * 0.5),
    (lambda: a_second(5), 500, 0.1, 64, 500 / 5),
    (lambda: a_second(5), 500, 3.0, 64, 500 / 5),
    (lambda: a_second(50), 3000, 1.0, 64, 3000 / 50),
]


@pytest.mark.parametrize(("make", "samples", "mean_s", "concurrency", "ideal_s"), LIMITED)
def test_a_limiter_is_obeyed_and_used(
    make: Callable[[], Accepts], samples: int, mean_s: float, concurrency: int, ideal_s: float
) -> None:
    result = simulate(make(), samples=samples, mean_s=mean_s, concurrency=concurrency)
    assert result.refused <= 0.2 + (50 + 4 * concurrency) / samples
    tail = 8 * mean_s  # the longest of them
    assert result.seconds <= 1.5 * ideal_s + tail


@pytest.mark.parametrize(("mean_s", "samples"), [(0.1, 4000), (3.0, 2000), (100.0, 1000)])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5])
def test_refusals_at_random_do_not_throttle(share: float, mean_s: float, samples: int) -> None:
    result = simulate(at_random(share), samples=samples, mean_s=mean_s, concurrency=64)
    ideal_s = samples * mean_s / 64
    tail, finding_out = 8 * mean_s, 30.0
    assert result.seconds <= 1.3 * ideal_s + tail + finding_out
    assert result.refused <= 1.2 * share / (1 - share) + 0.05


def test_a_limiter_behind_a_slow_gateway_is_obeyed() -> None:
    result = simulate(slots(16), samples=1000, mean_s=30.0, concurrency=64, refusal_s=4.0)
    assert result.refused <= 0.2 + (50 + 4 * 64) / 1000
    assert result.seconds <= 1.5 * 1000 * 30 / 16


def test_a_limiter_that_sets_in_later_is_noticed() -> None:
    chance, limited = at_random(0.3), slots(8)
    counter = itertools.count()

    def turns(now: float, working: int, rng: random.Random) -> bool:
        return chance(now, working, rng) if next(counter) < 1000 else limited(now, working, rng)

    result = simulate(turns, samples=3000, mean_s=1.0, concurrency=64)
    assert result.refused <= 0.2 + (50 + 4 * 64) / 3000 + 0.43 / 3
