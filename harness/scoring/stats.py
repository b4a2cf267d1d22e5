"""Formulas for one question (pass@k, maj@k, the jackknife) and for a mean over questions: errors and 95% intervals.

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
the coverage of each row; `docs/method/statistics.md` shows it. The end of the module computes what k of a question's n samples
would have shown: pass@k, that any of them is right; pass^k, that all are; maj@k, that the majority is; `docs/statistics.md`
explains them. Differences and plans are in `stats_differences`.

Long: the table lists every formula here, and they are checked together.
"""  # noqa: E501 - a row of the table is a line of docs/method/statistics.md

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
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


# ---- one question


def at_least_of_k(n: int, c: int, k: int, least: int) -> float:
    """The chance that at least `least` ≥ 1 of k samples are right, drawn from n samples of which c are right. Unbiased.

    least = 1: pass@k (Chen et al. 2021, arXiv:2107.03374). least = k: pass^k (Yao et al. 2024, arXiv:2406.12045).
    Computed in integers until the last division.
    """

    def ways(hits: range) -> int:
        return sum(math.comb(c, j) * math.comb(n - c, k - j) for j in hits)

    subsets = math.comb(n, k)
    few = 2 * least <= k + 1
    return (subsets - ways(range(least)) if few else ways(range(least, min(c, k) + 1))) / subsets


def jackknife(left_out: Sequence[tuple[float, int]]) -> float:
    """Variance of one question's estimate over reruns: (n−1)/n · Σ_i (θ_i − θ̄)² (Efron and Stein 1981, Annals of
    Statistics 9:586).

    left_out: (estimate without one sample, number of samples whose omission gives that estimate).
    """
    n = sum(times for _, times in left_out)
    mean = math.fsum(value * times for value, times in left_out) / n
    return (n - 1) / n * math.fsum(times * (value - mean) ** 2 for value, times in left_out)


def without_one(n: int, c: int, value: Callable[[int, int], float]) -> float:
    """The `jackknife` of an estimate `value(n, c)` that depends on the number of right samples."""
    return jackknife([(value(n - 1, c - right), times) for right, times in ((1, c), (0, n - c)) if times])


class VoteGroup(NamedTuple):
    """The samples of one question that voted for the same answer: their number, and how many were graded correct.

    correct is 0 or size, unless the vote is coarser than the grader; in this case, a win of the group counts as correct
    / size.
    """

    size: int
    correct: int


def maj_at_k(groups: Sequence[VoteGroup], silent: int, k: int) -> float:
    """Expected correctness of the majority answer among k samples drawn without replacement; exact for every k.

    groups: the votes. silent: number of samples without an answer, which do not vote. Tied answers share the win; k
    silent samples score 0.
    """
    n = sum(group.size for group in groups) + silent
    assert 1 <= k <= n, "`check_ks` refuses any other k"
    if k == 1:
        return sum(group.correct for group in groups) / n
    if k == n:
        largest = max((group.size for group in groups), default=0)
        return float(np.mean([group.correct / group.size for group in groups if group.size == largest] or [0.0]))
    return _majority(tuple(sorted(groups)), silent, k)[0]


def maj_jackknife(groups: Sequence[VoteGroup], silent: int, k: int) -> float:
    """Variance of one question's maj@k over reruns, from leaving out each sample once; k < the number of samples."""
    return _majority(tuple(sorted(groups)), silent, k)[1]


@lru_cache(maxsize=4096)
def _majority(groups: tuple[VoteGroup, ...], silent: int, k: int) -> tuple[float, float]:
    """maj@k and its jackknife. Leaving out a sample is computed as excluding the draws that contain it."""
    n, times = sum(group.size for group in groups) + silent, Counter(group.size for group in groups)
    sizes, shares = sorted(times), dict.fromkeys(times, 0.0)
    for group in groups:
        shares[group.size] += group.correct / group.size
    if not any(shares.values()):
        return 0.0, 0.0
    wins = _wins(sizes, [times[size] for size in sizes], [shares[size] for size in sizes], n, k)
    total = math.fsum(shares[size] * wins.chance[i] for i, size in enumerate(sizes))
    left_out = [(total - wins.elsewhere, silent)] if silent else []
    for group, n_equal in Counter(groups).items():
        i, share = sizes.index(group.size), group.correct / group.size
        # Another group wins, and the left-out sample is not drawn.
        rival = wins.rival[i] + (shares[group.size] - share) * wins.twin[i]
        others = total - share * wins.chance[i] - rival / group.size
        for right, samples in ((1, group.correct), (0, group.size - group.correct)):
            own = (group.correct - right) / max(group.size - 1, 1)
            left_out.append((others + own * (wins.chance[i] - wins.own[i] / group.size), n_equal * samples))
    # Rounding must not differ between machines, or create a spread where there is none.
    return min(1.0, round(total, 13)), jackknife([(round(value * n / (n - k), 13), m) for value, m in left_out if m])


class _Wins(NamedTuple):
    """For each class (the groups of one size): chance that a given group of the class wins the majority; and the mean
    votes, if the majority is right, of a given group that wins (own), that loses to a larger or smaller group (rival),
    or that loses to another given group of its class (twin). elsewhere: the same for one sample that does not vote.
    """

    chance: Array
    own: Array
    rival: Array
    twin: Array
    elsewhere: float


