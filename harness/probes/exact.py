"""An exact test of drawn tokens against known distributions.

A Monte Carlo p-value is (1 + b) / (1 + m), where b of m simulated statistics are at least as extreme as the observed
one. Under the null hypothesis it is at most α with probability at most α (Barnard 1963; Davison and Hinkley 1997,
*Bootstrap Methods and their Application*, 4.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

SIMULATED = 19_999
"""Number of simulated draws under the null hypothesis; the smallest two-sided p-value is then 1e-4."""


def temperature_at_places(
    tokens: Sequence[str], places: Sequence[Mapping[str, float]], temperature: float, seed: int
) -> tuple[float, float]:
    """Test the hypothesis that one token was drawn at this temperature at each place, by the sum of the tokens'
    log-probabilities. Return (how many standard deviations less likely the tokens are than expected, two-sided p).

    tokens: the token of each place, one of those listed there. places: token → log-probability, for each place. seed:
    of the simulation.
    """
    observed = sum(top[token] for token, top in zip(tokens, places, strict=True))
    rng, sums = np.random.default_rng(seed), np.zeros(SIMULATED)
    for top in places:
        values = np.array(list(top.values()))
        shares = np.exp((values - values.max()) / temperature).cumsum()
        sums += values[np.minimum(shares.searchsorted(rng.random(SIMULATED) * shares[-1]), len(values) - 1)]
    # Equal sums may differ in their last digits, since they are added in another order; they count as equal.
    slack = 1e-9 * max(1.0, abs(observed))
    below, above = np.count_nonzero(sums <= observed + slack), np.count_nonzero(sums >= observed - slack)
    p = min(1.0, 2.0 * (1 + int(min(below, above))) / (1 + SIMULATED))
    return float((sums.mean() - observed) / max(sums.std(), 1e-9)), p
