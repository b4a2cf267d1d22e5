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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.scoring.stats import Array

STATED_FACTOR = math.log(1.4)
"""A stated deviation is right within a factor of 1.4 in two of three gates: deviation of its logarithm."""

STATED_FREEDOM = 3.0
"""Degrees of freedom of the logarithm's distribution, Student's: few policies are wrong by much, but some are."""

BELIEVED = 0.975
"""Share of what is possible for a stated deviation that a decision allows for; the rest would let nothing be seen."""

CHANGES, RETURNS = 0.03, 0.2
"""Chance that a night begins another state, and that a night after it is in the accepted one again."""

OPEN, OPEN_NIGHTS = 0.03, 5
"""Chance that a night in the accepted state is left open, until nights show that more are; so many count against it."""

LASTING = 5
"""Nights without a failure after which a better state is the accepted one."""

DRIFT = 0.002
"""By how much the accuracy of an unchanged state may move from night to night, standard deviation."""

_SDS = np.geomspace(0.0002, 0.5, 24)
"""Deviations of runs over which a chance is averaged: fractions, or of logarithms."""

_SCALES = np.array([[1.0, 1.0, 1.0, 1.0], [0.8265, 3.3912, 14.240, 88.071]])
_SHARES = np.array([[1.0, 0.0, 0.0, 0.0], [0.6420, 0.2997, 0.0524, 0.0059]])
"""Variances, and their shares, of the normal and of the heavy-tailed law (to 3% of Student's tail up to 12)."""


class Deviations(NamedTuple):
    """The deviation of runs beyond sampling: possible variances, with weights that sum to 1.

    known: former nights that taught it. sd: the estimate. odd: whether each former night lies outside the accepted
    state. level: of the accepted state, NaN without any; doubts: its variance with each of `variances`. Of several
    histories at once, arrays with the histories first.
    """

    variances: Array
    weights: Array
    sd: Any
    known: Any = 0
    odd: tuple[Any, ...] = ()
    level: Any = math.nan
    doubts: Array | float = math.inf


class Prior(NamedTuple):
    """What is known before any night. stated: a stated deviation. heavy: the chance of the heavy-tailed law. drift: of
    the level from night to night. span: over which another state may lie.
    """

    stated: float | None = None
    heavy: float = 0.0
    drift: float = DRIFT
    span: float = 0.3


