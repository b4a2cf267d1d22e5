"""Estimates the spread of a benchmark's samples from published runs, for a plan before any run of one's own.

Some sources publish the standard deviation s of a run's accuracy over repeated runs. One run asks each of Q questions
once, so Q · s² is the variance of one sample around its question's chance of being right, mean over the questions. A
plan needs this variance. A few repeats estimate it badly, and models differ, so the median over all published models is
taken as typical, and the upper quartile is given as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from harness.benchmarks import catalogue
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.scoring.published import load_published

MIN_PUBLISHED = 10
"""Smallest number of published deviations of a benchmark that give its own spread; with fewer, the spread is that of
all benchmarks.
"""


@dataclass(frozen=True, kw_only=True)
class TypicalSpread:
    """The spread of one sample around its question's chance of being right, as published runs show it.

    n_questions: of the benchmark. variance, wide: median and upper quartile of the variance of one sample over the
    published scores. accuracy: their median accuracy, a fraction; ½ if `of_all`. n_published: number of these scores.
    of_all: whether they are scores of all benchmarks, because the benchmark has too few.
    """

    n_questions: int
    variance: float
    wide: float
    accuracy: float
    n_published: int
    of_all: bool


def typical_spread(benchmark: str) -> TypicalSpread:
    """The typical spread of a benchmark. Raises `UsageError` if no card has this name or it states no questions."""
    card = catalogue.load(benchmark)
    if not card.questions:
        raise UsageError(
            f"the card {visible(benchmark, 80)} does not state its number of questions; "
            "give a scored run of it instead of its name"
        )
    rows = _published()
    own = [(accuracy, variance) for name, accuracy, variance in rows if name == card.name]
    if len(own) >= MIN_PUBLISHED:
        accuracy, variances = np.median([row[0] for row in own]), [row[1] for row in own]
        return _spread(card.questions, float(accuracy), variances, of_all=False)
    # Accuracies differ between benchmarks, so the variance is taken as a share of the largest possible, a · (1 − a).
    shares = [variance / (accuracy * (1 - accuracy)) for _, accuracy, variance in rows]
    return _spread(card.questions, 0.5, [share / 4 for share in shares], of_all=True)


def _spread(n_questions: int, accuracy: float, variances: Sequence[float], *, of_all: bool) -> TypicalSpread:
    """The spread with the median and the upper quartile of these variances, one for each published score."""
    middle, upper = np.quantile(variances, [0.5, 0.75])
    return TypicalSpread(
        n_questions=n_questions, variance=float(middle), wide=float(upper), accuracy=accuracy,
        n_published=len(variances), of_all=of_all,
    )  # fmt: skip


@cache
def _published() -> list[tuple[str, float, float]]:
    """(benchmark, accuracy, variance of one sample) of each published score with a deviation over repeated runs."""
    return [
        (score.benchmark, score.value, score.run_deviation**2 * score.n_questions)
        for score in load_published()
        if score.metric == "pass@1" and score.run_deviation and score.n_questions and 0 < score.value < 1
    ]
