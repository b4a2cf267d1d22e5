"""An exact test of drawn tokens against known distributions. Pure functions; the caller passes the random seed.

A Monte Carlo p-value is (1 + b) / (1 + m), where b of m simulated statistics are at least as extreme as the observed
one. Under the null hypothesis it is at most α with probability at most α (Barnard 1963; Davison and Hinkley 1997,
*Bootstrap Methods and their Application*, 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

SIMULATED = 9_999
"""Number of simulated draws under the null hypothesis, from which most p-values are computed."""

SIMULATED_AGAIN = 99_999
"""Number of simulated draws if the first `SIMULATED` draws show a small p-value. The smallest two-sided p-value is then
2e-5, below Holm's bound for any number of our tests.
"""

SMALL = 0.01
"""p-values up to this are computed anew from `SIMULATED_AGAIN` further draws. The test stays exact: the first draws can
only keep a hypothesis from rejection.
"""


NO_TOKEN = -1e6
"""A log-probability in place of a token that is missing: it is never drawn."""


def temperature_at_places(
    tokens: Sequence[str], places: Sequence[Mapping[str, float]], temperature: float, seed: int
) -> tuple[float, float]:
    """Test the hypothesis that one token was drawn at this temperature at each place. Return (how many standard
    deviations less likely the tokens are than expected, two-sided p-value).

    tokens: the token of each place, one of those listed there. places: as `logprobs` of `temperature`, for each place.
    The statistic is the same sum, and so is the test.
    """
    x = _rows(places)
    cumulative = _softmax(x / temperature).cumsum(axis=-1)
    drawn = sum(top[token] for token, top in zip(tokens, places, strict=True))
    rng = np.random.default_rng(seed)

    def simulate(m: int) -> NDArray[np.float64]:
        """The sums of m simulated draws at all places."""
        sums = np.zeros(m)
        for row, shares, top in zip(x, cumulative, places, strict=True):
            sums += row[np.minimum(shares.searchsorted(rng.random(m)), len(top) - 1)] if len(top) > 1 else row[0]
        return sums

    mean, deviation = _of_round(x, temperature)
    return (mean - drawn) / max(deviation, 1e-9), two_sided(drawn, simulate)


def rounds_needed(
    places: Sequence[Mapping[str, float]], temperature: float, *, factor: float, level: float, power: float,
    least: Sequence[float] = (),
) -> float:  # fmt: skip
    """Return about how many rounds of one draw at each place find, with the chance `power`, that the draws' temperature
    is `factor` times too high or too low.

    places, temperature: as in `temperature_at_places`; of draws at one place, rounds are draws. level: the p-value up
    to which the test accuses. least: at each place, the smallest log-probability of a token that the server does not
    cut; empty: it cuts none.

    By the normal approximation of the statistic, n = ((z·s₀ + w·s₁) / (m₁ − m₀))², with mean m and deviation s of the
    logarithms of one round at both temperatures, and the normal quantiles z of 1 − level/2 and w of `power`. A cut that
    makes the draws of a higher temperature as likely as asked for, or likelier, hides it from any number of draws.
    """
    if not places:
        return math.inf
    x = _rows(places)
    left = np.where(x >= np.array(least)[:, None], x, NO_TOKEN) if least else x
    z, w = NormalDist().inv_cdf(1 - level / 2), NormalDist().inv_cdf(power)
    mean, deviation = _of_round(x, temperature)
    needed = []
    for wrong, sign in ((temperature * factor, -1), (temperature / factor, 1)):
        m, sd = _of_round(left, wrong)
        moved = sign * (m - mean)
        # Where both means are equal, as with a single token, no number of draws is enough.
        needed.append(((z * deviation + w * sd) / moved) ** 2 if moved > 1e-9 else math.inf)
    return max(needed)


def two_sided(observed: float, simulate: Callable[[int], NDArray[np.float64]]) -> float:
    """The two-sided Monte Carlo p-value of a statistic.

    observed: the statistic of the draws. simulate: returns a given number of new statistics under the null hypothesis.
    """
    # Equal sums may differ in their last digits, since they are added in another order; they count as equal.
    slack = 1e-9 * max(1.0, abs(observed))
    # Simulated in two steps, because most p-values are large and the first draws show that.
    p = 1.0
    for m in (SIMULATED, SIMULATED_AGAIN):
        drawn = simulate(m)
        low = (1 + int(np.count_nonzero(drawn <= observed + slack))) / (1 + m)
        high = (1 + int(np.count_nonzero(drawn >= observed - slack))) / (1 + m)
        p = min(1.0, 2 * min(low, high))
        if p > SMALL:
            break
    return p


def _rows(places: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
    """The log-probabilities of each place in a row, with `NO_TOKEN` at the end of short rows."""
    x = np.full((len(places), max(map(len, places))), NO_TOKEN)
    for row, top in zip(x, places, strict=True):
        row[: len(top)] = list(top.values())
    return x


def _of_round(x: NDArray[np.float64], temperature: float) -> tuple[float, float]:
    """Mean and standard deviation of the sum of the logarithms of one token of each row of x, drawn at this
    temperature.
    """
    q = _softmax(x / temperature)
    means = (q * x).sum(axis=-1, keepdims=True)
    return float(means.sum()), math.sqrt(float((q * (x - means) ** 2).sum()))


def _softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities that sum to one in each row, from logarithms."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    distribution: NDArray[np.float64] = e / e.sum(axis=-1, keepdims=True)
    return distribution
