"""What the last steps of a training, or of another series of models, show: whether it still rises, and which is best.

    … step step step │ step step step      between: the last `N_LATE` steps together, minus the `N_LATE` before together
          before           last            within: the last step, minus the first of the last `N_LATE`

`between` is the sure eye and the slow one: a training that rises and then levels off within these steps lies above 0
too. `within` sees only large rises, and answers for the last `N_LATE` steps alone.

The samples of a group of steps count as samples of one run. The spread of a question's pooled samples includes the
spread between the steps, so the intervals are a little too wide, never too narrow. They say what these checkpoints do
if they are asked again, and not how far a training that is run again would scatter. The tables `late-steps` and
`late-levels` of `bench/simulate.py` have the coverage, and what is said of trainings that level off.

`rivals` is a subset selection (Gupta 1965, Technometrics 7:225; multiple comparisons with the best: Hsu 1981, Annals
of Statistics 9:1026). The best of k models is left out only if the highest beats it in a test at the one-sided level
5 %/(k − 1). One of the k − 1 others does so by chance in at most 5 % of cases, whichever of them is the highest. The
table `best-step` of `bench/simulate.py` has the rate.

Over several benchmarks, a model has the tallies of each of them, and its accuracy is their mean
(`harness.scoring.mean_difference`). With samples missing, a mean is not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from harness.core.errors import UsageError
from harness.scoring.comparison import PairedComparison, compare_runs
from harness.scoring.mean_difference import MeanComparison, mean_comparison
from harness.scoring.tally import QuestionTally

N_LATE = 3
"""Number of steps in each group: enough that the scatter of a single checkpoint decides little."""

MISSED_BEST = 0.05
"""The best model is missing from `rivals` in at most this fraction of cases."""


class LateChange(NamedTuple):
    """How a series changed over its last `2 * N_LATE` steps (`between`) and over its last `N_LATE` (`within`)."""

    between: PairedComparison | MeanComparison
    within: PairedComparison | MeanComparison


def late_change(benchmarks: Sequence[Sequence[Sequence[QuestionTally]]]) -> LateChange | None:
    """The change over the last steps; None if there are fewer than `2 * N_LATE`.

    benchmarks: of each benchmark, `tally(…).questions` of each step, in the order of the training. The change of
    several benchmarks is that of their mean, and None if samples are missing. Raises `UsageError` if the steps share no
    question.
    """
    if not benchmarks or len(benchmarks[0]) < 2 * N_LATE:
        return None
    between, within = [], []
    for steps in benchmarks:
        last = steps[-N_LATE:]
        between.append(compare_runs(_pool(last), _pool(steps[-2 * N_LATE : -N_LATE])))
        within.append(compare_runs(last[-1], last[0]))
    changes = _over_benchmarks(between), _over_benchmarks(within)
    return None if changes[0] is None or changes[1] is None else LateChange(changes[0], changes[1])


def _over_benchmarks(pairs: Sequence[PairedComparison]) -> PairedComparison | MeanComparison | None:
    """The only one of these comparisons, or the comparison of the means; None if it misses samples."""
    return pairs[0] if len(pairs) == 1 else mean_comparison(pairs)


def highest_p(n_models: int) -> float:
    """The two-sided p, not corrected, below which a model is lower than the highest of `n_models` beyond chance."""
    return 2 * MISSED_BEST / (n_models - 1)


def rivals(models: Sequence[Sequence[Sequence[QuestionTally]]]) -> list[int]:
    """The positions of the models that cannot be told from the one with the highest accuracy, which is the first of
    them. The model that is truly best is among them in 95 % of cases.

    models: of each of at least two models, `tally(…).questions` of each benchmark, with all samples (those of a run
    that was cut short are no fair draw); the accuracy on several benchmarks is the mean. A model that shares no
    question with the highest is among them, too.
    """
    accuracies = [fmean(map(_accuracy, model)) for model in models]
    highest = max(range(len(models)), key=accuracies.__getitem__)
    level = highest_p(len(models))
    untold = [i for i, model in enumerate(models) if i != highest and not _is_lower(model, models[highest], level)]
    return [highest, *untold]


def _accuracy(questions: Sequence[QuestionTally]) -> float:
    """The mean over the questions that have a sample."""
    shares = [item.correct / item.n for item in questions if item.n]
    return sum(shares) / len(shares)


def _is_lower(
    model: Sequence[Sequence[QuestionTally]], highest: Sequence[Sequence[QuestionTally]], level: float
) -> bool:
    """Whether the model is worse than the highest, with a two-sided p below `level`. Both: by benchmark."""
    try:
        pairs = [compare_runs(ours, theirs) for ours, theirs in zip(model, highest, strict=True)]
    except UsageError:  # They share no question.
        return False
    compared = _over_benchmarks(pairs)
    return compared is not None and compared.difference < 0 and compared.p_sampling < level


def _pool(steps: Sequence[Sequence[QuestionTally]]) -> list[QuestionTally]:
    """The samples of several steps as those of one run, for the questions that all steps have."""
    by_question: dict[tuple[str, str], list[QuestionTally]] = {}
    for step in steps:
        for item in step:
            by_question.setdefault((item.question.question_id, item.question.row_digest), []).append(item)
    return [
        QuestionTally(
            items[0].question,
            [grade for item in items for grade in item.grades],
            sum(item.planned for item in items),
            None
            if all(item.independent is None for item in items)
            else sum(item.n if item.independent is None else item.independent for item in items),
        )
        for items in by_question.values()
        if len(items) == len(steps)
    ]
