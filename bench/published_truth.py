"""Tests how often `harness verify --against any` is wrong, on made-up records of public scores with known truth.

Each model has a true accuracy on each benchmark. Each source, and each run that measures the same, lies around it by
the spread between sources (`PRIOR_SPREAD`), on the scale arcsin √accuracy, and has its own chance error. A run of
another model is 15 points worse.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.asking.options import PublishedUpdateOptions, VerifyOptions
from harness.scoring.published import index
from harness.scoring.published.all_sources import PRIOR_SPREAD
from harness.verbs.compare import verify
from harness.verbs.published import update
from tests.reports.run_folders import write_run
from tests.verbs.test_public_scores import record, write

QUESTIONS, SAMPLES = 200, 2
SOURCES = (1, 2, 3, 5, 10)
"""Numbers of sources of a model and benchmark; each number is tried equally often."""

BENCHMARKS = 8
"""Benchmarks of a model that have the same number of sources; a record of a source holds a score on each."""

LOOK_UPS = 30

WORSE = 0.15
"""By how much another model's accuracy is worse, a fraction."""


def around(chance: random.Random, accuracy: float) -> float:
    """Draw the accuracy that one more source reports if the true one is `accuracy`."""
    scaled = math.asin(math.sqrt(accuracy)) + chance.gauss(0, PRIOR_SPREAD)
    return math.sin(min(max(scaled, 0.0), math.pi / 2)) ** 2


def strength_of(accuracy: float) -> float:
    """The value of `write_run`'s parameter `strength` that gives this mean accuracy over the questions."""
    low, high = 0.0, 1_000.0
    for _ in range(60):
        middle = (low + high) / 2
        mean = sum(min(1.0, 2 * middle * (1 - n / QUESTIONS)) for n in range(QUESTIONS)) / QUESTIONS
        low, high = (middle, high) if mean < accuracy else (low, middle)
    return low


def fill(store: Path, n_scores: int, chance: random.Random) -> dict[int, list[tuple[str, str, float]]]:
    """Write the records; returns (model, benchmark, truth) by number of sources."""
    truths: dict[int, list[tuple[str, str, float]]] = {k: [] for k in SOURCES}
    written = number = 0
    while written < n_scores:
        model = f"org{number % 97}/Model{number}-7B"
        for k in SOURCES:
            cases = [(model, f"bench{k}-{number}", chance.uniform(0.3, 0.95)) for number in range(BENCHMARKS)]
            truths[k] += cases
            for source in range(k):
                # Sources write a name in their own way.
                name = model.lower().replace("-", " ") if source % 2 else model
                percents = [round(100 * around(chance, truth), 1) for _, _, truth in cases]
                records = [
                    record(name, benchmark, percent, source=f"board {source}", questions=QUESTIONS)
                    for (_, benchmark, _), percent in zip(cases, percents, strict=True)
                ]
                results = [result for entry in records for result in entry["evaluation_results"]]
                write(store, records[0] | {"evaluation_results": results}, chance)
            written += k * BENCHMARKS
        number += 1
    return truths


def share_unlike(
    cases: list[tuple[str, str, float]], shift: float, folder: Path, chance: random.Random, n_runs: int
) -> float:
    """The fraction of runs of which `verify` says that they differ from what others report. shift: by how much the
    runs' true accuracy is worse.
    """
    unlike = 0
    for number, (model, benchmark, truth) in enumerate(chance.sample(cases, n_runs)):
        run = folder / f"{benchmark}-{number}-{chance.getrandbits(32)}"
        strength = strength_of(max(0.01, around(chance, truth) - shift))
        write_run(run, model=model, benchmarks=[(benchmark, QUESTIONS, SAMPLES)], strength=strength, seed=number)
        (verified,) = verify(run, VerifyOptions(against="any"))
        assert verified.public is not None
        unlike += verified.public.verdict == "unlike what others report"
    return unlike / n_runs


def main(show: Callable[[str], None] = print) -> None:
    """Print, by number of sources, the fraction of runs that `verify` says differ: of runs that measure the same, and
    of worse ones.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--records", type=int, default=100_000, help="scores in the index")
    parser.add_argument("--runs", type=int, default=200, help="runs a cell")
    arguments = parser.parse_args()
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="published-") as name:
        folder = Path(name)
        os.environ["HARNESS_CACHE"] = str(folder / "cache")
        truths = fill(folder / "store", arguments.records, chance)
        (entry,) = update(PublishedUpdateOptions(source=str(folder / "store")))
        show(f"{entry.updated.scores:,} scores; {arguments.runs} runs a cell")
        cpu = time.process_time()
        looked_up = [index.look_up(model, benchmark) for model, benchmark, _ in chance.sample(truths[10], LOOK_UPS)]
        assert all(len(rows) == 10 for rows in looked_up)
        show(f"look-up: {1000 * (time.process_time() - cpu) / LOOK_UPS:.2f} ms of processor each")
        for k, cases in truths.items():
            same, worse = (share_unlike(cases, shift, folder, chance, arguments.runs) for shift in (0.0, WORSE))
            show(f"{k} sources: {100 * same:.1f} % of equal runs called unlike, {100 * worse:.1f} % of worse ones")


if __name__ == "__main__":
    sys.exit(main())
