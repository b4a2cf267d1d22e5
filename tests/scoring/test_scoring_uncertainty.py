"""Intervals and warnings of tallies beside slow sums written from the formulas, and what must not change a result.

For: harness.scoring.uncertainty, harness.scoring.intervals, harness.scoring.resampling.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy as np
import pytest

from harness.scoring.estimators import pass_at_k, pass_jackknife
from harness.scoring.intervals import (
    POISSON_LOW,
    IntervalEnds,
    cluster_limits,
    question_limits,
    sampling_limits,
    sampling_variance_of_mean,
    weighted_limits,
    widest_limits,
    wilson,
)
from harness.scoring.resampling import real_sizes
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import (
    accuracy,
    accuracy_intervals,
    mean_question_interval,
    pass_at,
    question_error,
    rate,
    sampling_error,
    unequal_clusters,
    unequal_rates,
    unequal_samples,
)
from tests.scoring.graded import grade, question

Limits = Callable[[np.ndarray], IntervalEnds]


def tally(name: str, letters: str, independent: int | None = None, **metadata: str) -> QuestionTally:
    """A question with one sample for each letter: c is correct, w is wrong."""
    grades = tuple(grade(name, index, letter) for index, letter in enumerate(letters))
    return QuestionTally(question(name, **metadata), grades, len(letters), independent)


def ends(limits: IntervalEnds) -> tuple[float, float]:
    return float(limits.low), float(limits.high)


# -- weighted means and clusters -----------------------------------------------------------------------------------


def test_a_weight_is_as_many_copies_of_its_question_in_one_cluster() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        n_questions = int(rng.integers(3, 12))
        values, weights = rng.random(n_questions), rng.integers(1, 6, n_questions)
        clusters = np.arange(n_questions) // int(rng.integers(1, 3))
        if clusters.max() == 0:
            continue
        weighted = ends(weighted_limits(values, weights.astype(float), clusters))
        copied = weighted_limits(np.repeat(values, weights), np.ones(weights.sum()), np.repeat(clusters, weights))
        assert weighted == pytest.approx(ends(copied))
        assert weighted == pytest.approx(ends(weighted_limits(values, weights * 7.5, clusters)))
        low, high = weighted
        mean = float((values * weights).sum() / weights.sum())
        assert 0 <= low < mean < high <= 1


@pytest.mark.parametrize("size", [1, 2, 5])
def test_equal_weights_and_clusters_of_one_size_have_the_interval_of_clusters(size: int) -> None:
    rng = np.random.default_rng(size)
    for n_clusters in (2, 3, 8, 30):
        clusters = np.repeat(np.arange(n_clusters), size)
        # Near one half by cluster: the observed variance is then below that of coin tosses.
        values = np.repeat(rng.uniform(0.35, 0.65, n_clusters), size) + rng.uniform(-0.02, 0.02, size * n_clusters)
        same = weighted_limits(values, np.full(len(values), 3.0), clusters)
        assert ends(same) == pytest.approx(ends(cluster_limits(values, clusters)))
        if size == 1:
            assert ends(same) == pytest.approx(ends(question_limits(values)))


def test_two_clusters_of_which_one_weighs_nearly_all_have_an_interval() -> None:
    low, high = ends(weighted_limits(np.array([0.4, 0.6]), np.array([1.0, 9.0]), np.array([0, 1])))
    assert 0 <= low < 0.58 < high <= 1


@pytest.mark.parametrize("n_questions", [4, 20, 300])
def test_limits_of_what_is_wrong_are_those_of_what_is_right_turned_over(n_questions: int) -> None:
    rng = np.random.default_rng(n_questions)
    clusters = np.arange(n_questions) // 2
    weights = rng.uniform(1, 3, n_questions)
    ways: list[Limits] = [
        question_limits,
        lambda values: cluster_limits(values, clusters),
        lambda values: weighted_limits(values, weights, clusters),
        lambda values: widest_limits(values.mean(), n_questions),
        lambda values: wilson(values.mean(), np.asarray(float(n_questions))),
        lambda values: sampling_limits(np.round(values * 4), np.full(n_questions, 4.0)),
    ]
    for chance in (0.0, 0.1, 0.5, 0.97, 1.0):
        values = np.round((rng.random((n_questions, 4)) < chance).mean(axis=1), 2)
        for limits in ways:
            low, high = ends(limits(values))
            other_low, other_high = ends(limits(1 - values))
            assert (low, high) == pytest.approx((1 - other_high, 1 - other_low), abs=1e-9)
            assert 0 <= low <= high <= 1


def test_the_low_ends_of_small_counts_are_those_of_poisson() -> None:
    """At the low end a count at least as large has a chance of 5 %."""
    for count, low in enumerate(POISSON_LOW):
        below = sum(math.exp(-low) * low**n / math.factorial(n) for n in range(count))
        assert 1 - below == pytest.approx(0.05 if count else 1.0)


# -- variances -----------------------------------------------------------------------------------------------------


def test_the_variance_of_samples_that_are_right_in_part_is_that_of_their_fractions() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        rows = [rng.random(int(rng.integers(2, 7))) for _ in range(int(rng.integers(1, 6)))]
        counts = np.array([float(len(row)) for row in rows])
        sums, squares = np.array([row.sum() for row in rows]), np.array([(row**2).sum() for row in rows])
        expected = math.fsum(statistics.variance(row.tolist()) / len(row) for row in rows) / len(rows) ** 2
        assert float(sampling_variance_of_mean(sums, counts, squares=squares)) == pytest.approx(expected)
        right = np.round(sums)
        whole = sampling_variance_of_mean(right, counts)
        assert float(sampling_variance_of_mean(right, counts, squares=right)) == pytest.approx(float(whole))


def test_a_half_done_second_round_shows_part_of_the_variance() -> None:
    """Questions that are always right or always wrong: each second sample shows that nothing varies."""
    widths = []
    for n_twice in (0, 20, 40, 80):
        counts = np.array([2.0] * n_twice + [1.0] * (80 - n_twice))
        right = counts * np.tile([1.0, 0.0], 40)
        low, high = ends(sampling_limits(right, counts))
        widths.append(high - low)
    assert widths[0] > 1.02 * widths[1] > 1.04 * widths[2]
    assert widths[2] > 2 * widths[3]


def test_an_estimate_of_pass_at_k_has_the_sums_of_its_questions() -> None:
    items = [tally("a", "cwww"), tally("b", "ccwwww"), tally("c", "cccw"), tally("d", "wwwww")]
    got = pass_at(items, 2)
    pairs = [(item.n, item.correct) for item in items]
    values = [pass_at_k(n, c, 2) for n, c in pairs]
    spreads = [pass_jackknife(n, c, 2) for n, c in pairs]
    assert got.value == pytest.approx(sum(values) / 4)
    assert got.variance == pytest.approx(sum(spreads) / 16)
    assert got.single == pytest.approx(sum(v * (1 - v) + s for v, s in zip(values, spreads, strict=True)) / 4)
    assert got.trials == pytest.approx(16 / sum(1 / n for n, _ in pairs) / 2)
    first = accuracy(items)
    assert first.single == pytest.approx(first.variance * first.trials)
    variance = sum((c / n) * (1 - c / n) / (n - 1) for n, c in pairs) / 16
    assert (first.variance, first.trials) == pytest.approx((variance, 16 / sum(1 / n for n, _ in pairs)))


def test_questions_without_samples_are_left_out_of_the_intervals() -> None:
    some = [tally("a", "cw"), tally("b", "cc"), tally("c", "ww")]
    assert accuracy_intervals([*some, tally("d", "")]) == accuracy_intervals(some)
    assert accuracy_intervals(some).sampling_interval is not None
    for nothing in ([], [tally("d", "")]):
        got = accuracy_intervals(nothing)
        assert (got.sampling_interval, got.question_interval, got.at_most) == (None, None, False)


def test_the_question_interval_needs_two_clusters() -> None:
    values = np.array([0.25, 0.75, 0.5, 0.5])
    for labels, known in (("xxxx", False), ("xyxy", True), ("xxxy", True), ("wxyz", True)):
        items = [tally(f"q{n}", "cw", cluster=label) for n, label in enumerate(labels)]
        apart = len({item.cluster for item in items})
        assert (mean_question_interval(values, items) is not None) is (apart > 1)
        assert (question_error(items) is not None) is (apart > 1)
        assert known or apart in (1, 4)


def test_copies_make_the_sampling_error_unknown() -> None:
    plain, copied = tally("a", "cw"), tally("b", "cc", 1)
    assert sampling_error([plain, tally("b", "cc")]).error is not None
    for items in ([plain, copied], [copied, plain], [copied]):
        got = sampling_error(items)
        assert got.error is None
        assert got.imputed == 1
    mean, _ = rate([plain, tally("b", "cc")], [1, 2])
    assert mean == pytest.approx(0.75)


# -- warnings ------------------------------------------------------------------------------------------------------


def test_two_groups_are_apart_by_2_58_errors() -> None:
    rng = np.random.default_rng(3)
    outcomes = []
    for _ in range(400):
        first, second = (rng.random(int(rng.integers(2, 30))) for _ in range(2))
        second = np.clip(second + rng.choice([-1, 1]) * rng.uniform(0, 0.6), 0, 1)
        distance = abs(statistics.fmean(first) - statistics.fmean(second))
        variance = sum((statistics.variance(group) + 0.5 / len(group)) / len(group) for group in (first, second))
        expected = distance > 2.58 * math.sqrt(variance)
        rates, few = np.concatenate([first, second]), np.arange(len(first) + len(second)) < len(first)
        assert unequal_rates(rates, few) is expected
        outcomes.append(expected)
    assert 40 < sum(outcomes) < 360
    assert unequal_rates(np.array([0.0] * 9 + [1.0]), np.arange(10) < 9) is False
    assert unequal_rates(np.array([0.0] * 8 + [1.0] * 2), np.arange(10) < 8) is True


@pytest.mark.parametrize(("few", "words"), [("cccwc", "easier"), ("wcwww", "harder")])
def test_the_warning_of_unequal_samples_states_both_accuracies(few: str, words: str) -> None:
    many = "wcww" if words == "easier" else "cwcc"
    items = [tally(f"few{n}", letter) for n, letter in enumerate(few * 8)]
    items += [tally(f"many{n}", many * 2) for n in range(40)]
    warning = unequal_samples(items)
    assert warning is not None
    few_share, many_share = (100 * letters.count("c") / len(letters) for letters in (few, many))
    assert (
        f"those with fewer than the mean are {words} ({few_share:.1f} % correct beside {many_share:.1f} %)" in warning
    )
    assert "questions have 1 to 8 samples" in warning
    assert unequal_samples([tally(f"q{n}", "cw") for n in range(40)]) is None


def test_questions_with_as_many_samples_as_the_mean_are_not_few() -> None:
    items = [tally(f"few{n}", "w") for n in range(20)]
    items += [tally(f"mean{n}", "cc") for n in range(20)] + [tally(f"many{n}", "ccw") for n in range(20)]
    warning = unequal_samples(items)
    assert warning is not None
    assert "are harder (0.0 % correct beside 83.3 %)" in warning


def test_the_warning_of_unequal_clusters_names_the_largest() -> None:
    assert unequal_clusters([]) is None
    assert unequal_clusters([tally(f"q{n}", "cw") for n in range(9)]) is None


# -- repeats -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_runs", [1, 2, 5])
def test_the_deviation_of_real_runs_is_that_of_their_accuracies(n_runs: int) -> None:
    rng = np.random.default_rng(n_runs)
    counts = np.full((n_runs, 6), 4)
    correct = rng.integers(0, 5, (n_runs, 6))
    (size,) = real_sizes("b", ((correct, counts),)).sizes
    means = [statistics.fmean(row) for row in (correct / counts).tolist()]
    assert (size.n, size.runs) == (4, n_runs)
    assert size.deviation == (pytest.approx(statistics.stdev(means)) if n_runs > 1 else None)
