"""Errors of differences by their formulas, for one run and for stacked ones; and what missing samples may hide."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring import compare_runs
from harness.scoring.comparison import PairedComparison
from harness.scoring.differences import (
    SampleSpread,
    detection,
    holm,
    least_question_difference,
    least_questions,
    least_variance,
    mean_difference_limits,
    planned_detection,
    pooled_variance,
    question_difference_limits,
    question_difference_variance,
    questions_to_detect,
    samples_to_detect,
    sampling_difference_limits,
    score_variance,
    smallest_difference,
    smoothed_variance,
    spreads_within,
    variance_limits,
)
from harness.scoring.intervals import (
    Array,
    Interval,
    IntervalEnds,
    power_factor,
    sampling_limits,
    t_factor,
    t_two_sided,
    wilson,
)
from harness.scoring.tally import QuestionTally
from tests.scoring.graded import grade, question

rng = np.random.default_rng(4)
COUNTS, OTHER_COUNTS = rng.integers(2, 9, (2, 3, 5)).astype(float)
CORRECT, OTHER_CORRECT = np.floor(rng.random((2, 3, 5)) * (np.stack([COUNTS, OTHER_COUNTS]) + 1))
RUNS = (CORRECT, COUNTS, OTHER_CORRECT, OTHER_COUNTS)


def test_the_variance_of_a_difference_is_the_sum_over_questions_by_their_number_squared() -> None:
    expected = 0.0
    for right, n, others, m in zip(*(array[0] for array in RUNS), strict=True):
        p = (right + others) / (n + m)
        expected += p * (1 - p) * (n + m) / (n + m - 1) * (1 / n + 1 / m) / 25
    assert score_variance(*(array[0] for array in RUNS)) == pytest.approx(expected)


def test_the_sampling_interval_of_a_difference_adds_the_distances_to_the_nearer_ends_as_squares() -> None:
    for row in range(3):
        first, second = (CORRECT[row], COUNTS[row]), (OTHER_CORRECT[row], OTHER_COUNTS[row])
        ours, theirs = (float((right / n).mean()) for right, n in (first, second))
        our, their = sampling_limits(*first), sampling_limits(*second)
        limits = sampling_difference_limits(*first, *second)
        assert limits.low == pytest.approx(ours - theirs - math.hypot(ours - our.low, their.high - theirs))
        assert limits.high == pytest.approx(ours - theirs + math.hypot(our.high - ours, theirs - their.low))


def test_the_question_interval_of_a_difference_is_its_mean_and_t_errors_within_one() -> None:
    differences = np.array([0.5, 0.0, 0.25, -0.25])
    variance = np.var(differences, ddof=1) / 4 + 0.5 / 16
    assert question_difference_variance(differences) == pytest.approx(variance)
    assert question_difference_variance(np.stack([differences, -differences])) == pytest.approx([variance] * 2)
    reach = t_factor(3) * math.sqrt(variance)
    limits = question_difference_limits(differences)
    assert (limits.low, limits.high) == pytest.approx((0.125 - reach, 0.125 + reach))
    assert question_difference_limits(np.array([1.0, 1.0, 1.0])).high == 1.0
    assert question_difference_limits(np.array([-1.0, -1.0, -1.0])).low == -1.0
    pairs = np.array([0, 0, 1, 1])
    assert question_difference_limits(differences, pairs).high > limits.high


def test_runs_that_are_stacked_are_reckoned_each_by_itself() -> None:
    rows = [[array[row] for array in RUNS] for row in range(3)]
    for function in (score_variance, pooled_variance):
        assert np.allclose(function(*RUNS), [function(*row) for row in rows])
    for stacked, single in (
        (sampling_difference_limits(*RUNS), [sampling_difference_limits(*row) for row in rows]),
        (detection(*RUNS), [detection(*row) for row in rows]),
        (question_difference_limits(CORRECT / 9), [question_difference_limits(row / 9) for row in CORRECT]),
    ):
        assert np.allclose(np.asarray(stacked), np.asarray(single).T)


def test_the_variance_of_one_sample_is_smoothed_and_binomial_where_it_is_unknown() -> None:
    mean, total = np.asarray(0.75), np.asarray(40.0)
    variance = smoothed_variance(mean, np.asarray(0.001), total)
    share = (1600 * 0.001 + 2) / (40 * 0.75 * 0.25 + 2)
    assert variance == pytest.approx(share * 31 / 42 * 11 / 42)
    unknown = smoothed_variance(mean, np.asarray(math.nan), total)
    assert unknown == pytest.approx(smoothed_variance(mean, mean * (1 - mean) / total, total))
    assert unknown == pytest.approx(31 / 42 * 11 / 42)
    assert smoothed_variance(mean, np.asarray(1.0), total) == pytest.approx(31 / 42 * 11 / 42)


def test_the_smallest_difference_solves_its_equation_and_is_at_most_one() -> None:
    for tests in (1, 5):
        d = float(smallest_difference(np.asarray(0.001), 0.01, tests))
        assert d * d == pytest.approx(power_factor(tests) ** 2 * (0.001 + 0.01 * d))
    assert smallest_difference(np.asarray(9.0)) == 1.0
    assert smallest_difference(np.asarray(0.001)) == smallest_difference(np.asarray(0.001), 0.0, 1)


SPREAD = SampleSpread(n_questions=30, mean=0.3, variance=0.15)


def found(n: int, m: int | None = None, spread: SampleSpread = SPREAD) -> float:
    """The smallest difference of n samples beside m."""
    return float(smallest_difference(*planned_detection(spread, n, m)))


def test_samples_to_detect_are_the_fewest_that_are_enough() -> None:
    n = samples_to_detect(SPREAD, 0.02)
    assert n is not None
    assert found(n) <= 0.02 < found(n - 1)
    beside = samples_to_detect(SPREAD, 0.02, other_samples=900)
    assert beside is not None
    assert found(beside, 900) <= 0.02 < found(beside - 1, 900)
    assert samples_to_detect(SPREAD, 0.02, other_samples=5) is None
    assert samples_to_detect(SPREAD, 0.02, n_tests=3) > n  # type: ignore[operator]


@pytest.mark.parametrize("accuracy", [0.03, 0.3, 0.5, 0.95])
def test_a_plan_and_a_comparison_have_one_formula(accuracy: float) -> None:
    """A plan by the accuracy and variance that two runs show expects what `detection` says of these runs."""
    right = np.round(np.linspace(2 * accuracy - 1, 1, 30).clip(0, 1) * 8)
    counts = np.full(30, 8.0)
    spread = SampleSpread(30, float((right / 8).mean()), float((right / 8 * (1 - right / 8)).mean() * 16 / 15))
    assert np.allclose(planned_detection(spread, 8), detection(right, counts, right, counts))


def test_a_small_pilot_adds_its_tosses_and_a_large_one_those_of_the_plan() -> None:
    pilot, long = SPREAD._replace(variance=0.0, total=60.0), SPREAD._replace(variance=0.0, total=6000.0)
    assert found(64, None, pilot) > found(64, None, long) > 0
    assert found(64, None, SPREAD._replace(variance=0.0)) == found(64, None, SPREAD._replace(variance=0.0, total=1e9))


def test_a_worse_model_varies_more_where_most_questions_are_certain() -> None:
    """Half of 30 questions are always right and half always wrong: a model that is worse on the first half varies."""
    variance, growth = planned_detection(SampleSpread(30, 0.5, 0.0), 64)
    single = smoothed_variance(np.asarray(0.5), np.asarray(0.0), np.asarray(3840.0))
    assert variance == pytest.approx(single * 2 / 1920)
    assert growth == pytest.approx((1 - 4 * single) / 1920)
    # Equally hard questions have no such growth at 50 %, and one of |1 − 2p| elsewhere.
    assert planned_detection(SampleSpread(30, 0.5, 0.25), 64).growth == pytest.approx(0, abs=1e-6)
    assert planned_detection(SampleSpread(30, 0.8, 0.16), 64).growth * 1920 == pytest.approx(0.6, abs=1e-3)


def test_the_least_variance_leaves_all_questions_but_one_certain() -> None:
    assert least_variance(0.98, 30) == pytest.approx(0.4 * 0.6 / 30)
    assert least_variance(0.5, 30) == pytest.approx(0, abs=1e-12)
    assert least_variance(0.25, 2) == pytest.approx(0.25 / 2)


def test_no_number_of_samples_lowers_what_other_questions_show() -> None:
    least = least_question_difference(30)
    assert least == pytest.approx(t_factor(29) * math.sqrt(0.5) / 30)
    limits = question_difference_limits(np.full(30, least * 0.99))
    assert limits.low < 0 < question_difference_limits(np.full(30, least * 1.01)).low
    assert least_question_difference(1) == 1.0
    for points in (1, 2, 5, 10):
        n_questions = least_questions(points / 100)
        assert least_question_difference(n_questions) <= points / 100 < least_question_difference(n_questions - 1)


@pytest.mark.parametrize(("difference", "spread"), [(0.02, 0.05), (0.05, 0.1), (0.1, 0.4)])
def test_so_many_questions_find_the_difference_in_80_percent_of_repetitions(difference: float, spread: float) -> None:
    """spread: standard deviation of the runs' difference from question to question, seen on 30 questions."""
    number = questions_to_detect(spread**2 / 30 + 0.5 / 30**2, 30, difference)
    assert number is not None
    drawn = np.random.default_rng(7).normal(difference, spread, (4000, number))
    assert np.mean(question_difference_limits(drawn).low > 0) == pytest.approx(0.8, abs=0.03)
    # Two p values that are corrected together need more.
    assert (questions_to_detect(spread**2 / 30 + 0.5 / 30**2, 30, difference, 2) or 0) > number


