"""Estimates for one question, on plain numbers: pass@k, pass^k and maj@k, with their variance by the jackknife.

pass@k: any of k samples is right. pass^k: all k are. maj@k: the majority is. `docs/statistics.md` explains them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from heapq import nlargest
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.core.errors import UsageError
from harness.scoring.majorities import WinAndDrawn, win_and_drawn

_MIN_BOUNDED = 129
"""From this many samples of a question on, a nearly certain majority is not computed."""

_MAX_DOUBT = 1e-15
"""A majority counts as certain if the chance of another one is below this, smaller than the rounding of the sums."""

_DIGITS, _DIGITS_OF_VARIANCE = 15, 13
"""Digits of maj@k and of its variance that are kept; further ones differ from machine to machine."""

_MAX_LEFT_OUT = 8
"""Up to this many samples of a question, the jackknife computes maj@k anew without each sample, which is quicker."""


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
    """Variance of one question's G-Pass@k with τ over reruns, from leaving out each sample once; k < n."""
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
    """Variance of one question's maj@k over reruns, from leaving out each sample once; k < the number of samples.

    groups: the votes. silent: samples without an answer, which do not vote.
    """
    n = sum(map(_size, groups)) + silent
    if not any(group.correct for group in groups) or _certain_value(groups, n, k) in (0.0, 1.0):
        return 0.0
    if n > _MAX_LEFT_OUT:
        return float(f"{_jackknife(_majorities_without_one(groups, silent, k)):.{_DIGITS_OF_VARIANCE}g}")
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
    """Return maj@k with one sample left out, for each kind of sample, with how many samples are of this kind.

    Each chance that a majority misses a sample is divided by the chance of a draw to miss the sample, 1 − k/n.
    """
    n = sum(map(_size, groups)) + silent
    shares = _correct_shares(groups)
    wins = {size: _win(groups, n, size, k) for size, share in shares.items() if share}

    def without(size: int) -> float:
        """Chance that the majority is right and that one given sample, in a losing group of `size`, is not drawn."""
        return math.fsum(shares[own] * (win.chance - win.drawn(size)) for own, win in wins.items())

    left_out = [(without(0), silent)] if silent else []
    for group, times in Counter(groups).items():
        others = without(group.size)
        # A right sample of the group left out, then a wrong one.
        for right, samples in ((1, group.correct), (0, group.size - group.correct)):
            # `own` counts what `others` does not: this group itself wins, with one sample less and so another fraction
            # right.
            own = 0.0
            if group.correct:
                win, share = wins[group.size], (group.correct - right) / max(group.size - 1, 1)
                own = share * (win.chance - win.own_drawn)
                own -= group.correct / group.size * (win.chance - win.drawn(group.size))
            if samples:
                left_out.append((others + own, times * samples))
    return [(estimate * n / (n - k), samples) for estimate, samples in left_out]


def _win(groups: Sequence[VoteGroup], n: int, own: int, k: int) -> WinAndDrawn:
    """The chances of a group of `own` samples to win the majority of k samples; 1 < k < n."""
    rivals = Counter(map(_size, groups)) - Counter([own])
    return win_and_drawn(tuple(sorted(rivals.items(), reverse=True)), n, own, k)


def maj_at_k(groups: Sequence[VoteGroup], silent: int, k: int) -> float:
    """Expected correctness of the majority answer among k samples drawn without replacement.

    groups: the votes; silent: samples without an answer, which do not vote. Tied answers share the win; k silent
    samples score 0. Exact for every k (`harness.scoring.majorities`), to 12 digits. Raises `UsageError` when k is below
    1 or above n.
    """
    n = sum(group.size for group in groups) + silent
    _check_k("maj@", n, k)
    if k == 1:
        return sum(group.correct for group in groups) / n
    if not any(group.correct for group in groups):
        return 0.0
    if k == n:
        largest = max(map(_size, groups))
        winners = [group for group in groups if group.size == largest]
        return sum(group.correct / group.size for group in winners) / len(winners)
    if (decided := _certain_value(groups, n, k)) is not None:
        return decided
    shares = _correct_shares(groups)
    total = math.fsum(share * _win(groups, n, size, k).chance for size, share in shares.items() if share)
    # Rounding may carry the sum a little above 1.
    return min(1.0, float(f"{total:.{_DIGITS}g}"))


def _correct_shares(groups: Sequence[VoteGroup]) -> dict[int, float]:
    """Size → the sum of the fractions correct of all groups of this size, which are equally likely to win."""
    shares: dict[int, float] = {}
    for group in groups:
        shares[group.size] = shares.get(group.size, 0.0) + group.correct / group.size
    return shares


def _certain_value(groups: Sequence[VoteGroup], n: int, k: int) -> float | None:
    """The value of maj@k if the largest group is nearly certain to win, else None.

    Take a group with a share a of the samples and a rival with the smaller share b. Of k draws without replacement the
    rival gets as many as the group with a chance of at most (1 − (√a − √b)²)^k (Chernoff; Hoeffding 1963, section 6).
    The bounds of all rivals are added up.
    """
    first, second = nlargest(2, groups, key=_size) if len(groups) > 1 else (groups[0], VoteGroup(0, 0))
    if n < _MIN_BOUNDED or _chance_to_catch_up(first.size, second.size, n, k) > _MAX_DOUBT:
        return None
    times = Counter(map(_size, groups))
    times[first.size] -= 1
    chance = math.fsum(t * _chance_to_catch_up(first.size, size, n, k) for size, t in times.items() if t)
    return first.correct / first.size if chance <= _MAX_DOUBT else None


_size = attrgetter("size")


def _chance_to_catch_up(first: int, size: int, n: int, k: int) -> float:
    """A bound on the chance that a group of `size` gets as many of k votes (of n samples) as a group of `first`."""
    return float((1 - (math.sqrt(first / n) - math.sqrt(size / n)) ** 2) ** k)


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
        raise UsageError(f"{name}{k} needs {k} samples of every question, and a question has only {n}; ask for k ≤ {n}")
