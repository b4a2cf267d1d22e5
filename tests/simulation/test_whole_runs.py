"""Thousands of whole runs, each from a seed; `make simulate-runs SEEDS=n` plays more of them."""

from __future__ import annotations

import heapq
import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.client.asker import Asker
from harness.client.protocol import reply as protocol
from harness.core.records import Sample, Timing, Usage
from harness.generation.dispatch.actions import Ask, Done, Wait
from harness.generation.dispatch.dispatcher import Dispatcher
from harness.generation.plan import SessionPlan
from harness.generation.settings import BenchmarkSettings, RunSettings
from harness.presets.sampling import Sampling
from harness.runs.record import Owed, Task
from tests.budget import examples
from tests.simulation.run import broken, told
from tests.simulation.world import ENDPOINTS

MOST_OVER_IDEAL = 1.05
"""Of 1,000 sessions the slowest took 1.03 with known lengths and 1.05 with unknown ones; four took up to 1.16, in which
one sample of unknown length takes longer than all samples together, spread over the places."""

_TIMING = Timing(started=0.0, total=1.0)


def over_ideal(seed: int) -> float:
    """The session's seconds over the ideal, of the workload of this seed.

    Servers write at one pace. With m places in flight nobody is faster than all seconds over m, nor than the longest
    sample: that is the ideal.
    """
    chance = random.Random(seed)
    n_places, n_samples = chance.choice((4, 8, 16)), chance.choice((4, 8))
    n_questions = n_places * chance.randint(3, 5)
    means = [math.exp(chance.gauss(8.0, 0.8)) for _ in range(n_questions)]
    lengths = {
        Task("b", f"q{q}", i): max(1, int(mean * math.exp(chance.gauss(0.0, 0.3))))
        for q, mean in enumerate(means)
        for i in range(n_samples)
    }
    ideal = max(sum(lengths.values()) / n_places, max(lengths.values()))
    return _seconds(lengths, n_places, chance) / ideal


def _seconds(
    lengths: dict[Task, int],
    n_places: int,
    chance: random.Random,
) -> float:
    """Virtual seconds until all is on disk."""
    now, stored = 0.0, list[Sample]()
    n_samples = max(task.sample_index for task in lengths) + 1
    ids = list(dict.fromkeys(task.question_id for task in lengths))
    settings = RunSettings(
        asker=Asker(model="m"),
        endpoints=tuple(replace(one, weight=1.0) for one in ENDPOINTS[: chance.choice((1, 2))]),
        benchmarks={"b": BenchmarkSettings(samples=n_samples, sampling=Sampling(temperature=0.6))},
        out=Path("nowhere"),
        concurrency=n_places,
    )
    session = Dispatcher(
        settings,
        SessionPlan(
            owed=[Owed("b", one, tuple(range(n_samples))) for one in ids], done={"b": 0}, total={"b": len(lengths)}
        ),
        store=stored.append,
        clock=lambda: now,
        jitter=chance.uniform,
    )
    running: list[tuple[float, Task, str]] = []
    while not isinstance(action := session.next(), Done):
        match action:
            case Ask(task=task, endpoint=endpoint):
                heapq.heappush(running, (now + lengths[task], task, endpoint.base_url))
            case Wait():
                now, task, url = heapq.heappop(running)
                sample, reply = _written(task, url, lengths[task])
                session.answered(task, sample, reply)
    assert len(stored) == len(lengths)
    return now


def _written(task: Task, url: str, n_tokens: int) -> tuple[Sample, protocol.Reply]:
    usage = Usage(prompt_tokens=20, completion_tokens=n_tokens)
    text = f"{task}"
    reply = protocol.Reply(
        text=text, reasoning=None, finish_reason="stop", usage=usage, timing=_TIMING, server_model="m"
    )
    sample = Sample(
        benchmark=task.benchmark, question_id=task.question_id, sample_index=task.sample_index, text=text,
        finish_reason="stop", reasoning=None, usage=usage, timing=_TIMING, endpoint=url, server_model="m",
    )  # fmt: skip
    return sample, reply


SEEDS = examples(2_000)

WORKLOADS = 15
"""Sessions in which nothing fails."""


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_every_promise_is_kept_whatever_goes_wrong() -> None:
    seed = next((seed for seed in range(SEEDS) if broken(seed)), None)
    if seed is not None:
        end = "\n".join(told(seed).splitlines()[-60:])
        pytest.fail(f"{end}\n\nAll of it: make simulate-runs SEED={seed}")


def test_a_session_in_which_nothing_fails_takes_hardly_longer_than_it_must() -> None:
    slowest = max((over_ideal(seed), seed) for seed in range(WORKLOADS))
    assert slowest[0] <= MOST_OVER_IDEAL, slowest


def test_the_same_seed_is_the_same_run_in_every_process() -> None:
    code = "from tests.simulation.run import broken, told; print(*map(told, range(40)))"
    checkout = Path(__file__).parents[2]
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=checkout, env=os.environ | {"PYTHONHASHSEED": salt, "PYTHONPATH": str(checkout)},
            capture_output=True, text=True, check=True,
        ).stdout
        for salt in ("1", "2")
    ]  # fmt: skip
    assert runs[0] == runs[1]
    assert "ask q0:0" in runs[0]