class States:
    """The filter: for each deviation and law, (…, K, L), levels of the accepted [0] and of the other state [1].

    shape: of the histories that are filtered at once; () for one.
    """

    def __init__(self, prior: Prior, shape: tuple[int, ...] = ()) -> None:
        self.prior, n_laws = prior, 2 if prior.heavy else 1
        self.scales, self.shares = (of[:n_laws, : 3 * n_laws - 2] for of in (_SCALES, _SHARES))
        shape = (*shape, len(_SDS), n_laws)
        self.log_weight = np.log([1 - prior.heavy, prior.heavy][:n_laws]) + np.zeros(shape)
        if prior.stated is not None:
            scales = max(prior.stated, 0.0005) / np.sqrt([1.0, 3.0][:n_laws])  # of either law with this deviation
            apart = np.log(_SDS[:, None] / scales) / STATED_FACTOR
            self.log_weight = self.log_weight - (STATED_FREEDOM + 1) / 2 * np.log1p(apart**2 / STATED_FREEDOM)
        self.level, self.doubt = np.zeros((2, *shape)), np.ones((2, *shape))
        self.outside, self.lasted = np.zeros(shape), np.zeros(shape)
        self.opened, self.taken = np.zeros((*shape[:-2], 1, 1)), 0
        self.begun, self.failed = (np.zeros((*shape[:-2], 1, 1), bool) for _ in range(2))
        self.odd = tuple[NDArray[np.bool_], ...]()

    def take(self, value: Array | float, variance: Array | float, accepted: Array | float) -> None:
        """One more night of each history; arguments as in `learned_deviation`."""
        value, variance, accepted = (np.asarray(each)[..., None, None] for each in (value, variance, accepted))
        is_open = np.isnan(accepted)
        accepted = np.where(is_open, np.maximum(OPEN, self.opened / (self.taken + OPEN_NIGHTS)), accepted)
        self.opened, self.taken = self.opened + is_open, self.taken + 1
        own = (_SDS**2)[:, None, None] * self.scales + variance[..., None]
        alone, self.doubt = (self.shares * own).sum(axis=-1), self.doubt + self.prior.drift**2
        total = self.doubt[..., None] + own
        laws = self.shares * np.exp(-np.square(value - self.level)[..., None] / total / 2) / np.sqrt(2 * np.pi * total)
        density = laws.sum(axis=-1) + 1e-300
        gain = (laws * self.doubt[..., None] / total).sum(axis=-1) / density
        doubt = (laws * self.doubt[..., None] * own / total).sum(axis=-1) / density
        # The chances that the night is in the accepted state, in the other one, and in a new one.
        # After a failure the way back is no surprise: it would otherwise speak for a deviation that hides the failure.
        returns, remains = np.where(self.failed, 1.0, RETURNS), np.where(self.failed, 1.0, 1 - RETURNS)
        back = (1 - self.outside) * (1 - CHANGES) + self.outside * returns
        begins = ~self.begun & (accepted > 0)
        inside = np.where(begins, 1.0, back * density[0] * accepted)
        again = np.where(begins, 0.0, ((1 - self.outside) * CHANGES + self.outside * remains) * density[1])
        new = np.where(begins, 0.0, CHANGES / self.prior.span)
        gain[0], doubt[0] = np.where(begins, 1.0, gain[0]), np.where(begins, alone, doubt[0])
        self.begun, self.failed = self.begun | begins, accepted <= 0
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
        lasts, outside = self.lasted >= LASTING, self.outside
        self.level[0], self.doubt[0] = (np.where(lasts, of[1], of[0]) for of in (self.level, self.doubt))
        self.outside = np.where(lasts, 0.0, outside)
        self.odd = (*self.odd, (self.weights() * outside).sum(axis=(-2, -1)) > 1 / 2)

    def weights(self) -> Array:
        """The chance of each deviation and law."""
        weights = np.exp(self.log_weight - self.log_weight.max(axis=(-2, -1), keepdims=True))
        return np.asarray(weights / weights.sum(axis=(-2, -1), keepdims=True))

    def learned(self) -> Deviations:
        """What the nights show."""
        weights, odd = self.weights(), self.odd
        sd = np.exp(weights.sum(axis=-1) @ np.log(_SDS))
        if self.prior.stated is not None:
            below = np.cumsum(weights, axis=-2)
            weights = np.diff(np.minimum(below, BELIEVED * below[..., -1:, :]), axis=-2, prepend=0.0) / BELIEVED
        level = (weights * self.level[0]).sum(axis=(-2, -1), keepdims=True)
        doubts = self.doubt[0] + (self.level[0] - level) ** 2
        shape, flat = (*weights.shape, self.shares.shape[-1]), (*weights.shape[:-2], -1)
        return Deviations(
            ((_SDS**2)[:, None, None] * self.scales).ravel(),
            (weights[..., None] * self.shares).reshape(flat),
            sd,
            len(odd) - np.sum(odd, axis=0),
            odd,
            np.where(self.begun, level, math.nan)[..., 0, 0],
            np.broadcast_to(doubts[..., None], shape).reshape(flat),
        )


@lru_cache(maxsize=1024)  # each look of a gate asks again, and each night begins with the former ones
def _filtered(nights: tuple[tuple[float, float, float], ...], prior: Prior) -> States:
    """The filter after these nights."""
    before = max(0, len(nights) - 1) // 16 * 16
    states = copy(_filtered(nights[:before], prior)) if before else States(prior)
    for night in nights[before:]:
        states.take(*night)
    return states


def learned_deviation(
    values: tuple[float, ...], sampling: tuple[float, ...], prior: Prior, accepted: tuple[float, ...] = ()
) -> Deviations:
    """Return what the former nights show.

    values: of each night in order, accuracies or logarithms of figures, better where they are higher. sampling: the
    variance of each one's sampling error. accepted: of each night, 1 if it passed, 0 if it failed, NaN if it was left
    open; () for 1 each.
    """
    nights = zip(values, sampling, accepted or (1.0,) * len(values), strict=True)
    learned = _filtered(tuple(nights), prior).learned()
    odd = tuple(map(bool, learned.odd))
    return learned._replace(sd=float(learned.sd), known=int(learned.known), level=float(learned.level), odd=odd)


_Z = np.linspace(-9, 9, 3601)
_LOG_TAIL = np.array([math.log(math.erfc(z / math.sqrt(2)) / 2) for z in _Z.tolist()])


def upper_tail(z: Array) -> Array:
    """Chance that a standard normal value exceeds z, to 3e-6 of it; that of 9 beyond."""
    return np.asarray(np.exp(np.interp(z, _Z, _LOG_TAIL)))


def chance_beyond(weights: Array, variances: Array, value: Array | float) -> Array:
    """The chance that a value of these laws about 0 exceeds this one. weights, variances: (…, laws)."""
    return np.asarray((upper_tail(np.asarray(value)[..., None] / np.sqrt(variances)) * weights).sum(axis=-1))


def reach(weights: Array, variances: Array, chance: float) -> float:
    """What a value of these laws about 0 exceeds with this chance, of at most 1/2."""
    low, high = 0.0, 20 * float(np.sqrt(variances.max()))
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if chance_beyond(weights, variances, middle) > chance else (low, middle)
    return high
