"""What a gate believes of its former nights: states with levels, and by how much runs differ within a state.

A night is the level of its state, a run's own deviation, and the error of its samples. The level moves by change
points.
**The accepted state** is what a night is held against. A night that failed is not in it; a night that stands out from
it, or is like one that failed, hardly is. Such nights form **another state**, with its own level, until a night lies
at the accepted level again. So a reference never follows a fall, found or not, and neither a fall nor its end counts as
deviation. Only a state above the accepted one that lasts `LASTING` nights without a failure replaces it.

For each deviation on a grid, and for a normal and a heavy-tailed law of it, both levels are filtered (Kalman 1960, J.
Basic Eng. 82:35) with the chance of either state (Harrison and Stevens 1976, J. R. Stat. Soc. B 38:205). The heavy tail
is Student's with 3 degrees of freedom, as a mixture of normal laws. A deviation that is stated has a prior: its
logarithm is like Student's about it. A deviation that is not has the prior under which the chance of a further night is
Student's t. No I/O, no clock.
"""

from __future__ import annotations

import math
from copy import copy
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from harness.scoring.stats import Array

STATED_FACTOR = math.log(1.4)
"""A stated deviation is right within a factor of 1.4 in two of three gates: deviation of its logarithm."""

STATED_FREEDOM = 3.0
"""Degrees of freedom of the logarithm's distribution, Student's: few policies are wrong by much, but some are."""

BELIEVED = 0.975
"""Share of what is possible for a stated deviation that a decision allows for; the rest would let nothing be seen."""

CHANGES, RETURNS = 0.03, 0.2
"""Chance that a night begins another state, and that a night after it is in the accepted one again."""

LASTING = 5
"""Nights without a failure after which a better state is the accepted one."""

DRIFT = 0.002
"""By how much the accuracy of an unchanged state may move from night to night, standard deviation."""

_SDS = np.geomspace(0.0002, 0.5, 24)
"""Deviations of runs over which a chance is averaged: fractions, or of logarithms."""

_SCALES = np.array([[1.0, 1.0, 1.0, 1.0], [0.8265, 3.3912, 14.240, 88.071]])
_SHARES = np.array([[1.0, 0.0, 0.0, 0.0], [0.6420, 0.2997, 0.0524, 0.0059]])
"""Variances, and their shares, of the normal and of the heavy-tailed law (to 3 % of Student's tail up to 12)."""


class Deviations(NamedTuple):
    """The deviation of runs beyond sampling: possible variances, with weights that sum to 1.

    known: former nights that taught it. sd: the estimate. odd: whether each former night lies outside the accepted
    state. level: of the accepted state, NaN without any; doubts: its variance with each of `variances`.
    """

    variances: Array
    weights: Array
    sd: float
    known: int = 0
    odd: tuple[bool, ...] = ()
    level: float = math.nan
    doubts: Array | float = math.inf


class _States:
    """The filter: for each deviation and law, (K, 2), levels of the accepted [0] and of the other state [1]."""

    def __init__(self, heavy: float, stated: float | None, drift: float, span: float) -> None:
        shape = (len(_SDS), 2)
        self.log_weight = np.log([max(1 - heavy, 1e-12), max(heavy, 1e-12)]) + np.zeros(shape)
        if stated is not None:
            scales = max(stated, 0.0005) / np.sqrt([1.0, 3.0])  # of either law with the stated deviation
            apart = np.log(_SDS[:, None] / scales) / STATED_FACTOR
            self.log_weight = self.log_weight - (STATED_FREEDOM + 1) / 2 * np.log1p(apart**2 / STATED_FREEDOM)
        self.level, self.doubt, self.drift = np.zeros((2, *shape)), np.ones((2, *shape)), drift
        self.span = span
        self.outside, self.lasted, self.begun = np.zeros(shape), np.zeros(shape), False
        self.failed, self.odd = False, tuple[bool, ...]()

    def take(self, value: float, variance: float, accepted: float) -> None:
        """One more night."""
        own = (_SDS**2)[:, None, None] * _SCALES + variance
        alone, self.doubt = (_SHARES * own).sum(axis=-1), self.doubt + self.drift**2
        total = self.doubt[..., None] + own
        laws = _SHARES * np.exp(-np.square(value - self.level)[..., None] / total / 2) / np.sqrt(2 * np.pi * total)
        density = laws.sum(axis=-1) + 1e-300
        gain = (laws * self.doubt[..., None] / total).sum(axis=-1) / density
        doubt = (laws * self.doubt[..., None] * own / total).sum(axis=-1) / density
        # The chances that the night is in the accepted state, in the other one, and in a new one.
        # After a failure the way back is no surprise: it would otherwise speak for a deviation that hides the failure.
        returns, remains = (1.0, 1.0) if self.failed else (RETURNS, 1 - RETURNS)
        back = (1 - self.outside) * (1 - CHANGES) + self.outside * returns
        again = ((1 - self.outside) * CHANGES + self.outside * remains) * density[1]
        new = np.full_like(alone, CHANGES / self.span)
        inside = back * density[0] * accepted
        if accepted and not self.begun:
            inside, again, new, gain[0], doubt[0] = *(np.full_like(new, each) for each in (1, 0, 0)), 1.0, alone
            self.begun = True
        chance = inside + again + new
        self.log_weight = self.log_weight + np.log(chance)
        self.outside = (again + new) / chance
        # In the other state the level that it had counts again, or the night is all that is known of it.
        again, new = again / chance, new / chance
        gains = np.stack([gain[0] * (1 - self.outside), gain[1] * again + new])
        doubts = [self.outside * self.doubt[0] + (1 - self.outside) * doubt[0]]
        doubts += [(1 - self.outside) * self.doubt[1] + again * doubt[1] + new * alone]
        self.level, self.doubt = self.level + gains * (value - self.level), np.stack(doubts)
        better = (self.outside > 0.9) & (self.level[1] > self.level[0]) & (accepted > 0)
        self.lasted = np.where(better, self.lasted + 1, 0)
        lasts = self.lasted >= LASTING
        self.level[0], self.doubt[0], outside = (
            *np.where(lasts, (self.level[1], self.doubt[1]), (self.level[0], self.doubt[0])),
            self.outside,
        )
        self.outside = np.where(lasts, 0.0, self.outside)
        self.failed = not accepted
        self.odd = (*self.odd, bool((self.weights() * outside).sum() > 1 / 2))

    def weights(self) -> Array:
        """The chance of each deviation and law."""
        weights = np.exp(self.log_weight - self.log_weight.max())
        return np.asarray(weights / weights.sum())


