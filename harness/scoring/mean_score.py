"""The mean accuracy of one model over several benchmarks; each benchmark has the same weight."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from harness.scoring.score import Score
from harness.scoring.stats import Interval, IntervalEnds, mean_limits


class MeanScore(NamedTuple):
    """A mean accuracy with its 95 % intervals: for the same questions asked again, and for other questions.

    Errors of different benchmarks are independent. at_most: only an upper bound of the sampling error is scored for at
    least one benchmark. An interval is None if it is unknown for one benchmark, or if samples are missing, since these
    may have any result. whole: no sample of any benchmark is missing.
    """

    accuracy: float
    sampling_interval: Interval | None
    at_most: bool
    question_interval: Interval | None
    whole: bool


def mean_score(scores: Sequence[Score | None]) -> MeanScore | None:
    """The mean of the scores, one of each benchmark; None if one has no accuracy, and without any."""
    scored = [score for score in scores if score is not None and score.accuracy is not None]
    if not scored or len(scored) < len(scores):
        return None
    accuracies = [score.accuracy for score in scored if score.accuracy is not None]
    # The interval of a benchmark's score does not hold the results that its own run misses.
    whole = not any(score.n_missing for score in scored)
    return MeanScore(
        accuracy=fmean(accuracies),
        sampling_interval=_interval(accuracies, [score.sampling_interval for score in scored]) if whole else None,
        at_most=any(score.sampling_error is None for score in scored),
        question_interval=_interval(accuracies, [score.question_interval for score in scored]) if whole else None,
        whole=whole,
    )


def _interval(values: Sequence[float], intervals: Sequence[Interval | None]) -> Interval | None:
    """The 95 % interval of the mean of independent `values`; None if the interval of any value is unknown."""
    stated = [interval for interval in intervals if interval is not None]
    if len(stated) < len(values):
        return None
    low, high = np.array(stated).T
    return mean_limits(np.array(values), IntervalEnds(low, high)).interval()
