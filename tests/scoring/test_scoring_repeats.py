"""Repeated runs: how far their accuracies lie apart, beside what the sampling error predicts."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from harness.scoring.repeats import deviation_limits, repeats_of, rerun_deviation, sizes_of

CORRECT, COUNTS = np.array([1, 3, 4, 0]), np.array([4, 4, 4, 4])


def test_the_error_is_the_hand_worked_one_and_falls_with_the_root_of_n() -> None:
    # p(1−p)·4/3 is 1/4, 1/4, 0, 0; for one sample: √(1/2)/4
    assert rerun_deviation(CORRECT, COUNTS, 1) == pytest.approx(math.sqrt(0.5) / 4)
    assert rerun_deviation(CORRECT, COUNTS, 16) == pytest.approx(math.sqrt(0.5) / 16)
    (size,) = sizes_of([(CORRECT[None], COUNTS[None])])
    assert size.mean_question_deviation == pytest.approx((0.25 + 0.25) / 4)


@pytest.mark.parametrize(("runs", "low", "high"), [(2, 0.0313, 2.2414), (10, 0.5478, 1.4538), (30, 0.7438, 1.2557)])
def test_limits_are_those_of_the_chi_square_tables(runs: int, low: float, high: float) -> None:
    limits = deviation_limits(1.0, runs)
    assert limits == pytest.approx((low, high), abs=0.05 if runs == 2 else 0.003)


def test_sizes_are_predicted_from_all_runs_and_stated_by_each() -> None:
    rng = np.random.default_rng(6)
    chances = rng.beta(1, 1, 40)
    cells = [(rng.binomial(n, chances, (200, 40)), np.full((200, 40), n)) for n in (4, 16, 64)]
    total = np.sum([correct.sum(axis=0) for correct, _ in cells], axis=0)
    single = rerun_deviation(total, np.full(40, 84 * 200), 1)
    for n, size in zip((4, 16, 64), sizes_of(cells), strict=True):
        assert (size.n, size.runs) == (n, 200)
        assert size.predicted == pytest.approx(single / math.sqrt(n))
        assert size.own_low <= size.own <= size.own_high
        assert size.own == pytest.approx(size.predicted, rel=0.02)
        assert size.deviation == pytest.approx(size.predicted, rel=0.2)
    alone = sizes_of([(correct[:1], counts[:1]) for correct, counts in cells])
    assert [size.deviation for size in alone] == [None, None, None]


def test_the_deviation_of_repeats_is_that_of_a_sample() -> None:
    correct, counts = np.array([[4, 2, 0], [3, 3, 1], [2, 1, 0], [4, 4, 0]]), np.full((4, 3), 4)
    repeats = repeats_of(correct, counts)
    accuracies = (correct / counts).mean(axis=1).tolist()
    assert repeats.accuracies == pytest.approx(accuracies)
    assert repeats.deviation == pytest.approx(statistics.stdev(accuracies))
    assert None not in repeats.errors
    assert repeats_of((correct[:2] > 1).astype(int), np.ones((2, 3), dtype=int)).errors == [None, None]
