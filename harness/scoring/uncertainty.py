"""Errors and intervals of accuracy, pass@k, pass^k and maj@k from counted questions (`QuestionTally`).

The formulas are in `stats`. The sampling error (same questions, asked again) is the square root of
`sampling_variance_of_mean`; the question error (other questions of this kind) is the square root of the variance from
`between`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.core.records import Question
from harness.core.sanitize import visible
from harness.scoring import pass_at_k, stats
from harness.scoring.stats import Array, Estimate, Interval
from harness.scoring.tally import QuestionTally

MAX_LABEL_CHARS = 80
"""Maximum length of a metadata field's name or value in a score; longer ones are truncated."""


_CLUSTERED = frozenset(("cluster", "same_as", "twin_of"))
"""The metadata fields that may put a question into the same cluster as another question."""


def shows_no_spread(items: Sequence[QuestionTally]) -> bool:
    """Whether a run has only one sample per question, or copies among its samples. Either hides how much its answers
    vary, so an interval is only an upper bound (`Estimate.at_most`).
    """
    return all(item.n == 1 for item in items) or any(item.has_copies for item in items)


def cluster_of(question: Question) -> str:
    """The label of the question's cluster; questions in the same cluster are not independent.

    It is the value of the card's `cluster_key`, the id of the question that this one is a reordering of, or its own id.
    """
    metadata = question.metadata
    # Runs of earlier versions name the original of a question's variant; any card may have a column named "original".
    names = ("cluster", "same_as", "original") if "twin_of" in metadata else ("cluster", "same_as")
    return str(next((metadata[name] for name in names if name in metadata), question.question_id))


def cluster_numbers(items: Sequence[QuestionTally]) -> NDArray[np.intp]:
    """The index of each question's cluster (`cluster_of`), starting at 0 in order of occurrence: (len(items),)."""
    if all(_CLUSTERED.isdisjoint(item.question.metadata) for item in items):  # no labels needed
        return np.arange(len(items))
    numbers: dict[str, int] = {}
    return np.fromiter(
        (numbers.setdefault(cluster_of(item.question), len(numbers)) for item in items), np.intp, len(items)
    )


class SamplingError(NamedTuple):
    """A standard error, as a fraction. bound: its largest possible value.

    error: None if no question has two samples, or if there are copies among the samples. imputed: number of questions
    with one sample; if `error` is known, their variance was estimated from the other questions.
    """

    error: float | None
    bound: float
    imputed: int


def sampling_error(items: Sequence[QuestionTally]) -> SamplingError:
    """Return the sampling error: the standard deviation of the accuracy if the same questions are asked again.

    With only one sample per question, or with copies among the samples, the error is unknown. It is at most
    √(p̄(1−p̄)/Q), the error for equally hard questions.
    """
    right, counts, squares, scale = _counts(items)
    variance = float(stats.sampling_variance_of_mean(right, counts, squares=squares))
    mean = float((right / counts).mean())
    return SamplingError(
        None if math.isnan(variance) or any(item.has_copies for item in items) else scale.size * math.sqrt(variance),
        scale.size * math.sqrt(max(0.0, mean * (1.0 - mean)) / len(items)),
        int((counts == 1).sum()),
    )


def question_error(items: Sequence[QuestionTally]) -> float | None:
    """The standard error of the accuracy for other questions of this kind, with new samples; None for a single cluster.

    It includes the sampling error, so the two errors are never added. Every question must have samples.
    """
    right, counts, _, scale = _counts(items)
    clusters = cluster_numbers(items)
    # With a single cluster, all numbers are 0.
    return scale.size * math.sqrt(float(stats.between(right / counts, clusters).variance)) if clusters.any() else None


def unequal_clusters(items: Sequence[QuestionTally]) -> str | None:
    """A warning if the questions are in clusters of very unequal size, otherwise None.

    Clusters count as very unequal if their effective number is less than half of their actual number.
    """
    clusters = cluster_numbers(items)
    sizes = np.bincount(clusters)
    effective = stats.effective_clusters(sizes) if items else 0.0
    if not items or effective >= len(sizes) / 2:
        return None
    largest = int(sizes.max())
    label = cluster_of(items[int(np.argmax(clusters == sizes.argmax()))].question)
    return (
        f"{largest} of {len(items)} questions are in one group ({visible(label, MAX_LABEL_CHARS)}). The question "
        f"interval is wide because the {len(sizes)} groups carry only as much information as {effective:.1f} groups of "
        "equal size"
    )


def accuracy_of(items: Sequence[QuestionTally]) -> Estimate | None:
    """The accuracy over the questions that have samples; None if there are none."""
    present = [item for item in items if item.n]
    return rate(present, [item.right for item in present], squares=_squares(present)) if present else None


