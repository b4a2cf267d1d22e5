"""Tails and quantiles of the normal and of Student's t distribution, for whole degrees of freedom."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

Z_95 = 1.959963984540054
"""97.5 % quantile of the standard normal distribution: the two-sided 95 % factor."""

_POWER = 0.8416212335729143
"""80 % quantile of the standard normal distribution; tests should find a true difference in 80 % of repetitions."""


def power_factor(n_tests: int = 1) -> float:
    """Smallest true difference, in standard errors, that a test at the 5 % level finds in 80 % of repetitions; 2.80 for
    one test.

    n_tests: p values that Holm's method corrects together. The factor is for Bonferroni's correction, Holm's worst
    case.
    """
    return NormalDist().inv_cdf(1 - 0.025 / n_tests) + _POWER


def normal_two_sided(z: float) -> float:
    """Chance that a standard normal value lies at least |z| from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def t_two_sided(t: float, df: int) -> float:
    """Chance that a value of Student's t with df ≥ 1 degrees of freedom lies at least |t| from 0.

    The finite series of Abramowitz and Stegun (1964), 26.7.3 and 26.7.4; exact up to rounding.
    """
    assert df >= 1
    angle = math.atan2(abs(t), math.sqrt(df))
    sine, cosine2 = math.sin(angle), math.cos(angle) ** 2
    odd = df % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for step in range(odd, df - 1, 2):
        total += term
        term *= cosine2 * (step + 1) / (step + 2)
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return min(1.0, max(0.0, 1.0 - inside))


@lru_cache(maxsize=4096)
def t_factor(df: int) -> float:
    """The two-sided 95 % factor of Student's t (its 97.5 % quantile), by bisection to 1e-10."""
    low, high = Z_95, 13.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (middle, high) if t_two_sided(middle, df) > 0.05 else (low, middle)
    return high
