"""Estimates the spread of a benchmark's samples from published runs, for a plan before any run of one's own.

Some sources publish the standard deviation s of a run's accuracy over repeated runs. One run asks each of Q questions
once, so Q · s² is the variance of one sample around its question's chance of being right, mean over the questions. A
plan needs this variance. A few repeats estimate it badly, and models differ, so the median over all published models is
taken as typical, and the upper quartile is given as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from harness.benchmarks import catalogue, questions
from harness.benchmarks.sources import chooser
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.scoring.published import load_published
from harness.scoring.stats_differences import SampleSpread, least_variance

MIN_PUBLISHED = 10
"""Smallest number of published deviations of a benchmark that give its own spread; with fewer, the spread is that of
all benchmarks.
"""


@dataclass(frozen=True, kw_only=True)
class TypicalSpread:
    """The spread of one sample around its question's chance of being right, as published runs show it.

    variance, wide: median and upper quartile of that variance over published models. accuracy: the fraction that these
    belong to: the given one; else the median of the models on this benchmark; else 0.5, where the spread is largest.
    n_published: number of published scores, one for each model and benchmark; of_all: whether they are those of all
    benchmarks, because this one has too few.
    in_clusters: whether the benchmark's questions come in clusters, whose number only a run shows.
    """

    n_questions: int
    variance: float
    wide: float
    accuracy: float
    n_published: int
    of_all: bool
    in_clusters: bool = False

    def spread(self, variance: float) -> SampleSpread:
        """The spread with `variance` or `wide`, and at least the variance that so many questions must have."""
        return SampleSpread(
            self.n_questions, self.accuracy, max(variance, least_variance(self.accuracy, self.n_questions))
        )


def typical_spread(benchmark: str, accuracy: float | None = None) -> TypicalSpread:
    """The typical spread of a benchmark for a model of this accuracy, a fraction; None: of the typical accuracy.

    benchmark: a card's name, or the path of its file. Raises `UsageError` if there is no such card, or if it states no
    number of questions and its questions are no file of this machine.
    """
    card = catalogue.load(benchmark)
    # Only a file of this machine is read for its number of questions.
    n_questions = card.questions or (questions.build(card).n_all if chooser.fingerprint(card) is not None else None)
    if not n_questions:
        raise UsageError(
            f"the card {visible(benchmark, 80)} does not state its number of questions: write `questions: N` into the "
            "card, or give a scored run of it instead of its name"
        )
    typical = _typical(card.name, n_questions, accuracy)
    return replace(typical, in_clusters=bool(card.cluster_key or card.original_key))


def typical_spread_of_questions(n_questions: int, accuracy: float | None = None) -> TypicalSpread:
    """The typical spread of so many questions that belong to no benchmark. accuracy: as for `typical_spread`."""
    return _typical("", n_questions, accuracy)


def _typical(benchmark: str, n_questions: int, accuracy: float | None) -> TypicalSpread:
    """The typical spread of a benchmark for a model of this accuracy, a fraction; None: of the typical accuracy."""
    rows = _published_scores()
    own = [(accuracy, variance) for name, accuracy, variance in rows if name == benchmark]
    enough = len(own) >= MIN_PUBLISHED
    if enough and accuracy is None:
        return _spread(n_questions, float(np.median([row[0] for row in own])), [row[1] for row in own], of_all=False)
    # At another accuracy than its own, a model's variance is taken as a share of the largest possible, a · (1 − a).
    taken = 0.5 if accuracy is None else accuracy
    shares = [row[-1] / (row[-2] * (1 - row[-2])) for row in (own if enough else rows)]
    return _spread(n_questions, taken, [share * taken * (1 - taken) for share in shares], of_all=not enough)


def _spread(n_questions: int, accuracy: float, variances: Sequence[float], *, of_all: bool) -> TypicalSpread:
    """The spread with the median and the upper quartile of these variances, one for each published score."""
    middle, upper = np.quantile(variances, [0.5, 0.75])
    return TypicalSpread(
        n_questions=n_questions, variance=float(middle), wide=float(upper), accuracy=accuracy,
        n_published=len(variances), of_all=of_all,
    )  # fmt: skip


@cache
def _published_scores() -> list[tuple[str, float, float]]:
    """(benchmark, accuracy, variance of one sample) of each published score with a deviation over repeated runs."""
    return [
        (score.benchmark, score.value, score.run_deviation**2 * score.n_questions)
        for score in load_published()
        if score.metric == "pass@1" and score.run_deviation and score.n_questions and 0 < score.value < 1
    ]
