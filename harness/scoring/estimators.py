"""Estimates for one question on plain numbers: pass@k (any of k samples right), pass^k (all k), maj@k (the majority),
and their variance by the jackknife. `docs/statistics.md` explains them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from heapq import nlargest
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.core.errors import UsageError

MAX_EXACT_VOTES = 128
"""Largest k for which maj@k is summed exactly (milliseconds per question). A larger k is estimated, unless k = n."""

ESTIMATE_DRAWS = 4000
"""Subsets drawn for an estimated maj@k: a standard error of at most 0.8 points a question."""


_NEGLIGIBLE = 1e-20
"""A number of votes is left out of a sum if its share in the chance to win is smaller than this."""

_MAX_DOUBT = 1e-15
"""A majority counts as certain if the chance of another one is below this, smaller than the rounding of the sums."""

_MAX_DOUBT_OF_DRAWS = 1e-8
"""The same where maj@k is drawn: among `ESTIMATE_DRAWS` draws another majority would hardly be seen."""


class VoteGroup(NamedTuple):
    """The samples of one question that voted for the same answer: size, and how many of them were graded correct.

    correct is 0 or size, unless the vote is coarser than the grader; then a win of the group counts correct / size.
    """

    size: int
    correct: int


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of k samples, drawn from n of which c are correct, is correct.

    Unbiased estimator of Chen et al. 2021 (arXiv:2107.03374), 1 − C(n−c, k) / C(n, k), in whole numbers until the last
    division. Raises `UsageError` when k is below 1 or above the n samples present.
    """
    _check_k("pass@", n, k)
    assert 0 <= c <= n
    subsets = math.comb(n, k)
    return (subsets - math.comb(n - c, k)) / subsets


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Chance that all of k samples, drawn from n of which c are correct, are correct: C(c, k) / C(n, k).

    pass^k of Yao et al. 2024 (arXiv:2406.12045), unbiased. Raises `UsageError` when k is below 1 or above n.
    """
    _check_k("pass^", n, k)
    assert 0 <= c <= n
    return math.comb(c, k) / math.comb(n, k)


def g_pass_at_k(n: int, c: int, k: int, tau: float) -> float:
    """Chance that at least τ·k of k samples, drawn from n of which c are correct, are correct.

    G-Pass@k with τ of Liu et al. 2024 (arXiv:2412.13147), unbiased: Σ C(c, j) C(n−c, k−j) / C(n, k) over j from ⌈τk⌉ to
    k; τ = 1 is pass^k, τ ≤ 1/k pass@k. Raises `UsageError` when k is below 1 or above n. tau: τ, from 0 to 1.
    """
    _check_k("G-Pass@", n, k)
    assert 0 <= c <= n
    # τ·k of 0.3 · 10 is a little above 3 in floating point, and 3 of 10 are enough.
    least = max(1, math.ceil(tau * k - 1e-9))
    return sum(math.comb(c, j) * math.comb(n - c, k - j) for j in range(least, min(c, k) + 1)) / math.comb(n, k)


def g_pass_jackknife(n: int, c: int, k: int, tau: float) -> float:
    """Variance of one question's G-Pass@k with τ over reruns, as `pass_jackknife`; k < n."""
    left_out = [(g_pass_at_k(n - 1, c - 1, k, tau), c)] if c else []
    left_out += [(g_pass_at_k(n - 1, c, k, tau), n - c)] if c < n else []
    return _jackknife(left_out)


def pass_jackknife(n: int, c: int, k: int) -> float:
    """Variance of one question's pass@k over reruns, from leaving out each sample once; k < n.

    (n−1)/n · Σ_i (θ_i − θ̄)², θ_i the estimate without sample i (Efron and Stein 1981, Annals of Statistics 9:586).
    The variance of pass^k with c correct samples is that of pass@k with n − c.
    """
    left_out = [(pass_at_k(n - 1, c - 1, k), c)] if c else []
    left_out += [(pass_at_k(n - 1, c, k), n - c)] if c < n else []
    return _jackknife(left_out)


