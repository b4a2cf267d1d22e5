"""How often is a race's verdict false, and how many rounds does it take? Simulated, with a look after every round.

    python bench/simulate_race.py [--repeats 400]

Questions have chances of a right sample (Beta; concentration 0.5 or 4); the candidate's are those of the baseline,
moved so that the accuracies differ by the column's points, the more the less certain the question. "power of all" is
the share in which the score test of two runs of all rounds, without looking, finds a difference. A margin of 2 points.
Exit code 1 when over 5 % of the verdicts of a cell are false, by more than the simulation's own error.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.scoring.differences import score_variance
from harness.scoring.distributions import Z_95
from harness.scoring.race import LEVEL, Totals, Verdict, confidence, totals_of

SHAPES = [(30, 64), (198, 16), (500, 8)]
"""(questions, rounds at most)."""

MODELS = [(0.5, 0.5), (4.0, 0.5), (4.0, 0.9)]
"""(concentration, accuracy)."""

SHIFTS = [0.0, 0.03, 0.06, 0.1]
MARGIN = 0.02


class Cell(NamedTuple):
    n_questions: int
    most: int
    concentration: float
    accuracy: float
    shift: float


class Result(NamedTuple):
    """Of one race: its verdict, whether that is false, the rounds used, and what the fixed number would have found."""

    verdict: Verdict
    false: bool
    rounds: int
    found: bool


def play(rng: np.random.Generator, cell: Cell) -> Result:
    a, b = cell.accuracy * cell.concentration, (1 - cell.accuracy) * cell.concentration
    chances = rng.beta(a, b, size=cell.n_questions)
    spread = chances * (1 - chances)
    moved = np.clip(chances + cell.shift * spread / max(float(spread.mean()), 1e-9), 0, 1)
    truth = float((moved - chances).mean())
    candidate = rng.random((cell.most, cell.n_questions)) < moved
    baseline = rng.random((cell.most, cell.n_questions)) < chances
    verdict, rounds = first_verdict(totals_of(candidate, baseline))
    wrong = {
        "better": truth <= 0,
        "worse": truth >= 0,
        "equal within the margin": abs(truth) >= MARGIN,
        "undecided": False,
    }
    return Result(verdict, wrong[verdict], rounds, _found(candidate, baseline))


def first_verdict(rounds: list[Totals]) -> tuple[Verdict, int]:
    """The verdict of somebody who looks after every round, and the rounds until then."""
    low, high = -1.0, 1.0
    for n, totals in enumerate(rounds, 1):
        found = confidence(totals, LEVEL)
        low, high = max(low, found.low), min(high, found.high)
        if low > 0:
            return "better", n
        if high < 0:
            return "worse", n
        if low > -MARGIN and high < MARGIN:
            return "equal within the margin", n
    return "undecided", len(rounds)


def _found(candidate: NDArray[np.bool_], baseline: NDArray[np.bool_]) -> bool:
    counts = np.full(candidate.shape[1], float(len(candidate)))
    ours, theirs = candidate.sum(axis=0).astype(float), baseline.sum(axis=0).astype(float)
    variance = float(score_variance(ours, counts, theirs, counts))
    return bool(abs(candidate.mean() - baseline.mean()) > Z_95 * math.sqrt(variance))


def main() -> int:
    """Exit code 1 when too many verdicts are false."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=400)
    repeats = parser.parse_args().repeats
    most = LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / repeats)
    kept = True
    columns = ("questions, rounds at most", "concentration, accuracy", "difference", "false %", "decided %", "rounds")
    print(f"| {' | '.join(columns)} | power of all % |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for n_questions, rounds in SHAPES:
        for concentration, accuracy in MODELS:
            for shift in SHIFTS:
                rng = np.random.default_rng(7)
                cell = Cell(n_questions, rounds, concentration, accuracy, shift)
                found = [play(rng, cell) for _ in range(repeats)]
                false = sum(one.false for one in found) / repeats
                decided = sum(one.verdict != "undecided" for one in found) / repeats
                mean = sum(one.rounds for one in found) / repeats
                power = sum(one.found for one in found) / repeats
                kept &= false <= most
                print(
                    f"| {n_questions}, {rounds} | {concentration:g}, {100 * accuracy:g} % | {100 * shift:g} | "
                    f"{100 * false:.1f} | {100 * decided:.0f} | {mean:.1f} | {100 * power:.0f} |",
                    flush=True,
                )
    print(f"\nat most 5 % false in every cell, up to its simulation error: {'yes' if kept else 'NO'}")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
