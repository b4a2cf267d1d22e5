"""Paired comparison of two runs on the same questions, and equally weighted means over several benchmarks.

The formulas are in `difference_stats`. A question is paired if both runs have it with the same id and row digest. Each
pair contributes p_q of the first run minus p_q of the second; the difference is the mean over the questions.

Missing samples count as neither right nor wrong. The comparison is made for the two extremes: every missing sample
right in one run and wrong in the other, and the reverse. The interval is the union of the two intervals, the p-value is
the larger one, and a verdict is given only if both extremes agree.

Means are taken over one model's scores or over the differences between two runs. Samples of different benchmarks are
independent, so their variances add. The sampling interval of a mean is for asking the same questions again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import msgspec
import numpy as np

from harness.core.errors import UsageError
from harness.deciding.difference_stats import (
    MOST_RATIO,
    DifferenceVariance,
    difference_variance,
    mean_difference_limits,
    question_difference,
    ratio_limits,
    scaled_difference,
    score_variance,
    smallest_difference,
    variance_of_mean,
)
from harness.scoring.call_measures import TriggerAgreement, trigger_agreement
from harness.scoring.score import Score
from harness.scoring.stats import Array, Estimate, Interval, IntervalEnds, mean_limits, normal_two_sided, t_two_sided
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import Scale, cluster_numbers, shows_no_spread, squares_of


def most_possible(accuracy: float) -> float:
    """The largest possible difference between any accuracy and this one, as a fraction."""
    return max(accuracy, 1 - accuracy)


def if_possible(difference: float, accuracy: float) -> float | None:
    """The `smallest_difference`; None if no accuracy can differ that much from `accuracy`, the baseline's."""
    # With few samples, the formula can exceed the room above and below the baseline. It is capped at 1.
    return difference if difference <= most_possible(accuracy) and difference < 1 else None


class PairedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between two runs (first minus second) over the questions that they share."""

    benchmark: str
    """Name of the benchmark."""
    n_questions: int
    """Number of questions in both runs."""
    n_missing: int
    """Number of planned samples missing from either run. Intervals and p-values account for every possible verdict on
    these samples.
    """
    first_accuracy: float
    """Accuracy of the first run, as a fraction."""
    second_accuracy: float
    """Accuracy of the second run, as a fraction."""
    difference: Estimate
    """Difference in the fraction correct, averaged over questions. Its interval is an upper bound (`at_most`) if either
    run has only one sample per question or has duplicate samples.
    """
    p_sampling: float
    """p-value of the difference on these questions; it accounts only for sampling variation in the two runs."""
    p_question: float | None
    """p-value for new questions of the same kind; None if there is only one question or cluster."""
    sampling_error: float
    """Standard error of the difference, assuming that both runs are equally good."""
    detectable: float | None
    """Minimum detectable difference (80% power, same questions, one test), as a fraction; None if no possible
    difference is detectable.
    """
    detection_variance: float
    """Variance of the difference, assuming that both runs are equally good. The `smallest` function uses it to compute
    `detectable`.
    """
    detection_growth: float
    """Increase in this variance per unit of true difference, used in the same computation."""
    missing_shift: float
    """Largest possible effect of missing samples on the difference, as a fraction; included in `detectable`."""
    better: int
    """Number of questions on which the first run is better."""
    worse: int
    """Number of questions on which the first run is worse."""
    recovery: Estimate | None = None
    """The first run's accuracy as a fraction of the second run's, with both intervals; None if the second run's
    accuracy could be 0, or if some samples have negative points.
    """
    trigger: TriggerAgreement | msgspec.UnsetType = msgspec.UNSET
    """How often the two runs agree on whether to call functions; absent if no question asks for calls."""

    def smallest(self, n_tests: int = 1) -> float | None:
        """The minimum detectable difference (80% power); None if it is larger than the second run's accuracy allows.

        n_tests: number of p-values that are corrected together. The result includes `missing_shift`, the most by which
        missing samples can change the difference.
        """
        alone = float(smallest_difference(np.asarray(self.detection_variance), self.detection_growth, n_tests))
        return if_possible(alone + self.missing_shift, self.second_accuracy)


def _common_questions(
    first: Iterable[QuestionTally], second: Iterable[QuestionTally]
) -> Iterator[tuple[QuestionTally, QuestionTally]]:
    """The questions that both runs include, in the order of the first run.

    Two versions of a benchmark file may use the same id for different rows, so the row digests must match too.
    """
    others = {item.question.question_id: item for item in second}
    for item in first:
        twin = others.get(item.question.question_id)
        if twin is not None and item.question.row_digest == twin.question.row_digest:
            yield item, twin


def pairs(first: Sequence[QuestionTally], second: Sequence[QuestionTally]) -> list[tuple[QuestionTally, QuestionTally]]:
    """The questions for which both runs have samples, in the order of the first run."""
    return [(item, twin) for item, twin in _common_questions(first, second) if item.n and twin.n]


def compare_runs(first: Sequence[QuestionTally], second: Sequence[QuestionTally]) -> PairedComparison:
    """The paired comparison of two runs of one benchmark. first, second: `tally(…).questions` of each.

    Pairing removes the variation in question difficulty from the error. Raises `UsageError` if the runs share no
    question.
    """
    by_id = sorted(first, key=lambda item: item.question.question_id)
    shared = [(item, twin) for item, twin in _common_questions(by_id, second) if item.planned and twin.planned]
    seen = [(a, b) for a, b in shared if a.n and b.n]
    if not seen:
        raise UsageError("the two runs have no sampled questions in common; compare runs of the same benchmark")
    scale = Scale.of([item for pair in shared for item in pair])
    ours, theirs = (counted_samples([pair[which] for pair in shared], scale) for which in (0, 1))
    clusters = cluster_numbers([a for a, _ in shared])
    # The difference is extreme when all missing samples are right in one run and wrong in the other.
    extremes = [
        _extreme(ours.fill_missing(right), theirs.fill_missing(not right), clusters).times(scale.size)
        for right in (False, True)
    ]
    questions = [extreme.question for extreme in extremes if extreme.question is not None]
    p_questions = [extreme.p_question for extreme in extremes if extreme.p_question is not None]
    # If the extremes differ in sign, the missing samples alone decide which run is better, so every p-value is 1.
    low, high = (extreme.difference for extreme in extremes)
    least_p = 0.0 if low * high > 0 or low == high else 1.0
    rates = [(a.right / a.n, b.right / b.n) for a, b in seen]
    difference = math.fsum(a - b for a, b in rates) / len(rates)
    # The variance at the extreme with less power: a difference detectable there is detectable at the other, too.
    variance_of_both = max((extreme.difference_variance for extreme in extremes), key=DifferenceVariance.smallest)
    shows_none = shows_no_spread([a for a, _ in seen]) or shows_no_spread([b for _, b in seen])
    compared = PairedComparison(
        benchmark=shared[0][0].question.benchmark,
        n_questions=len(seen),
        n_missing=sum(item.planned - item.n for pair in shared for item in pair),
        first_accuracy=math.fsum(a for a, _ in rates) / len(rates),
        second_accuracy=math.fsum(b for _, b in rates) / len(rates),
        difference=Estimate(
            value=difference,
            sampling=_union([extreme.sampling for extreme in extremes]),
            question=_union(questions) if questions else None,
            at_most=shows_none,
        ),
        p_sampling=max(*(extreme.p_sampling for extreme in extremes), least_p),
        p_question=max(*p_questions, least_p) if p_questions else None,
        sampling_error=max(extreme.sampling_error for extreme in extremes),
        detectable=None,  # `smallest` computes it below, from this record
        detection_variance=float(variance_of_both.variance),
        detection_growth=float(variance_of_both.growth),
        missing_shift=max(abs(extreme.difference - difference) for extreme in extremes),
        better=sum(a > b for a, b in rates),
        worse=sum(a < b for a, b in rates),
        recovery=None if scale.lowest else _recovery(rates, extremes, shows_none),
        trigger=trigger_agreement(seen) or msgspec.UNSET,
    )
    return msgspec.structs.replace(compared, detectable=compared.smallest())


def _recovery(rates: Sequence[tuple[float, float]], extremes: Sequence[_Extreme], at_most: bool) -> Estimate | None:
    """The ratio of the accuracies with its intervals; None if the second accuracy is, or may be, 0."""
    of_first, of_second = (math.fsum(column) for column in zip(*rates, strict=True))
    ratios = [extreme.ratio for extreme in extremes]
    sampling, questions = _union([same for same, _ in ratios]), [new for _, new in ratios if new is not None]
    question = _union([sampling, *questions]) if questions else None
    if not of_second or (question or sampling).high >= MOST_RATIO:
        return None
    return Estimate(value=of_first / of_second, sampling=sampling, question=question, at_most=at_most)


class Samples(NamedTuple):
    """Number of samples graded correct and of all samples, per question. If samples earn points, the sums of their
    shares and of the squares of these shares.
    """

    correct: Array
    counts: Array
    squares: Array | None


class CountedSamples(NamedTuple):
    """Number of samples graded correct, planned and missing, per question. squares: as in `Samples`."""

    correct: Array
    planned: Array
    missing: Array
    squares: Array | None

    def fill_missing(self, right: bool) -> Samples:
        """The samples of each question if every missing sample were right (`right`), or every one wrong."""
        return self._with(self.missing * right)

    def most_uncertain(self) -> Samples:
        """The samples of each question if its missing samples brought its accuracy as close to one half as possible."""
        return self._with(np.clip(self.planned / 2 - self.correct, 0, self.missing))

    def _with(self, right: Array) -> Samples:
        """The samples if `right` of the missing ones were right and the others wrong."""
        return Samples(self.correct + right, self.planned, None if self.squares is None else self.squares + right)


class _Extreme(NamedTuple):
    """A difference with its errors, intervals and p-values, if all missing samples favor one of the runs.

    The fields have the same meaning as in `PairedComparison`. sampling_error, sampling, p_sampling: for asking the same
    questions again. question, p_question: for other questions of this kind. ratio: the intervals of the ratio of the
    accuracies.
    """

    difference: float
    sampling_error: float
    sampling: Interval
    p_sampling: float
    question: Interval | None
    p_question: float | None
    difference_variance: DifferenceVariance
    ratio: tuple[Interval, Interval | None]

    def times(self, size: float) -> _Extreme:
        """The same difference on a scale of `size` (`Scale.size`)."""
        if size == 1.0:
            return self
        variance, growth = self.difference_variance
        return self._replace(
            difference=size * self.difference,
            sampling_error=size * self.sampling_error,
            sampling=_times(self.sampling, size),
            question=self.question and _times(self.question, size),
            difference_variance=DifferenceVariance(size**2 * variance, size * growth),
        )


def _times(interval: Interval, factor: float) -> Interval:
    return Interval(factor * interval.low, factor * interval.high)


def counted_samples(items: Sequence[QuestionTally], scale: Scale | None = None) -> CountedSamples:
    """The samples of the questions as columns. If samples earn points, the sums of their shares, mapped to 0 … 1 by the
    scale.

    If some of a question's samples are copies, all its counts are multiplied by the fraction of its present samples
    that is independent. Its fractions correct and missing stay the same, but it counts as fewer samples.
    """
    columns = np.array([(float(item.right), float(item.planned), float(item.planned - item.n)) for item in items])
    scale, right, n = scale or Scale.of(items), columns[:, 0], np.array([float(item.n) for item in items])
    squares = scale.squares(squares_of(items, (item.squares for item in items)), right, n)
    columns[:, 0] = scale.sums(right, n)
    # The counts of a question without samples (n = 0) stay unchanged.
    fractions = np.array([item.independent / item.n if item.n else 1.0 for item in items])
    correct, planned, missing = columns.T * fractions
    return CountedSamples(correct, planned, missing, None if squares is None else squares * fractions)


def _extreme(ours: Samples, theirs: Samples, clusters: np.ndarray[Any, Any]) -> _Extreme:
    """The difference with its errors, for the same questions and for other questions of this kind.

    clusters: the number of each question's cluster.
    """
    differences = ours.correct / ours.counts - theirs.correct / theirs.counts
    difference = float(differences.mean())
    pooled = None if ours.squares is None or theirs.squares is None else ours.squares + theirs.squares
    error = math.sqrt(float(score_variance(*ours[:2], *theirs[:2], pooled)))
    same = scaled_difference(*ours[:2], *theirs[:2], ours.squares, theirs.squares)
    n_clusters = int(clusters.max()) + 1
    question, p_question, new_ratio = None, None, None
    if n_clusters > 1:
        of_questions = question_difference(differences, clusters)
        question = of_questions.limits.interval()
        p_question = t_two_sided(difference / math.sqrt(float(of_questions.variance)), of_questions.freedom)

        def new(ratio: Array) -> IntervalEnds:
            gaps = ours.correct / ours.counts - ratio * theirs.correct / theirs.counts
            return question_difference(gaps, clusters).limits

        new_ratio = ratio_limits(new).interval()
    return _Extreme(
        difference=difference,
        sampling_error=error,
        sampling=same(1.0).interval(),
        # An error of 0 means that each question is all right in both runs or all wrong in both: they do not differ.
        p_sampling=normal_two_sided(difference / error) if error else 1.0,
        question=question,
        p_question=p_question,
        difference_variance=difference_variance(*ours[:2], *theirs[:2], pooled),
        ratio=(ratio_limits(same).interval(), new_ratio),
    )


def _union(intervals: Sequence[Interval]) -> Interval:
    """The smallest interval that contains all of these."""
    return Interval(min(interval.low for interval in intervals), max(interval.high for interval in intervals))


# ---- means over several benchmarks


class MeanComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between two runs (first minus second), as a mean over their shared benchmarks."""

    benchmarks: tuple[str, ...]
    """Benchmark names."""
    first_accuracy: float
    """Accuracy of the first run, as a fraction."""
    second_accuracy: float
    """Accuracy of the second run, as a fraction."""
    difference: Estimate
    """Difference in accuracy, as a fraction; it has no interval for new questions of the same kind."""
    p_sampling: float
    """p-value of the difference on these questions; it accounts only for sampling variation in the two runs."""
    detection_variance: float
    """Variance of the difference, assuming that both runs are equally good. The `smallest` function uses it to compute
    the minimum detectable difference.
    """
    detection_growth: float
    """Increase in this variance per unit of true difference, used in the same computation."""

    def smallest(self, n_tests: int = 1) -> float | None:
        """The minimum detectable difference of the means (80% power), if every benchmark differs by it; None if it is
        larger than the second run's mean allows.

        n_tests: number of p-values that are corrected together.
        """
        alone = float(smallest_difference(np.asarray(self.detection_variance), self.detection_growth, n_tests))
        return if_possible(alone, self.second_accuracy)


