"""The looks of a gate: when they are, and how they share the allowed false alarms and misses."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from harness.deciding.looks import boundaries, planned_looks


def test_a_run_is_tested_after_every_round_but_at_most_64_times() -> None:
    assert planned_looks(5) == (1, 2, 3, 4, 5)
    assert (len(planned_looks(1000)), planned_looks(1000)[-1]) == (63, 1000)


@pytest.mark.parametrize(("drift", "above"), [(2.0, -NormalDist().inv_cdf(0.1)), (3.5, 3.5 / 2)])
def test_one_look_is_the_usual_test(drift: float, above: float) -> None:
    """A result nearer to the other hypothesis rejects none."""
    once = boundaries((7,), 0.025, 0.1, 2.0, drift)
    assert (*once.below, *once.above) == pytest.approx([-NormalDist().inv_cdf(0.025), above], abs=2e-3)


def test_the_looks_together_spend_each_level_and_no_more() -> None:
    """400,000 paths of each hypothesis, without drift and with it, at three looks."""
    times, drift = np.array([2.0, 5.0, 8.0]) / 8, 3.6
    ends = boundaries((2, 5, 8), 0.05, 0.04, 0.6, drift)
    steps = np.random.default_rng(3).standard_normal((400_000, 3)) * np.sqrt(np.diff(times, prepend=0))
    paths, root = steps.cumsum(axis=1), np.sqrt(times)
    for drifts, level in ((0.0, 0.05), (drift, 0.04)):
        path = paths - drifts * times
        low, high = path < -np.array(ends.below) * root, path > np.array(ends.above) * root - drift * times
        first_low, first_high = (np.where(each.any(axis=1), each.argmax(axis=1), 9) for each in (low, high))
        crossed = (first_low < first_high) if not drifts else (first_high < first_low)
        assert crossed.mean() == pytest.approx(level, abs=4 * math.sqrt(level / len(path)))
