"""What a gate infers from its earlier nights: states with levels, and how much metrics differ within a state.

The result of a night is the sum of the level of its state, the run's own deviation, and its sampling error. The level
changes at change points. Each night is compared with **the accepted state**. A night that failed is not part of this
state; a night that stands out from it, or resembles one that failed, is unlikely to be. Such nights form **another
state**, with its own level, until a night is at the accepted level again. So a reference never follows a drop, detected
or not, and neither a drop nor its end counts as deviation. The accepted state is replaced only by a higher state that
lasts `LASTING` nights without a failure.

Both levels are filtered (Kalman 1960, J. Basic Eng. 82:35) with the probability of each state (Harrison and Stevens
1976, J. R. Stat. Soc. B 38:205): for the specified deviation or, if there is none, for each deviation on a grid, with
the prior for which a further night has a Student's t distribution. For metrics, each of several laws has a chance
(`LAWS`): heavy tails (Student's t with 3 degrees of freedom, as a mixture of normal distributions), two levels that
keep returning, such as those of two kinds of nodes, and a level that walks.
No I/O, no clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.scoring.stats import Array

LEAST_DEVIATION = 0.0005
"""Smallest deviation between nights that is assumed, even if the specified one is 0."""

CONTRADICTION = 3.09
"""Normal quantile of 99.9%: nights that vary by more than this contradict the specified deviation."""

CHANGES, RETURNS = 0.03, 0.2
"""Chance that a night starts another state, and that a later night returns to the accepted state."""

OPEN = 0.03
"""Chance that a night in the accepted state is left open."""

LASTING = 5
"""Nights without a failure after which a better state becomes the accepted state."""

DRIFT = 0.002
"""Standard deviation of the change in an unchanged state's accuracy from one night to the next."""

_SDS = np.geomspace(0.0002, 0.5, 24)
"""Deviations of runs over which a chance is averaged, for accuracies (fractions) or logarithms."""

_NORMAL = (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0, 1.0)
_HEAVY = (0.6420, 0.2997, 0.0524, 0.0059), (0.8265, 3.3912, 14.240, 88.071)
"""Shares and variances of the normal distributions that make up the normal and the heavy-tailed distribution (within
3% of Student's tail up to 12).
"""


class Law(NamedTuple):
    """How a metric may vary. chance: before any night. changes, returns, lasting: `CHANGES`, `RETURNS` and `LASTING`,
    after another state has been seen. walk: standard deviation of the level's change from one night to the next, in
    deviations of runs. parts: shares and variances of the distribution.
    """

    chance: float
    changes: float = CHANGES
    returns: float = RETURNS
    walk: float = 0.0
    lasting: int = LASTING
    parts: tuple[tuple[float, ...], tuple[float, ...]] = _NORMAL


LAWS = (
    Law(0.4),
    Law(0.3, parts=_HEAVY),
    Law(0.1, 0.4, 0.6, lasting=1),
    Law(0.05, 0.9, 0.9, lasting=1),
    Law(0.1, walk=0.3),
    Law(0.05, walk=1.0),
)
"""The laws that a metric's nights may follow: rare changes, heavy tails, two levels in any order or in turn, a walk."""


class Learned(NamedTuple):
    """What earlier nights show. sd: the specified deviation of runs; NaN if there is none. known: number of nights in
    the accepted state. odd: whether each night is outside it. level: level of the accepted state, NaN if there is none.

    variances, weights: possible variances of the deviation of runs beyond sampling, with weights that sum to 1. doubts:
    variance of the level for each of them. For several histories at once, arrays with the histories first.

    other: the same for the other state. returns: how often that state has ended. walk: chance that the level walks.
    walking: the same if it does; the rest is for a level that stays.
    """

    sd: float
    known: Any
    odd: tuple[Any, ...]
    level: Any
    variances: Array
    weights: Array
    doubts: Array
    other: Any = None
    walking: Any = None
    returns: Any = 0.0
    walk: Any = 0.0

    @property
    def level_variance(self) -> Any:
        """The variance of the level."""
        return (self.weights * self.doubts).sum(axis=-1)


class Prior(NamedTuple):
    """What is known before any night. sd: deviation of runs; None if it is learned. laws: what nights may follow.
    drift: standard deviation of the level's change from one night to the next. span: range of possible levels of
    another state.
    """

    sd: float | None = None
    laws: tuple[Law, ...] = (Law(1.0),)
    drift: float = DRIFT
    span: float = 0.3