def maj_jackknife(groups: Sequence[VoteGroup], silent: int, k: int) -> float:
    """Variance of one question's maj@k over reruns, as `pass_jackknife`; k < the number of samples.

    groups: the votes. silent: samples without an answer, which do not vote.
    """
    left_out = []
    for group, times in Counter(groups).items():
        others = list(groups)
        others.remove(group)
        # Leave out one right sample of the group, then one wrong one; all of a kind give the same estimate.
        for size, right in ((group.correct, 1), (group.size - group.correct, 0)):
            if size:
                rest = [VoteGroup(group.size - 1, group.correct - right)] if group.size > 1 else []
                left_out.append((maj_at_k([*others, *rest], silent, k), times * size))
    if silent:
        left_out.append((maj_at_k(groups, silent - 1, k), silent))
    return _jackknife(left_out)


def maj_at_k(groups: Sequence[VoteGroup], silent: int, k: int, *, seed: int = 0) -> float:
    """Expected correctness of the majority answer among k samples drawn without replacement.

    groups: the votes; silent: samples without an answer, which do not vote. Tied answers share the win; k silent
    samples score 0. Exact (see `_win_chance`) up to k = `MAX_EXACT_VOTES` and at k = n; for other k the mean of
    `ESTIMATE_DRAWS` seeded draws (`is_estimated` tells). Raises `UsageError` when k is below 1 or above n.
    """
    sizes = tuple(sorted((group.size for group in groups), reverse=True))
    n = sum(sizes) + silent
    _check_k("maj@", n, k)
    if k == 1:
        return sum(group.correct for group in groups) / n
    if not any(group.correct for group in groups):
        return 0.0
    if k == n:
        winners = [group for group in groups if group.size == sizes[0]]
        return sum(group.correct / group.size for group in winners) / len(winners)
    if (decided := _decided(groups, n, k)) is not None:
        return decided
    if is_estimated(n, k):
        return _estimated_majority(groups, silent, k, seed)
    # Groups of the same size have the same chance to win; only their fractions of correct samples differ.
    correct_share: dict[int, float] = {}
    for group in groups:
        correct_share[group.size] = correct_share.get(group.size, 0.0) + group.correct / group.size
    total = math.fsum(share * _win_chance(sizes, n, size, k) for size, share in correct_share.items() if share)
    # Rounding may carry the sum a little above 1.
    return min(1.0, total)


def _decided(groups: Sequence[VoteGroup], n: int, k: int) -> float | None:
    """maj@k where the largest group is nearly certain to win, else None.

    Of k draws without replacement a group of share b gets as many as one of share a with a chance of at most
    (1 − (√a − √b)²)^k (Chernoff; Hoeffding 1963, section 6); these bounds of the rivals are added up.
    """
    first, second = nlargest(2, groups, key=_size) if len(groups) > 1 else (groups[0], VoteGroup(0, 0))
    doubt = _MAX_DOUBT_OF_DRAWS if is_estimated(n, k) else _MAX_DOUBT
    if n <= MAX_EXACT_VOTES or _chance_to_catch_up(first.size, second.size, n, k) > doubt:
        return None
    times = Counter(map(_size, groups))
    times[first.size] -= 1
    chance = math.fsum(t * _chance_to_catch_up(first.size, size, n, k) for size, t in times.items() if t)
    return first.correct / first.size if chance <= doubt else None


_size = attrgetter("size")


def _chance_to_catch_up(first: int, size: int, n: int, k: int) -> float:
    """The bound of `_decided` for groups of these sizes among n samples."""
    return float((1 - (math.sqrt(first / n) - math.sqrt(size / n)) ** 2) ** k)


def is_estimated(n: int, k: int) -> bool:
    """True when maj@k of n samples is drawn at random rather than summed exactly."""
    return MAX_EXACT_VOTES < k < n


def quantile(values: Sequence[float] | NDArray[np.float64], q: float) -> float | None:
    """The smallest value that at least a fraction `q` of the values do not exceed; None without a value."""
    if not len(values):
        return None
    rank = max(0, math.ceil(q * len(values)) - 1)
    return float(np.partition(values, rank)[rank]) if isinstance(values, np.ndarray) else sorted(values)[rank]


def _jackknife(left_out: Sequence[tuple[float, int]]) -> float:
    """The variance of `pass_jackknife`. left_out: (estimate without a sample, samples that give this estimate)."""
    n = sum(times for _, times in left_out)
    mean = math.fsum(value * times for value, times in left_out) / n
    return (n - 1) / n * math.fsum(times * (value - mean) ** 2 for value, times in left_out)


