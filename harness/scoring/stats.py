"""Formulas for a mean over questions: its errors and 95% intervals. Those for one question are in `pass_at_k`.

Pure functions on arrays of fractions; the last axis runs over questions, and leading axes (repetitions of a simulation)
are kept. The module is based on one idea: an estimate p̄ with variance s² is as uncertain as the fraction of heads
among N* coin tosses, so its interval is Wilson's (1927, J. Amer. Stat. Assoc. 22:209) at N* (Korn and Graubard 1998,
Survey Methodology 24:193):

    N* = max(N, N · (N p̄(1−p̄) + τ) / (N² s² + τ));    new questions: max(N, min(p̄(1−p̄)/s², N + N² p̄(1−p̄)/τ))

| estimate | interval | N | s² | τ | factor |
| --- | --- | --- | --- | --- | --- |
| accuracy | same questions | Q² / Σ 1/n_q | Σ p(1−p)/(n−1) / Q² | 2 | 1.96 |
| accuracy when a fraction a of the questions have only one sample | same questions | Q² / Σ 1/n_q | Σ p(1−p)/(n−1) / Q² | 2 · (1 + 10a) · N/M | 1.96 |
| any mean | new questions | Q | sd² / Q | ½ | t, Q − 1 |
| any mean, questions in clusters | new clusters | G = (Σ m)² / Σ m² | jackknife over clusters | ½ | t, G − 1 |
| pass@k, pass^k, maj@k; k ≤ n/2 | same questions | Q n/k, at least Q | jackknife over samples | ½ | 1.96 |
| pass@k, pass^k, maj@k; k > n/2 | same questions (upper bound) | Q | p̄(1−p̄) / Q | – | 1.96 |
| difference between two runs | same questions | – | from each run | – | 1.96 |
| difference between two runs, one sample per question | same questions (upper bound) | Q | from the pairs | 2 to 3 pairs | 1.96 |
| difference between two runs | new questions | G | jackknife + ½/G² | – | t, G − 1 |
| mean of benchmarks | both | – | sum of the squared half-widths | – | – |
| published score of the same model (`published_variance`) | – | N, M | f p̃(1−p̃)(1/N + 1/M) + r²/12 | 2 | 1.96 |
| accuracy in a gate (`gate`) | all looks | N, M | f h(1−h)(1/N + 1/M) + b² m | 8 | by look |
| mean tokens (`measures`) | both | – | from tokens − mean | – | t, by Σd⁴ |
| deviation of repeated runs (`repeats`) | – | – | from one run | – | χ² |

The τ coin tosses are mixed in, or limit N*, so that samples that all agree never imply an error of 0. `make simulate` prints
the coverage of each row; `docs/method/statistics.md` shows it. Differences and plans are in `difference_stats`.
"""  # noqa: E501 - a row of the table is a line of docs/method/statistics.md

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""An array of numbers; in the formulas, its last axis runs over questions."""

Z_95 = 1.959963984540054
"""97.5% quantile of the standard normal distribution: the two-sided 95% factor."""

SAMPLING_TOSSES = 2.0
"""τ of the accuracy's sampling interval."""

ALONE_FACTOR = 10.0
"""Questions with one sample raise `SAMPLING_TOSSES` by up to this factor, in proportion to their fraction of all
questions. The coverage of the interval is then at least 93% during the second round (`make simulate`); without the
factor, 90%.
"""

QUESTION_TOSSES = 0.5
"""τ of the question interval, of pass@k, pass^k and maj@k, and of a difference for new questions."""

QUARTER_TOSS = (-0.25, 0.25)
"""Continuity correction of the question interval's lower and upper end, in tosses. Without it, the coverage with one
sample per question is 92.5% at worst.
"""

ROUNDING = 1e-13
"""p̄(1−p̄) of values that are all 0 or all 1, up to rounding."""

