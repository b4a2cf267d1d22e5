"""Intervals, tests and tails against hand-worked values, brute force and each other."""

from __future__ import annotations

import itertools
import math
import statistics
import tracemalloc
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.differences import (
    holm,
    published_variance,
    question_difference_limits,
    sampling_difference_limits,
    score_variance,
    smallest_difference,
    smoothed_variance,
)
from harness.scoring.estimators import (
    VoteGroup,
    maj_at_k,
    maj_jackknife,
    pass_at_k,
    pass_hat_k,
    pass_jackknife,
)
from harness.scoring.intervals import (
    Z_95,
    Interval,
    IntervalEnds,
    cluster_freedom,
    cluster_limits,
    cluster_numbers,
    cluster_variance,
    effective_clusters,
    effective_samples,
    mean_limits,
    normal_two_sided,
    power_factor,
    question_limits,
    sampling_limits,
    sampling_variance_of_mean,
    t_factor,
    t_two_sided,
    wilson,
)

pytestmark = pytest.mark.slow

counts = st.lists(st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1)
"""(correct, samples) of each question."""


def arrays(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([float(c) for c, _ in pairs]), np.array([float(n) for _, n in pairs])


# Tails


@pytest.mark.parametrize(("df", "factor"), [(1, 12.7062), (2, 4.3027), (9, 2.2622), (29, 2.0452), (499, 1.9647)])
def test_the_t_factor_is_that_of_the_printed_tables(df: int, factor: float) -> None:
    assert t_factor(df) == pytest.approx(factor, abs=5e-5)


def test_tails_have_their_hand_worked_values() -> None:
    assert t_two_sided(1.0, 1) == pytest.approx(0.5)  # Cauchy: 1 − 2/π·arctan 1
    assert t_two_sided(math.sqrt(2), 2) == pytest.approx(1 - math.sqrt(0.5))  # 1 − t/√(2 + t²)
    assert t_two_sided(Z_95, 100_000) == pytest.approx(0.05, abs=1e-5)
    assert normal_two_sided(-Z_95) == pytest.approx(0.05)
    assert t_two_sided(0.0, 7) == 1.0


# The sampling interval


def test_wilson_has_its_hand_worked_values() -> None:
    low, high = wilson(np.array([0.5, 0.0]), np.array([10.0, 20.0]))
    square = Z_95**2
    assert (low[0], high[0]) == pytest.approx((0.2366, 0.7634), abs=5e-5)
    assert (low[1], high[1]) == pytest.approx((0.0, square / (20 + square)))


def test_the_sampling_interval_of_two_questions_is_as_worked_by_hand() -> None:
    # p = ¾ and 0 of 8 samples: s² = 0.1875/7/4, N = 16, p̄ = 3/8
    s2 = 0.1875 / 7 / 4
    trials = 16 * (16 * 0.375 * 0.625 + 2) / (256 * s2 + 2)
    expected = wilson(np.asarray(0.375), np.asarray(trials)).interval()
    assert tuple(sampling_limits(*arrays([(6, 8), (0, 8)])).interval()) == pytest.approx(tuple(expected))
    assert trials == pytest.approx(24.77, abs=0.01)


def test_all_right_is_no_certainty_and_its_reach_shrinks_with_the_samples() -> None:
    few = sampling_limits(*arrays([(4, 4)] * 30)).interval()
    many = sampling_limits(*arrays([(64, 64)] * 30)).interval()
    assert few.high == many.high == 1.0
    assert 0.96 < few.low < 0.98
    assert few.low < many.low < 0.999


def test_one_right_sample_in_all_keeps_chances_that_wilson_would_exclude() -> None:
    correct, n = arrays([(1, 4), *[(0, 4)] * 29])
    low = sampling_limits(correct, n).low
    assert low == pytest.approx(0.0512933 / 120)
    assert low < wilson(np.asarray(1 / 120), np.asarray(120.0)).low
    high = sampling_limits(n - correct, n).high
    assert high == pytest.approx(1 - 0.0512933 / 120)


def test_one_sample_a_question_has_wilsons_interval_of_as_many_tosses() -> None:
    interval = sampling_limits(*arrays([(1, 1)] * 10 + [(0, 1)] * 10)).interval()
    assert tuple(interval) == pytest.approx(tuple(wilson(np.asarray(0.5), np.asarray(20.0)).interval()))


@given(counts)
def test_the_interval_holds_its_estimate_and_is_never_a_point(pairs: list[tuple[int, int]]) -> None:
    correct, n = arrays(pairs)
    mean = float((correct / n).mean())
    low, high = sampling_limits(correct, n).interval()
    assert 0 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1
    assert high > low


@given(counts)
def test_right_and_wrong_are_mirror_images(pairs: list[tuple[int, int]]) -> None:
    correct, n = arrays(pairs)
    limits, mirrored = sampling_limits(correct, n), sampling_limits(n - correct, n)
    assert (limits.low, limits.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low))


