"""When are there samples enough? The rule of the option `target_error`, on arrays. Pure."""

from __future__ import annotations

import math

import numpy as np

from harness.scoring.distributions import Z_95
from harness.scoring.intervals import Array, sampling_limits

MIN_ROUNDS = 8
"""Samples a question before a sampling interval may stop a run. To stop where the samples happen to agree biases the
accuracy; from eight rounds on by at most about a sample's worth (`make simulate`, table "stopping")."""


def reached_error(correct: Array, rounds: int) -> float:
    """Half-width of the sampling interval over 1.96: the error that a target is compared with; a fraction.

    correct: samples graded correct of each question, all with `rounds` samples ≥ 1.
    """
    low, high = sampling_limits(correct, np.full(correct.shape, float(rounds)))
    return float(high - low) / 2 / Z_95


def next_rounds(error: float, rounds: int, target: float) -> int:
    """Samples a question to look at next, after `rounds` ≥ `MIN_ROUNDS` gave `error` above `target`.

    The error falls with the root of the samples, so rounds · (error/target)² should do. From far away this is known
    roughly only, and nine tenths of it are taken first.
    """
    assert error > target > 0
    needed = rounds * (error / target) ** 2
    return max(rounds + 1, math.ceil(needed if rounds >= 0.75 * needed else 0.9 * needed))
