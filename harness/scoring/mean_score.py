"""The mean accuracy of one model over several benchmarks; each benchmark has the same weight."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from harness.scoring.score import Score
from harness.scoring.stats import Estimate, Interval, IntervalEnds, mean_limits


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