@pytest.mark.parametrize("n_tests", [1, 2])
def test_so_many_clusters_find_the_difference_in_80_percent_of_repetitions(n_tests: int) -> None:
    """15 clusters of 4 questions: the added ½/15² is no spread that more clusters would have."""
    difference, spread, rng = 0.06, 0.2, np.random.default_rng(11)
    seen = question_difference_variance(np.repeat(_of_deviation(15, difference, spread), 4), np.repeat(range(15), 4))
    number = questions_to_detect(float(seen), 15.0, difference, n_tests)
    assert number is not None
    drawn = rng.normal(difference, spread, (4000, number))
    labels = np.arange(number)
    z = drawn.mean(axis=-1) / np.sqrt(question_difference_variance(drawn, labels))
    found = [t_two_sided(value, number - 1) < 0.05 / n_tests for value in z]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)
    # With the questions for the clusters, the tosses would count as spread.
    assert (questions_to_detect(float(seen), 60, difference, n_tests) or 0) > 2 * number


def _of_deviation(n: int, mean: float, deviation: float) -> Array:
    """n values of exactly this mean and deviation."""
    values = np.linspace(-1, 1, n)
    return np.asarray(mean + deviation * values / values.std(ddof=1))


def test_the_smaller_run_is_not_charged_with_the_whole_growth() -> None:
    """Beside few stored samples, the growth of the variance is divided by both sizes, in the parts of the test."""
    equal, beside = planned_detection(SPREAD, 64), planned_detection(SPREAD, 6400, 64)
    assert float(beside.growth / equal.growth) == pytest.approx(0.75 + 0.25 / 100, rel=1e-2)
    assert planned_detection(SPREAD, 64, 6400).growth == beside.growth


