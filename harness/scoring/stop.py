"""When are there samples enough? The rule of `--target-error`, on arrays. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.scoring.distributions import Z_95
from harness.scoring.intervals import Array, Limits, sampling_limits

LEAST_ROUNDS = 8
"""Samples a question before a sampling interval may stop a run. To stop where the samples happen to agree biases the
accuracy; from eight rounds on by at most about a sample's worth (`make simulate`, table "stopping")."""


def half_width_met(limits: Limits, rounds: int, target: float) -> NDArray[np.bool_]:
    """Whether the interval after `rounds` samples a question is at most ± 1.96 · `target` wide, and may be believed."""
    narrow = (limits.high - limits.low) / 2 <= Z_95 * target
    return np.asarray(narrow & (rounds >= LEAST_ROUNDS))


def reached_error(correct: Array, rounds: int) -> float:
    """Half-width of the sampling interval over 1.96: the error that a target is compared with; a fraction.

    correct: samples graded correct of each question, all with `rounds` samples ≥ 1.
    """
    low, high = sampling_limits(correct, np.full(correct.shape, float(rounds)))
    return float(high - low) / 2 / Z_95


def target_met(correct: Array, rounds: int, target: float) -> bool:
    """Whether a run may stop after this round: the rule of `half_width_met` for one run."""
    return rounds >= LEAST_ROUNDS and reached_error(correct, rounds) <= target