class States:
    """The filter: for each deviation and law, (…, K, L), levels of the accepted [0] and the other state [1].

    shape: shape of the histories that are filtered at once; () for one history.
    """

    def __init__(self, prior: Prior, shape: tuple[int, ...] = ()) -> None:
        self.prior, n_laws = prior, len(prior.laws)
        self.shares, parts = (np.array([law.parts[of] for law in prior.laws]) for of in (0, 1))
        chances, self.changes, self.returns, walks, self.lasting = np.array([law[:5] for law in prior.laws]).T
        scales = (_SDS**2)[:, None] * np.ones(n_laws)
        if prior.sd is not None:
            scales = max(prior.sd, LEAST_DEVIATION) ** 2 / (self.shares * parts).sum(axis=-1)[None]
        self.variances = scales[..., None] * parts
        self.drift = prior.drift**2 + walks**2 * scales
        shape = (*shape, len(scales), n_laws)
        self.log_weight = np.log(chances) + np.zeros(shape)
        self.level, self.doubt = np.zeros((2, *shape)), np.ones((2, *shape))
        self.outside, self.lasted, self.visits = (np.zeros(shape) for _ in range(3))
        self.begun, self.failed = (np.zeros((*shape[:-2], 1, 1), bool) for _ in range(2))
        self.odd = tuple[NDArray[np.bool_], ...]()

    def take(self, value: Array | float, variance: Array | float, accepted: Array | float) -> None:
        """Add one night to each history; arguments as in `learn`."""
        value, variance, accepted = (np.asarray(each)[..., None, None] for each in (value, variance, accepted))
        own = self.variances + variance[..., None]
        alone, self.doubt = (self.shares * own).sum(axis=-1), self.doubt + self.drift
        total = self.doubt[..., None] + own
        laws = self.shares * np.exp(-np.square(value - self.level)[..., None] / total / 2) / np.sqrt(2 * np.pi * total)
        density = laws.sum(axis=-1) + 1e-300
        gain = (laws * self.doubt[..., None] / total).sum(axis=-1) / density
        doubt = (laws * self.doubt[..., None] * own / total).sum(axis=-1) / density
        # The chances that the night is in the accepted state, in the other one, and in a new one.
        # After a failure, a return is expected; otherwise it would be evidence for a deviation that hides the
        # failure.
        returns, remains = np.where(self.failed, 1.0, self.returns), np.where(self.failed, 1.0, 1 - self.returns)
        visited = np.minimum(self.visits, 1)
        changes = CHANGES + visited * (self.changes - CHANGES)
        back = (1 - self.outside) * (1 - changes) + self.outside * returns
        begins = ~self.begun & (accepted > 0)
        inside = np.where(begins, 1.0, back * density[0] * accepted)
        enters = np.where(begins, 0.0, (1 - self.outside) * changes * visited * density[1])
        again = np.where(begins, 0.0, enters + self.outside * remains * density[1])
        new = np.where(begins, 0.0, CHANGES / self.prior.span)
        gain[0], doubt[0] = np.where(begins, 1.0, gain[0]), np.where(begins, alone, doubt[0])
        self.begun, self.failed = self.begun | begins, accepted <= 0
        chance = inside + again + new
        self.log_weight = self.log_weight + np.log(chance)
        self.outside = (again + new) / chance
        # The other state keeps its level, or, if it is new, this night is all that is known about it.
        enters, again, new = enters / chance, again / chance, new / chance
        self.visits = np.where(new > 1 / 2, 1, self.visits + (enters > 1 / 2))
        gains = np.stack([gain[0] * (1 - self.outside), gain[1] * again + new])
        doubts = [self.outside * self.doubt[0] + (1 - self.outside) * doubt[0]]
        doubts += [(1 - self.outside) * self.doubt[1] + again * doubt[1] + new * alone]
        self.level, self.doubt = self.level + gains * (value - self.level), np.stack(doubts)
        better = (self.outside > 0.9) & (self.level[1] > self.level[0]) & (accepted > 0)
        self.lasted = np.where(better, self.lasted + 1, 0)
        lasts, outside = self.lasted >= self.lasting, self.outside
        self.level, self.doubt = (np.where(lasts, of[::-1], of) for of in (self.level, self.doubt))
        self.outside = np.where(lasts, 0.0, outside)
        self.odd = (*self.odd, (self.weights() * outside).sum(axis=(-2, -1)) > 1 / 2)

    def weights(self) -> Array:
        """The chance of each deviation and law."""
        weights = np.exp(self.log_weight - self.log_weight.max(axis=(-2, -1), keepdims=True))
        return np.asarray(weights / weights.sum(axis=(-2, -1), keepdims=True))

    def combine(self) -> Learned:
        """What the nights show."""
        all_weights, odd = self.weights(), self.odd

        def of(state: int, part: Array) -> Learned:
            weights = part / np.maximum(part.sum(axis=(-2, -1), keepdims=True), 1e-300)
            shape, flat = (*weights.shape, self.shares.shape[-1]), (*weights.shape[:-2], -1)
            level = (weights * self.level[state]).sum(axis=(-2, -1), keepdims=True)
            doubts = self.doubt[state] + (self.level[state] - level) ** 2
            return Learned(
                math.nan if self.prior.sd is None else self.prior.sd,
                len(odd) - np.sum(odd, axis=0),
                odd,
                np.where(self.begun, level, math.nan)[..., 0, 0],
                self.variances.ravel(),
                (weights[..., None] * self.shares).reshape(flat),
                np.broadcast_to(doubts[..., None], shape).reshape(flat),
            )

        walks = np.array([law.walk > 0 for law in self.prior.laws])
        return of(0, all_weights * ~walks)._replace(
            other=of(1, all_weights * np.minimum(self.visits, 1)),
            walking=of(0, all_weights * walks),
            returns=(all_weights * (self.visits - (self.outside > 1 / 2))).sum(axis=(-2, -1)),
            walk=(all_weights * walks).sum(axis=(-2, -1)),
        )


