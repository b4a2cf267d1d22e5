"""Plans how many samples each question gets: more where a former run was sometimes right, sometimes wrong.

The variance of the accuracy over reruns of Q questions is Σ p_q (1 − p_q) / n_q / Q². For a given number of samples in
all it is smallest with n_q in proportion to √(p_q (1 − p_q)) (Neyman's allocation, 1934). The former run estimates p_q
by (right + ½) / (n + 1), so that no question counts as certain. Each question gets at least `MIN_ALLOCATED` samples.

The accuracy stays the mean over questions of p_q, each question with the same weight: so it is unbiased whatever the
numbers of samples are, as long as they do not depend on the samples that are counted. For this reason samples are never
allocated by outcomes of the run itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MIN_ALLOCATED = 2
"""Smallest number of samples of a question, however certain the former run was: one sample has no spread."""

BISECTIONS = 60
"""Number of halvings of the interval that holds the factor of proportion; more would not change a rounded number of
samples.
"""


def chances(right: Array, n: Array | np.float64) -> Array:
    """Each question's chance of a right sample, estimated from a former run: (right + ½) / (n + 1).

    It is ½ for a question that the former run did not ask.
    """
    return np.asarray((right + 0.5) / (n + 1.0))


def allocate(right: Array, n: Array | np.float64, mean: int, most: int) -> Array:
    """Return the number of samples of each question, on average `mean` (as near as rounding to whole numbers allows).

    right, n: (…, Q), the former run's right samples and all its samples of each question. mean: at least
    `MIN_ALLOCATED`. most: largest number of samples of one question.
    """
    p = chances(right, n)
    spread = np.sqrt(p * (1.0 - p))
    total = mean * spread.shape[-1]
    # Bisection for the factor at which `factor * spread`, within its bounds, gives `total` samples.
    low = np.zeros((*spread.shape[:-1], 1))
    high = np.full_like(low, total / spread.min())
    for _ in range(BISECTIONS):
        factor = (low + high) / 2
        too_few = np.clip(factor * spread, MIN_ALLOCATED, most).sum(axis=-1, keepdims=True) < total
        low, high = np.where(too_few, factor, low), np.where(too_few, high, factor)
    return np.asarray(np.clip(np.round(low * spread), MIN_ALLOCATED, most))


class Saving(NamedTuple):
    """How many samples an allocation saves, if each question is as hard for the new run as for the former one.

    equal: how many samples of every question would give the same sampling error. ratio: the allocation's mean number of
    samples of a question as a fraction of `equal`.
    """

    equal: float
    ratio: float


def saving(right: Array, n: Array, counts: Array) -> Saving:
    """How many samples `counts` saves, compared with an equal number for each question; all arguments are (Q,)."""
    p = chances(right, n)
    spread = p * (1.0 - p)
    equal = float(spread.sum() / (spread / counts).sum())
    return Saving(equal, float(counts.mean()) / equal)
