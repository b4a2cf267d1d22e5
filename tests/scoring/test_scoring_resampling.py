"""Repeats drawn from one set of samples: what is exact is checked against enumeration, the rest against runs that are
really repeated."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest

from harness.scoring.resampling import (
    deviation_limits,
    draw_deviation,
    draw_runs,
    mean_question_deviation,
    real_repeats,
    real_sizes,
    rerun_deviation,
    resampled_repeats,
    resampled_sizes,
    split_runs,
)

CORRECT, COUNTS = np.array([1, 3, 4, 0]), np.array([4, 4, 4, 4])


def test_the_deviation_of_draws_is_that_of_all_subsets() -> None:
    """Every choice of 2 of 4 samples of each question, counted out."""
    samples = [[1] * c + [0] * (n - c) for c, n in zip(CORRECT.tolist(), COUNTS.tolist(), strict=True)]
    means = [[sum(pair) / 2 for pair in itertools.combinations(row, 2)] for row in samples]
    every = [sum(choice) / 4 for choice in itertools.product(*means)]
    assert draw_deviation(CORRECT, COUNTS, 2) == pytest.approx(float(np.std(every)))
    assert draw_deviation(CORRECT, COUNTS, 4) == 0.0


def test_runs_that_share_no_samples_deviate_more_than_draws_by_the_finite_population_factor() -> None:
    share = draw_deviation(CORRECT, COUNTS, 2) / rerun_deviation(CORRECT, COUNTS, 2)
    assert share == pytest.approx(math.sqrt(1 - 2 / 4))


def test_the_error_is_the_hand_worked_one_and_falls_with_the_root_of_n() -> None:
    # p(1−p)·4/3 is 1/4, 1/4, 0, 0; for one sample: √(1/2)/4
    assert rerun_deviation(CORRECT, COUNTS, 1) == pytest.approx(math.sqrt(0.5) / 4)
    assert rerun_deviation(CORRECT, COUNTS, 16) == pytest.approx(math.sqrt(0.5) / 16)
    assert mean_question_deviation(CORRECT, COUNTS, 4) == pytest.approx((0.25 + 0.25) / 4)


def test_blocks_use_every_sample_once_at_most() -> None:
    rng = np.random.default_rng(1)
    whole = split_runs(CORRECT, COUNTS, 2, 2, rng)
    assert whole.shape == (2, 4)
    assert whole.sum(axis=0).tolist() == CORRECT.tolist()
    parts = split_runs(np.array([30]), np.array([64]), 2, 30, rng)
    assert 26 <= parts.sum() <= 30
    assert parts.max() <= 2


def test_blocks_deviate_as_runs_do_and_draws_as_predicted() -> None:
    rng = np.random.default_rng(2)
    correct, counts = rng.binomial(64, rng.beta(0.5, 0.5, 30)), np.full(30, 64)
    blocks = [np.var((split_runs(correct, counts, 2, 30, rng) / 2).mean(axis=1), ddof=1) for _ in range(400)]
    assert np.mean(blocks) == pytest.approx(rerun_deviation(correct, counts, 2) ** 2, rel=0.05)
    draws = (draw_runs(correct, counts, 32, 20000, rng) / 32).mean(axis=1)
    assert np.std(draws) == pytest.approx(draw_deviation(correct, counts, 32), rel=0.03)


def test_limits_hold_the_deviation_of_real_repeats_in_95_percent() -> None:
    rng = np.random.default_rng(3)
    chances = rng.beta(1, 1, 30)
    inside = 0
    for _ in range(1000):
        repeats = real_repeats("b", tuple("abcdefghij"), rng.binomial(8, chances, (10, 30)), np.full((10, 30), 8))
        inside += repeats.verdict == "as predicted"
    assert 930 <= inside <= 970


@pytest.mark.parametrize(("runs", "low", "high"), [(2, 0.0313, 2.2414), (10, 0.5478, 1.4538), (30, 0.7438, 1.2557)])
def test_limits_are_those_of_the_chi_square_tables(runs: int, low: float, high: float) -> None:
    limits = deviation_limits(1.0, runs)
    assert limits == pytest.approx((low, high), abs=0.05 if runs == 2 else 0.003)


def test_repeats_from_one_set_are_blocks_where_they_suffice_and_say_so_where_not() -> None:
    blocks = resampled_repeats("b", CORRECT * 8, COUNTS * 8, 2, 16, 0)
    assert (blocks.source, blocks.stored, blocks.n) == ("blocks", 32, 2)
    assert blocks.predicted == blocks.run_error
    assert np.mean(blocks.accuracies) == pytest.approx(blocks.mean) == 0.5
    shared = resampled_repeats("b", CORRECT * 8, COUNTS * 8, 16, 16, 0)
    assert shared.source == "draws"
    assert shared.predicted == pytest.approx(shared.run_error * math.sqrt(0.5))
    assert resampled_repeats("b", CORRECT * 8, COUNTS * 8, 16, 16, 0) == shared
    assert resampled_repeats("b", CORRECT * 8, COUNTS * 8, 16, 16, 1) != shared


def test_runs_that_are_one_run_again_deviate_less_than_predicted() -> None:
    """What thirty repeats with one seed are."""
    once = np.array([[1, 3, 4, 0]] * 30)
    repeats = real_repeats("b", tuple(map(str, range(30))), once, np.full((30, 4), 4))
    assert (repeats.deviation, repeats.verdict) == (0.0, "less than predicted")


def test_samples_that_all_went_one_way_predict_nothing() -> None:
    repeats = resampled_repeats("b", np.full(5, 8), np.full(5, 8), 2, 4, 0)
    assert (repeats.deviation, repeats.predicted, repeats.verdict) == (0.0, 0.0, "cannot say")


def test_runs_with_something_that_changes_between_them_deviate_more_than_predicted() -> None:
    rng = np.random.default_rng(4)
    chances = np.tile(np.array([[0.3], [0.7]]), (15, 30))
    repeats = real_repeats("b", tuple(map(str, range(30))), rng.binomial(8, chances), np.full((30, 30), 8))
    assert repeats.verdict == "more than predicted"


def test_what_runs_state_of_themselves_lies_about_the_curve() -> None:
    rng = np.random.default_rng(5)
    correct = rng.binomial(64, rng.beta(1, 1, 40))
    sizes = resampled_sizes("b", correct, np.full(40, 64), (4, 16, 64), 400, 0)
    assert [one.n for one in sizes.sizes] == [4, 16, 64]
    for one in sizes.sizes:
        assert one.predicted == pytest.approx(sizes.single / math.sqrt(one.n))
        assert one.own_low <= one.own <= one.own_high
        assert one.own == pytest.approx(one.predicted, rel=0.02)
        if one.n < 64:
            assert one.deviation == pytest.approx(one.predicted, rel=0.12)
    assert sizes.sizes[-1].deviation is None
    assert sizes.sizes[-1].own_low == sizes.sizes[-1].own_high


def test_sizes_of_real_runs_are_predicted_from_all_of_them() -> None:
    rng = np.random.default_rng(6)
    chances = rng.beta(1, 1, 40)
    cells = tuple((rng.binomial(n, chances, (1, 40)), np.full((1, 40), n)) for n in (4, 16, 64))
    sizes = real_sizes("b", cells)
    total = sum(correct[0] for correct, _ in cells)
    assert sizes.single == pytest.approx(rerun_deviation(np.asarray(total), np.full(40, 84), 1))
    assert [one.deviation for one in sizes.sizes] == [None, None, None]


def test_the_deviation_of_repeats_is_that_of_a_sample_and_each_repeat_has_a_name() -> None:
    correct, counts = np.array([[4, 2, 0], [3, 3, 1], [2, 1, 0], [4, 4, 0]]), np.full((4, 3), 4)
    repeats = real_repeats("b", tuple("abcd"), correct, counts)
    accuracies = (correct / counts).mean(axis=1).tolist()
    assert repeats.accuracies == pytest.approx(accuracies)
    assert repeats.deviation == pytest.approx(statistics.stdev(accuracies))
    assert None not in repeats.errors
    assert real_repeats("b", ("a", "b"), correct[:2] > 1, np.ones((2, 3), dtype=int)).errors == (None, None)
    assert resampled_repeats("b", np.array([4, 6, 8]), np.full(3, 8), 2, 4, 0).names == ("1", "2", "3", "4")
