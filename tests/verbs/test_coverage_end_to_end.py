"""The whole way from servers of known ability through the client and the scorer to the interval: it holds the truth as
often as it says. `HARNESS_COVERAGE_RUNS=300` plays more runs than CI does."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.api import run as sample
from harness.api import score
from harness.testing import FakeServer, Request, Step, completion, http, models
from tests.faults.able import sums

RUNS = int(os.environ.get("HARNESS_COVERAGE_RUNS", "16"))
SAMPLES = 4
CHANCES = [0.05, 0.2, 0.35, 0.5, 0.5, 0.65, 0.8, 0.9, 0.97, 1.0]


def able(faulty: bool) -> Callable[[Request], Iterator[Step]]:
    """Question q is answered rightly with chance `CHANCES[q]`, decided by the request's seed; faulty: one request in
    five fails first, at random."""
    chance = random.Random(5)

    def answer(request: Request) -> Iterator[Step]:
        if request.method == "GET":
            return iter([models("test-model")])
        if faulty and chance.random() < 0.2:
            return iter([http(503)])
        number = int(request.json["messages"][-1]["content"].split()[2])
        rng = random.Random(request.json["seed"])
        right = number + 1 if rng.random() < CHANCES[number] else 999
        return completion(rf"Case {rng.random()}: so \boxed{{{right}}}", tokens=20)

    return answer


@pytest.mark.wide
@pytest.mark.parametrize("faulty", [False, True])
def test_intervals_of_whole_runs_hold_the_ability_of_the_server(tmp_path: Path, faulty: bool) -> None:
    path = sums(tmp_path, len(CHANCES))
    truth = math.fsum(CHANCES) / len(CHANCES)
    inside = 0
    with FakeServer(able(faulty)) as server:
        for seed in range(RUNS):
            done = sample(
                data=path, id_key="id", base_url=server.base_url, samples=SAMPLES, seed=seed + 1, canary=False,
                attempts=20, out=tmp_path / f"run{seed}",
            )  # fmt: skip
            assert done.complete
            (scored,) = score(done)
            assert scored.n_samples == SAMPLES * len(CHANCES)
            assert scored.accuracy.sampling is not None
            inside += scored.accuracy.sampling.low <= truth <= scored.accuracy.sampling.high
    # At 95 % a smaller number of hits than this has a chance below one in 10,000.
    assert inside >= RUNS * 0.95 - 3.8 * math.sqrt(RUNS * 0.95 * 0.05)