@given(counts.filter(lambda pairs: all(n > 1 for _, n in pairs)))
def test_the_variance_is_that_of_a_mean_of_means(pairs: list[tuple[int, int]]) -> None:
    outcomes = [[1.0] * c + [0.0] * (n - c) for c, n in pairs]
    expected = math.fsum(statistics.variance(one) / len(one) for one in outcomes) / len(pairs) ** 2
    assert float(sampling_variance_of_mean(*arrays(pairs))) == pytest.approx(expected, abs=1e-15)


def test_unequal_numbers_of_samples_weigh_as_their_reciprocals() -> None:
    assert effective_samples(np.array([4.0, 4.0])) == 8
    assert effective_samples(np.array([1.0, 4.0])) == pytest.approx(4 / 1.25)


@given(counts)
def test_weights_that_are_alike_change_nothing(pairs: list[tuple[int, int]]) -> None:
    correct, n = arrays(pairs)
    plain, weighed = sampling_limits(correct, n), sampling_limits(correct, n, np.full(n.shape, 1 / len(n)))
    assert tuple(weighed.interval()) == pytest.approx(tuple(plain.interval()))


def test_the_interval_of_a_share_weighs_each_question_by_its_samples() -> None:
    # 3 of 4 and 1 of 12: p = ¼ of 16; variances of a sample ¾·¼·4/3 and 1/12·11/12·12/11, summed and over 16²
    s2 = (4 * 0.25 + 12 / 12) / 256
    assert float(sampling_variance_of_mean(*arrays([(3, 4), (1, 12)]), np.array([0.25, 0.75]))) == pytest.approx(s2)
    trials = 16 * (16 * 0.25 * 0.75 + 2) / (256 * s2 + 2)
    expected = wilson(np.asarray(0.25), np.asarray(max(16, trials))).interval()
    interval = sampling_limits(*arrays([(3, 4), (1, 12)]), np.array([0.25, 0.75])).interval()
    assert tuple(interval) == pytest.approx(tuple(expected))
    assert interval != sampling_limits(*arrays([(3, 4), (1, 12)])).interval()


# The mean of several estimates


@given(st.floats(0, 1), st.floats(2, 10_000))
def test_the_mean_of_one_estimate_has_its_interval(value: float, trials: float) -> None:
    own = wilson(np.array([value]), np.array([trials]))
    interval = mean_limits(np.array([value]), own).interval()
    assert tuple(interval) == pytest.approx((own.low[0], own.high[0]), abs=1e-9)


def test_the_mean_of_four_alike_is_half_as_uncertain() -> None:
    values, own = np.full(4, 0.5), wilson(np.full(4, 0.5), np.full(4, 1000.0))
    interval = mean_limits(values, own).interval()
    assert interval.half_width == pytest.approx((own.high[0] - own.low[0]) / 4)
    assert interval.low + interval.high == pytest.approx(1.0)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(2, 500)), min_size=1, max_size=6))
def test_the_interval_of_a_mean_holds_it_and_is_never_a_point(parts: list[tuple[float, float]]) -> None:
    values = np.array([value for value, _ in parts])
    low, high = mean_limits(values, wilson(values, np.array([trials for _, trials in parts]))).interval()
    assert 0 <= low <= values.mean() <= high <= 1
    assert high > low


