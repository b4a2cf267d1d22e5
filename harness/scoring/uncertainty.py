"""From counted questions to the intervals of a score: accuracy, pass@k, pass^k, maj@k. The formulas: `intervals`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from harness.scoring.estimators import is_estimated, maj_at_k, maj_jackknife, pass_at_k, pass_hat_k, pass_jackknife
from harness.scoring.intervals import (
    Array,
    Interval,
    cluster_limits,
    cluster_numbers,
    effective_samples,
    estimate_limits,
    question_limits,
    sampling_limits,
    sampling_variance_of_mean,
    wilson,
)
from harness.scoring.tally import QuestionTally


class Intervals(msgspec.Struct, frozen=True, kw_only=True):
    """95 % intervals of one estimate, [low, high] in fractions.

    sampling_interval: over endless reruns of the same questions; None without a sample. at_most: too few samples to
    know it, so this is the widest that it can be. question_interval: over other questions of the kind; None where all
    questions are one cluster.
    """

    sampling_interval: Interval | None
    question_interval: Interval | None
    at_most: bool = False


def accuracy_intervals(items: Sequence[QuestionTally]) -> Intervals:
    """Of the accuracy over the questions that have samples."""
    present = [item for item in items if item.n]
    if not present:
        return Intervals(sampling_interval=None, question_interval=None)
    return rate_intervals([item.correct for item in present], present)


def rate_intervals(hits: Sequence[int], items: Sequence[QuestionTally]) -> Intervals:
    """Of the mean over questions of hits a sample; every question has samples."""
    counts = np.array([float(item.n) for item in items])
    found = np.array(hits, dtype=float)
    return Intervals(
        sampling_interval=sampling_limits(found, counts).interval(),
        question_interval=_question_interval(found / counts, items),
        at_most=bool((counts == 1).all()),
    )


class Estimate(NamedTuple):
    """Mean over questions, a fraction, with its intervals.

    variance: over reruns of the same questions; NaN = unknown, and then at most that of `trials` coin tosses. single:
    variance of one draw of k samples, mean over questions; NaN = unknown.
    """

    value: float
    intervals: Intervals
    variance: float
    trials: float
    single: float


def accuracy(items: Sequence[QuestionTally]) -> Estimate:
    """pass@1; every question has samples."""
    counts = np.array([float(item.n) for item in items])
    correct = np.array([float(item.correct) for item in items])
    variance, trials = float(sampling_variance_of_mean(correct, counts)), float(effective_samples(counts))
    mean = math.fsum((correct / counts).tolist()) / len(items)
    return Estimate(mean, accuracy_intervals(items), variance, trials, variance * trials)


def pass_at(items: Sequence[QuestionTally], k: int) -> Estimate:
    """pass@k; every question has at least k samples."""
    values = [pass_at_k(item.n, item.correct, k) for item in items]
    variances = [pass_jackknife(item.n, item.correct, k) for item in items] if _spread_is_known(items, k) else None
    return _estimate(items, k, values, variances)


def pass_hat(items: Sequence[QuestionTally], k: int) -> Estimate:
    """pass^k; every question has at least k samples."""
    values = [pass_hat_k(item.n, item.correct, k) for item in items]
    known = _spread_is_known(items, k)
    variances = [pass_jackknife(item.n, item.n - item.correct, k) for item in items] if known else None
    return _estimate(items, k, values, variances)


def maj_at(items: Sequence[QuestionTally], k: int) -> Estimate:
    """maj@k; every question has at least k samples. Where it is drawn at random its interval is "at most"."""
    votes = [item.votes() for item in items]
    values = [maj_at_k(groups, silent, k) for groups, silent in votes]
    known = _spread_is_known(items, k) and not any(is_estimated(item.n, k) for item in items)
    variances = [maj_jackknife(groups, silent, k) for groups, silent in votes] if known else None
    return _estimate(items, k, values, variances)


def _spread_is_known(items: Sequence[QuestionTally], k: int) -> bool:
    """Whether two draws of k can be had of every question: fewer do not show how much such draws differ."""
    return all(2 * k <= item.n for item in items)


def _estimate(
    items: Sequence[QuestionTally], k: int, values: Sequence[float], variances: Sequence[float] | None
) -> Estimate:
    if k == 1:
        return accuracy(items)
    mean = math.fsum(values) / len(values)
    n_questions = len(items)
    if variances is None:
        variance, trials, single = math.nan, float(n_questions), math.nan
        sampling = wilson(np.asarray(mean), np.asarray(trials))
    else:
        trials = float(effective_samples(np.array([float(item.n) for item in items]))) / k
        variance = math.fsum(variances) / n_questions**2
        # value · (1 − value) is too small by the variance of the value
        single = math.fsum(v * (1 - v) + spread for v, spread in zip(values, variances, strict=True)) / n_questions
        sampling = estimate_limits(np.asarray(mean), np.asarray(variance), n_questions, trials)
    intervals = Intervals(
        sampling_interval=sampling.interval(),
        question_interval=_question_interval(np.array(values), items),
        at_most=variances is None,
    )
    return Estimate(mean, intervals, variance, trials, single)


def _question_interval(values: Array, items: Sequence[QuestionTally]) -> Interval | None:
    clusters = cluster_numbers([item.cluster for item in items])
    n_clusters = int(clusters.max()) + 1
    if n_clusters < 2:
        return None
    limits = question_limits(values) if n_clusters == len(items) else cluster_limits(values, clusters)
    return limits.interval()
