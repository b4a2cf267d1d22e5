"""Exact tests of one-token replies against a known distribution. Pure functions; randomness is handed in.

A Monte Carlo p-value (1 + b) / (1 + m), with b of m simulated statistics as extreme as the one that was seen, is exact:
under the null hypothesis it is at most α with a chance of at most α (Barnard 1963; Davison and Hinkley 1997, *Bootstrap
Methods and their Application*, 4.2). Families of tests: Holm (1979, Scand. J. Statist. 6:65).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

SIMULATED = 9999
"""Draws under the null hypothesis: the smallest p-value is 2e-4, below Holm's bound for any number of our tests."""


def temperature(counts: Mapping[str, int], logprobs: Mapping[str, float], temperature: float, seed: int) -> float:
    """Two-sided p-value of "these tokens were drawn at this temperature".

    counts: how often each token came; those that are not among `logprobs`, natural logarithms of probabilities at
    temperature 1, are left out, which conditions on the set and keeps the test exact. The statistic is the sum of the
    tokens' logarithms: sufficient for 1/temperature, hence the most powerful against another temperature.
    """
    names = list(logprobs)
    x = np.array([logprobs[name] for name in names])
    n = sum(counts.get(name, 0) for name in names)
    if n == 0:
        return 1.0
    q = _softmax(x / temperature)
    seen = sum(counts.get(name, 0) * logprobs[name] for name in names)
    drawn = np.random.default_rng(seed).multinomial(n, q, size=SIMULATED) @ x
    slack = 1e-9 * max(1.0, abs(seen))
    low = (1 + int(np.count_nonzero(drawn <= seen + slack))) / (1 + SIMULATED)
    high = (1 + int(np.count_nonzero(drawn >= seen - slack))) / (1 + SIMULATED)
    return min(1.0, 2 * min(low, high))


def cut(n_outside: int, n: int, mass: float) -> float:
    """p-value of "nothing of the `mass` that lies outside was cut": the exact binomial test against too few of n draws
    falling there."""
    mass = min(1.0, max(0.0, mass))
    terms = (math.comb(n, k) * mass**k * (1 - mass) ** (n - k) for k in range(n_outside + 1))
    return min(1.0, math.fsum(terms))


def holm(p_values: Sequence[float], alpha: float) -> list[bool]:
    """Which of the hypotheses are rejected, the chance of any false rejection being at most `alpha`."""
    rejected = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, i in enumerate(order):
        if p_values[i] > alpha / (len(p_values) - rank):
            break
        rejected[i] = True
    return rejected


def entropy(logprobs: Mapping[str, float]) -> float:
    """Entropy of the listed tokens, in nats, after their probabilities are made to sum to one."""
    q = _softmax(np.array(list(logprobs.values())))
    return float(-(q * np.log(np.maximum(q, 1e-300))).sum())


def _softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    e = np.exp(x - x.max())
    distribution: NDArray[np.float64] = e / e.sum()
    return distribution
