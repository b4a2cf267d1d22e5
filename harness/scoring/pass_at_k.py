"""What k of a question's n samples would have shown, with its variance over reruns (the jackknife).

pass@k: that any of them is right; pass^k: that all are; maj@k: that the majority is (docs/statistics.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.scoring.stats import Array


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