POISSON_LOW = (0.0, 0.0512932944, 0.3553615107, 0.8176914480)
"""Largest means at which a Poisson count of at least 0, 1, 2 and 3 has a chance of at most 5%. They lower the lower end
if at most 3 samples are right, because Wilson's lower end is too high in this case (Brown, Cai and DasGupta 2001,
Statistical Science 16:101).
"""


MAX_DIGITS = 4
"""Largest number of decimal places of an interval's end."""


class Interval(NamedTuple):
    """A 95% interval in the same unit as its value, stored as `[low, high]`."""

    low: float
    """Lower end."""
    high: float
    """Upper end."""

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.high - self.low) / 2

    @property
    def in_percent(self) -> str:
        """Both ends in percent, such as `55.4–58.8`.

        Ends that would look equal with one decimal place get more, so that no interval looks like a point.
        """
        digits = 1
        while digits < MAX_DIGITS and f"{100 * self.low:.{digits}f}" == f"{100 * self.high:.{digits}f}":
            digits += 1
        return f"{100 * self.low:.{digits}f}–{100 * self.high:.{digits}f}"


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its 95% intervals."""

    value: float
    """The value: a fraction, or a number in `unit`."""
    sampling: Interval | None = None
    """95% interval if the same questions were sampled again; None if there are too few samples to estimate how much
    answers vary.
    """
    question: Interval | None = None
    """95% interval for new questions of the same kind; None if all questions are in one cluster."""
    at_most: bool = False
    """Whether `sampling` is an upper bound because there are too few distinct samples to estimate how much answers
    vary.
    """
    unit: Literal["tokens"] | msgspec.UnsetType = msgspec.UNSET
    """Unit of `value`; absent if the value is a fraction."""

    def __bool__(self) -> Literal[True]:
        """Always true, because a value of 0 is not a missing value."""
        return True


class IntervalEnds(NamedTuple):
    """Lower and upper ends of 95% intervals, as arrays of the same shape."""

    low: Array
    high: Array

    def interval(self) -> Interval:
        """Convert zero-dimensional arrays to an `Interval`."""
        return Interval(float(self.low), float(self.high))


# ---- distributions


def normal_two_sided(z: float) -> float:
    """The chance that a standard normal value is at least |z| away from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def t_two_sided(t: float, df: int) -> float:
    """The chance that a value of Student's t with df ≥ 1 degrees of freedom is at least |t| away from 0.

    The finite series of Abramowitz and Stegun (1964), 26.7.3 and 26.7.4; exact up to rounding.
    """
    angle, odd = math.atan2(abs(t), math.sqrt(df)), df % 2
    total, term = 0.0, math.cos(angle) if odd else 1.0
    for step in range(odd, df - 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (step + 1) / (step + 2)
    inside = math.sin(angle) * total
    return min(1.0, max(0.0, 1 - (2 / math.pi * (angle + inside) if odd else inside)))


@lru_cache(maxsize=4096)
def t_factor(df: int) -> float:
    """The two-sided 95% factor of Student's t with df degrees of freedom (its 97.5% quantile), to 1e-10.

    Computed by bisection; from 500 degrees on, by the series of Abramowitz and Stegun (1964), 26.7.5.
    """
    z, low, high = Z_95, Z_95, 13.0
    if df >= 500:
        return z + sum(
            (
                (z**3 + z) / 4 / df,
                (5 * z**5 + 16 * z**3 + 3 * z) / 96 / df**2,
                (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / df**3,
                (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160 / df**4,
            )
        )
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (middle, high) if t_two_sided(middle, df) > 0.05 else (low, middle)
    return high


def quantile(values: Sequence[float] | Array, q: float) -> float | None:
    """The smallest value that at least a fraction `q` of the values do not exceed; None if there are no values."""
    if not len(values):
        return None
    rank = max(0, math.ceil(q * len(values)) - 1)
    return float(np.partition(values, rank)[rank])


# ---- the interval of a mean


def wilson(mean: Array, trials: Array, factor: float = Z_95) -> IntervalEnds:
    """Wilson's score interval of the true chance, if a fraction `mean` of `trials` coin tosses succeeded."""
    return _wilson_at(mean, factor * factor / trials)


def _wilson_at(mean: Array, ratio: Array) -> IntervalEnds:
    """Wilson's interval; ratio: factor² / trials."""
    center, reach = mean + ratio / 2, np.sqrt(ratio * mean * (1 - mean) + ratio * ratio / 4)
    low, high = (center - reach) / (1 + ratio), (center + reach) / (1 + ratio)
    # Rounding may put an end on the wrong side of a mean of 0 or 1.
    return IntervalEnds(np.clip(np.minimum(low, mean), 0, 1), np.clip(np.maximum(high, mean), 0, 1))


def _tosses_worth(mean: Array, variance: Array, total: Array, tosses: Array | float, least: Array | float) -> Array:
    """N* of the module's formula, at least `least`; `least` if the variance is NaN (unknown)."""
    worth = total * (total * mean * (1 - mean) + tosses) / (total * total * variance + tosses)
    return np.maximum(np.where(np.isnan(variance), least, worth), least)


def _with_poisson_ends(limits: IntervalEnds, right: Array, wrong: Array, total: Array) -> IntervalEnds:
    """Widen the intervals of means near 0 or 1 if at most three of `total` samples are right, or wrong."""

    def end(count: Array, wilsons: Array) -> Array:
        poisson = np.interp(count, range(len(POISSON_LOW)), POISSON_LOW) / total
        # A count that is a product of fractions may be just above the whole number.
        return np.where(count <= len(POISSON_LOW) - 1 + 1e-9, np.minimum(wilsons, poisson), wilsons)

    return IntervalEnds(end(right, limits.low), 1 - end(wrong, 1 - limits.high))


def effective_samples(counts: Array, weights: Array | float | None = None) -> Array:
    """The number of samples that, spread equally over the questions, would give an equally precise mean: 1 / Σ w²/n_q.

    counts: number of samples of each question, n_q. weights: weight of each question in the mean, with sum 1; None: 1/Q
    each.
    """
    weights = 1 / counts.shape[-1] if weights is None else weights
    return np.asarray(1 / (weights**2 / counts).sum(axis=-1))


def sampling_variance_of_mean(
    correct: Array, counts: Array, weights: Array | None = None, squares: Array | None = None
) -> Array:
    """The variance of the accuracy if the same questions were asked again: s² = Σ w² p(1−p)/(n−1).

    correct, counts: (…, Q), samples graded correct and all samples of each question, counts ≥ 1. A question with one
    sample gets the mean variance of the others; the result is NaN if every question has one. weights: as in
    `effective_samples`. squares: given if samples may be partly right. Then `correct` is the sum of the samples'
    fractions, and `squares` the sum of their squares.
    """
    rates, repeated = correct / counts, counts > 1
    spread = rates * (1 - rates) if squares is None else np.maximum(squares / counts - rates * rates, 0.0)
    single = np.where(repeated, spread * counts / np.maximum(counts - 1, 1), 0.0)
    n_repeated = repeated.sum(axis=-1, keepdims=True)
    typical = np.where(n_repeated > 0, single.sum(axis=-1, keepdims=True) / np.maximum(n_repeated, 1), np.nan)
    share = 1 / counts.shape[-1] if weights is None else weights
    return np.asarray((share**2 * np.where(repeated, single, typical) / counts).sum(axis=-1))


def sampling_limits(
    correct: Array, counts: Array, weights: Array | None = None, squares: Array | None = None
) -> IntervalEnds:
    """The sampling interval, for the mean accuracy over infinitely many reruns of these questions.

    Arguments as in `sampling_variance_of_mean`. With one sample of every question, the variance is unknown, and the
    largest possible variance is used, that of equally hard questions: "at most". If only some questions have a second
    sample, the weight of the observed variance corresponds to the samples of these questions.
    """
    share = np.full(counts.shape[-1], 1 / counts.shape[-1]) if weights is None else weights
    mean = (correct / counts).mean(axis=-1) if weights is None else (share * correct / counts).sum(axis=-1)
    total = effective_samples(counts, weights)
    alone = np.where(counts == 1, share, 0.0).sum(axis=-1)
    informed = np.clip(np.where(counts > 1, counts, 0.0).sum(axis=-1), 1.0, total)
    tosses = SAMPLING_TOSSES * (1 + ALONE_FACTOR * alone) * total / informed
    variance = sampling_variance_of_mean(correct, counts, weights, squares)
    limits = wilson(mean, _tosses_worth(mean, variance, total, tosses, total))
    right = correct.sum(axis=-1)
    return _with_poisson_ends(limits, right, counts.sum(axis=-1) - right, total)


def sampling_limits_of(mean: Array, variance: Array, total: Array) -> IntervalEnds:
    """The expected sampling interval of a mean with this variance over `total` samples, without the Poisson ends.

    variance: NaN if every question has one sample.
    """
    return wilson(mean, _tosses_worth(mean, variance, total, SAMPLING_TOSSES, total))


def effective_clusters(sizes: NDArray[np.integer] | Array) -> float:
    """The equivalent number of clusters of equal size: (Σ m)² / Σ m², with m a cluster's size or share."""
    return float(sizes.sum()) ** 2 / float((sizes**2).sum())


class Between(NamedTuple):
    """A mean over questions that are treated as drawn from all questions of their kind, one whole cluster at a time.

    variance: variance of the mean. clusters: equivalent number of clusters of equal size, G. freedom: degrees of
    freedom.
    """

    mean: Array
    variance: Array
    clusters: float
    freedom: int


def between(values: Array, clusters: NDArray[np.intp] | None = None, weights: Array | None = None) -> Between:
    """The mean of `values`, (…, Q), and its variance for other questions of this kind, which come in clusters.

    clusters: (Q,), the index 0 … C−1 of each question's cluster, C ≥ 2; None: each question is a separate cluster, and
    the variance is sd²/Q. The variance is the jackknife over clusters (Bell and McCaffrey 2002, Survey Methodology
    28:169), because a large cluster pulls the mean toward itself and so hides its own deviation. weights: (Q,), given
    if other questions would also have other weights; the mean is then a ratio of two sums, and its variance is
    linearized (Cochran 1977, Sampling Techniques, 6.4).
    """
    n = values.shape[-1]
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    numbers = np.arange(n) if clusters is None else clusters
    cluster_shares = np.bincount(numbers, share)
    n_clusters = len(cluster_shares)
    mean = values.mean(axis=-1) if weights is None else (share * values).sum(axis=-1)
    pulls = share * (values - mean[..., None])
    if n_clusters < n:
        # A single bincount sums all rows, because each row has its own range of cluster numbers.
        rows = pulls.reshape(-1, n)
        labels = np.arange(len(rows))[:, None] * n_clusters + numbers
        sums = np.bincount(labels.ravel(), rows.ravel(), len(rows) * n_clusters)
        pulls = sums.reshape(*values.shape[:-1], n_clusters)
    if weights is None:
        pulls = pulls * (1 - 1 / n_clusters) / (1 - cluster_shares)
    variance = (pulls**2).sum(axis=-1) * n_clusters / (n_clusters - 1)
    effective = effective_clusters(cluster_shares)
    # A sum just below a whole number must not cost a degree of freedom.
    return Between(np.asarray(mean), np.asarray(variance), effective, max(1, int(effective - 1 + 1e-9)))


def question_limits(
    values: Array, clusters: NDArray[np.intp] | None = None, weights: Array | None = None
) -> IntervalEnds:
    """The question interval, for the mean over all questions of this kind; arguments as in `between`.

    N* = p̄(1−p̄)/s², but at least G, and at most G + G² p̄(1−p̄)/τ: even if all drawn questions are alike, half a
    question of a kind that was not drawn may be all wrong, or all right. The lower end is Wilson's at p̄ + (m − ¼)/N*,
    and the upper end at p̄ + (m + ¼)/N*. m corrects the skewness, since Wilson's interval assumes that of a coin: m = 2
    (1 − 2p̄) (2/(1 + d) − 1¼), with d = G/N*, the fraction of a coin's variance between questions.
    """
    mean, variance, effective, freedom = between(values, clusters, weights)
    spread = mean * (1 - mean)
    most = effective + effective * effective * mean * (1 - mean) / QUESTION_TOSSES
    with np.errstate(divide="ignore", invalid="ignore"):
        trials = np.where(spread > ROUNDING, np.minimum(spread / variance, most), effective)
    # With unequal weights, a mean may be less certain than one coin toss per cluster.
    trials = np.maximum(trials, effective) if weights is None else trials
    moved = 2 * (1 - 2 * mean) * (2 / (1 + np.minimum(effective / trials, 1.0)) - 1.25)
    low, high = (
        wilson(np.clip(mean + (moved + side) / trials, 0, 1), trials, t_factor(freedom)) for side in QUARTER_TOSS
    )
    return IntervalEnds(np.minimum(low.low, mean), np.maximum(high.high, mean))


def paired_limits(first: Array, second: Array, n_questions: int) -> IntervalEnds:
    """The interval of the difference between two runs with one sample per question.

    first, second: number of questions that only the first run, or only the second run, has right. Bonett and Price
    (2012, J. Educ. Behav. Stat. 37:479): the normal interval with one pair of each kind added. The end away from 0 is
    farther out, as in Wilson's interval: with a larger true difference, more questions differ, in proportion to the
    observed pairs. A third added pair, which fades as more pairs differ, is for runs that hardly differ. Without these
    two changes, the interval misses too often at that end if a run is never the worse one (docs/method/statistics.md).
    """
    total = n_questions + 2
    n_apart = first + second
    gap, apart = (first - second) / total, (n_apart + 2 + 1 / (n_apart + 1)) / total
    unit = Z_95 * Z_95 / total
    rise, square = unit * gap / apart / 2, unit * (apart - gap * gap)
    below, above = (np.maximum(side, 0.0) + np.hypot(np.maximum(side, 0.0), np.sqrt(square)) for side in (-rise, rise))
    return IntervalEnds(np.maximum(gap - below, -1.0), np.minimum(gap + above, 1.0))


def draw_limits(mean: Array, variance: Array, n_questions: int, total: float) -> IntervalEnds:
    """The sampling interval of pass@k, pass^k or maj@k.

    variance: variance of the mean if the same questions were asked again; if it is NaN (unknown), the interval is the
    widest possible one, that of one coin toss per question. total: total number of independent draws of k samples.
    """
    limits = wilson(mean, _tosses_worth(mean, variance, np.asarray(total), QUESTION_TOSSES, float(n_questions)))
    if not np.isnan(variance).all():
        return limits
    return _with_poisson_ends(limits, n_questions * mean, n_questions * (1 - mean), np.asarray(float(n_questions)))


def mean_limits(values: Array, limits: IntervalEnds) -> IntervalEnds:
    """The interval of the mean of independent estimates (such as accuracies of benchmarks) from their intervals.

    values, limits: (…, number of estimates). The squares of the half-widths add; the result is Wilson's interval of
    that half-width, so a single estimate keeps its interval. Adding the distances to the lower and to the upper ends
    separately (Newcombe 1998) has a coverage as low as 91% if ten small benchmarks are nearly all right.
    """
    mean, n = values.mean(axis=-1), values.shape[-1]
    square = np.minimum((((limits.high - limits.low) / 2) ** 2).sum(axis=-1) / n**2, 0.4999**2)
    # Wilson's half-width r solves r² (1 + t)² = p(1−p) t + t²/4 with t = factor²/trials. This form of the root adds;
    # the usual form subtracts two nearly equal numbers if the square is small.
    linear = mean * (1 - mean) - 2 * square
    return _wilson_at(mean, 2 * square / (linear + np.sqrt(linear * linear + (1 - 4 * square) * square)))
