"""Exact tests of one-token replies against a known distribution. Pure functions; the caller passes the random seed.

A Monte Carlo p-value is (1 + b) / (1 + m), where b of m simulated statistics are at least as extreme as the observed
one. Under the null hypothesis it is at most α with probability at most α (Barnard 1963; Davison and Hinkley 1997,
*Bootstrap Methods and their Application*, 4.2). Several tests are combined by Holm's method
(`harness.scoring.differences.holm`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from harness.scoring.intervals import wilson

SIMULATED = 9_999
"""Number of simulated draws under the null hypothesis, from which most p-values are computed."""

SIMULATED_AGAIN = 99_999
"""Number of simulated draws if the first `SIMULATED` draws show a small p-value. The smallest two-sided p-value is then
2e-5, below Holm's bound for any number of our tests.
"""

FITTED_RANGE = (0.01, 100.0)
"""The range in which `fitted_temperature` searches."""

SMALL = 0.01
"""p-values up to this are computed anew from `SIMULATED_AGAIN` further draws. The test stays exact: the first draws can
only keep a hypothesis from rejection.
"""


NO_TOKEN = -1e6
"""A log-probability in place of a token that is missing: it is never drawn."""


def temperature(counts: Mapping[str, int], logprobs: Mapping[str, float], temperature: float, seed: int) -> float:
    """Return the two-sided p-value of the hypothesis that tokens were drawn at this temperature.

    counts: how often each token came. logprobs: natural logarithms of probabilities at temperature 1; tokens that are
    not listed there are left out, which conditions on the listed set and keeps the test exact. The statistic is the sum
    of the tokens' logarithms: it is sufficient for 1/temperature, hence the most powerful against another temperature.
    seed: of the simulation.
    """
    names = list(logprobs)
    x = np.array([logprobs[name] for name in names])
    n = sum(counts.get(name, 0) for name in names)
    if n == 0:
        return 1.0
    q = _softmax(x / temperature)
    seen = sum(counts.get(name, 0) * logprobs[name] for name in names)
    rng = np.random.default_rng(seed)
    return two_sided(seen, lambda m: rng.multinomial(n, q, size=m) @ x)


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


def fitted_temperature(counts: Mapping[str, int], logprobs: Mapping[str, float]) -> float | None:
    """The temperature at which these draws are most likely (maximum likelihood), within `FITTED_RANGE`; None if no
    listed token was drawn.

    Arguments as in `temperature`. The likelihood is highest where the mean logarithm of the draws equals its
    expectation. The expectation falls as the temperature rises, so bisection finds the place.
    """
    names = list(logprobs)
    x = np.array([logprobs[name] for name in names])
    weights = np.array([counts.get(name, 0) for name in names])
    if not weights.sum():
        return None
    seen = float(weights @ x / weights.sum())
    low, high = FITTED_RANGE
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float(_softmax(x / middle) @ x) > seen else (low, middle)
    return high


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


def cut(n_outside: int, n: int, mass: float) -> float:
    """Return the p-value of the hypothesis that a server drops no unlikely tokens, as top_k or top_p would.

    n_outside: how many of n drawn tokens a cut would have removed. mass: the probability of such tokens without a cut.
    An exact binomial test, one-sided.
    """
    mass = min(1.0, max(0.0, mass))
    terms = (math.comb(n, k) * mass**k * (1 - mass) ** (n - k) for k in range(n_outside + 1))
    return min(1.0, math.fsum(terms))


def unlisted(logprobs: Mapping[str, float], temperature: float) -> float:
    """The largest probability that all unlisted tokens can have together at a temperature of at most 1.

    logprobs: as in `temperature`, of the likeliest tokens. At temperature 1 it is 1 − Σ p. At T < 1 a token's weight is
    p^(1/T), so that tokens of total probability m, each at most p₀, weigh at most m · p₀^(1/T − 1).
    """
    rest = max(0.0, 1 - math.fsum(map(math.exp, logprobs.values())))
    power = 1 / temperature
    weight = rest * math.exp((power - 1) * min(logprobs.values()))
    return weight / (weight + math.fsum(math.exp(power * value) for value in logprobs.values()))


def hotter(n_unlisted: int, n: int, most: float) -> float:
    """Return the p-value of the hypothesis that draws are no hotter than asked for.

    n_unlisted: how many of n drawn tokens are less likely than all listed ones. most: the largest probability of such a
    token. An exact binomial test, one-sided.
    """
    return cut(n - n_unlisted, n, 1 - most)


def two_shares(ours: int, theirs: int, n: int) -> float:
    """Two-sided p-value of the hypothesis that `ours` of n and `theirs` of n came by the same chance.

    Fisher's exact test (1934).
    """
    total = ours + theirs
    # Given the sum of both numbers, `ours` is hypergeometric, whatever the chance is.
    ways = [math.comb(n, i) * math.comb(n, total - i) for i in range(max(0, total - n), min(n, total) + 1)]
    seen = math.comb(n, ours) * math.comb(n, theirs)
    return sum(way for way in ways if way <= seen) / math.comb(2 * n, total)


def difference(ours: int, n: int, theirs: int, m: int) -> tuple[float, float]:
    """The 95 % interval of ours/n − theirs/m, from the Wilson intervals of the two fractions.

    Method 10 of Newcombe 1998, Statist. Med. 17:873.
    """
    a, b = ours / n, theirs / m
    first, second = (wilson(np.array(share), np.array(size)) for share, size in ((a, n), (b, m)))
    low = a - b - math.hypot(a - float(first.low), float(second.high) - b)
    return low, a - b + math.hypot(float(first.high) - a, b - float(second.low))


def entropy(logprobs: Mapping[str, float]) -> float:
    """Entropy of the listed tokens in nats, with their probabilities scaled to sum to one."""
    q = _softmax(np.array(list(logprobs.values())))
    # Without the floor, 0 times the logarithm of 0 would be no number.
    return float(-(q * np.log(np.maximum(q, 1e-300))).sum())


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