def test_the_interval_of_a_variance_is_wilsons_for_two_samples_of_each_question() -> None:
    """With two samples a question, twice the variance is the fraction of questions whose samples differ."""
    expected = wilson(np.asarray(9 / 30), np.asarray(30.0))
    assert variance_limits(0.15, 2, 30) == pytest.approx((float(expected.low) / 2, float(expected.high) / 2))
    assert variance_limits(0.15, 64, 30).low > variance_limits(0.15, 2, 30).low
    assert variance_limits(0.0, 2, 30).low == 0.0
    assert variance_limits(0.5 / 30, 2, 30).low == pytest.approx(0.0512932944 / 60)


def test_what_a_pilot_leaves_possible_spans_both_of_its_intervals() -> None:
    limits = variance_limits(SPREAD.variance, 2, 30)
    ends = spreads_within(SPREAD._replace(total=60.0), 2, Interval(0.2, 0.6))
    assert {end.variance for end in ends} == set(limits)
    assert {end.mean for end in ends} == {0.2, 0.3, 0.5, 0.6}
    assert all(math.isinf(end.total) for end in ends)
    assert {end.mean for end in spreads_within(SPREAD, 2, Interval(0.2, 0.4))} == {0.2, 0.3, 0.4}


def test_the_interval_of_a_mean_of_differences_adds_the_distances_as_squares() -> None:
    ends = IntervalEnds(np.array([-0.1, 0.0]), np.array([0.3, 0.1]))
    limits = mean_difference_limits(np.array([0.1, 0.04]), ends)
    assert limits.low == pytest.approx(0.07 - math.hypot(0.2, 0.04) / 2)
    assert limits.high == pytest.approx(0.07 + math.hypot(0.2, 0.06) / 2)
    alone = mean_difference_limits(np.array([0.1]), IntervalEnds(np.array([-0.1]), np.array([0.3])))
    assert (alone.low, alone.high) == pytest.approx((-0.1, 0.3))