@lru_cache(maxsize=1024)  # each look of a gate needs it again
def learn(
    values: tuple[float, ...], sampling: tuple[float, ...], prior: Prior, accepted: tuple[float, ...] = ()
) -> Learned:
    """Return what the earlier nights show.

    values: accuracies, or logarithms of metrics, of the nights in order; higher is better. sampling: the variance of
    each value's sampling error. accepted: for each night, 1 if it passed, 0 if it failed, `OPEN` if it was left
    open; () if all passed.
    """
    states = States(prior)
    for night in zip(values, sampling, accepted or (1.0,) * len(values), strict=True):
        states.take(*night)
    shown = states.combine()
    return shown._replace(known=int(shown.known), level=float(shown.level), odd=tuple(map(bool, shown.odd)))


def contradicting_deviation(nights: Sequence[tuple[float, float]], sd: float) -> float | None:
    """The deviation that these nights show if it is larger than `sd` beyond chance; otherwise None.

    nights: the value of each and the variance of its sampling error. The test compares successive nights, because
    levels may change (von Neumann 1941, Ann. Math. Stat. 12:367). The cube root of χ²/k, with k = 2/3 of their number,
    is nearly normal (Wilson and Hilferty 1931, PNAS 17:684).
    """
    if len(nights) < 2:
        return None
    values, sampling = np.array(nights).T
    squares, errors = np.diff(values) ** 2, sampling[1:] + sampling[:-1]
    ratio, spread = np.mean(squares / (errors + 2 * max(sd, LEAST_DEVIATION) ** 2)), 1 / (3 * len(squares))
    contradicts = np.cbrt(ratio) > 1 - spread + CONTRADICTION * math.sqrt(spread)
    return math.sqrt(max(0.0, float(np.mean(squares - errors)) / 2)) if contradicts else None


_Z = np.linspace(-9, 9, 3601)
_LOG_TAIL = np.array([math.log(math.erfc(z / math.sqrt(2)) / 2) for z in _Z.tolist()])


def upper_tail(z: Array) -> Array:
    """The chance that a standard normal value exceeds z, to a relative precision of 3e-6; constant beyond 9."""
    return np.asarray(np.exp(np.interp(z, _Z, _LOG_TAIL)))


def chance_beyond(weights: Array, variances: Array, value: Array | float) -> Array:
    """The chance that a draw from these normal distributions around 0 exceeds `value`. weights, variances: (…, N)."""
    return np.asarray((upper_tail(np.asarray(value)[..., None] / np.sqrt(variances)) * weights).sum(axis=-1))


def tail_quantile(weights: Array, variances: Array, chance: float) -> float:
    """The value that these normal distributions around 0 exceed with probability `chance`, at most 1/2."""
    low, high = 0.0, 20 * float(np.sqrt(variances.max()))
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if chance_beyond(weights, variances, middle) > chance else (low, middle)
    return high
