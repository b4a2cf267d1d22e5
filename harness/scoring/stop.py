"""Decides when a run has enough samples for the error that the option `target_error` names. No I/O."""

from __future__ import annotations

import math

import numpy as np

from harness.scoring.stats import Z_95, Array, sampling_limits

MIN_ROUNDS = 8
"""Smallest number of samples of each question before a sampling interval may stop a run.

A stop where samples happen to agree biases the accuracy; after eight rounds the bias is at most about one sample's
worth (`make simulate`, table "stopping").
"""


def reached_error(correct: Array, rounds: int) -> float:
    """Half-width of the sampling interval divided by 1.96, a fraction: the error that is compared with the target.

    correct: samples graded correct of each question, all with `rounds` samples ≥ 1.
    """
    low, high = sampling_limits(correct, np.full(correct.shape, float(rounds)))
    return float(high - low) / 2 / Z_95


def next_rounds(error: float, rounds: int, target: float) -> int:
    """The number of samples of each question at which to test the error next.

    rounds: the present number, at least `MIN_ROUNDS`, with an `error` above `target`. The error falls with the root of
    the samples, so rounds · (error/target)² should be enough. A number more than a third above `rounds` is a rough
    guess, so the next test comes at nine tenths of it.
    """
    assert error > target > 0
    needed = rounds * (error / target) ** 2
    return max(rounds + 1, math.ceil(needed if rounds >= 0.75 * needed else 0.9 * needed))
