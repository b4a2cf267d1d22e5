"""Differences of accuracies and how sure they are. Pure functions on arrays; the last axis runs over questions.

Two kinds of error answer two questions:

| line | everyday meaning | variance of the difference | test |
| --- | --- | --- | --- |
| sampling | same questions, asked again: would the sign stay? | `score_variance` | normal |
| question | other questions of this kind: would the sign stay? | `question_difference_variance` | t |

The variance of a test is that of two equally good runs; intervals come from the variance of each run by itself, so that
an interval may touch 0 where p is just below 5 %. Values are fractions. `make simulate` prints coverage and false
alarms; `docs/method/statistics.md` shows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.core.limits import MAX_SAMPLES
from harness.scoring.intervals import (
    POISSON_LOW,
    QUESTION_TOSSES,
    SAMPLING_TOSSES,
    Z_95,
    Z_POWER,
    Array,
    Interval,
    IntervalEnds,
    cluster_freedom,
    cluster_variance,
    effective_clusters,
    effective_samples,
    power_factor,
    sampling_limits,
    sampling_limits_of,
    sampling_variance_of_mean,
    t_factor,
)


def score_variance(correct: Array, counts: Array, other_correct: Array, other_counts: Array) -> Array:
    """Variance of the difference of two accuracies if both runs are equally good on every question.

    p(1−p)·(n+m)/(n+m−1)·(1/n+1/m), summed over questions and divided by Q²: of all samples of a question, the run that
    has the right ones is a draw without replacement (Mantel and Haenszel 1959; with one sample a run, McNemar's test).
    Arguments: (…, Q), samples graded correct and samples of each run, every count ≥ 1.
    """
    single = pooled_variance(correct, counts, other_correct, other_counts) * (1 / counts + 1 / other_counts)
    return np.asarray(single.sum(axis=-1) / single.shape[-1] ** 2)


def pooled_variance(correct: Array, counts: Array, other_correct: Array, other_counts: Array) -> Array:
    """The variance of one sample of each question, from both runs together: p(1−p)·(n+m)/(n+m−1), (…, Q)."""
    total = counts + other_counts
    pooled = (correct + other_correct) / total
    return np.asarray(pooled * (1 - pooled) * total / (total - 1))


def sampling_difference_limits(
    correct: Array, counts: Array, other_correct: Array, other_counts: Array
) -> IntervalEnds:
    """The 95 % interval of the difference over endless reruns of both, from the sampling interval of each run.

    Newcombe's method 10 (1998, Statistics in Medicine 17:873): the distances to the nearer ends add as squares.
    Arguments as in `score_variance`: right samples and all samples of each question, of both runs.
    """
    ours, theirs = (correct / counts).mean(axis=-1), (other_correct / other_counts).mean(axis=-1)
    our, their = sampling_limits(correct, counts), sampling_limits(other_correct, other_counts)
    difference = ours - theirs
    return IntervalEnds(
        difference - np.hypot(ours - our.low, their.high - theirs),
        difference + np.hypot(our.high - ours, theirs - their.low),
    )


def question_difference_variance(differences: Array, clusters: NDArray[np.intp] | None = None) -> Array:
    """Variance of the mean difference over questions drawn anew: sd²/Q + ½/Q², by clusters where they are given.

    differences: (…, Q), p_q of one run minus that of the other, Q ≥ 2. Without the added ½/Q² a set on which the runs
    happen to agree would prove that they always do. The test is Student's t with Q − 1 (or clusters − 1) degrees of
    freedom.
    """
    if clusters is None:
        clusters = np.arange(differences.shape[-1])
    return cluster_variance(differences, clusters) + QUESTION_TOSSES / effective_clusters(clusters) ** 2


def question_difference_limits(differences: Array, clusters: NDArray[np.intp] | None = None) -> IntervalEnds:
    """The 95 % interval of the difference over all questions of the kind: mean ± t·√`question_difference_variance`."""
    if clusters is None:
        clusters = np.arange(differences.shape[-1])
    mean = differences.mean(axis=-1)
    reach = t_factor(cluster_freedom(clusters)) * np.sqrt(question_difference_variance(differences, clusters))
    return IntervalEnds(np.maximum(mean - reach, -1.0), np.minimum(mean + reach, 1.0))


def mean_difference_limits(differences: Array, limits: IntervalEnds) -> IntervalEnds:
    """The 95 % interval of the mean of independent differences (such as those of several benchmarks) from their
    intervals.

    differences, limits: (…, number of differences). The distances to the lower ends add as squares, and so do those to
    the upper ends, as in `sampling_difference_limits`. A single difference keeps its interval.
    """
    mean, n = differences.mean(axis=-1), differences.shape[-1]
    return IntervalEnds(
        mean - np.sqrt(((differences - limits.low) ** 2).sum(axis=-1)) / n,
        mean + np.sqrt(((limits.high - differences) ** 2).sum(axis=-1)) / n,
    )


def smoothed_variance(mean: Array, variance: Array, total: Array) -> Array:
    """Variance of one sample around its question's chance of being right, mean over questions; above 0 always.

    mean, variance: an accuracy over `total` samples and its `sampling_variance_of_mean`; where that is NaN (unknown),
    the binomial variance stands in, the largest possible. So that the result is never 0, two samples are added to the
    mean, one right and one wrong, and `SAMPLING_TOSSES` coin tosses to the variance.
    """
    middle = (total * mean + 1) / (total + 2)
    observed = np.where(np.isnan(variance), mean * (1 - mean) / total, variance)
    share = (total * total * observed + SAMPLING_TOSSES) / (total * mean * (1 - mean) + SAMPLING_TOSSES)
    return np.asarray(np.minimum(1.0, share) * middle * (1 - middle))


RANDOM_ROUNDING = 1 / 12
"""The variance that rounding to a last digit of unit 1 adds to a published value; the test takes it."""

FIXED_ROUNDING = 1 / 4
"""A smallest difference takes this in place of `RANDOM_ROUNDING`: a score of many samples is rounded nearly the same
way at each repetition, by up to half a digit, and a rounding that hides the difference once hides it each time.
"""


def published_variance(
    ours: Array,
    variance: Array,
    total: Array,
    theirs: Array,
    their_total: Array,
    unit: float,
    single: Array | None = None,
) -> Array:
    """Variance of our accuracy minus a published one, if both models are the same.

    ours: our accuracy over `total` samples. variance: of `ours` between runs on the same questions. theirs: the
    published value, of their_total samples. unit: of the last printed digit (0.001 for 41.7 %); rounding to it adds
    unit² · RANDOM_ROUNDING. Both runs' samples are pooled. A sample's variance is p(1 − p); `share` is the part of it
    that remains when the question is given, and both runs are taken to have the same share. For pass@k and maj@k one
    "sample" is a draw of k; our estimate uses every such draw, theirs only their_total of them, so `single`, the
    variance of one draw (mean over questions), gives their part.
    """
    pooled = (total * ours + their_total * theirs + 1) / (total + their_total + 2)
    own_middle = (total * ours + 1) / (total + 2)
    share = smoothed_variance(ours, variance, total) / (own_middle * (1 - own_middle))
    their_share = share
    if single is not None:
        spread = smoothed_variance(ours, single / their_total, their_total)
        middle = (their_total * ours + 1) / (their_total + 2)
        their_share = spread / (middle * (1 - middle))
    return np.asarray(
        pooled * (1 - pooled) * (share / total + their_share / their_total) + unit * unit * RANDOM_ROUNDING
    )


MAX_PLANNED = MAX_SAMPLES
"""Largest number of samples of a question, and of questions, that a plan tries: no run takes more samples."""


class Detection(NamedTuple):
    """Variance of the difference of two accuracies if the true difference is d: variance + growth · d."""

    variance: Array
    growth: Array

    def smallest(self, n_tests: int = 1) -> float:
        """The smallest true difference that is found in 80 % of repetitions. n_tests: as in `power_factor`."""
        return float(smallest_difference(*self, n_tests))


class MarginReach(NamedTuple):
    """How near to an observed difference a margin may lie, if both models are equally good.

    reach: from the difference to the lower end of its 95 % interval. error: standard deviation of the difference.
    """

    reach: Array
    error: Array

    def smallest(self, n_tests: int = 1) -> float:
        """The smallest margin that is shown in 80 % of repetitions. n_tests: margins that are corrected together."""
        # The interval is one of 95 %; several margins take a wider one.
        limit = (power_factor(n_tests) - Z_POWER) / Z_95
        return min(1.0, float(limit * self.reach + Z_POWER * self.error))


class SampleSpread(NamedTuple):
    """How the samples of a model vary on a benchmark, as a plan needs it.

    mean: the accuracy. variance: of one sample around its question's chance of being right, mean over the questions.
    total: number of samples that show both; infinite if they are not estimated from samples.
    """

    n_questions: int
    mean: float
    variance: float
    total: float = math.inf


def detection(correct: Array, counts: Array, other_correct: Array, other_counts: Array) -> Detection:
    """The variance of the difference of two runs, as `smallest_difference` needs it; always above 0.

    correct, counts, other_correct, other_counts: (…, Q), right samples and all samples of each question, of both runs.
    """
    pooled, total = correct + other_correct, counts + other_counts
    return _detection(
        (pooled / total).mean(axis=-1),
        sampling_variance_of_mean(pooled, total),
        effective_samples(total),
        effective_samples(counts),
        effective_samples(other_counts),
    )


def planned_detection(
    spread: SampleSpread, samples: int, other_samples: int | None = None, unit: float = 0.0
) -> Detection:
    """What `detection` is to be expected of two runs that are not sampled yet.

    samples, other_samples: of each question in the two runs; None: as many. unit: of the last printed digit, if the
    other run is a published score (`FIXED_ROUNDING`).
    """
    ours, theirs = (float(spread.n_questions * n) for n in (samples, other_samples or samples))
    # Neither the samples that show the spread nor those of the two runs say more than they are many.
    total = min(spread.total, ours + theirs)
    mean, variance = np.asarray(spread.mean), np.asarray(spread.variance / total)
    expected = _detection(mean, variance, np.asarray(total), np.asarray(ours), np.asarray(theirs))
    return expected._replace(variance=expected.variance + unit * unit * FIXED_ROUNDING)


def margin_reach(spread: SampleSpread, samples: int, other_samples: int | None = None) -> MarginReach:
    """What is to be expected of two runs of equally good models that are not sampled yet.

    samples, other_samples: of each question in the two runs; None: as many.
    """
    sizes = [samples, other_samples or samples]
    mean, ours, theirs = np.asarray(spread.mean), *(np.asarray(float(spread.n_questions * n)) for n in sizes)
    # As in `planned_detection`: neither samples say more than they are many.
    total = np.minimum(spread.total, ours + theirs)
    single = smoothed_variance(mean, spread.variance / total, total)
    # One sample of each question does not show its variance.
    variances = [np.asarray(np.nan if n == 1 else single / size) for n, size in zip(sizes, (ours, theirs), strict=True)]
    our, their = (sampling_limits_of(mean, *pair) for pair in zip(variances, (ours, theirs), strict=True))
    return MarginReach(np.hypot(mean - our.low, their.high - mean), np.sqrt(single * (1 / ours + 1 / theirs)))


def _detection(mean: Array, variance: Array, total: Array, ours: Array, theirs: Array) -> Detection:
    """The variance of the difference of two runs, by that of one sample.

    mean, variance: an accuracy over `total` samples and its variance between runs on the same questions. ours, theirs:
    samples of the two runs. The variance of one sample is `smoothed_variance`, which is never 0: two runs with equal
    samples could still miss a small difference.
    """
    single = smoothed_variance(mean, variance, total)
    return Detection(np.asarray(single * (1 / ours + 1 / theirs)), growth(mean, single, ours, theirs))


_LIMIT_SHARE = 0.75
"""Share of the power factor that is the limit of the test: 1.96 of 2.80 for one test, 2.24 of 3.08 for two. The rest,
`Z_POWER`, is how far the observed difference may fall below the true one.
"""


def growth(mean: Array, single: Array, ours: Array, theirs: Array) -> Array:
    """How much the variance of a difference grows with the true difference d: the factor of d in `Detection`.

    mean: the accuracy. single: the variance v of one sample. ours, theirs: samples of the two runs. A worse model has
    more variance, because questions that were always right are so no longer. If each question's chance p becomes
    p(1 − d/mean), v grows by d(1 − 2v/mean); for a better model 1 − p and 1 − mean take the place of p and mean. The
    larger of the two counts. Changes that leave more questions certain make v grow less, and their difference is then
    found more often.

    The changed model is that of one run, and which one is unknown. The variance of the observed difference grows by
    this run's 1/N. The limit of the test comes from the samples of both runs together, to which the changed model
    contributes its share: the limit grows by the 1/N of the other run. The limit is the larger part of the power
    factor, so the difference is largest if the smaller run is the unchanged one.
    """
    rise = np.maximum(1 - 2 * single / np.maximum(mean, 1 - mean), 0.0)
    return np.asarray(rise * (_LIMIT_SHARE / np.minimum(ours, theirs) + (1 - _LIMIT_SHARE) / np.maximum(ours, theirs)))


def smallest_difference(variance: Array, growth: Array | float = 0.0, n_tests: int = 1) -> Array:
    """The smallest true difference d that a test at 5 % finds in 80 % of repetitions; at most 1.

    variance, growth: the variance of the observed difference is variance + growth · d. n_tests: how many tests share
    the 5 %. Solves d² = factor² · (variance + growth · d).
    """
    square = power_factor(n_tests) ** 2
    half = square * np.asarray(growth) / 2
    return np.asarray(np.minimum(half + np.sqrt(half * half + square * variance), 1.0))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values of several tests, adjusted upwards.

    If adjusted values below 5 % are called real, the chance of any false alarm among all tests is at most 5 %. Holm
    1979 (Scandinavian Journal of Statistics 6:65): the i-th smallest of m values is multiplied by m − i + 1, and is at
    least the adjusted value before it.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for rank, i in enumerate(order):
        # Never below the value of a smaller p, or the larger one would become the more significant.
        reached = max(reached, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = reached
    return adjusted


def samples_to_detect(
    spread: SampleSpread, difference: float, other_samples: int | None = None, n_tests: int = 1, unit: float = 0.0
) -> int | None:
    """The fewest samples of each question whose `smallest_difference` is at most `difference`, a fraction above 0.

    other_samples: samples of each question in a run or publication that exists already; None: both runs get as many.
    n_tests: as in `power_factor`. unit: as in `planned_detection`. Returns None where no number of samples up to
    `MAX_PLANNED` is enough, for example because the other run's error alone is too large.
    """
    assert difference > 0
    return fewest(lambda samples: planned_detection(spread, samples, other_samples, unit), difference, n_tests)


def fewest(planned: Callable[[int], Detection | MarginReach], difference: float, n_tests: int = 1) -> int | None:
    """The fewest samples of each question whose smallest difference (or margin) is at most `difference`; None if no
    number up to `MAX_PLANNED` is.

    planned: what is to be expected of the difference, by the samples of each question.
    """

    def enough(samples: int) -> bool:
        return planned(samples).smallest(n_tests) <= difference

    return _first_enough(enough, 1)


def _first_enough(enough: Callable[[int], bool], first: int) -> int | None:
    """The smallest number from `first` on that is `enough`, as all larger ones are; None above `MAX_PLANNED`."""
    few, many = first - 1, first
    while not enough(many):
        if many == MAX_PLANNED:
            return None
        few, many = many, min(2 * many, MAX_PLANNED)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many


def least_question_difference(n_clusters: float) -> float:
    """The least observed difference that can ever be found on other questions of this kind, a fraction at most 1.

    n_clusters: number of questions; if they come in clusters, `effective_clusters`. No number of samples lowers the
    result: the test of the question line adds ½/n² to the variance (`question_difference_variance`).
    """
    if n_clusters < 2:
        return 1.0
    return min(1.0, t_factor(int(n_clusters - 1)) * math.sqrt(QUESTION_TOSSES) / n_clusters)


def least_questions(difference: float) -> int:
    """The fewest questions (or clusters) whose `least_question_difference` is at most `difference`, a fraction above 0.

    With fewer, no number of samples finds such a difference on other questions of this kind. Whether so many are enough
    depends on how unevenly two models differ on the questions, which no plan knows.
    """
    assert difference > 0
    # The factor 1.96 is the smallest that t can have, so fewer questions than this are never enough.
    n_questions = max(2, math.floor(Z_95 * math.sqrt(QUESTION_TOSSES) / difference))
    while least_question_difference(n_questions) > difference:
        n_questions += 1
    return n_questions


def questions_to_detect(variance: float, n_clusters: float, difference: float, n_tests: int = 1) -> int | None:
    """About how many questions of this kind find a true `difference` in 80 % of repetitions; None if more than
    `MAX_PLANNED` do.

    variance: `question_difference_variance` of two runs. n_clusters: their number of questions; if these come in
    clusters, `effective_clusters`, and the result is a number of clusters. More of them, with as many samples of each
    question, are taken to differ as unevenly as these. n_tests: as in `power_factor`.
    """
    assert difference > 0
    # The variance holds the added ½/n², which is no spread.
    spread = max(0.0, n_clusters * variance - QUESTION_TOSSES / n_clusters)
    critical = power_factor(n_tests) - Z_POWER

    def enough(number: int) -> bool:
        # The added tosses move the limit that the difference must exceed, and make no difference vary.
        limit = critical * t_factor(number - 1) / Z_95 * math.sqrt(spread / number + QUESTION_TOSSES / number**2)
        return limit + Z_POWER * math.sqrt(spread / number) <= difference

    return _first_enough(enough, 2)


def variance_limits(variance: float, samples: float, n_questions: int) -> Interval:
    """The 95 % interval of the variance of one sample, mean over the questions, that a pilot shows.

    variance: Σ p(1−p)·n/(n−1) / Q, observed with n = `samples` of each of Q questions, n ≥ 2. Of one question with the
    true variance v, its observed value varies by (v(1−3v) − v²(n−3)/(n−1))/n. This function is concave, so that of the
    mean variance is at most 1/Q of its value at the mean. The ends are the v that lie 1.96 such errors from the
    observed value (as in Wilson's interval, which this is for n = 2). If at most three samples differ from the others
    of their question, the lower end is that of a Poisson count (`POISSON_LOW`).
    """
    total = samples * n_questions
    linear = Z_95**2 / total
    square = linear * (3 + (samples - 3) / (samples - 1))
    middle = variance + linear / 2
    reach = math.sqrt(max(0.0, middle * middle - (1 + square) * variance * variance))
    low, high = ((middle + sign * reach) / (1 + square) for sign in (-1, 1))
    if total * variance <= len(POISSON_LOW) - 1:
        low = min(low, float(np.interp(total * variance, np.arange(len(POISSON_LOW)), POISSON_LOW)) / total)
    return Interval(max(0.0, low), min(0.25, high))


def spreads_within(spread: SampleSpread, samples: float, accuracy: Interval) -> list[SampleSpread]:
    """The spreads at the ends of the 95 % intervals of a pilot's accuracy and variance, as if they were known.

    What a plan says of the true spread lies between the least and the most that it says of `spread` and of these.
    samples: of each question of the pilot. accuracy: the interval of its accuracy for the same questions.
    """
    limits = variance_limits(spread.variance, samples, spread.n_questions)
    # The variance that is possible is largest at 50 %.
    means = (accuracy.low, spread.mean, accuracy.high, min(max(accuracy.low, 0.5), accuracy.high))
    return [SampleSpread(spread.n_questions, mean, variance) for mean in means for variance in limits]


def least_variance(accuracy: float, n_questions: int) -> float:
    """The least mean of p(1 − p) that the chances p of `n_questions` questions with this mean can have.

    It is reached if all questions but one are always right or always wrong.
    """
    rest = accuracy * n_questions % 1.0
    return rest * (1 - rest) / n_questions
