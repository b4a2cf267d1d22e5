"""The loop's lag: how late a byte is read that arrives at a random moment.

For: harness.client.loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from harness.client.loop import BEAT_S, LagMeter, current_lag, measured, new_event_loop


def metered(*late: float) -> float:
    meter = LagMeter()
    for seconds in late:
        meter.add(seconds)
    return meter.lag()


def test_a_quantile_is_never_below_the_true_one() -> None:
    for late in (0.00013, 0.004, 0.7):
        lag = metered(*[late] * 5)
        assert late <= lag * (1 + 1e-9)
        assert lag <= late * 1.2


@pytest.mark.parametrize("loop_factory", [new_event_loop, asyncio.new_event_loop])
def test_a_loop_that_was_held_up_tells_it(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def held_up() -> float | None:
        with measured():
            await asyncio.sleep(0)
            time.sleep(BEAT_S + 0.1)
            await asyncio.sleep(0.01)
            return await asyncio.create_task(told())

    async def told() -> float | None:
        return current_lag()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        lag = runner.run(held_up())
    assert lag is not None
    assert lag >= 0.09
    assert current_lag() is None
