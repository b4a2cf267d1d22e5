"""Estimates for one question on plain numbers: pass@k (any of k samples right), pass^k (all k), maj@k (the majority),
and their variance by the jackknife. `docs/statistics.md` explains them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
"""A term of the sum for maj@k (one number of votes) is left out if it adds less than this to the chance to win."""

_MAX_DOUBT = 1e-15
"""A majority counts as certain if the chance of another one is below this, smaller than the rounding of the sums."""

_MAX_DOUBT_OF_DRAWS = 1e-8
"""The same where maj@k is estimated from `ESTIMATE_DRAWS` random draws, in which so rare a majority would hardly occur.
"""


_MAX_LEFT_OUT = 8
"""Up to this many samples of a question, maj@k is computed anew without each of them, which is then quicker."""


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
    n = sum(map(_size, groups)) + silent
    if not any(group.correct for group in groups) or _decided(groups, n, k) in (0.0, 1.0):
        return 0.0
    if n > _MAX_LEFT_OUT:
        # Further digits of the roots of unity differ from machine to machine.
        return float(f"{_jackknife(_majorities_without_one(groups, silent, k)):.12g}")
    left_out = [(maj_at_k(groups, silent - 1, k), silent)] if silent else []
    for group, times in Counter(groups).items():
        others = list(groups)
        others.remove(group)
        # Leave out one right sample of the group, then one wrong one; all of a kind give the same estimate.
        for size, right in ((group.correct, 1), (group.size - group.correct, 0)):
            if size:
                rest = [VoteGroup(group.size - 1, group.correct - right)] if group.size > 1 else []
                left_out.append((maj_at_k([*others, *rest], silent, k), times * size))
    return _jackknife(left_out)


def _majorities_without_one(groups: Sequence[VoteGroup], silent: int, k: int) -> list[tuple[float, int]]:
    """(maj@k if one sample is left out, number of samples for which it has this value), all from one product for each
    size of a right group.

    Each chance that a majority misses a sample is divided by the chance of a draw to miss the sample, 1 − k/n.
    """
    n = sum(map(_size, groups)) + silent
    sizes, shares = Counter(map(_size, groups)), _correct_shares(groups)
    wins = {size: _win_and_drawn(sizes - Counter([size]), n, size, k) for size, share in shares.items() if share}

    def without(size: int) -> float:
        """Chance that a majority is right and misses one sample, which is in a group of `size` that does not win."""
        return math.fsum(shares[own] * (win.chance - win.drawn(size)) for own, win in wins.items())

    left_out = [(without(0), silent)] if silent else []
    for group, times in Counter(groups).items():
        others = without(group.size)
        for right, samples in ((1, group.correct), (0, group.size - group.correct)):
            own = 0.0
            if group.correct:
                win, share = wins[group.size], (group.correct - right) / max(group.size - 1, 1)
                own = share * (win.chance - win.own_drawn)
                own -= group.correct / group.size * (win.chance - win.drawn(group.size))
            if samples:
                left_out.append((others + own, times * samples))
    return [(estimate * n / (n - k), samples) for estimate, samples in left_out]


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
    shares = _correct_shares(groups)
    total = math.fsum(share * _win_chance(sizes, n, size, k) for size, share in shares.items() if share)
    # Rounding may carry the sum a little above 1.
    return min(1.0, total)


def _correct_shares(groups: Sequence[VoteGroup]) -> dict[int, float]:
    """Size → the sum of the fractions correct of the groups of this size, which have the same chance to win."""
    shares: dict[int, float] = {}
    for group in groups:
        shares[group.size] = shares.get(group.size, 0.0) + group.correct / group.size
    return shares


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
    """An upper bound of the chance that a group of `size` gets as many of k votes as the larger group of `first`, among
    n samples.
    """
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


class _WinAndDrawn(NamedTuple):
    """Chances that one group wins, and that it wins while a given sample is drawn.

    chance: that it wins. own_drawn: the sample is in the group itself. of_size: in a rival of this size. elsewhere: it
    is silent, or in a rival that is too small for a tie.
    """

    chance: float
    own_drawn: float
    of_size: Mapping[int, float]
    elsewhere: float

    def drawn(self, size: int) -> float:
        """The chance for a sample of another group of this size; 0: for a silent one."""
        return self.of_size.get(size, self.elsewhere)


def _win_and_drawn(rivals: Mapping[int, int], n: int, own: int, k: int) -> _WinAndDrawn:
    """`_win_chance` of a group of `own` samples, and the same with one sample of any group drawn.

    rivals: how many other groups have a size. By symmetry, a sample's chance to be drawn where `own` wins is the mean
    number of votes that its group draws there, over the group's size. All means come from one product: with p = k/n and
    the binomial chances b(s, u) of u votes of a group of s,

        chance = Σ_v b(own, v) [z^(k−v)] (1 − p + pz)^rest ∫₀¹ Π_i F_i(z, y) dy / b(n, k)
        F_i = Σ_{u<v} b(s_i, u) z^u + y b(s_i, v) z^v

    since ∫ y^t dy = 1/(t + 1) shares the win among `own` and t ties. The mean for a group has z·dF/dz in the place of
    its F; the products before and behind each factor give all means at once. The integral is a Gauss-Legendre sum,
    exact for as many ties as k votes allow. The coefficient of z^k is a mean over m roots of unity, which also contains
    the coefficients of k ± m; m is so large that these are `_NEGLIGIBLE`.
    """
    p = k / n
    own_weights, every = _binomial(own, p, k), _binomial(n, p, min(n, 4 * k + 100))
    counts = [v for v in range(1, min(own, k) + 1) if own_weights[v] > _NEGLIGIBLE * float(every[k])]
    sizes = sorted(size for size in rivals if size >= counts[0])
    rest = n - own - sum(size * rivals[size] for size in sizes)
    m = k + 1 + int((every[2 * k + 1 :] > _NEGLIGIBLE * every[k]).sum())
    half = np.arange(m // 2 + 1)
    z = np.exp(2j * np.pi / m * half)
    # Of two conjugate roots one is summed, and counts twice.
    scale = np.where((half == 0) | (2 * half == m), 1.0, 2.0) * z**-k / (m * every[k])
    without_rest = scale * (1 - p + p * z) ** max(rest - 1, 0)
    with_rest = without_rest * (1 - p + p * z) if rest else without_rest
    powers = z ** np.arange(counts[-1] + 1)[:, None]
    chance = own_drawn = elsewhere = 0.0
    of_size = dict.fromkeys(sizes, 0.0)
    for v, y, weight in _nodes(counts, [(size, rivals[size]) for size in sizes], k, len(half)):
        product = (weight * own_weights[v])[:, None] * powers[v]
        before, factors, means = [], [], []
        for size in sizes:
            votes = _binomial(size, p, k)[: v[-1] + 1, None] * powers[: v[-1] + 1]
            tie = y[:, None] * votes[v]
            factor = np.cumsum(votes, axis=0)[v - 1] + tie
            mean = np.cumsum(np.arange(len(votes))[:, None] * votes, axis=0)[v - 1] + v[:, None] * tie
            before.append(product)
            factors.append(factor ** rivals[size])
            means.append(mean if rivals[size] == 1 else mean * factor ** (rivals[size] - 1))
            product = product * factors[-1]
        by_node = (product * with_rest).real.sum(axis=1)
        chance += float(by_node.sum())
        own_drawn += float((v * by_node).sum()) / own
        elsewhere += float((product * (without_rest * p * z)).real.sum())
        behind = with_rest
        for size, product, factor, mean in zip(sizes[::-1], before[::-1], factors[::-1], means[::-1], strict=True):
            of_size[size] += float((product * mean * behind).real.sum()) / size
            behind = behind * factor
    return _WinAndDrawn(chance, own_drawn, of_size, elsewhere)


_MAX_NODES = 1 << 18
"""Complex numbers that one factor list of `_win_and_drawn` may have: 4 MB."""


def _nodes(
    counts: Sequence[int], rivals: Sequence[tuple[int, int]], k: int, n_roots: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]]:
    """The sum over own counts v and over the nodes y of the integral, in parts: (v, y, weight), each of shape (nodes,).

    rivals: (size, number of groups).
    """
    nodes: list[tuple[int, float, float]] = []
    for own in counts:
        n_ties = min(sum(times for size, times in rivals if size >= own), (k - own) // own)
        nodes += [(own, y, weight) for y, weight in zip(*_gauss_legendre(n_ties // 2 + 1), strict=True)]
    step = max(1, _MAX_NODES // (n_roots * max(1, len(rivals))))
    for start in range(0, len(nodes), step):
        v, y, weight = np.array(nodes[start : start + step]).T
        yield v.astype(np.intp), y, weight


@lru_cache(maxsize=128)
def _gauss_legendre(n: int) -> tuple[list[float], list[float]]:
    """(nodes, weights) of ∫₀¹, exact for polynomials of degree 2n − 1 (Golub and Welsch 1969)."""
    i = np.arange(1, n)
    beside = i / np.sqrt(4 * i**2 - 1)
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return ((nodes + 1) / 2).tolist(), (vectors[0] ** 2).tolist()


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
