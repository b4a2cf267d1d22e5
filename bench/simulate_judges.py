"""Measures the coverage of intervals of what judges award: of SimpleQA's F1, and of the difference of two runs with
points.

    python -m bench.simulate_judges [--repeats 1000]

A judge gives grades out of 7, ten criteria, or right and wrong. Exit code 1 below the bound.
"""

from __future__ import annotations

import argparse
import math
import sys
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from harness.deciding import difference_stats
from harness.scoring import measures, stats

Array = NDArray[np.float64]

MIN_COVERAGE = 0.93
"""Smallest share of a cell's intervals that must contain the truth, up to three standard errors of the simulation."""

GRADES = {
    "0, 1, 6, 7 of 7": np.array([0, 1, 6, 7]) / 7,
    "0 to 10 of 10": np.arange(11) / 10,
    "right, wrong": np.array([0.0, 1.0]),
}

F1_CELLS = ((60, 1, 0.3, 0.6), (1000, 1, 0.4, 0.9), (200, 4, 0.1, 0.3), (200, 4, 0.7, 0.95), (60, 2, 0.5, 1.0))
"""(questions, samples of each, mean probability that an attempted answer is correct, mean probability of an
attempt).
"""


def points_of(rng: np.random.Generator, ability: Array, grades: Array) -> Array:
    """Draw points whose mean is the ability."""
    n = len(grades) - 1
    drawn = rng.binomial(n, ability) if n != 3 else 2 * rng.binomial(1, ability) + rng.binomial(1, ability)
    return np.asarray(grades[drawn])


def f1_once(rng: np.random.Generator, cell: tuple[int, int, float, float]) -> Array:
    """Whether the intervals of F1 contain the truth: same questions, new questions."""
    q, n, right, attempts = cell
    chance = rng.beta(2 * right, 2 * (1 - right), q)
    attempt = np.ones(q) if attempts == 1 else rng.beta(2 * attempts, 2 * (1 - attempts), q)
    answered = rng.binomial(n, attempt)
    correct = rng.binomial(answered, chance)
    plain = SimpleNamespace(metadata={})
    items = [SimpleNamespace(n=n, independent=n, has_copies=False, question=plain)] * q
    estimate = measures.ratio_of_means(cast("Any", items), 2.0, 1.0, correct, n - answered)
    assert estimate is not None
    same = 2 * (chance * attempt).sum() / (q + attempt.sum())
    new = 2 * right * attempts / (1 + attempts)
    ends = (estimate.sampling, same), (estimate.question, new)
    return np.array([end is not None and end.low <= truth <= end.high for end, truth in ends], dtype=float)


def compared(rng: np.random.Generator, grades: Array, q: int, n: int, gap: float) -> Array:
    """For two runs: whether the interval of their difference on the same questions contains the truth, its half-width
    in points, the half-width if shares count as coin flips, and whether two runs of the first model differ in a test at
    5%.
    """
    level = rng.beta(1, 1, q)
    other = np.clip(level - gap, 0, 1)
    runs = [points_of(rng, np.repeat(of[:, None], n, 1), grades) for of in (level, other, level)]
    counts = np.full(q, float(n))
    (ours, squares), (theirs, their_squares), (again, squares_again) = ((of.sum(1), (of**2).sum(1)) for of in runs)
    limits = difference_stats.scaled_difference(ours, counts, theirs, counts, squares, their_squares)(1.0)
    coins = difference_stats.scaled_difference(ours, counts, theirs, counts)(1.0)
    error = math.sqrt(difference_stats.score_variance(ours, counts, again, counts, squares + squares_again))
    truth = float((level - other).mean())
    held = limits.low <= truth <= limits.high
    found = abs(float((ours - again).mean()) / n) > stats.Z_95 * error
    return np.array([held, *(50 * (ends.high - ends.low) for ends in (limits, coins)), found], dtype=float)


def main() -> int:
    """Print the tables. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    given = parser.parse_args()
    rng, least = np.random.default_rng(7), MIN_COVERAGE - 3 * math.sqrt(0.05 * 0.95 / given.repeats)
    failed = 0
    print("F1: coverage in % of its intervals for the same and for new questions")
    for of_f1 in F1_CELLS:
        same, new = 100 * np.mean([f1_once(rng, of_f1) for _ in range(given.repeats)], 0)
        low = bool(min(same, new) < 100 * least)
        failed += low
        print(
            f"{of_f1[0]:5} × {of_f1[1]}, right {of_f1[2]}, attempted {of_f1[3]}: {same:5.1f} {new:5.1f}{' LOW' * low}"
        )
    print("\nDifference of two runs: coverage in %, ± in points (as coins), found in % where there is none")
    for name, grades in GRADES.items():
        for q, n, gap in ((20, 1, 0.1), (60, 1, 0.0), (60, 4, 0.2), (500, 2, 0.05)):
            held, reach, coin, found = np.mean([compared(rng, grades, q, n, gap) for _ in range(given.repeats)], 0)
            low = bool(held < least or 1 - found < least)
            failed += low
            numbers = f"{100 * held:5.1f}, ±{reach:4.1f} ({coin:4.1f}), {100 * found:4.1f}"
            print(f"{name:16} {q:5} × {n}: {numbers}{' LOW' * low}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
