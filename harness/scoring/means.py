"""Means over several benchmarks, each with the same weight: of one model, and of the difference of two runs.

Samples of different benchmarks are independent, so variances add. The line is about the same questions, asked again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import msgspec
import numpy as np

from harness.scoring.comparison import PairedComparison, if_possible
from harness.scoring.score import Score
from harness.scoring.stats import Estimate, Interval, IntervalEnds, mean_limits, normal_two_sided
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


def mean_score(scores: Sequence[Score | None]) -> Estimate | None:
    """The mean of the scores, one of each benchmark; None if one has no accuracy, and without any.

    Errors of different benchmarks are independent. An interval is None if it is unknown for one benchmark, or if
    samples are missing, since these may have any result. The sampling interval is the widest that it can be (`at_most`)
    if that of one benchmark is.
    """
    accuracies = [score.accuracy for score in scores if score is not None and score.accuracy is not None]
    if not accuracies or len(accuracies) < len(scores):
        return None
    # The interval of a benchmark's score does not hold the results that its own run misses.
    whole = not any(score is not None and score.n_missing for score in scores)
    values = [estimate.value for estimate in accuracies]
    return Estimate(
        value=fmean(values),
        sampling=_interval(values, [estimate.sampling for estimate in accuracies]) if whole else None,
        question=_interval(values, [estimate.question for estimate in accuracies]) if whole else None,
        at_most=any(estimate.at_most for estimate in accuracies),
    )


def _interval(values: Sequence[float], intervals: Sequence[Interval | None]) -> Interval | None:
    """The 95 % interval of the mean of independent `values`; None if the interval of any value is unknown."""
    stated = [interval for interval in intervals if interval is not None]
    if len(stated) < len(values):
        return None
    low, high = np.array(stated).T
    return mean_limits(np.array(values), IntervalEnds(low, high)).interval()