def test_the_mean_of_ten_small_sets_nearly_all_right_is_covered_where_newcombes_interval_is_not() -> None:
    rng = np.random.default_rng(3)
    chances = rng.beta(0.49, 0.01, size=(3000, 10, 20))
    rates = rng.binomial(2, chances) / 2
    means, own = rates.mean(axis=-1), question_limits(rates)

    def coverage(limits: IntervalEnds) -> float:
        return float(((limits.low <= 0.98) & (limits.high >= 0.98)).mean())

    gaps = [np.sqrt((gap**2).sum(axis=-1)) / 10 for gap in (means - own.low, own.high - means)]
    centre = means.mean(axis=-1)
    assert coverage(mean_limits(means, own)) > 0.94
    assert coverage(IntervalEnds(centre - gaps[0], centre + gaps[1])) < 0.93


def test_leading_axes_are_repetitions() -> None:
    correct = np.array([[2.0, 1.0, 4.0], [0.0, 0.0, 0.0]])
    n = np.full(3, 4.0)
    low, high = sampling_limits(correct, n)
    for row in range(2):
        one = sampling_limits(correct[row], n).interval()
        assert (low[row], high[row]) == pytest.approx(tuple(one))


# The question interval, also of clusters


def test_the_question_interval_is_as_worked_by_hand() -> None:
    values = np.array([0.0, 1.0, 0.5])
    trials = 3 * (3 * 0.25 + 0.5) / (3 * 0.25 + 0.5)
    expected = wilson(np.asarray(0.5), np.asarray(trials), t_factor(2)).interval()
    assert tuple(question_limits(values).interval()) == pytest.approx(tuple(expected))


def test_the_variance_of_unequal_clusters_is_the_jackknife_over_clusters() -> None:
    values, sizes = np.array([0.9, 0.8, 1.0, 0.7, 0.2, 0.1, 0.4]), (4, 2, 1)
    labels = np.repeat(np.arange(3), sizes)
    left_out = np.array([values[labels != cluster].mean() for cluster in range(3)])
    expected = 2 / 3 * ((left_out - values.mean()) ** 2).sum()
    assert float(cluster_variance(values, labels)) == pytest.approx(expected)
    assert effective_clusters(labels) == pytest.approx(49 / 21)
    assert cluster_freedom(labels) == 1
    assert cluster_freedom(np.repeat(np.arange(20), 10)) == 19


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_a_cluster_for_each_question_changes_nothing(values: list[float]) -> None:
    labels = cluster_numbers(list(range(len(values))))
    expected = statistics.variance(values) / len(values)
    assert float(cluster_variance(np.array(values), labels)) == pytest.approx(expected, abs=1e-15)
    plain, clustered = question_limits(np.array(values)), cluster_limits(np.array(values), labels)
    assert tuple(clustered.interval()) == pytest.approx(tuple(plain.interval()))


def test_four_copies_of_each_question_are_worth_one() -> None:
    values = np.array([0.1, 0.4, 0.7, 0.9, 0.3, 0.6])
    labels = cluster_numbers([q for q in range(6) for _ in range(4)])
    copied = np.repeat(values, 4)
    assert float(cluster_variance(copied, labels)) == pytest.approx(values.var(ddof=1) / 6)
    expected = tuple(question_limits(values).interval())
    assert tuple(cluster_limits(copied, labels).interval()) == pytest.approx(expected)
    assert question_limits(copied).interval().half_width < 0.6 * question_limits(values).interval().half_width