def mean_comparison(pairs: Sequence[PairedComparison]) -> MeanComparison | None:
    """The mean of two runs' comparisons on different benchmarks; None if any comparison has missing samples."""
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
    """The mean of the scores, one per benchmark; None if there are no scores or if one has no accuracy.

    Errors of different benchmarks are independent. An interval is None if it is unknown for one benchmark, or if
    samples are missing, since their verdicts are unknown. The sampling interval is an upper bound (`at_most`) if that
    of any benchmark is.
    """
    accuracies = [score.accuracy for score in scores if score is not None and score.accuracy is not None]
    if not accuracies or len(accuracies) < len(scores):
        return None
    # The interval of a benchmark's score does not account for the samples that its run is missing.
    whole = not any(score is not None and score.n_missing for score in scores)
    values = [estimate.value for estimate in accuracies]
    return Estimate(
        value=fmean(values),
        sampling=_interval(values, [estimate.sampling for estimate in accuracies]) if whole else None,
        question=_interval(values, [estimate.question for estimate in accuracies]) if whole else None,
        at_most=any(estimate.at_most for estimate in accuracies),
    )


def _interval(values: Sequence[float], intervals: Sequence[Interval | None]) -> Interval | None:
    """The 95% interval of the mean of independent `values`; None if the interval of any value is unknown."""
    stated = [interval for interval in intervals if interval is not None]
    if len(stated) < len(values):
        return None
    low, high = np.array(stated).T
    return mean_limits(np.array(values), IntervalEnds(low, high)).interval()
