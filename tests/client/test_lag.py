"""The loop's lag: a random moment's wait for the next look at the sockets."""

from __future__ import annotations

import asyncio
import time

import pytest

from harness.client.fast.event_loop import Lag, LagMeter, StreamLoop


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def metered(*turns: tuple[float, float]) -> Lag:
    """The lag of a loop that was so long away, then waited so long, in turn."""
    clock = Clock()
    meter = LagMeter(clock)
    meter.end_poll()
    for away, waited in turns:
        clock.now += away
        meter.begin_poll()
        clock.now += waited
        meter.end_poll()
    return meter.lag()


def test_before_the_first_poll_there_is_none() -> None:
    assert LagMeter(Clock()).lag() == Lag(0.0, 0.0)


def test_a_loop_that_waits_for_its_sockets_does_not_lag() -> None:
    assert metered(*[(0.001, 1.0)] * 10) == Lag(0.0, 0.0)


def test_an_absence_counts_by_its_length_not_by_its_number() -> None:
    # 1,000 short absences take 0.1 s, one long one takes 0.4 s of 10.5 s.
    lag = metered((0.4, 10.0), *[(0.0001, 0.0)] * 1000)
    assert lag.p50 == 0.0
    assert lag.p99 == pytest.approx(0.4, rel=0.2)


def test_a_quantile_is_never_below_the_true_one() -> None:
    for away in (0.00013, 0.004, 0.7):
        lag = metered(*[(away, 0.0)] * 5)
        assert away <= lag.p50 * (1 + 1e-9)
        assert lag.p50 == lag.p99
        assert lag.p99 <= away * 1.2


def test_the_stream_loop_tells_that_it_was_held_up() -> None:
    async def held_up() -> None:
        await asyncio.sleep(0)
        time.sleep(0.05)
        await asyncio.sleep(0)

    loop = StreamLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(held_up())
        assert loop.lag.p99 >= 0.05
