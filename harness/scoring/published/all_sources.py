"""A run beside all sources of one model's accuracy on one benchmark: how far they lie apart, and whether it fits in.

Sources differ by more than chance: prompts, budgets, graders and engines differ, and few state them. The accuracy of
one more source is predicted from the others, on the scale y = arcsin √accuracy, where the spread hardly depends on the
accuracy:

    mean ± t · √(s² · (1 + 1/k) + e²)

k: number of sources, each the mean of its rows. s²: variance between sources, of which `PRIOR_SPREAD`² is expected and
counts like `PRIOR_FREEDOM` sources (Smyth 2004, "Linear models and empirical Bayes methods": a moderated variance). t:
95 % factor of Student's t with `PRIOR_FREEDOM` + k − 1 degrees of freedom. e: standard error of the run's own accuracy,
for the same questions asked again, on that scale.

A row that its source quotes from somebody else is no source. Rows of one source are one source.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from harness.scoring.intervals import t_factor
from harness.scoring.published.value import PublishedScore

PRIOR_SPREAD = 0.040
"""Standard deviation between sources on the scale arcsin √accuracy: 4 points at 50 %, 2.4 at 90 %. `python -m
bench.published_spread` fits 0.037 to the shipped scores (123 groups); this value is a little larger, to be cautious.
"""

PRIOR_FREEDOM = 4
"""The expected spread weighs like this many sources, so from about five sources on the spread between them counts more.
The fit would allow more weight; less keeps the error rate where sources lie further apart than the shipped ones.
"""

PublicVerdict = Literal["as others report", "unlike what others report"]


@dataclass(frozen=True, kw_only=True)
class PublicAgreement:
    """What all sources say of a model and benchmark. Accuracies are fractions.

    sources: number of sources. lowest, highest: of the sources' mean accuracies. low, high: the range in which the
    accuracy of a run like ours lies in 95 % of cases, if the run measures the same as the sources. ours: the run's
    accuracy.
    """

    sources: int
    lowest: float
    highest: float
    low: float
    high: float
    ours: float
    verdict: PublicVerdict


def beside_all(ours: float, error: float | None, scores: Iterable[PublishedScore]) -> PublicAgreement | None:
    """The run's accuracy `ours` beside the pass@1 of all sources among `scores`; None where there is no source.

    error: standard error of `ours` for the same questions, asked again; None: unknown, taken as 0.
    """
    rows: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        if score.metric == "pass@1" and not score.quoted:
            rows[score.source.title].append(score.value)
    means = [statistics.fmean(values) for values in rows.values()]
    if not means:
        return None
    low, high = prediction_interval(means, _scaled_error(ours, error or 0.0))
    inside = low <= ours <= high
    return PublicAgreement(
        sources=len(means),
        lowest=min(means),
        highest=max(means),
        low=low,
        high=high,
        ours=ours,
        verdict="as others report" if inside else "unlike what others report",
    )


def prediction_interval(means: list[float], error: float = 0.0) -> tuple[float, float]:
    """The 95 % interval of the accuracy of one more source, the run. means: accuracies of the sources, at least one.

    error: the run's own standard error, on the scale arcsin √accuracy.
    """
    scaled = [math.asin(math.sqrt(mean)) for mean in means]
    freedom = PRIOR_FREEDOM + len(scaled) - 1
    own = statistics.variance(scaled) * (len(scaled) - 1) if len(scaled) > 1 else 0.0
    variance = (PRIOR_FREEDOM * PRIOR_SPREAD**2 + own) / freedom
    reach = t_factor(freedom) * math.sqrt(variance * (1 + 1 / len(scaled)) + error**2)
    middle = statistics.fmean(scaled)
    low, high = max(middle - reach, 0.0), min(middle + reach, math.pi / 2)
    return math.sin(low) ** 2, math.sin(high) ** 2


def _scaled_error(accuracy: float, error: float) -> float:
    """The standard error on the scale arcsin √accuracy; 0 for an error of 0 at an accuracy of 0 or 1.

    Near 0 and 1, where the slope of the scale has no bound, the slope is taken one error away from the end.
    """
    middle = min(max(accuracy, error), 1 - error)
    return error / (2 * math.sqrt(middle * (1 - middle))) if 0 < middle < 1 else 0.0