def test_many_clusters_take_no_more_memory_than_their_questions() -> None:
    n = 12_000
    values, labels = np.random.default_rng(1).random(n), np.repeat(np.arange(n // 4), 4)
    tracemalloc.start()
    variance = float(cluster_variance(values, labels))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * n
    assert variance == pytest.approx(values.reshape(-1, 4).mean(axis=1).var(ddof=1) / (n // 4), rel=1e-12)


def test_a_count_of_three_with_a_rounding_error_is_three() -> None:
    values = np.array([1.0] * 3 + [0.0] * 12)
    for labels in (np.arange(15), np.repeat(np.arange(5), 3)):
        exact, above = (cluster_limits(scaled, labels).interval() for scaled in (values, values * (1 + 1e-15)))
        assert tuple(above) == pytest.approx(tuple(exact), abs=1e-9)


# pass^k and the jackknife


@given(st.integers(1, 9), st.data())
def test_pass_hat_k_is_the_share_of_subsets_that_are_all_right(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(itertools.combinations([i < c for i in range(n)], k))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))
    assert pass_hat_k(n, c, k) == pytest.approx(1 - pass_at_k(n, n - c, k))


@given(st.integers(2, 30), st.data())
def test_the_jackknife_of_one_draw_is_the_variance_of_a_mean(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    p = c / n
    assert pass_jackknife(n, c, 1) == pytest.approx(p * (1 - p) / (n - 1), abs=1e-15)
    groups = [VoteGroup(c, c)] * bool(c) + [VoteGroup(n - c, 0)] * (c < n)
    assert maj_jackknife(groups, 0, 1) == pytest.approx(p * (1 - p) / (n - 1), abs=1e-12)


def test_the_jackknife_of_a_majority_leaves_out_each_sample_once() -> None:
    groups, silent, k = [VoteGroup(3, 2), VoteGroup(2, 0), VoteGroup(2, 0)], 1, 3
    left = [([VoteGroup(2, 1), *groups[1:]], 1)] * 2 + [([VoteGroup(2, 2), *groups[1:]], 1)]
    left += [([groups[0], VoteGroup(1, 0), groups[2]], 1)] * 4 + [(groups, 0)]
    values = np.array([maj_at_k(rest, mute, k) for rest, mute in left])
    assert maj_jackknife(groups, silent, k) == pytest.approx(7 * float(values.var()))


# Differences


def test_one_sample_a_run_is_mcnemars_test() -> None:
    ours, theirs, ones = np.array([1.0, 1, 1, 0, 1, 0]), np.array([0.0, 0, 0, 1, 1, 0]), np.ones(6)
    variance = float(score_variance(ours, ones, theirs, ones))
    z = float((ours - theirs).mean()) / math.sqrt(variance)
    assert z == pytest.approx((3 - 1) / math.sqrt(3 + 1))


def test_the_score_variance_is_that_of_dealing_the_right_samples_at_random() -> None:
    samples = [True] * 3 + [False] * 4
    deals = [sum(pick) / 3 - (3 - sum(pick)) / 4 for pick in itertools.combinations(samples, 3)]
    variance = score_variance(np.array([1.0]), np.array([3.0]), np.array([2.0]), np.array([4.0]))
    assert float(variance) == pytest.approx(np.mean(np.square(deals)))


def test_two_runs_that_are_always_right_differ_by_an_interval_not_by_nothing() -> None:
    right = np.full(30, 4.0)
    low, high = sampling_difference_limits(right, right, right, right).interval()
    assert low == pytest.approx(-high)
    assert 0.01 < high < 0.05
    low, high = question_difference_limits(np.zeros(30)).interval()
    assert low == -high
    assert high == pytest.approx(2.0452 * math.sqrt(0.5) / 30, abs=1e-5)


def test_the_question_line_is_students_t_with_half_a_question_more() -> None:
    values = np.tile([0.06, -0.02, 0.01, 0.03, 0.0], 100)
    low, high = question_difference_limits(values).interval()
    reach = t_factor(499) * math.sqrt(float(values.var(ddof=1)) / 500 + 0.5 / 500**2)
    assert (low, high) == pytest.approx((values.mean() - reach, values.mean() + reach))
    assert question_difference_limits(np.ones(3)).interval().high == 1.0


def test_a_published_score_near_one_has_an_error() -> None:
    """29 of 30 questions always right of 4, beside 96.7 from one run; and all right beside it."""
    correct, n = arrays([(4, 4)] * 29 + [(0, 4)])
    for right in (correct, n):
        ours, total = (right / n).mean(), effective_samples(n)
        variance = published_variance(
            ours, sampling_variance_of_mean(right, n), total, np.asarray(0.967), np.asarray(30.0), 0.001
        )
        assert abs(float(ours) - 0.967) < Z_95 * math.sqrt(float(variance))


def test_rounding_adds_a_twelfth_of_its_square() -> None:
    given_ = (np.asarray(0.5), np.asarray(0.5 * 0.5 / 100), np.asarray(100.0), np.asarray(0.5), np.asarray(100.0))
    assert float(published_variance(*given_, 0.01) - published_variance(*given_, 0.0)) == pytest.approx(0.01**2 / 12)
    # 50 + 50 of 200 right, and one right and one wrong more, twice
    assert float(published_variance(*given_, 0.0)) == pytest.approx(0.25 * (1 / 100 + 1 / 100))


def test_unknown_variance_counts_as_the_largest() -> None:
    unknown = smoothed_variance(np.asarray(0.25), np.asarray(np.nan), np.asarray(30.0))
    assert float(unknown) == pytest.approx(8.5 / 32 * 23.5 / 32)
    variance = smoothed_variance(np.asarray(0.25), np.asarray(0.0001), np.asarray(30.0))
    assert float(variance) < float(unknown)


def test_the_smallest_difference_seen_is_2_8_errors() -> None:
    assert float(smallest_difference(np.asarray(0.01**2))) == pytest.approx(0.0280, abs=5e-5)
    assert float(smallest_difference(np.asarray(0.25))) == 1.0


def test_the_smallest_difference_counts_the_variance_that_it_brings_itself() -> None:
    factor = 2.8016
    difference = float(smallest_difference(np.asarray(0.01**2), 0.002))
    assert difference == pytest.approx(factor * math.sqrt(0.01**2 + 0.002 * difference), rel=1e-3)


def test_holm_has_its_hand_worked_values() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=10))
def test_holm_lies_between_the_plain_p_and_bonferroni_and_keeps_the_order(values: list[float]) -> None:
    adjusted = holm(values)
    for p, q in zip(values, adjusted, strict=True):
        assert p <= q <= min(1.0, p * len(values)) or q == max(adjusted)
    order = sorted(range(len(values)), key=lambda i: values[i])
    assert all(adjusted[a] <= adjusted[b] for a, b in itertools.pairwise(order))


def test_an_interval_knows_its_half_width() -> None:
    assert Interval(0.25, 0.75).half_width == 0.25


def test_sets_that_are_stacked_have_the_interval_of_each_by_itself() -> None:
    rng = np.random.default_rng(8)
    counts = rng.integers(1, 9, (3, 6)).astype(float)
    correct = np.floor(rng.random((3, 6)) * (counts + 1))
    pairs = np.array([0, 0, 1, 1, 2, 3])
    rows = list(zip(correct, counts, strict=True))
    for stacked, single in (
        (sampling_limits(correct, counts), [sampling_limits(*row) for row in rows]),
        (question_limits(correct / counts), [question_limits(c / n) for c, n in rows]),
        (cluster_limits(correct / counts, pairs), [cluster_limits(c / n, pairs) for c, n in rows]),
    ):
        assert np.allclose(np.asarray(stacked), np.asarray(single).T)
    variances = [cluster_variance(c / n, pairs) for c, n in rows]
    assert np.allclose(cluster_variance(correct / counts, pairs), variances)


def test_the_interval_of_a_mean_stays_between_none_and_all() -> None:
    for value in (0.0, 1.0, 0.02, 0.98):
        values = np.array([value, value])
        limits = mean_limits(values, IntervalEnds(np.maximum(values - 0.4, 0.0), np.minimum(values + 0.4, 1.0)))
        assert 0.0 <= limits.low <= value <= limits.high <= 1.0


def test_an_estimate_that_says_nothing_has_the_widest_interval() -> None:
    limits = mean_limits(np.array([0.5]), IntervalEnds(np.array([0.0]), np.array([1.0])))
    assert (limits.low, limits.high) == pytest.approx((0.0, 1.0), abs=2e-4)


def test_the_factor_of_several_tests_is_that_of_bonferroni() -> None:
    for n in (1, 2, 10):
        expected = NormalDist().inv_cdf(1 - 0.025 / n) + NormalDist().inv_cdf(0.8)
        assert power_factor(n) == pytest.approx(expected)
    assert power_factor() == power_factor(1)
