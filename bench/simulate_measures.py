"""Tests by simulation how often the intervals of measures other than the accuracy contain the truth.

    python -m bench.simulate_measures [--repeats 500]

Parts: a question has 4 to 36 parts; the more parts it has, the harder it is. A sample gets each part right with its own
probability, a Beta draw around the question's, so the parts of one sample tend to be right or wrong together. The truth
for "same questions" is the expected measure of the drawn questions, and for "other questions" the mean over 200,000 of
them. Exit code 1 if an interval contains the truth in fewer than 92% of the repetitions, by more than the simulation's
own error.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.core.records import Grade, Question
from harness.scoring.measures import measures
from harness.scoring.stats import Estimate
from harness.scoring.tally import QuestionTally, tally

SIZES = [(40, 1), (40, 4), (300, 1), (300, 2), (300, 8)]
"""(questions, samples of each)."""

MEANS = [0.5, 0.9]
"""Approximate mean probability of a correct part or a correct answer."""

SPREAD = 2.0
"""Standard deviation of the questions' difficulty, in logits."""

OF_A_SAMPLE = 3.0
"""How close a sample's probability is to its question's: the concentration of a Beta distribution."""

LOWEST = 0.92
POPULATION = 200_000

Floats = NDArray[np.float64]
Truth = dict[str, float]


class Drawn(NamedTuple):
    """Simulated questions with their samples, and the true measures for these questions."""

    items: list[QuestionTally]
    truth: Truth


def item(number: int, verdicts: list[bool], parts: list[tuple[int, int]], metadata: dict[str, object]) -> QuestionTally:
    """A question with its graded samples. parts: (correct parts, parts) of each sample."""
    question = Question(
        benchmark="b",
        question_id=str(number),
        references=(),
        kind="text",
        metadata=metadata,
        row_digest="",
        prompt_digest="",
    )
    grades = [
        Grade(
            benchmark="b",
            question_id=str(number),
            sample_index=index,
            verdict="correct" if right else "wrong",
            extracted=None,
            rule="r",
            grader="g",
            **({"parts": parts[index]} if parts else {}),
        )
        for index, right in enumerate(verdicts)
    ]
    return tally([question], grades, len(grades)).questions[0]


def logistic(values: Floats) -> Floats:
    """The probabilities for these logits."""
    return 1 / (1 + np.exp(-values))


def questions_with_parts(rng: np.random.Generator, n: int, mean: float) -> tuple[NDArray[np.int64], Floats]:
    """Draw n questions: their numbers of parts, and each one's probability of a correct part."""
    totals = rng.integers(2, 7, n) * rng.integers(2, 7, n)
    logits = math.log(mean / (1 - mean)) + rng.normal(0, SPREAD, n) - (totals - 16) / 8
    return totals, logistic(logits)


def truth_of_parts(totals: NDArray[np.int64], chances: Floats) -> Truth:
    """The true measures of questions with these numbers of parts and probabilities."""
    return {
        "share of parts": float(chances.mean()),
        "share of all parts": float((totals * chances).sum() / totals.sum()),
    }


def parts(rng: np.random.Generator, n: int, samples: int, mean: float) -> Drawn:
    """Draw questions and their samples."""
    totals, chances = questions_with_parts(rng, n, mean)
    own = rng.beta(OF_A_SAMPLE * chances[:, None] + 1e-9, OF_A_SAMPLE * (1 - chances[:, None]) + 1e-9, (n, samples))
    right = rng.binomial(totals[:, None], own)
    items = [
        item(q, [bool(r == totals[q]) for r in right[q]], [(int(r), int(totals[q])) for r in right[q]], {})
        for q in range(n)
    ]
    return Drawn(items, truth_of_parts(totals, chances))


def held(measure: Estimate, same: float, population: float) -> tuple[bool, bool]:
    """Return whether the truth is in (the sampling interval, the question interval).

    same: the truth for the same questions. population: the truth for all questions of the kind.
    """
    pairs = (measure.sampling, same), (measure.question, population)
    first, second = (interval is not None and interval.low <= truth <= interval.high for interval, truth in pairs)
    return first, second


def cells(repeats: int) -> Iterator[tuple[str, int, int, float, float, float]]:
    """Simulate all sizes and means; yield (measure, questions, samples, mean, fraction of sampling intervals that
    contain the truth, same fraction for question intervals).
    """
    for mean in MEANS:
        population = truth_of_parts(*questions_with_parts(np.random.default_rng(0), POPULATION, mean))
        for n, samples in SIZES:
            rng = np.random.default_rng([n, samples, round(100 * mean)])
            counts: dict[str, list[tuple[bool, bool]]] = {}
            for _ in range(repeats):
                drawn = parts(rng, n, samples, mean)
                for name, measure in measures(drawn.items).items():
                    counts.setdefault(name, []).append(held(measure, drawn.truth[name], population[name]))
            for name, pairs in counts.items():
                same, others = np.array(pairs).mean(axis=0)
                yield name, n, samples, mean, float(same), float(others)


def main() -> None:
    """Print the rates. Exits with 1 if one is too low."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=500)
    repeats = parser.parse_args().repeats
    allowed = LOWEST - 3 * math.sqrt(LOWEST * (1 - LOWEST) / repeats)
    worst = 1.0
    print("| measure | questions × samples | about right | same questions | other questions |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, n, samples, mean, same, others in cells(repeats):
        print(f"| {name} | {n} × {samples} | {100 * mean:.0f}% | {100 * same:.1f}% | {100 * others:.1f}% |")
        worst = min(worst, same, others)
    if worst < allowed:
        raise SystemExit(f"an interval holds the truth in {100 * worst:.1f}% of the repetitions only")


if __name__ == "__main__":
    main()