def rate(
    items: Sequence[QuestionTally],
    hits: Sequence[float],
    samples: Sequence[int] | None = None,
    squares: Array | None = None,
    *,
    verdicts: bool = False,
) -> Estimate:
    """The mean over questions of hits / samples.

    hits: number of samples of each question with a property such as "correct", or the sum of their shares of points.
    samples: number per question, all above 0; None = all samples of the question. squares: sums of the squares of these
    shares, if known. Negative points count in the mean; only the mean itself is clipped to 0. verdicts: hits are
    numbers of samples even if there are points.
    """
    n, independent = sample_counts(items)
    right, counts = np.array(hits, dtype=float), n if samples is None else np.array(samples, dtype=float)
    mean = math.fsum((right / counts).tolist()) / len(items)
    scale = Scale(0.0) if verdicts else Scale.of(items)
    squares, right = scale.squares(squares, right, counts), scale.sums(right, counts)
    # A question's fraction of independent samples is also used for any part of its samples.
    thinned = np.maximum(1.0, np.floor(counts * independent / n))
    right, squares = right * thinned / counts, None if squares is None else squares * thinned / counts
    return Estimate(
        value=scale.clipped(mean),
        sampling=scale.interval(stats.sampling_limits(right, thinned, squares=squares).interval()),
        question=scale.interval(mean_question_interval(right / thinned, items)),
        at_most=bool((thinned == 1).all()) or any(item.has_copies for item in items),
    )


def rate_of_shares(items: Sequence[QuestionTally], shares: Sequence[Sequence[float]]) -> Estimate:
    """The mean over questions of the mean share of each question's samples; see `rate`."""
    squares = squares_of(items, (math.fsum(share**2 for share in each) for each in shares))
    return rate(items, [math.fsum(each) for each in shares], squares=squares)


class Scale(NamedTuple):
    """Maps shares of points from `lowest` (at most 0) … 1 to 0 … 1, where the formulas are valid. Without negative
    points, nothing changes.
    """

    lowest: float

    @classmethod
    def of(cls, items: Sequence[QuestionTally]) -> Scale:
        """The scale of these questions, which may be from several runs."""
        return cls(min((item.lowest or 0.0 for item in items), default=0.0))

    @property
    def size(self) -> float:
        """The distance from the lowest share to 1."""
        return 1.0 - self.lowest

    def sums(self, right: Array, counts: Array) -> Array:
        """The mapped sums of `counts` shares."""
        return (right - self.lowest * counts) / self.size if self.lowest else right

    def squares(self, squares: Array | None, right: Array, counts: Array) -> Array | None:
        """The sums of the squares of the mapped shares. right: the sums of the shares."""
        if squares is None or not self.lowest:
            return squares
        return (squares - 2 * self.lowest * right + self.lowest**2 * counts) / self.size**2

    def clipped(self, mean: float) -> float:
        """The mean, but at least 0."""
        return max(0.0, mean) if self.lowest else mean

    def interval(self, interval: Interval | None) -> Interval | None:
        """The interval of a mapped mean, mapped back and clipped to 0."""
        if interval is None or not self.lowest:
            return interval
        return Interval(*(max(0.0, self.lowest + self.size * end) for end in interval))


class Draws(NamedTuple):
    """The estimate of the chance that a draw of k samples succeeds, with the numbers that a comparison needs.

    variance: variance of the mean over reruns of the same questions; NaN = unknown, at most that of `trials` coin
    tosses. trials: total number of independent draws of k samples. single: variance of one draw of k samples, mean over
    questions; NaN = unknown.
    """

    estimate: Estimate
    variance: float
    trials: float
    single: float


def accuracy(items: Sequence[QuestionTally], *, verdicts: bool = False) -> Draws:
    """The accuracy, pass@1. Every question must have samples. verdicts: count samples graded correct even if there are
    points.
    """
    right, counts, squares, scale = _counts(items, verdicts=verdicts)
    variance = scale.size**2 * float(stats.sampling_variance_of_mean(right, counts, squares=squares))
    trials = float(stats.effective_samples(counts))
    if verdicts:
        estimate = rate(items, [item.correct for item in items], verdicts=True)
    else:
        estimate = rate(items, [item.right for item in items], squares=_squares(items))
    return Draws(estimate, variance, trials, variance * trials)


def pass_at(items: Sequence[QuestionTally], k: int) -> Draws:
    """The estimate of pass@k: any of k samples is right. Every question must have at least k samples."""
    return _draws_at(items, k, 1)


def pass_hat(items: Sequence[QuestionTally], k: int) -> Draws:
    """The estimate of pass^k: all k samples are right. Every question must have at least k samples."""
    return _draws_at(items, k, k)


def g_pass_at(items: Sequence[QuestionTally], k: int, share: float) -> Draws:
    """The estimate of G-Pass@k: at least ⌈share · k⌉ of k samples are right (Liu et al. 2024, arXiv:2412.13147)."""
    return _draws_at(items, k, max(1, math.ceil(share * k - 1e-9)))


