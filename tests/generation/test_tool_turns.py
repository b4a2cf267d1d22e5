"""Calls of many samples share a machine: nobody waits for ever, and no more memory is counted than there is.

For: harness.generation.network.tool_turns.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from harness.generation.network import tool_turns
from harness.generation.network.tool_turns import Turns
from harness.runs.missing import Task
from tests.budget import rounds

LEAST, MOST = 128 << 20, 2 << 30
MEMORY = 12 << 30


async def played(draw: random.Random, largest: int) -> tuple[int, int]:
    """Many samples to their ends; (calls, interpreters that were ended for their memory). largest: bytes of one."""
    asking, lost = set[Task](), list[Task]()
    turns = Turns(MEMORY, 2, 8, asking, lost.append)
    n_calls = 0

    async def sample(number: int) -> None:
        nonlocal n_calls
        task = Task("b", "q", number)
        for _ in range(draw.randint(1, 6)):
            asking.add(task)
            await asyncio.sleep(draw.choice((0, 0.001)))
            await turns.begin(task, LEAST + MOST, LEAST)
            state = turns.progress()
            assert state.running <= 8
            assert state.memory <= MEMORY or state.interpreters == 1
            await asyncio.sleep(draw.choice((0, 0.001)))
            turns.end(task, LEAST + draw.randint(0, largest))
            n_calls += 1
            if draw.random() < 0.2:  # its request fails, and waits for another try
                asking.discard(task)
                await asyncio.sleep(0.05)
        turns.forget(task)
        asking.discard(task)

    await asyncio.gather(*map(sample, range(60)))
    state = turns.progress()
    assert (state.running, state.waiting, state.interpreters, state.memory) == (0, 0, 0, 0)
    return n_calls, len(lost)


@pytest.mark.parametrize(("largest", "loses"), [(64 << 20, False), (MOST - 1, True)], ids=["usual", "greedy"])
def test_all_samples_end_within_the_memory(largest: int, loses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_turns, "STUCK_S", 0.01)
    lost = 0
    for seed in range(rounds(8)):
        n_calls, n_lost = asyncio.run(played(random.Random(seed), largest))
        assert n_calls >= 60
        lost += n_lost
    assert bool(lost) == loses, "an interpreter is ended where memory is short, and only there"


def test_a_call_that_is_cancelled_leaves_no_place_taken() -> None:
    async def scene() -> int:
        turns, one, other = Turns(MOST, 2, 8, set(), [].append), Task("b", "q", 1), Task("b", "q", 2)
        await turns.begin(one, LEAST + MOST, LEAST)
        waiting = asyncio.create_task(turns.begin(other, LEAST + MOST, LEAST))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        turns.end(one, LEAST)
        turns.forget(one)
        return turns.progress().memory + turns.progress().waiting

    assert asyncio.run(scene()) == 0
