"""The 95 % intervals of a mean over questions, with the distributions that they need.

Pure functions on arrays; the last axis runs over questions. Both intervals are Wilson's (1927, J. Amer. Stat. Assoc.
22:209) at an effective number of trials, as Korn and Graubard (1998, Survey Methodology 24:193) do it for surveys: the
number of coin tosses whose mean would be as uncertain as the accuracy. With N trials, s² the observed variance of the
mean and τ extra tosses,

    N* = max(N, N · (N p̄(1−p̄) + τ) / (N² s² + τ))        Wilson's interval of p̄ at N* tosses

| interval | everyday meaning | N | s² | τ | factor |
| --- | --- | --- | --- | --- | --- |
| sampling | same questions, asked again | Q² / Σ 1/n_q | Σ p(1−p)/(n−1) / Q² | `SAMPLING_TOSSES` | 1.96 |
| question | other questions of this kind | Q | sd² / Q | `QUESTION_TOSSES` | t with Q − 1 |
| question, in clusters of m questions | other clusters | G = (Σm)²/Σm² | `cluster_variance` | `QUESTION_TOSSES` | t
with G − 1 |
| pass@k, maj@k | same questions, asked again | Σ n_q / k | jackknife | `QUESTION_TOSSES` | 1.96 |

The τ tosses have the variance of a coin with chance p̄. They matter only where few samples were seen, or where all
agree: such samples then never claim an error of 0. N* is never below N: samples of questions that differ in difficulty
say more about these questions than tosses of one coin, not less. `make simulate` prints the coverage of each;
`docs/method/statistics.md` shows it.

All values are fractions. Leading axes (repetitions of a simulation) are kept.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Z_95 = 1.959963984540054
"""97.5 % quantile of the standard normal distribution: the two-sided 95 % factor."""

Z_POWER = 0.8416212335729143
"""80 % quantile of the standard normal distribution; tests should find a true difference in 80 % of repetitions."""


def power_factor(n_tests: int = 1) -> float:
    """The smallest true difference, in standard errors, that a test at the 5 % level finds in 80 % of repetitions.

    It is 2.80 for one test. n_tests: p values that Holm's method corrects together. The factor is for Bonferroni's
    correction, Holm's worst case.
    """
    return NormalDist().inv_cdf(1 - 0.025 / n_tests) + Z_POWER


def normal_two_sided(z: float) -> float:
    """Chance that a standard normal value lies at least |z| from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def t_two_sided(t: float, df: int) -> float:
    """Chance that a value of Student's t with df ≥ 1 degrees of freedom lies at least |t| from 0.

    The finite series of Abramowitz and Stegun (1964), 26.7.3 and 26.7.4; exact up to rounding.
    """
    assert df >= 1
    angle = math.atan2(abs(t), math.sqrt(df))
    sine, cosine2 = math.sin(angle), math.cos(angle) ** 2
    odd = df % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for step in range(odd, df - 1, 2):
        total += term
        term *= cosine2 * (step + 1) / (step + 2)
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return min(1.0, max(0.0, 1.0 - inside))


_SERIES_DF = 500
"""Degrees of freedom from which the series of `t_factor` is exact to 1e-12."""