def test_holm_raises_each_p_value_by_its_rank_and_never_lets_it_fall() -> None:
    assert holm([0.03, 0.01, 0.04]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.0]) == [0.9, 0.0]
    assert holm([0.6, 0.7]) == [1.0, 1.0]


Letters = dict[str, str]
PLANNED = 4


def compared(first: Letters, second: Letters) -> PairedComparison:
    """Of two runs of 4 samples planned; a letter for each sample that is there."""

    def tallied(letters: Letters) -> list[QuestionTally]:
        return [
            QuestionTally(question(q), tuple(grade(q, i, x) for i, x in enumerate(row)), PLANNED)
            for q, row in letters.items()
        ]

    return compare_runs(tallied(first), tallied(second))


def filled(letters: Letters, with_: str) -> Letters:
    return {name: row + with_ * (PLANNED - len(row)) for name, row in letters.items()}


rows = st.lists(st.text("cw", min_size=1, max_size=PLANNED), min_size=1, max_size=4)


@given(rows, st.data())
def test_missing_samples_leave_what_holds_whatever_they_would_have_been(rows: list[str], data: st.DataObject) -> None:
    first = {f"q{i}": row for i, row in enumerate(rows)}
    second = {name: data.draw(st.text("cw", min_size=1, max_size=PLANNED)) for name in first}
    result = compared(first, second)
    ends = [
        compared(filled(first, "w"), filled(second, "c")),
        compared(filled(first, "c"), filled(second, "w")),
    ]
    low, high = ends
    assert result.n_missing == sum(2 * PLANNED - len(first[name]) - len(second[name]) for name in first)
    assert result.difference == pytest.approx(result.first_accuracy - result.second_accuracy)
    assert result.first_accuracy == pytest.approx(sum(row.count("c") / len(row) for row in rows) / len(rows))
    assert result.sampling_interval.low == pytest.approx(min(end.sampling_interval.low for end in ends))
    assert result.sampling_interval.high == pytest.approx(max(end.sampling_interval.high for end in ends))
    assert result.sampling_error == pytest.approx(max(end.sampling_error for end in ends))
    assert result.single_error == pytest.approx(max(end.single_error for end in ends))
    shift = max(abs(end.difference - result.difference) for end in ends)
    alone = max(float(smallest_difference(np.asarray(end.detection_variance), end.detection_growth)) for end in ends)
    most = max(result.second_accuracy, 1 - result.second_accuracy)
    assert result.detectable == (pytest.approx(alone + shift) if alone + shift < min(1, most + 1e-12) else None)
    same_sign = low.difference * high.difference > 0 or low.difference == high.difference
    assert result.p_sampling == pytest.approx(max(end.p_sampling for end in ends) if same_sign else 1.0)
    questions = [end.question_interval for end in ends if end.question_interval is not None]
    ps = [end.p_question for end in ends if end.p_question is not None]
    assert (result.question_interval is None, len(questions), len(ps)) == (len(rows) == 1, *(2 * [2 * (len(rows) > 1)]))
    if result.question_interval is not None:
        assert result.question_interval.low == pytest.approx(min(interval.low for interval in questions))
        assert result.question_interval.high == pytest.approx(max(interval.high for interval in questions))
        assert result.p_question == pytest.approx(max(ps) if same_sign else 1.0)
    assert result.at_most == any(all(len(row) == 1 for row in run.values()) for run in (first, second))


def test_copies_in_one_question_make_the_sampling_interval_the_widest_possible() -> None:
    grades = {q: tuple(grade(q, i, letter) for i, letter in enumerate("ccww")) for q in ("q0", "q1")}
    apart = [QuestionTally(question(q), grades[q], PLANNED) for q in grades]
    copied = [QuestionTally(question("q0"), grades["q0"], PLANNED, 1), apart[1]]
    assert compare_runs(copied, apart).at_most
    assert not compare_runs(apart, apart).at_most