def _draws_at(items: Sequence[QuestionTally], k: int, least: int) -> Draws:
    """The estimate of the chance that at least `least` of k samples are right."""
    if k == 1:
        return accuracy(items, verdicts=True)

    @cache  # Most questions have the same (n, correct) as others.
    def value(n: int, correct: int) -> float:
        return pass_at_k.at_least_of_k(n, correct, k, least)

    spread = cache(lambda n, correct: pass_at_k.without_one(n, correct, value))
    values = [value(item.n, item.correct) for item in items]
    known = _spread_is_known(items, k)
    return _estimate(items, k, values, [spread(item.n, item.correct) for item in items] if known else None)


def maj_at(items: Sequence[QuestionTally], ks: Sequence[int]) -> dict[int, Draws]:
    """The estimate of maj@k for each of `ks`. Every question must have at least k samples."""
    above_one = [k for k in ks if k > 1]
    spread_known = {k: _spread_is_known(items, k) for k in above_one}
    values: dict[int, list[float]] = {k: [] for k in above_one}
    variances: dict[int, list[float]] = {k: [] for k in above_one}
    for item in items if above_one else ():
        groups, silent = item.votes()
        for k in above_one:
            values[k].append(pass_at_k.maj_at_k(groups, silent, k))
            if spread_known[k]:
                variances[k].append(pass_at_k.maj_jackknife(groups, silent, k))
    draws = {k: _estimate(items, k, values[k], variances[k] if spread_known[k] else None) for k in above_one}
    return {k: draws[k] if k > 1 else accuracy(items, verdicts=True) for k in ks}


class _RightCounts(NamedTuple):
    """For each question, the right samples (or mapped sums of shares), the samples, and with points the sums of
    squares; copies count as one sample. Also the scale of the shares.
    """

    right: Array
    counts: Array
    squares: Array | None
    scale: Scale


def _counts(items: Sequence[QuestionTally], *, verdicts: bool = False) -> _RightCounts:
    """The counts of the questions. verdicts: count samples graded correct even if there are points."""
    counts, independent = sample_counts(items)
    right = np.fromiter((item.correct if verdicts else item.right for item in items), float, len(items))
    scale = Scale(0.0) if verdicts else Scale.of(items)
    squares = None if verdicts else scale.squares(_squares(items), right, counts)
    if squares is not None:
        squares = squares * independent / counts
    return _RightCounts(scale.sums(right, counts) * independent / counts, independent, squares, scale)


def _squares(items: Sequence[QuestionTally]) -> Array | None:
    """The sum of the squares of each question's shares of points; None without points."""
    return squares_of(items, (item.squares for item in items))


def squares_of(items: Sequence[QuestionTally], squares: Iterable[float]) -> Array | None:
    """These sums of squares, one per question, in the form that `rate` expects; None without points."""
    return None if not items or items[0].lowest is None else np.fromiter(squares, float, len(items))


def sample_counts(items: Sequence[QuestionTally]) -> tuple[Array, Array]:
    """Return each question's number of samples, and its number of independent samples (copies count as one)."""
    # The arrays are filled from generators, because a list of pairs would take 100 bytes per question.
    counts = np.fromiter((item.n for item in items), float, len(items))
    return counts, np.fromiter((item.independent for item in items), float, len(items))


def _spread_is_known(items: Sequence[QuestionTally], k: int) -> bool:
    """Whether every question has two disjoint draws of k independent samples, which show how much draws differ."""
    return all(2 * k <= item.n and not item.has_copies for item in items)


def _estimate(
    items: Sequence[QuestionTally], k: int, values: Sequence[float], variances: Sequence[float] | None
) -> Draws:
    """Return the mean of pass@k, pass^k or maj@k, k > 1, over the questions, with its intervals.

    values, variances: one per question. variances is None if unknown, as for k above n/2.
    """
    mean = math.fsum(values) / len(values)
    n_questions = len(items)
    if variances is None:
        variance, trials, single = math.nan, float(n_questions), math.nan
    else:
        trials = float(stats.effective_samples(np.array([float(item.n) for item in items]))) / k
        variance = math.fsum(variances) / n_questions**2
        # value · (1 − value) underestimates the variance of one draw by the variance of the value
        single = math.fsum(v * (1 - v) + spread for v, spread in zip(values, variances, strict=True)) / n_questions
    estimate = Estimate(
        value=mean,
        sampling=stats.draw_limits(np.asarray(mean), np.asarray(variance), n_questions, trials).interval(),
        question=mean_question_interval(np.array(values), items),
        at_most=variances is None,
    )
    return Draws(estimate, variance, trials, single)


def mean_question_interval(
    values: Array, items: Sequence[QuestionTally], weights: Array | None = None
) -> Interval | None:
    """The interval, for other questions of this kind, of the mean of one value per question; None for one cluster.

    weights: (Q,), as in `stats.between`.
    """
    clusters = cluster_numbers(items)
    return stats.question_limits(values, clusters, weights).interval() if clusters.any() else None