@lru_cache(maxsize=1024)  # each look of a gate asks again, and each night begins with the former ones
def _filtered(
    nights: tuple[tuple[float, float, float], ...], heavy: float, stated: float | None, drift: float,
    span: float,
) -> _States:  # fmt: skip
    """The filter after these nights."""
    of = heavy, stated, drift, span
    before = max(0, len(nights) - 1) // 16 * 16
    states = copy(_filtered(nights[:before], *of)) if before else _States(*of)
    for night in nights[before:]:
        states.take(*night)
    return states


def learnt_deviation(
    values: tuple[float, ...], sampling: tuple[float, ...], stated: float | None, accepted: tuple[float, ...] = (),
    heavy: float = 0.0, drift: float = DRIFT, span: float = 0.3,
) -> Deviations:  # fmt: skip
    """Return what the former nights show.

    values: of each night in order, accuracies or logarithms of figures, better where they are higher. sampling: the
    variance of each one's sampling error. stated: a stated deviation. accepted: of each night, by its verdict,
    how well it agrees with the accepted state: 0 for a failure; () for 1 each. heavy: the
    chance of the heavy-tailed law before any night. drift: of the level from night to night.
    span: over which another state may lie.
    """
    nights = zip(values, sampling, accepted or (1.0,) * len(values), strict=True)
    states = _filtered(tuple(nights), heavy, stated, drift, span)
    weights, odd = states.weights(), states.odd
    sd = math.exp(float(np.log(_SDS) @ weights.sum(axis=1)))
    if stated is not None:
        below = np.cumsum(weights, axis=0)
        weights = np.diff(np.minimum(below, BELIEVED * below[-1]), axis=0, prepend=0.0) / BELIEVED
    level = float((weights * states.level[0]).sum()) if states.begun else math.nan
    doubts = states.doubt[0] + (states.level[0] - level) ** 2
    variances = (_SDS**2)[:, None, None] * _SCALES
    return Deviations(
        variances.ravel(), (weights[..., None] * _SHARES).ravel(), sd, len(odd) - sum(odd), odd, level,
        np.broadcast_to(doubts[..., None], variances.shape).ravel(),
    )  # fmt: skip


_Z = np.linspace(-9, 9, 3601)
_LOG_TAIL = np.array([math.log(math.erfc(z / math.sqrt(2)) / 2) for z in _Z.tolist()])


def upper_tail(z: Array) -> Array:
    """Chance that a standard normal value exceeds z, to 3e-6 of it; that of 9 beyond."""
    return np.asarray(np.exp(np.interp(z, _Z, _LOG_TAIL)))


def reach(weights: Array, variances: Array, chance: float) -> float:
    """What a value of these laws about 0 exceeds with this chance, of at most 1/2. variances: with each weight."""
    low, high = 0.0, 20 * float(np.sqrt(variances.max()))
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        beyond = float(upper_tail(middle / np.sqrt(variances)) @ weights)
        low, high = (middle, high) if beyond > chance else (low, middle)
    return high
