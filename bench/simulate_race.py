"""Tests by simulation how often a race's verdict is false and how many rounds a race takes, with a test after every
round.

    python bench/simulate_race.py [--repeats 100]

The simulation uses the race's own loop (`gates.race.play`), planned looks, and the product's scheduler: each candidate
has two servers, one of them 2.5 times slower, and wrong replies are 1.6 times as long as correct ones. Questions have
probabilities of a correct sample (Beta; concentration 0.5 or 4); the candidate's are those of the baseline, shifted so
that the accuracies differ by the column's points, and more so for less certain questions. The margin is 2 points.
"fixed n": samples per question with which one test finds this difference in 80% of repetitions, if the difference is
known in advance. "power of all": how often this test finds a difference with all rounds. Exit code 1 if more than 5% of
a cell's verdicts are false, by more than the simulation's own error.
"""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.schedule import (
    CAP_TOKENS,
    MEAN_TOKENS,
    QUESTION_SIGMA,
    SAMPLE_SIGMA,
    Clock,
    Policy,
    Server,
    by_scheduler,
    makespan,
)
from harness.core.records import Key
from harness.deciding.race import RaceVerdict
from harness.deciding.stats_differences import power_factor, score_variance
from harness.gates.race import play as race
from harness.generation.dispatch.schedule import Scheduler
from harness.runs.missing import Task, missing_samples
from harness.scoring.stats import Z_95

LEVEL = 0.05
"""Largest share of false verdicts that a race promises."""

SHAPES = [(30, 64), (198, 16), (500, 8)]
"""(questions, maximum number of rounds)."""

MODELS = [(0.5, 0.5), (4.0, 0.5), (4.0, 0.9)]
"""(concentration, accuracy)."""

SHIFTS = [0.0, 0.03, 0.06, 0.1]
MARGIN = 0.02
LONGER = 1.6
SLOWER = 2.5
SLOTS = 32

Outcomes = NDArray[np.bool_]
"""(rounds, questions): whether the sample is correct."""


class Cell(NamedTuple):
    """A kind of race. most: maximum number of rounds. shift: by how much the candidate is better, as a fraction."""

    n_questions: int
    most: int
    concentration: float
    accuracy: float
    shift: float


class Result(NamedTuple):
    """The result of one race: its verdict, whether the verdict is false, the rounds used, whether one test over all
    rounds would have found the difference, and the rounds that this test needs (infinite if there is no difference).
    """

    verdict: RaceVerdict
    false: bool
    rounds: int
    fixed_finds: bool
    fixed: float


class Run:
    """A candidate's simulated run: the samples that the scheduler requested, session by session, and their outcomes."""

    def __init__(self, rng: np.random.Generator, chances: NDArray[np.float64], most: int) -> None:
        self.right: Outcomes = rng.random((most, len(chances))) < chances
        middle = (
            math.log(MEAN_TOKENS) - 0.4 + QUESTION_SIGMA * rng.standard_normal(len(chances)) - 0.8 * (chances - 0.5)
        )
        tokens = np.exp(middle + SAMPLE_SIGMA * rng.standard_normal(self.right.shape)) * np.where(self.right, 1, LONGER)
        self.lengths = np.clip(tokens, 50, CAP_TOKENS).astype(int).T.tolist()
        self.stored: set[Key] = set()
        self.clock = Clock()

    def sample_to(self, n: int) -> Outcomes:
        """Simulate a session up to n samples per question; return the outcomes of the complete rounds."""
        n_questions = len(self.lengths)
        plan = missing_samples("sim", [str(q) for q in range(n_questions)], n, self.stored)
        policy = by_scheduler(Scheduler(plan), self.clock, 2)

        def finished(task: Task, tokens: int) -> None:
            """Record a finished sample."""
            policy.done(task, tokens)
            self.stored.add(Key(task.question_id, task.sample_index))

        servers = [Server(0.012 * pace, 0.00004 * pace, SLOTS) for pace in (1.0, SLOWER)]
        n_missing = n * n_questions - len(self.stored)
        makespan(self.lengths, servers, Policy(policy.pick, finished), self.clock, n_missing)
        per_round = np.zeros(len(self.right), dtype=int)
        for key in self.stored:
            per_round[key.sample_index] += 1
        complete = int((per_round == n_questions).cumprod().sum())
        return self.right[:complete]


