"""The mean over several benchmarks of the difference of two runs; each benchmark has the same weight.

Samples of different benchmarks are independent, so variances add. The line is about the same questions, asked again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from harness.scoring.comparison import PairedComparison, if_possible
from harness.scoring.stats import Estimate, IntervalEnds, normal_two_sided
from harness.scoring.stats_differences import (
    DifferenceVariance,
    mean_difference_limits,
    smallest_difference,
    variance_of_mean,
)


class MeanComparison(msgspec.Struct, frozen=True, kw_only=True):
    """First run minus second run, mean over the benchmarks that both have. Fractions.

    p_sampling: same questions, asked again of both; no interval is for other questions. detection_variance,
    detection_growth: the numbers from which `smallest` computes the smallest difference.
    """

    benchmarks: tuple[str, ...]
    first_accuracy: float
    second_accuracy: float
    difference: Estimate
    p_sampling: float
    detection_variance: float
    detection_growth: float

    def smallest(self, n_tests: int = 1) -> float | None:
        """The smallest true difference of the means that these samples find in 80 % of repetitions, if every benchmark
        differs by it; None if they find none that the second run's mean allows.

        n_tests: number of p values that are corrected together.
        """
        alone = float(smallest_difference(np.asarray(self.detection_variance), self.detection_growth, n_tests))
        return if_possible(alone, self.second_accuracy)


def mean_comparison(pairs: Sequence[PairedComparison]) -> MeanComparison | None:
    """The mean of the comparisons of two runs on different benchmarks; None if samples of any are missing."""
    if not pairs or any(pair.n_missing for pair in pairs):
        return None
    n = len(pairs)
    values = [pair.difference.value for pair in pairs]
    difference = math.fsum(values) / n
    error = math.hypot(*(pair.sampling_error for pair in pairs)) / n
    low, high = np.array([pair.difference.sampling for pair in pairs]).T
    limits = mean_difference_limits(np.array(values), IntervalEnds(low, high))
    variance, growth = variance_of_mean(
        [DifferenceVariance(np.asarray(pair.detection_variance), np.asarray(pair.detection_growth)) for pair in pairs]
    )
    return MeanComparison(
        benchmarks=tuple(pair.benchmark for pair in pairs),
        first_accuracy=math.fsum(pair.first_accuracy for pair in pairs) / n,
        second_accuracy=math.fsum(pair.second_accuracy for pair in pairs) / n,
        difference=Estimate(
            value=difference, sampling=limits.interval(), at_most=any(pair.difference.at_most for pair in pairs)
        ),
        p_sampling=normal_two_sided(difference / error) if error else 1.0,
        detection_variance=float(variance),
        detection_growth=float(growth),
    )
