"""Chances that a group of equal answers wins the majority among k samples, exact for every k.

Of n samples, k are drawn without replacement. That equals taking each sample with chance p = k/n, given that k were
taken, so the votes of the groups are independent binomial numbers with one condition on their sum. With b(s, u), the
chance of u votes of a group of s, a group of `own` samples wins (a tie of t + 1 groups counts 1/(t + 1)) with

    chance = Σ_v b(own, v) [z^(k−v)] (1 − p + pz)^rest ∫₀¹ Π_i F_i(z, y) dy / b(n, k)
    F_i = Σ_{u<v} b(s_i, u) z^u + y b(s_i, v) z^v            the rival i has fewer than v votes, or v and ties

since ∫ y^t dy = 1/(t + 1). By symmetry, a sample's chance to be drawn where `own` wins is the mean number of votes that
its group draws there, over the group's size; the mean for a group has z·dF/dz in the place of its F.

    sum                     is                                                left out
    over v                  a sum over the likely v                           terms below `_NEGLIGIBLE` of the largest
    over the rivals         a product of the strong ones, the others in rest  rivals that so seldom reach v votes
    over y                  a Gauss-Legendre sum, exact for the likely ties   numbers of ties that are so unlikely
    coefficient of z^(k−v)  a mean over m roots of unity, m so large that     roots where a bound of the product is so
                            z^(k−v±m), which it contains too, is negligible   small: |Σ c_u z^u| ≤ max c_u / sin(θ/2)
                                                                              for unimodal c and z = e^{iθ}

All weights are positive and each is right to some 1e-15, so a chance is right to 1e-12 of itself; to fewer digits below
1e-9, where roots of unity cancel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

_NEGLIGIBLE = 1e-17
"""A part of a sum is left out if it is smaller than this fraction of the largest part."""

_FAR = 1e-26
"""Coefficients that a mean over roots of unity contains beside its own are below this fraction of b(n, k)."""

_ROUNDING = 1e-12
"""A chance below this fraction of the sum without the condition is rounding: no draw of k makes the group win."""

_BATCH = 32
"""Number of sizes whose votes are computed together."""

_MAX_NUMBERS = 1 << 15
"""Complex numbers in an array of `_means`, unless a single root takes more: 0.5 MB."""


class WinAndDrawn(NamedTuple):
    """The chance that a group wins, and the chances that it wins while a given sample is among the k that are drawn.

    chance: of the win alone. own_drawn: of both, for a sample of the group itself. of_size: of both, for a sample of a
    rival, by the rival's size. elsewhere: of both, for a sample that is silent (has no answer), or in a rival that is
    too small to matter.
    """

    chance: float
    own_drawn: float
    of_size: Mapping[int, float]
    elsewhere: float

    def drawn(self, size: int) -> float:
        """The chance that the group wins while a sample of a rival of this size is drawn; size 0: a silent sample."""
        return self.of_size.get(size, self.elsewhere)


_NEVER = WinAndDrawn(0.0, 0.0, {}, 0.0)


class _Votes(NamedTuple):
    """Chances of numbers of votes, a row for each group size, a column for each number u from 0.

    exactly: (S, C), the chance of u votes. at_least: (S, C), of u or more.
    """

    exactly: Array
    at_least: Array

    @property
    def at_most(self) -> Array:
        """The chance of u votes or fewer, (S, C)."""
        return np.cumsum(self.exactly, axis=1)


class _Rivals(NamedTuple):
    """The strong rivals, those that may get as many votes as the group; one row for each size, the largest first.

    sizes: (S,). times: (S,), the number of rivals of this size. strong: (S, V), whether a rival of this size may reach
    each of the V likely numbers of own votes.
    """

    sizes: Whole
    times: Whole
    votes: _Votes
    strong: NDArray[np.bool_]


class _Nodes(NamedTuple):
    """The sum over v and y: of each node its v, y and weight, each (N,), in ascending order of v."""

    v: Whole
    y: Array
    weight: Array


@lru_cache(maxsize=2048)  # Cached, because the questions of many runs have the same few sizes of groups.
def win_and_drawn(rivals: tuple[tuple[int, int], ...], n: int, own: int, k: int) -> WinAndDrawn:
    """The chances for a group of `own` samples, by the module's formula; 1 < k < n.

    rivals: (size, number of other groups of this size), each size once, the largest first. n: samples of the question,
    the silent ones included.
    """
    p, top = k / n, min(own, k)
    every = _votes(np.array([n]), p, min(n, 4 * k + 200) + 1).exactly[0]
    # log_score[v], for v own votes from 0 to top: the logarithm of the chance that the group has v votes and no rival
    # has more. It begins without rivals; each batch of rivals, the largest first, lowers it.
    with np.errstate(divide="ignore"):
        log_score = np.log(_votes(np.array([own]), p, top + 1).exactly[0])
    own_votes = np.exp(log_score)
    log_score[0] = -math.inf  # nobody wins without a vote
    batches: list[tuple[Whole, Whole, _Votes]] = []
    for start in range(0, len(rivals), _BATCH):
        sizes, times = np.array(rivals[start : start + _BATCH], dtype=np.int64).T
        votes = _votes(sizes, p, top + 1)
        low = int(_likely(log_score)[0])
        reaching = votes.at_least[:, low] * times > _NEGLIGIBLE
        if reaching.any():
            batches.append((sizes[reaching], times[reaching], _Votes(*(each[reaching] for each in votes))))
            with np.errstate(divide="ignore"):
                log_score += (times[:, None] * np.log(votes.at_most))[reaching].sum(axis=0)
        if log_score.max() == -math.inf:
            return _NEVER  # a larger group always has more votes, but for a chance below 1e-30
        if not reaching[-1]:
            break  # still smaller groups reach it even less
    likely = _likely(log_score)
    v = np.arange(likely[0], likely[-1] + 1)
    share = np.exp(log_score[v] - log_score.max())
    strong = _strong(batches, v, share, top)
    rest = n - own - (strong.strong * (strong.sizes * strong.times)[:, None]).sum(axis=0)
    m = _circle(strong, v, rest, p, k, every)
    n_roots = _n_roots(strong, v, share, rest, p, m)
    nodes = _nodes(strong, v, k, own_votes)
    sums = _means(strong, nodes, v, rest, p, k, m, n_roots)
    scale = every[k]
    if sums.chance < _ROUNDING * math.exp(log_score.max()):
        return _NEVER
    of_size = {size: value / scale for size, value in sums.of_size.items()}
    return WinAndDrawn(sums.chance / scale, sums.own_drawn / scale / own, of_size, sums.elsewhere / scale)


def _votes(sizes: Whole, p: float, n_columns: int) -> _Votes:
    """The chances of 0 … n_columns − 1 votes of groups of these sizes. p: chance of a sample to be drawn.

    They are computed from the likeliest number of votes outwards, each from its neighbour by a ratio: so no number
    overflows, and no subtraction loses digits.
    """
    mode = ((sizes + 1) * p).astype(np.int64)
    width = int(14 * math.sqrt(mode.max())) + 60  # farther away a chance is below 1e-30
    steps, odds = np.arange(1, width + 1), p / (1 - p)
    up, down = mode[:, None] + steps, mode[:, None] - steps + 1
    size = sizes[:, None]
    above = np.cumprod(np.maximum(size - up + 1, 0) / up * odds, axis=1)
    below = np.cumprod(np.maximum(down, 0) / ((size - down + 1) * odds), axis=1)
    weights = np.hstack([np.zeros((len(sizes), 1)), below[:, ::-1], np.ones((len(sizes), 1)), above])
    weights = np.hstack([weights / weights.sum(axis=1, keepdims=True), np.zeros((len(sizes), 1))])
    # Both ends of a row are 0, for numbers of votes that are farther away.
    column = np.clip(np.arange(n_columns) - mode[:, None] + width + 1, 0, weights.shape[1] - 1)
    tails = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    return _Votes(np.take_along_axis(weights, column, axis=1), np.take_along_axis(tails, column, axis=1))


def _likely(log_score: Array) -> NDArray[np.intp]:
    """The numbers of own votes whose score is not negligible."""
    return np.flatnonzero(log_score > log_score.max() + math.log(_NEGLIGIBLE))


def _strong(batches: Sequence[tuple[Whole, Whole, _Votes]], v: Whole, share: Array, top: int) -> _Rivals:
    """Return the rivals that may get as many votes as the group, for some likely number v of its own votes.

    share: (V,), the score of each v divided by the largest score.
    """
    if not batches:
        none, empty = np.zeros(0, dtype=np.int64), np.zeros((0, top + 1))
        return _Rivals(none, none, _Votes(empty, empty), np.zeros((0, len(v)), dtype=bool))
    sizes, times = (np.concatenate([batch[column] for batch in batches]) for column in (0, 1))
    votes = _Votes(*(np.vstack([batch[2][column] for batch in batches]) for column in (0, 1)))
    reach = share * times[:, None] * votes.at_least[:, v] / votes.at_most[:, v]
    # A size that may reach v may reach what is below, too: the strong ones of a node are those of any later node.
    strong = np.logical_or.accumulate((reach > _NEGLIGIBLE)[:, ::-1], axis=1)[:, ::-1]
    some = strong.any(axis=1)
    return _Rivals(sizes[some], times[some], _Votes(votes.exactly[some], votes.at_least[some]), strong[some])


def _circle(rivals: _Rivals, v: Whole, rest: Whole, p: float, k: int, every: Array) -> int:
    """The number m of roots of unity that keeps z^(k−v±m) negligible.

    rest: (V,), the samples outside the group and its strong rivals. every: b(n, u), the chance that u of all samples
    are drawn. The product without its condition has about the spread of `every`, but fewer votes on average where
    rivals are held below v, so that z^(k−v−m) may come closer to its middle.
    """
    far = np.flatnonzero(every > _FAR * every[k])
    votes = rivals.votes.exactly
    means = (np.cumsum(np.arange(votes.shape[1]) * votes, axis=1)[:, v] / rivals.votes.at_most[:, v]) * rivals.strong
    middle = v + rest * p + (rivals.times[:, None] * means).sum(axis=0)
    shift = int(np.maximum(k - middle, 0.0).max())
    return max(min(k - int(far[0]) + shift, k), int(far[-1]) - k) + 1


def _n_roots(rivals: _Rivals, v: Whole, share: Array, rest: Whole, p: float, m: int) -> int:
    """How many of the roots of unity, from z = 1 up to the middle of the circle, can matter; rest, share: (V,)."""
    n_half = m // 2 + 1
    candidates = np.unique(n_half * np.array([4, 6, 8, 11, 16, 22, 32, 48]) // 64)
    candidates = candidates[candidates > 0]
    sine = np.sin(np.pi / m * candidates)[:, None]
    # |1 − p + pz|² = 1 − 4p(1 − p) sin²(θ/2)
    # A sample of the rest is taken out where it is drawn.
    decay = 0.5 * np.log1p(np.maximum(-4 * p * (1 - p) * sine**2, math.ulp(1.0) - 1))
    bound = np.maximum(rest - 1, 0) * decay + np.log(share)
    highest = np.maximum.accumulate(rivals.votes.exactly, axis=1)[:, v] / rivals.votes.at_most[:, v]
    for times, ratio, strong in zip(rivals.times, highest, rivals.strong, strict=True):
        bound += times * strong * np.log(np.minimum(1.0, ratio / sine))
    small = np.flatnonzero((bound < math.log(_NEGLIGIBLE)).all(axis=1))
    return int(candidates[small[0]]) if len(small) else n_half


def _nodes(rivals: _Rivals, v: Whole, k: int, own_votes: Array) -> _Nodes:
    """The sum over v and over the nodes y of the integral, which is exact for the numbers of ties that may occur."""
    strong = rivals.strong
    expected = (strong * rivals.times[:, None] * rivals.votes.exactly[:, v] / rivals.votes.at_most[:, v]).sum(axis=0)
    possible = np.minimum((strong * rivals.times[:, None]).sum(axis=0), (k - v) // v)
    # g nodes are exact for fewer than 2g ties. t ties weigh at most expected^t / t!, and g nodes integrate e^(ay) to
    # e^a a^2g (g!)⁴ / ((2g + 1) (2g)!³).
    n_nodes, more, g = np.ones(len(v), dtype=np.int64), possible >= 2, 1
    with np.errstate(divide="ignore"):
        log_expected = np.log(expected)
    while more.any():
        log_error = 4 * math.lgamma(g + 1) - math.log(2 * g + 1) - 3 * math.lgamma(2 * g + 1)
        more &= (expected + 2 * g * log_expected + log_error > math.log(_NEGLIGIBLE)) & (possible >= 2 * g)
        g += 1
        n_nodes[more] = g
    rules = [_gauss_legendre(g) for g in n_nodes.tolist()]
    numbers = np.repeat(v, [len(y) for y, _ in rules])
    y, weights = (np.concatenate([rule[column] for rule in rules]) for column in (0, 1))
    return _Nodes(numbers, y, weights * own_votes[numbers])


@lru_cache(maxsize=128)
def _gauss_legendre(n: int) -> tuple[Array, Array]:
    """Return (nodes, weights) of ∫₀¹, exact for polynomials of degree 2n − 1 (Golub and Welsch 1969)."""
    i = np.arange(1, n)
    beside = i / np.sqrt(4 * i**2 - 1)
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return (nodes + 1) / 2, vectors[0] ** 2


def _means(
    rivals: _Rivals, nodes: _Nodes, v: Whole, rest: Whole, p: float, k: int, m: int, n_roots: int
) -> WinAndDrawn:
    """The sums of the module's formula before they are divided by b(n, k); `own_drawn` also by the group's size.

    rest: (V,), the samples outside the group and its strong rivals. m: roots of unity; n_roots: those that are summed.
    """
    windows = [*_windows(rivals, nodes, v)]
    own, columns = nodes.v, nodes.v - v[0]
    left = rest[:, None]
    lowest = min((window.first for window in windows), default=0)
    u = np.arange(lowest, v[-1] + 1)
    roots = np.exp(2j * np.pi / m * np.arange(m))
    chance = own_drawn = 0.0
    elsewhere = np.zeros(len(own))
    of_size = dict.fromkeys(rivals.sizes.tolist(), 0.0)
    step = max(1, _MAX_NUMBERS // max(len(own), len(u)))
    for start in range(0, n_roots, step):
        index = np.arange(start, min(start + step, n_roots))
        base = 1 - p + p * roots[index]
        # Two conjugate roots give conjugate terms, so one of the two is summed and counts twice.
        scale = np.where((index == 0) | (2 * index == m), 1.0, 2.0) / m
        closing = np.exp(np.maximum(left - 1, 0) * np.log(base)) * scale
        without_rest, with_rest = closing[columns], np.where(left > 0, closing * base, closing)[columns]
        product = nodes.weight[:, None] * roots[np.outer(v - k, index) % m][columns]
        powers = roots[np.outer(u, index) % m]
        factors = []
        for window in windows:
            n = window.n_nodes
            factor, mean = window.factors(own[:n], nodes.y[:n], powers[window.first - lowest :])
            factors.append((product[:n].copy(), factor, mean))
            product[:n] *= factor
        # Now `product` holds the factors of all rivals; each of `factors` holds the product of those before it.
        by_node = np.einsum("nr,nr->n", product, with_rest).real
        chance += float(by_node.sum())
        own_drawn += float((own * by_node).sum())
        elsewhere += np.einsum("nr,nr,r->n", product, without_rest, p * roots[index]).real
        # The loop goes from the last rival back: all factors but a rival's own are those before it and those behind it.
        behind = with_rest
        for window, (before, factor, mean) in zip(windows[::-1], factors[::-1], strict=True):
            n = window.n_nodes
            before *= behind[:n]
            of_size[window.size] += float(np.einsum("nr,nr->", before, mean).real) / window.size
            behind[:n] *= factor
    for window in windows:  # at nodes where a size is not strong, its samples count as those elsewhere
        of_size[window.size] += float(elsewhere[window.n_nodes :].sum())
    return WinAndDrawn(chance, own_drawn, of_size, float(elsewhere.sum()))


class _RivalVotes(NamedTuple):
    """The numbers of votes that `times` rivals of the same `size` may get.

    They matter for the first `n_nodes` nodes. exactly: (U,), the chances of `first`, `first` + 1 … votes.
    """

    size: int
    times: int
    n_nodes: int
    first: int
    exactly: Array

    def factors(
        self, own: Whole, y: Array, powers: NDArray[np.complex128]
    ) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """Return (product of the factors F of these rivals, its z·d/dz divided by `times`), both (nodes, roots).

        powers: (at least U, roots), z^u from u = `first` on.
        """
        votes = self.exactly[:, None] * powers[: len(self.exactly)]
        rows = own - self.first
        # F: the terms of a tie at v votes, times y, and the sum of the terms with fewer votes.
        tie = votes[rows]
        tie *= y[:, None]
        factor = np.cumsum(votes, axis=0)[rows - 1]
        factor += tie
        # z·dF/dz: each term times its number of votes.
        votes *= np.arange(self.first, self.first + len(votes))[:, None]
        mean = np.cumsum(votes, axis=0)[rows - 1]
        tie *= own[:, None]
        mean += tie
        if self.times > 1:
            others = factor ** (self.times - 1)
            factor *= others
            mean *= others
        return factor, mean


def _windows(rivals: _Rivals, nodes: _Nodes, v: Whole) -> Iterator[_RivalVotes]:
    """Yield for each size of strong rivals the numbers of votes that matter, and the nodes at which they do."""
    for i, (size, times) in enumerate(zip(rivals.sizes.tolist(), rivals.times.tolist(), strict=True)):
        last = int(v[np.flatnonzero(rivals.strong[i])[-1]])
        n_nodes = int(np.searchsorted(nodes.v, last, side="right"))
        exactly = rivals.votes.exactly[i, : last + 1]
        # Numbers of votes below the first own number are only summed up, so those negligible beside the sum are left
        # out.
        at_most = float(exactly[: v[0] + 1].sum())
        first = int(np.flatnonzero(exactly > _NEGLIGIBLE * 1e-3 * at_most)[0])
        first = min(first, int(v[0]) - 1)
        yield _RivalVotes(size, times, n_nodes, first, exactly[first:])