def _wins(sizes: Sequence[int], times: Sequence[int], shares: Sequence[float], n: int, k: int) -> _Wins:
    """The chances of winning the majority of k of n samples, 1 < k < n.

    Drawing k of n without replacement is the same as taking each sample with chance p = k/n, given that k were taken.
    So, with b(s, u) the chance of u votes from a group of size s, a group wins with v votes (a tie of t + 1 groups
    counts 1/(t + 1)) with chance b(s, v) [z^(k−v)] (1 − p + pz)^rest ∫₀¹ Π_i F_i(z, y) dy / b(n, k), where rival i has
    fewer than v votes, or has v and ties: F_i = Σ_{u<v} b(s_i, u) z^u + y b(s_i, v) z^v, since ∫ y^t dy = 1/(t + 1).
    The coefficient is a mean over roots of unity, the integral a Gauss-Legendre sum that is exact for all ties. z·dF/dz
    in place of a group's F gives its mean votes. sizes: ascending. times, shares: number of groups of each size, and
    the sum of their fractions right.
    """
    p, most, n_classes = k / n, min(k, sizes[-1]), len(sizes)
    votes = np.array([_binomial(size, p, most) for size in sizes])
    # Conditions never make a sum of draws more likely, so it is enough if the roots span the reach of the binomial.
    m = min(n + 1, int(12 * math.sqrt(k * (1 - p))) + 40)
    roots = np.exp(2j * np.pi / m * np.arange(m))
    z = roots[: m // 2 + 1]
    powers = roots[np.outer(np.arange(most + 1), np.arange(len(z))) % m]
    fold = np.full(len(z), 2.0)
    fold[0], fold[-1] = 1.0, 1.0 + m % 2
    scale = fold * roots[-k * np.arange(len(z)) % m] / m / _binomial(n, p, k)[k]
    chance, own, rival, twin, elsewhere = *(np.zeros(n_classes) for _ in range(4)), 0.0
    likely = _likely_votes(votes, np.array(times), np.array(shares) > 0)
    u = np.arange(likely.start)
    low, low_mean = votes[:, u] @ powers[u], (votes[:, u] * u) @ powers[u]
    for v in likely:
        first = int(np.searchsorted(sizes, v))
        rest = n - sum(size * t for size, t in zip(sizes[first:], times[first:], strict=True))
        ties = min(sum(times[first:]) - 1, (k - v) // v)
        y, weights = _gauss_legendre(ties // 2 + 1)
        y = ((y + 1) / 2)[:, None]
        base = (weights / 2)[:, None] * scale * (1 - p + p * z) ** max(rest - 1, 0)
        win = {c: votes[c, v] * powers[v] for c in range(first, n_classes)}
        factor = {c: low[c] + y * win[c] for c in win}
        mean = {c: low_mean[c] + y * v * win[c] for c in win}
        # The other groups in the class of a given group.
        others = {c: factor[c] ** (times[c] - 1) for c in win}
        # Products over all classes before a class, then over all classes after it. none: no group in them wins. one:
        # one group wins, summed over the winners and weighted by the fraction right.
        none, one = base, np.zeros_like(base)
        before = {}
        for c in win:
            before[c] = none, one
            none, one = none * others[c] * factor[c], (one * factor[c] + shares[c] * none * win[c]) * others[c]
        drawn = float((one * p * z).real.sum()) if rest else 0.0
        elsewhere += drawn
        rival[:first] += np.array(sizes[:first]) * drawn
        none, one = np.ones_like(base) * (1 - p + p * z if rest else 1), np.zeros_like(base)
        for c in reversed(win):
            none_before, one_before = before[c]
            outside = none_before * none
            won = float((outside * others[c] * win[c]).real.sum())
            chance[c] += won
            own[c] += v * won
            rival[c] += float(((none_before * one + one_before * none) * others[c] * mean[c]).real.sum())
            if times[c] > 1:
                twin[c] += float((outside * factor[c] ** (times[c] - 2) * win[c] * mean[c]).real.sum())
            none, one = none * others[c] * factor[c], (one * factor[c] + shares[c] * none * win[c]) * others[c]
        low += votes[:, v, None] * powers[v]
        low_mean += v * votes[:, v, None] * powers[v]
    return _Wins(chance, own, rival, twin, elsewhere)


_gauss_legendre = lru_cache(maxsize=1024)(lambda n: np.polynomial.legendre.leggauss(n))  # NumPy imports it when used.
"""The nodes in [−1, 1] and weights of the n-term sum that integrates polynomials of degree 2n − 1 exactly."""


def _likely_votes(votes: Array, times: NDArray[np.int64], right: NDArray[np.bool_]) -> range:
    """The numbers of votes with which a right group may win; numbers outside this range are less likely by e^-40.

    A right group of class r wins with v votes only if it has v votes and every other group at most v. The logarithm of
    this chance is Σ_c times_c log P_c(≤ v) + log P_r(v) − log P_r(≤ v), maximized over r.

    votes: (classes, most + 1), the chance of each number of votes. times: number of groups in each class. right:
    whether the class has a group that may be right.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        at_most, exactly = np.log(np.cumsum(votes, axis=1)), np.log(votes)
        score = np.nan_to_num((times[:, None] * at_most).sum(axis=0) + (exactly - at_most)[right], nan=-math.inf)
    of_right = score[:, 1:].max(axis=0)
    likely = np.flatnonzero(of_right > of_right.max() - 40) + 1
    return range(int(likely[0]), int(likely[-1]) + 1) if len(likely) else range(0)


def _binomial(n: int, p: float, most: int) -> Array:
    """The chances of 0 … `most` successes in n trials."""
    u = np.arange(min(n, most) + 1)
    ways = [math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1) for x in u.tolist()]
    chances = np.exp(np.array(ways) + u * math.log(p) + (n - u) * math.log1p(-p))
    return np.pad(chances, (0, most + 1 - len(u)))
