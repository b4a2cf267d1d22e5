"""Formulas for two runs: the error and interval of their difference, tests, what a number of samples can show, and when
a run has enough samples for the error specified by the option `target_error`.

Pure functions on arrays of fractions; the last axis runs over questions. A test uses the variance of two equally good
runs; an interval uses the variance of each run separately, so an interval may touch 0 when p is just below 5%. The
table in `stats` lists which interval is used for what.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.core.records import MAX_SAMPLES
from harness.scoring.stats import (
    QUESTION_TOSSES,
    SAMPLING_TOSSES,
    Z_95,
    Array,
    IntervalEnds,
    between,
    effective_samples,
    paired_limits,
    sampling_limits,
    sampling_limits_of,
    sampling_variance_of_mean,
    t_factor,
)

Z_POWER = 0.8416212335729143
"""80% quantile of the standard normal distribution; the power at which differences are planned."""

RANDOM_ROUNDING = 1 / 12
"""The variance that rounding to a last digit of unit 1 adds to a published value, as used in the test."""

FIXED_ROUNDING = 1 / 4
"""A smallest difference uses this in place of `RANDOM_ROUNDING`: a score from many samples is rounded nearly the same
way in each repetition, by up to half a digit, so rounding that hides the difference once hides it every time.
"""

MAX_PLANNED = MAX_SAMPLES
"""Largest number of samples per question, and of questions, that a plan tries: no run can have more samples."""

_LIMIT_SHARE = 0.75
"""The test limit as a fraction of the power factor: 1.96 of 2.80 for one test. The rest, `Z_POWER`, is how far the
observed difference may fall below the true difference.
"""


# ---- the difference of two runs


def score_variance(
    correct: Array, counts: Array, other_correct: Array, other_counts: Array, squares: Array | None = None
) -> Array:
    """Variance of the difference of two accuracies if both runs are equally good on every question.

    Which run the right samples of a question fall into is a draw without replacement (Mantel and Haenszel 1959; with
    one sample per run, McNemar's test). Arguments: (…, Q), samples graded correct and all samples of each run, every
    count ≥ 1. squares: if samples may be partly right, the sum of the squares of their shares in both runs.
    """
    total = counts + other_counts
    pooled = (correct + other_correct) / total
    # The variance of one sample of each question, from both runs together: p(1−p)·(n+m)/(n+m−1).
    spread = pooled * (1 - pooled) if squares is None else np.maximum(squares / total - pooled * pooled, 0.0)
    single = spread * total / (total - 1) * (1 / counts + 1 / other_counts)
    return np.asarray(single.sum(axis=-1) / single.shape[-1] ** 2)


def scaled_difference(
    correct: Array,
    counts: Array,
    other_correct: Array,
    other_counts: Array,
    squares: Array | None = None,
    other_squares: Array | None = None,
) -> Callable[[Array | float], IntervalEnds]:
    """The interval of our accuracy minus `times` the other accuracy, as a function of `times`, a number or (…).

    Newcombe's method 10 (1998, Statistics in Medicine 17:873): the distances to the ends add in quadrature. With one
    sample of every question in both runs, it is the interval of the pairs, `paired_limits`: the variation of the pairs
    bounds the variation of a rerun, and the difficulty of a question, which both runs share, cancels out.
    """
    if (counts == 1).all() and (other_counts == 1).all():

        def of_pairs(times: Array | float) -> IntervalEnds:
            # The discordant pairs of each kind; for shares, equivalent numbers with the same sums of differences and
            # squares.
            factor = np.expand_dims(np.asarray(times), -1)
            gaps = correct - factor * other_correct
            apart = correct + factor**2 * other_correct - 2 * factor * correct * other_correct
            apart = apart if squares is None else gaps**2
            # `paired_limits` takes pairs with differences of at most 1.
            largest = np.maximum(1.0, times)
            between_all, within_all = gaps.sum(axis=-1) / largest, apart.sum(axis=-1) / largest**2
            low, high = paired_limits((within_all + between_all) / 2, (within_all - between_all) / 2, counts.shape[-1])
            return IntervalEnds(largest * low, largest * high)

        return of_pairs
    ours, theirs = (correct / counts).mean(axis=-1), (other_correct / other_counts).mean(axis=-1)
    our = sampling_limits(correct, counts, squares=squares)
    their = sampling_limits(other_correct, other_counts, squares=other_squares)

    def of_means(times: Array | float) -> IntervalEnds:
        return IntervalEnds(
            ours - times * theirs - np.hypot(ours - our.low, times * (their.high - theirs)),
            ours - times * theirs + np.hypot(our.high - ours, times * (theirs - their.low)),
        )

    return of_means


class QuestionDifference(NamedTuple):
    """The mean difference for other questions of this kind: its variance, degrees of freedom and interval."""

    variance: Array
    freedom: int
    limits: IntervalEnds


def question_difference(differences: Array, clusters: NDArray[np.intp] | None = None) -> QuestionDifference:
    """The mean of `differences`, (…, Q), for newly drawn questions: mean ± t · √(jackknife + ½/G²).

    clusters: as in `between`. Without the added ½/G², a set of questions on which the runs happen to agree would prove
    that they always do. The test is Student's t-test with the returned degrees of freedom.
    """
    mean, variance, effective, freedom = between(differences, clusters)
    variance = variance + QUESTION_TOSSES / effective**2
    reach = t_factor(freedom) * np.sqrt(variance)
    return QuestionDifference(
        variance, freedom, IntervalEnds(np.maximum(mean - reach, -1.0), np.minimum(mean + reach, 1.0))
    )


MOST_RATIO = 100.0
"""Above this value, the ratio of two accuracies counts as unbounded."""


def ratio_limits(difference: Callable[[Array], IntervalEnds], shape: tuple[int, ...] = ()) -> IntervalEnds:
    """The interval of the ratio of our accuracy to another: all r for which ours − r · theirs may be 0.

    Fieller's method (1954, J. R. Stat. Soc. B 16:175) on the intervals of differences. difference: the interval of ours
    − r · theirs, for r of this shape. An end of `MOST_RATIO` means that theirs may be 0.
    """

    def crossing(end: int) -> Array:
        """The r at which this end of the interval falls to 0, by bisection."""
        few, many = np.zeros(shape), np.full(shape, MOST_RATIO)
        for _ in range(50):
            middle = (few + many) / 2
            above = difference(middle)[end] > 0
            few, many = np.where(above, middle, few), np.where(above, many, middle)
        return np.asarray(many)

    return IntervalEnds(crossing(0), crossing(1))


def mean_difference_limits(differences: Array, limits: IntervalEnds) -> IntervalEnds:
    """The interval of the mean of independent differences (for example, on several benchmarks) from their intervals.

    differences, limits: (…, number of differences). The distances to the lower ends add in quadrature, as do the
    distances to the upper ends. A single difference keeps its interval.
    """
    mean, n = differences.mean(axis=-1), differences.shape[-1]
    below, above = (np.sqrt(((end - differences) ** 2).sum(axis=-1)) / n for end in limits)
    return IntervalEnds(mean - below, mean + above)


def published_variance(
    ours: Array,
    variance: Array,
    total: Array,
    theirs: Array,
    their_total: Array,
    unit: float,
    single: Array | None = None,
) -> Array:
    """Variance of our accuracy minus a published accuracy, if both models are the same.

    ours: our accuracy over `total` samples. variance: variance of `ours` between runs on the same questions. theirs:
    the published value, from their_total samples. unit: unit of the last printed digit (0.001 for 41.7%); rounding to
    it adds unit² · RANDOM_ROUNDING. single: variance of one draw, mean over questions; only for pass@k and maj@k. The
    samples of both runs are pooled. A sample's variance is p(1 − p); a share of it remains for a given question, and
    this share is assumed to be the same in both runs. For pass@k and maj@k, one "sample" is a draw of k samples. Our
    estimate uses every possible draw, but theirs only their_total draws, so their part is computed from `single`.
    """

    def share(spread: Array, n: Array) -> Array:
        middle = (n * ours + 1) / (n + 2)
        return np.asarray(smoothed_variance(ours, spread, n) / (middle * (1 - middle)))

    pooled, own = (total * ours + their_total * theirs + 1) / (total + their_total + 2), share(variance, total)
    their = own if single is None else share(single / their_total, their_total)
    return np.asarray(pooled * (1 - pooled) * (own / total + their / their_total) + unit * unit * RANDOM_ROUNDING)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several tests, adjusted upward so that the chance of any false alarm below 5% is at most 5%.

    Holm (1979, Scandinavian Journal of Statistics 6:65): the i-th smallest of m values is multiplied by m − i + 1, and
    is at least the adjusted value before it.
    """
    adjusted, reached = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        adjusted[i] = reached = max(reached, min(1.0, p_values[i] * (len(p_values) - rank)))
    return adjusted


# ---- what so many samples can show


def power_factor(n_tests: int = 1) -> float:
    """The smallest true difference, in standard errors, that a test at the 5% level detects with 80% power.

    It is 2.80 for one test. n_tests: number of p-values that Holm's method corrects together. The factor is for
    Bonferroni's correction, Holm's worst case.
    """
    return NormalDist().inv_cdf(1 - 0.025 / n_tests) + Z_POWER


class SampleSpread(NamedTuple):
    """How the samples of a model vary on a benchmark, as used by a plan.

    mean: the accuracy. variance: variance of one sample around its question's chance of being right, mean over the
    questions. total: number of samples that both are estimated from; infinite if they are not estimated from samples.
    """

    n_questions: int
    mean: float
    variance: float
    total: float = math.inf


class DifferenceVariance(NamedTuple):
    """Variance of the difference of two accuracies if the true difference is d: variance + growth · d."""

    variance: Array
    growth: Array

    def smallest(self, n_tests: int = 1) -> float:
        """The minimum detectable difference (80% power). n_tests: as in `power_factor`."""
        return float(smallest_difference(*self, n_tests))


class MarginReach(NamedTuple):
    """How close a margin may be to an observed difference, if both models are equally good.

    reach: distance from the difference to the lower end of its 95% interval. error: standard deviation of the
    difference.
    """

    reach: Array
    error: Array

    def smallest(self, n_tests: int = 1) -> float:
        """The smallest margin that can be shown with 80% power. n_tests: number of margins corrected together."""
        # `reach` is for a 95% interval; several margins need a wider one.
        limit = (power_factor(n_tests) - Z_POWER) / Z_95
        return min(1.0, float(limit * self.reach + Z_POWER * self.error))


def smallest_difference(variance: Array | float, growth: Array | float = 0.0, n_tests: int = 1) -> Array:
    """The smallest true difference d that a test at the 5% level detects with 80% power; at most 1.

    The variance of the observed difference is variance + growth · d, so d solves d² = factor² · (variance + growth ·
    d). n_tests: number of tests that share the 5%.
    """
    square = power_factor(n_tests) ** 2
    half = square * np.asarray(growth) / 2
    return np.asarray(np.minimum(half + np.sqrt(half * half + square * variance), 1.0))


def smoothed_variance(mean: Array, variance: Array, total: Array) -> Array:
    """Variance of one sample around its question's chance of being right, mean over questions; always above 0.

    mean, variance: an accuracy over `total` samples and its `sampling_variance_of_mean`; if that is NaN (unknown), the
    binomial variance is used, the largest possible. To keep the result above 0, one right and one wrong sample are
    added to the mean, and `SAMPLING_TOSSES` coin tosses to the variance.
    """
    middle = (total * mean + 1) / (total + 2)
    observed = np.where(np.isnan(variance), mean * (1 - mean) / total, variance)
    share = (total * total * observed + SAMPLING_TOSSES) / (total * mean * (1 - mean) + SAMPLING_TOSSES)
    return np.asarray(np.minimum(1.0, share) * middle * (1 - middle))


def growth(mean: Array, single: Array, ours: Array, theirs: Array) -> Array:
    """How much the variance of a difference grows with the true difference d: the factor of d in `DifferenceVariance`.

    mean: the accuracy. single: the variance v of one sample. ours, theirs: samples of the two runs. A worse model has
    more variance, because questions that were always right no longer are. If each question's chance p becomes p(1 −
    d/mean), v grows by d(1 − 2v/mean); for a better model, 1 − p and 1 − mean replace p and mean. The larger of the two
    is used. The variance of the observed difference grows by 1/N of the changed run, and the limit of the test, which
    is based on the samples of both runs, by 1/N of the other run. The limit is the larger part of the power factor, so
    the difference is largest if the smaller run is the unchanged one.
    """
    rise = np.maximum(1 - 2 * single / np.maximum(mean, 1 - mean), 0.0)
    return np.asarray(rise * (_LIMIT_SHARE / np.minimum(ours, theirs) + (1 - _LIMIT_SHARE) / np.maximum(ours, theirs)))


def _difference_variance(mean: Array, variance: Array, total: Array, ours: Array, theirs: Array) -> DifferenceVariance:
    """The variance of the difference of two runs, from the variance of one sample.

    mean, variance: an accuracy over `total` samples and its variance between runs. ours, theirs: samples of the runs.
    """
    single = smoothed_variance(mean, variance, total)
    return DifferenceVariance(np.asarray(single * (1 / ours + 1 / theirs)), growth(mean, single, ours, theirs))


def difference_variance(
    correct: Array, counts: Array, other_correct: Array, other_counts: Array, squares: Array | None = None
) -> DifferenceVariance:
    """The variance of the difference of two runs, for `smallest_difference`; always above 0.

    Arguments: (…, Q), samples graded correct and samples of each run, every count ≥ 1. squares: sums of squared scores,
    as in `score_variance`.
    """
    pooled, total = correct + other_correct, counts + other_counts
    worth = [effective_samples(n) for n in (total, counts, other_counts)]
    variance = sampling_variance_of_mean(pooled, total, squares=squares)
    return _difference_variance((pooled / total).mean(axis=-1), variance, *worth)


def planned_variance(
    spread: SampleSpread, samples: int, other_samples: int | None = None, unit: float = 0.0
) -> DifferenceVariance:
    """The expected `difference_variance` of two runs that have not been sampled yet.

    samples, other_samples: number of samples per question in the two runs; None: the same number in both. unit: unit of
    the last printed digit, as a fraction, if the other run is a published score (`FIXED_ROUNDING`).
    """
    ours, theirs = (np.asarray(float(spread.n_questions * n)) for n in (samples, other_samples or samples))
    # The spread is treated as estimated from its own number of samples, but not more than the two runs will have.
    total = np.minimum(spread.total, ours + theirs)
    expected = _difference_variance(np.asarray(spread.mean), np.asarray(spread.variance / total), total, ours, theirs)
    return expected._replace(variance=expected.variance + unit * unit * FIXED_ROUNDING)


def margin_reach(spread: SampleSpread, samples: int) -> MarginReach:
    """The expected reach for two runs of equally good models that have not been sampled yet.

    samples: number per question in each of the two runs.
    """
    mean, size = np.asarray(spread.mean), np.asarray(float(spread.n_questions * samples))
    total = np.minimum(spread.total, 2 * size)
    single = smoothed_variance(mean, spread.variance / total, total)
    error = np.sqrt(single * 2 / size)
    if samples == 1:
        apart = np.asarray(single * spread.n_questions)
        return MarginReach(paired_limits(apart, apart, spread.n_questions).high, error)
    limits = sampling_limits_of(mean, np.asarray(single / size), size)
    return MarginReach(np.hypot(mean - limits.low, limits.high - mean), error)


def variance_of_mean(parts: Sequence[DifferenceVariance]) -> DifferenceVariance:
    """The variance of the mean difference of several benchmarks, if every benchmark differs by the mean."""
    variance, rise = np.array(parts).sum(axis=0) / len(parts) ** 2
    return DifferenceVariance(variance, rise)


def min_samples(
    planned: Callable[[int], DifferenceVariance | MarginReach], difference: float, n_tests: int = 1
) -> int | None:
    """The smallest number of samples per question whose smallest difference (or margin) is at most `difference`; None
    if no number up to `MAX_PLANNED` is enough.

    planned: the expected variance or reach of the difference for a number of samples per question.
    """

    def enough(samples: int) -> bool:
        return planned(samples).smallest(n_tests) <= difference

    # `few` is never enough. Every number above a number that is enough is enough, too.
    few, many = 0, 1
    while not enough(many):
        if many == MAX_PLANNED:
            return None
        few, many = many, min(2 * many, MAX_PLANNED)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def least_variance(accuracy: float, n_questions: int) -> float:
    """The smallest possible mean of p(1 − p) over `n_questions` questions whose chances p have the mean `accuracy`.

    The minimum is reached if all questions but one are always right or always wrong.
    """
    rest = accuracy * n_questions % 1.0
    return rest * (1 - rest) / n_questions


# ---- when a run has enough samples

MIN_ROUNDS = 8
"""Minimum number of samples per question before a sampling interval may stop a run.

Stopping when samples happen to agree biases the accuracy; after eight rounds the bias is at most about one sample
(`make simulate`, table "stopping").
"""


def reached_error(correct: Array, rounds: int) -> float:
    """Half-width of the sampling interval divided by 1.96, a fraction: the error that is compared with the target.

    correct: number of samples graded correct per question; every question has `rounds` samples, at least 1.
    """
    low, high = sampling_limits(correct, np.full(correct.shape, float(rounds)))
    return float(high - low) / 2 / Z_95


def next_rounds(error: float, rounds: int, target: float) -> int:
    """The number of samples per question at which to test the error next.

    rounds: the current number, at least `MIN_ROUNDS`, with an `error` above `target`. The error falls with the square
    root of the number of samples, so rounds · (error/target)² should be enough. A number more than a third above
    `rounds` is a rough guess, so the next test happens at nine tenths of it.
    """
    assert error > target > 0
    needed = rounds * (error / target) ** 2
    return max(rounds + 1, math.ceil(needed if rounds >= 0.75 * needed else 0.9 * needed))