def play(rng: np.random.Generator, cell: Cell) -> Result:
    """Run one race."""
    a, b = cell.accuracy * cell.concentration, (1 - cell.accuracy) * cell.concentration
    chances = rng.beta(a, b, size=cell.n_questions)
    spread = chances * (1 - chances)
    moved = np.clip(chances + cell.shift * spread / max(float(spread.mean()), 1e-9), 0, 1)
    truth = float((moved - chances).mean())
    runs = {"baseline": Run(rng, chances, cell.most), "candidate": Run(rng, moved, cell.most)}
    nothing = {name: run.right[:0] for name, run in runs.items()}
    standings, *_ = race(
        nothing, lambda name, n: runs[name].sample_to(n), most=cell.most, margin=MARGIN, step=1, on_look=lambda _: None
    )
    standing = standings["candidate"]
    wrong = {
        "better": truth <= 0,
        "worse": truth >= 0,
        "equal within the margin": abs(truth) >= MARGIN,
        "undecided": False,
    }
    variance = float((spread + moved * (1 - moved)).mean() / 2)
    fixed = math.ceil(2 * variance / cell.n_questions * (power_factor() / truth) ** 2) if truth else None
    fixed_finds = _found(runs["candidate"].right, runs["baseline"].right)
    return Result(standing.verdict, wrong[standing.verdict], standing.rounds, fixed_finds, fixed or math.inf)


def _found(candidate: Outcomes, baseline: Outcomes) -> bool:
    """Whether one test over all rounds finds a difference."""
    counts = np.full(candidate.shape[1], float(len(candidate)))
    ours, theirs = candidate.sum(axis=0).astype(float), baseline.sum(axis=0).astype(float)
    variance = float(score_variance(ours, counts, theirs, counts))
    return bool(abs(candidate.mean() - baseline.mean()) > Z_95 * math.sqrt(variance))


def main() -> int:
    """Print the tables. Returns 1 if too many verdicts are false."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=100)
    given = parser.parse_args()
    repeats = given.repeats
    most = LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / repeats)
    all_hold = True
    races = false_verdicts = 0
    columns = ("questions, rounds at most", "concentration, accuracy", "difference", "false %", "decided %", "rounds")
    print(f"| {' | '.join(columns)} | fixed n | power of all % |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for n_questions, rounds in SHAPES:
        for concentration, accuracy in MODELS:
            for shift in SHIFTS:
                rng = np.random.default_rng(list(map(ord, f"{n_questions} {concentration} {accuracy} {shift}")))
                cell = Cell(n_questions, rounds, concentration, accuracy, shift)
                results = [play(rng, cell) for _ in range(repeats)]
                n_false = sum(result.false for result in results)
                decided = sum(result.verdict != "undecided" for result in results) / repeats
                mean = sum(result.rounds for result in results) / repeats
                power = sum(result.fixed_finds for result in results) / repeats
                fixed = float(np.median([result.fixed for result in results]))
                races, false_verdicts = races + repeats, false_verdicts + n_false
                all_hold &= n_false <= most * repeats
                print(
                    f"| {n_questions}, {rounds} | {concentration:g}, {100 * accuracy:g}% | {100 * shift:g} | "
                    f"{100 * n_false / repeats:.1f} | {100 * decided:.0f} | {mean:.1f} | "
                    f"{'–' if math.isinf(fixed) else f'{fixed:.0f}'} | {100 * power:.0f} |",
                    flush=True,
                )
    print(f"\n{false_verdicts} of {races:,} verdicts are false")
    print(f"at most 5% false in every cell, up to its simulation error: {'yes' if all_hold else 'NO'}")
    return 0 if all_hold else 1


if __name__ == "__main__":
    raise SystemExit(main())
