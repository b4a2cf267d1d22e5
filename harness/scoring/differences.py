"""Differences of accuracies and how sure they are. Pure functions on arrays; the last axis runs over questions.

Two kinds of error answer two questions:

| line | everyday meaning | variance of the difference | test |
| --- | --- | --- | --- |
| sampling | same questions, asked again: would the sign stay? | `score_variance` | normal |
| question | other questions of this kind: would the sign stay? | `question_difference_variance` | t |

The variance of a test is that of two equally good runs; intervals come from the variance of each run by itself, so that
an interval may touch 0 where p is just below 5 %. Values are fractions. `make simulate` prints coverage and false
alarms; `docs/statistics.md` shows them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.scoring.intervals import (
    QUESTION_TOSSES,
    SAMPLING_TOSSES,
    Array,
    IntervalEnds,
    cluster_freedom,
    cluster_variance,
    effective_clusters,
    effective_samples,
    power_factor,
    sampling_limits,
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
    unit²/12. Both runs' samples are pooled. A sample's variance is p(1 − p); `share` is the part of it that remains
    when the question is given, and both runs are taken to have the same share. For pass@k and maj@k one "sample" is a
    draw of k; our estimate uses every such draw, theirs only their_total of them, so `single`, the variance of one draw
    (mean over questions), gives their part.
    """
    pooled = (total * ours + their_total * theirs + 1) / (total + their_total + 2)
    own_middle = (total * ours + 1) / (total + 2)
    share = smoothed_variance(ours, variance, total) / (own_middle * (1 - own_middle))
    their_share = share
    if single is not None:
        spread = smoothed_variance(ours, single / their_total, their_total)
        middle = (their_total * ours + 1) / (their_total + 2)
        their_share = spread / (middle * (1 - middle))
    return np.asarray(pooled * (1 - pooled) * (share / total + their_share / their_total) + unit * unit / 12)


class Detection(NamedTuple):
    """Variance of the difference of two accuracies if the true difference is d: variance + growth · d."""

    variance: Array
    growth: Array


def detection(correct: Array, counts: Array, other_correct: Array, other_counts: Array) -> Detection:
    """The variance of the difference of two runs, as `smallest_difference` needs it; always above 0.

    correct, counts, other_correct, other_counts: (…, Q), right samples and all samples of each question, of both runs.
    The variance of one sample is `smoothed_variance` of both runs' samples together, which is never 0: two runs with
    equal samples could still miss a small difference. A model that is worse by d where nearly all is right (or better,
    where nearly all is wrong) has more variance than the samples at hand: p(1−p) grows by at most |1 − 2p| · d.
    """
    pooled, total = correct + other_correct, counts + other_counts
    mean = (pooled / total).mean(axis=-1)
    single = smoothed_variance(mean, sampling_variance_of_mean(pooled, total), effective_samples(total))
    ours, theirs = effective_samples(counts), effective_samples(other_counts)
    return Detection(
        np.asarray(single * (1 / ours + 1 / theirs)),
        np.asarray(np.abs(1 - 2 * mean) / np.minimum(ours, theirs)),
    )


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
    variance: float, n_questions: int, difference: float, other_samples: int | None = None, n_tests: int = 1
) -> int | None:
    """Samples a question with which a true difference between two runs is found in 80 % of repetitions (at 5 %).

    variance: of one sample around its question's chance of being right (`smoothed_variance`), the same in
    both runs; the error of the difference is then √(variance/Q · (1/n + 1/m)). other_samples: m, the samples a question
    of a run or publication that exists already; None = both runs get as many. n_tests: as in `power_factor`. Returns
    None where no number of samples is enough, because the other run's error alone is too large.
    """
    assert variance > 0
    assert difference > 0
    allowed = (difference / power_factor(n_tests)) ** 2
    per_sample = variance / n_questions
    if other_samples is None:
        return math.ceil(2 * per_sample / allowed)
    left = allowed - per_sample / other_samples
    return math.ceil(per_sample / left) if left > 0 else None