def _check_k(name: str, n: int, k: int) -> None:
    if k < 1:
        raise UsageError(f"{name}{k}: k must be at least 1")
    if k > n:
        raise UsageError(f"{name}{k} needs {k} samples of every question, and one has {n}; ask for k ≤ {n}")


@lru_cache(maxsize=4_096)
def _win_chance(sizes: tuple[int, ...], n: int, own: int, k: int) -> float:
    """Chance that one given group of `own` samples has the most votes among k drawn of n; a tie of t groups counts 1/t.

    sizes: of all groups, `own` among them. Drawing k of n without replacement equals taking each sample with chance
    k/n, given that k were taken. So the counts of the groups multiply as polynomials (coefficients: binomial chances;
    degree: samples taken), and nothing overflows. For each own count v: groups of fewer than v samples cannot win or
    tie, and merge with the silent samples into one binomial; each larger rival takes at most v, and a second axis
    counts the rivals that take exactly v, the ties.
    """
    p = k / n
    own_weights = _binomial(own, p, k)
    counts = [v for v in range(1, min(own, k) + 1) if own_weights[v] > _NEGLIGIBLE * float(_binomial(n, p, k)[k])]
    # There is a count: the likeliest of them has a chance of more than 1 / n².
    rivals = list(sizes)
    rivals.remove(own)
    # Without the rivals that are too small for any of the counts: leaving a sample of one of them out then is one case.
    return _chance_over(tuple(size for size in rivals if size >= counts[0]), n, own, k, counts[0], counts[-1])


@lru_cache(maxsize=4_096)
def _chance_over(rivals: tuple[int, ...], n: int, own: int, k: int, low: int, high: int) -> float:
    """`_win_chance` with `low` to `high` votes of its own. rivals: sizes of the groups of at least `low` samples."""
    p = k / n
    own_weights = _binomial(own, p, k)
    chance = 0.0
    for v in range(low, high + 1):
        strong = [size for size in rivals if size >= v]
        rest = n - own - sum(strong)
        degree = k - v
        # by_ties[t][d]: the weight of taking d samples from all groups but the own one, while t rivals reach v votes.
        # A chance does not depend on the degree: one array of k for each size, cut here, serves every v.
        by_ties = [_binomial(rest, p, k)[: degree + 1]]
        for size in strong:
            weights = _binomial(size, p, k)
            fewer = weights[:v]
            grown = [np.convolve(row, fewer)[: degree + 1] for row in by_ties]
            grown.append(np.zeros(degree + 1))
            for ties, row in enumerate(by_ties):
                if degree >= v:
                    grown[ties + 1][v:] += weights[v] * row[: degree + 1 - v]
            by_ties = grown[: degree // v + 1]
        exact = sum(float(row[degree]) / (1 + ties) for ties, row in enumerate(by_ties))
        chance += float(own_weights[v]) * exact
    return chance / float(_binomial(n, p, k)[k])


@lru_cache(maxsize=4_096)
def _binomial(trials: int, p: float, degree: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Chances of 0 … degree successes in `trials`; zero beyond `trials`. The array is shared, so nobody changes it.

    p: the chance of a success.
    """
    log_p, log_q = math.log(p), math.log1p(-p)
    weights = np.zeros(degree + 1)
    for x in range(min(trials, degree) + 1):
        # By logarithms: C(n, x) itself overflows a float from about n = 1,030 on.
        log_choose = math.lgamma(trials + 1) - math.lgamma(x + 1) - math.lgamma(trials - x + 1)
        weights[x] = math.exp(log_choose + x * log_p + (trials - x) * log_q)
    return weights


def _estimated_majority(groups: Sequence[VoteGroup], silent: int, k: int, seed: int) -> float:
    """maj@k as the mean over seeded draws. groups: equal answers of a question. silent: samples without an answer."""
    generator = np.random.default_rng(seed)
    sizes = np.array([group.size for group in groups] + [silent], dtype=np.int64)
    share = np.array([group.correct / group.size for group in groups])
    # "marginals" needs no memory for each sample, as "count" does; the last column is silent and has no vote.
    drawn = generator.multivariate_hypergeometric(sizes, k, size=ESTIMATE_DRAWS, method="marginals")[:, :-1]
    most = drawn.max(axis=1, keepdims=True)
    # Without any vote nobody wins, though all groups are tied at 0.
    winners = (drawn == most) & (most > 0)
    scores = (winners * share).sum(axis=1) / np.maximum(winners.sum(axis=1), 1)
    return float(scores.mean())