@lru_cache(maxsize=4096)
def t_factor(df: int) -> float:
    """The two-sided 95 % factor of Student's t (its 97.5 % quantile), to 1e-10.

    df: degrees of freedom. By bisection; of many degrees, where each of its steps takes long, by the series of
    Abramowitz and Stegun (1964), 26.7.5.
    """
    if df >= _SERIES_DF:
        z = Z_95
        terms = (
            z,
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
            (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
        )
        return math.fsum(term / df**power for power, term in enumerate(terms))
    # 12.71, the factor of one degree of freedom, is the largest.
    low, high = Z_95, 13.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (middle, high) if t_two_sided(middle, df) > 0.05 else (low, middle)
    return high


Array = NDArray[np.float64]

SAMPLING_TOSSES = 2.0
"""Coin tosses that are mixed into an observed sampling variance: τ in the table above."""

ALONE_FACTOR = 10.0
"""Questions with one sample raise `SAMPLING_TOSSES` by up to this factor, in proportion to their share, because they
show nothing of their variance. The interval then covers at least 93 % during the second round (`make simulate`);
without the factor, 90 %.
"""

QUESTION_TOSSES = 0.5
"""Coin tosses that are mixed into an observed variance between questions, or into that of pass@k, pass^k or maj@k."""

POISSON_LOW = (0.0, 0.0512932944, 0.3553615107, 0.8176914480)
"""Largest means at which a Poisson count of at least 0, 1, 2 and 3 has a chance of at most 5 %. They lower the lower
end where at most 3 samples are right, because Wilson's begins too high there (Brown, Cai and DasGupta 2001, Statistical
Science 16:101).
"""

_WIDEST = 0.4999**2
"""Square of the largest half-width that `mean_limits` inverts: Wilson's interval reaches 0 … 1 only without a trial."""


class Interval(NamedTuple):
    """A 95 % interval, both ends fractions; `[low, high]` in a file."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the distance between the ends, a fraction."""
        return (self.high - self.low) / 2


class IntervalEnds(NamedTuple):
    """Lower and upper ends of 95 % intervals, as arrays of one shape."""

    low: Array
    high: Array

    def interval(self) -> Interval:
        """The interval of arrays without axes."""
        return Interval(float(self.low), float(self.high))


def wilson(mean: Array, trials: Array, factor: float = Z_95) -> IntervalEnds:
    """Return Wilson's score interval of the true chance, if a fraction `mean` of `trials` coin tosses succeeded.

    factor: standard errors from the mean to each end.
    """
    square = factor * factor
    centre = (mean + square / (2 * trials)) / (1 + square / trials)
    reach = factor * np.sqrt(mean * (1 - mean) / trials + square / (4 * trials * trials)) / (1 + square / trials)
    # Rounding may put an end on the wrong side of a mean at 0 or 1.
    return IntervalEnds(
        np.clip(np.minimum(centre - reach, mean), 0, 1), np.clip(np.maximum(centre + reach, mean), 0, 1)
    )


def effective_samples(counts: Array, weights: Array | None = None) -> Array:
    """Return how many samples, spread equally over the questions, would give as exact a mean: Q² / Σ 1/n_q.

    That is the number of all samples if every question has the same number, and less if the numbers differ. counts:
    samples of each question, n_q. weights: each question's weight w_q in the mean, with which the result is 1 / Σ
    w_q²/n_q; None = equal weights.
    """
    return np.asarray(1 / (_weights(counts, weights) ** 2 / counts).sum(axis=-1))


def sampling_variance_of_mean(
    correct: Array, counts: Array, weights: Array | None = None, squares: Array | None = None
) -> Array:
    """Return the variance of the accuracy if the same questions were asked again: s² = Σ p_q(1−p_q)/(n_q−1) / Q².

    correct, counts: samples graded correct and samples of each question, counts ≥ 1. A question with one sample takes
    the mean variance of the others; NaN where every question has one. weights: each question's weight in the mean, 1 in
    all, and w_q² then stands for 1/Q²; None = equal weights. squares: given if a sample may be right in part. Then
    `correct` is the sum of the samples' fractions, `squares` the sum of their squares, and squares/n_q stands for the
    first p_q of p_q(1−p_q).
    """
    rates = correct / counts
    repeated = counts > 1
    spread = rates * (1 - rates) if squares is None else np.maximum(squares / counts - rates * rates, 0.0)
    single = np.where(repeated, spread * counts / np.maximum(counts - 1, 1), 0.0)
    n_repeated = repeated.sum(axis=-1, keepdims=True)
    typical = np.where(n_repeated > 0, single.sum(axis=-1, keepdims=True) / np.maximum(n_repeated, 1), np.nan)
    return np.asarray((_weights(counts, weights) ** 2 * np.where(repeated, single, typical) / counts).sum(axis=-1))


def _weights(counts: Array, weights: Array | None) -> Array:
    return np.asarray(1 / counts.shape[-1]) if weights is None else weights


def sampling_limits(
    correct: Array, counts: Array, weights: Array | None = None, squares: Array | None = None
) -> IntervalEnds:
    """Return the sampling interval: the range in which the mean accuracy of endless reruns of these questions lies.

    correct, counts, weights, squares: (…, Q), as in `sampling_variance_of_mean`. With one sample of every question
    the variance is unknown. The largest possible one is used, that of equally hard questions, so the true interval is
    "at most" as wide. If only some questions have a second sample (the second round is half done), the observed
    variance counts only as much as the samples of these questions, and `ALONE_FACTOR` adds tosses.
    """
    mean = (correct / counts).mean(axis=-1) if weights is None else (weights * correct / counts).sum(axis=-1)
    total = effective_samples(counts, weights)
    observed = sampling_variance_of_mean(correct, counts, weights, squares)
    alone = (counts == 1).mean(axis=-1) if weights is None else np.where(counts == 1, weights, 0.0).sum(axis=-1)
    informed = np.clip(np.where(counts > 1, counts, 0.0).sum(axis=-1), 1.0, total)
    tosses = SAMPLING_TOSSES * (1 + ALONE_FACTOR * alone) * total / informed
    # Without a question of two samples the variance is unknown; the binomial one, the largest possible, stands in.
    trials = np.where(np.isnan(observed), total, _trials(mean, observed, total, tosses))
    limits = wilson(mean, np.maximum(trials, total))
    right, samples = correct.sum(axis=-1), counts.sum(axis=-1)
    return _with_poisson_ends(limits, right, samples - right, total)


def sampling_limits_of(mean: Array, variance: Array, total: Array) -> IntervalEnds:
    """Return the sampling interval to expect of a mean with this variance over `total` samples, by `sampling_limits`.

    variance: NaN where every question has one sample. Without the Poisson limits.
    """
    trials = np.where(np.isnan(variance), total, _trials(mean, variance, total, SAMPLING_TOSSES))
    return wilson(mean, np.maximum(trials, total))


def question_limits(values: Array) -> IntervalEnds:
    """Return the question interval: where the mean over all questions of this kind lies.

    The questions at hand count as a random draw from all questions of this kind.

    values: (…, Q), a fraction for each of Q ≥ 2 questions: its accuracy, pass@k or maj@k.
    """
    n_questions = values.shape[-1]
    assert n_questions >= 2
    mean = values.mean(axis=-1)
    observed = values.var(axis=-1, ddof=1) / n_questions
    trials = _trials(mean, observed, np.asarray(float(n_questions)), QUESTION_TOSSES)
    limits = wilson(mean, np.maximum(trials, n_questions), t_factor(n_questions - 1))
    right = values.sum(axis=-1)
    return _with_poisson_ends(limits, right, n_questions - right, np.asarray(float(n_questions)))


def cluster_variance(values: Array, clusters: NDArray[np.intp]) -> Array:
    """Return the variance of a mean over questions that come in clusters, such as questions on one passage.

    Only whole clusters are independent: G/(G−1) · Σ_g (w_g · Σ_{q in g} (p_q − p̄))² / Q². values: (…, Q), p_q.
    clusters: (Q,), the number 0 … G−1 of each question's cluster. With w_g = (Q − Q/G)/(Q − m_g), m_g the size of a
    cluster, the result is the jackknife over clusters (Bell and McCaffrey 2002, Survey Methodology 28:169): a large
    cluster pulls the mean towards itself, and without w_g hides its own deviation. Clusters of one size have w_g = 1
    (Liang and Zeger 1986, Biometrika 73:13, with the usual factor for few clusters). With one question in each cluster
    the result is sd²/Q.
    """
    sizes = np.bincount(clusters)
    n_clusters, n_questions = len(sizes), len(clusters)
    assert n_clusters >= 2
    deviations = values - values.mean(axis=-1, keepdims=True)
    rows = deviations.reshape(-1, n_questions)
    # One bincount sums all rows: each row has its own range of cluster numbers.
    numbers = np.arange(len(rows))[:, None] * n_clusters + clusters
    sums = np.bincount(numbers.ravel(), rows.ravel(), len(rows) * n_clusters)
    pulls = sums.reshape(*values.shape[:-1], n_clusters) * (
        (n_questions - n_questions / n_clusters) / (n_questions - sizes)
    )
    return np.asarray((pulls**2).sum(axis=-1) * n_clusters / (n_clusters - 1) / n_questions**2)


def effective_clusters(clusters: NDArray[np.intp]) -> float:
    """Return how many clusters of one size would tell as much as these: (Σ m)² / Σ m², with m the clusters' sizes.

    clusters: the number 0 … G−1 of each question's cluster. The result is G if all sizes are equal.
    """
    sizes = np.bincount(clusters).astype(float)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


def cluster_freedom(clusters: NDArray[np.intp]) -> int:
    """Degrees of freedom of `cluster_variance`: `effective_clusters` less one, rounded down, at least 1."""
    return max(1, int(effective_clusters(clusters) - 1))


def cluster_limits(values: Array, clusters: NDArray[np.intp]) -> IntervalEnds:
    """The interval for other questions of this kind, where questions come in clusters (a shared passage or template).

    values: each question's fraction right. clusters: the number 0 … G−1 of each question's cluster.
    """
    effective = np.asarray(effective_clusters(clusters))
    mean = values.mean(axis=-1)
    trials = _trials(mean, cluster_variance(values, clusters), effective, QUESTION_TOSSES)
    limits = wilson(mean, np.maximum(trials, effective), t_factor(cluster_freedom(clusters)))
    return _with_poisson_ends(limits, effective * mean, effective * (1 - mean), effective)


def weighted_limits(values: Array, weights: Array, clusters: NDArray[np.intp]) -> IntervalEnds:
    """Return the interval of a weighted mean Σ w·v / Σ w for other questions of this kind, which come in clusters.

    values, weights: (Q,); other questions would have other weights, too. clusters: as in `cluster_limits`. The mean is
    a ratio of two sums. Its variance is that of the sums of w_q·(v_q − mean) by cluster (linearisation: Cochran 1977,
    Sampling Techniques, 6.4).
    """
    n_clusters, share = int(clusters.max()) + 1, weights / weights.sum()
    assert n_clusters >= 2
    mean = np.asarray((share * values).sum())
    pulls = np.bincount(clusters, weights=share * (values - mean))
    effective = np.asarray(1 / (np.bincount(clusters, weights=share) ** 2).sum())
    trials = _trials(mean, np.asarray((pulls**2).sum() * n_clusters / (n_clusters - 1)), effective, QUESTION_TOSSES)
    # A sum just below a whole number must not cost a degree of freedom.
    limits = wilson(mean, trials, t_factor(max(1, int(effective - 1 + 1e-9))))
    return _with_poisson_ends(limits, effective * mean, effective * (1 - mean), effective)


def estimate_limits(mean: Array, variance: Array, n_questions: int, total: float) -> IntervalEnds:
    """Return the sampling interval of pass@k, pass^k or maj@k.

    mean: of the measure over the questions, a fraction. variance: of this mean if the same questions were asked again
    (`estimators.pass_jackknife`). total: independent draws of k samples in all, Σ n_q/k if every question has as many
    samples.
    """
    trials = _trials(mean, variance, np.asarray(total), QUESTION_TOSSES)
    return wilson(mean, np.maximum(trials, n_questions))


def widest_limits(mean: Array, n_questions: int) -> IntervalEnds:
    """Return the widest sampling interval of a mean over questions with one sample each: that of coin tosses."""
    total = np.asarray(float(n_questions))
    return _with_poisson_ends(wilson(mean, total), total * mean, total * (1 - mean), total)


def mean_limits(values: Array, limits: IntervalEnds) -> IntervalEnds:
    """Return the interval of the mean of independent estimates (such as benchmarks' accuracies) from their intervals.

    values, limits: (…, number of estimates). The squares of the half-widths add; the result is Wilson's interval of
    that half-width. So a single estimate keeps its interval. The mean of many estimates is more nearly normal than each
    of them, and gets a nearly symmetric interval. Adding the distances to the lower and to the upper ends separately
    (Newcombe 1998) covers as little as 91 % where ten small sets are nearly all right.
    """
    mean = values.mean(axis=-1)
    square = (((limits.high - limits.low) / 2) ** 2).sum(axis=-1) / values.shape[-1] ** 2
    square = np.minimum(square, _WIDEST)
    # Wilson's half-width r solves r² (1 + t)² = p(1−p) t + t²/4 with t = factor²/trials.
    linear = mean * (1 - mean) - 2 * square
    # This form of the root adds; the usual one subtracts two near numbers where the square is small.
    t = 2 * square / (linear + np.sqrt(linear * linear + 4 * (0.25 - square) * square))
    centre, reach = (mean + t / 2) / (1 + t), np.sqrt(square)
    return IntervalEnds(
        np.clip(np.minimum(centre - reach, mean), 0, 1), np.clip(np.maximum(centre + reach, mean), 0, 1)
    )


def cluster_numbers(labels: Sequence[Hashable]) -> NDArray[np.intp]:
    """Each label's cluster number, 0 for the first that occurs: (len(labels),)."""
    numbers: dict[Hashable, int] = {}
    return np.fromiter((numbers.setdefault(label, len(numbers)) for label in labels), np.intp, len(labels))


def why_narrower(
    sampling: Interval | None, question: Interval | None, *, at_most: bool, imported: bool = False
) -> tuple[str, ...]:
    """One sentence on why the interval for other questions is narrower than the one for the same questions; else empty.

    at_most: whether the sampling interval is only an upper bound, as with one sample of each question. imported: the
    samples were read from a file, so that the sentence does not speak of more of them.
    """
    if sampling is None or question is None or question.high - question.low >= sampling.high - sampling.low:
        return ()
    reason = (
        "with one sample of each question, or with copies among the samples, it is only an upper bound"
        if at_most
        else "with few samples of each question it is kept wide, because they hardly show how much a question varies"
    )
    more = "" if imported else ". More samples of each question narrow the interval for the same questions"
    return (
        f"the interval for the same questions is wider than that for other questions: {reason}; the interval for other "
        f"questions is measured on the spread between questions{more}",
    )


def _with_poisson_ends(limits: IntervalEnds, right: Array, wrong: Array, total: Array) -> IntervalEnds:
    """Widen the intervals of accuracies near 0 or 1, if at most three of `total` samples are right, or wrong.

    The end is then that of a Poisson count (`POISSON_LOW`). right, wrong: numbers of samples; between whole numbers the
    ends are interpolated.
    """
    counts = np.arange(len(POISSON_LOW))
    most = counts[-1] + 1e-9  # a count that is a product of fractions may lie just above the whole number
    low = np.where(right <= most, np.minimum(limits.low, np.interp(right, counts, POISSON_LOW) / total), limits.low)
    high = np.where(
        wrong <= most, np.maximum(limits.high, 1 - np.interp(wrong, counts, POISSON_LOW) / total), limits.high
    )
    return IntervalEnds(low, high)


def _trials(mean: Array, variance: Array, total: Array, tosses: Array | float) -> Array:
    """Return the number of coin tosses whose mean has this variance: N* in the formula at the top.

    mean, variance: observed. total: N. tosses: τ, the coin tosses that are mixed in.
    """
    return np.asarray(total * (total * mean * (1 - mean) + tosses) / (total * total * variance + tosses))
