"""Intervals and warnings of tallies, and what must not change a result.

For: harness.scoring.uncertainty.
"""

from __future__ import annotations

import dataclasses
import math
import statistics

import numpy as np
import pytest

from harness.scoring.tally import QuestionTally
from harness.scoring.tally import tally as count
from harness.scoring.uncertainty import (
    accuracy_of,
    mean_question_interval,
    question_error,
    rate,
    sampling_error,
    unequal_clusters,
    unequal_rates,
    unequal_samples,
)
from tests.scoring.graded import grade, question


def tally(name: str, letters: str, independent: int | None = None, **metadata: str) -> QuestionTally:
    """A question with one sample for each letter: c is correct, w is wrong."""
    grades = tuple(grade(name, index, letter) for index, letter in enumerate(letters))
    return QuestionTally(question(name, **metadata), grades, len(letters), independent)


def test_questions_without_samples_are_left_out_of_the_intervals() -> None:
    some = [tally("a", "cw"), tally("b", "cc"), tally("c", "ww")]
    assert accuracy_of([*some, tally("d", "")]) == accuracy_of(some)
    assert accuracy_of(some).sampling is not None
    assert accuracy_of([]) is accuracy_of([tally("d", "")]) is None


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
    assert rate([plain, tally("b", "cc")], [1, 2]).value == pytest.approx(0.75)


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


def test_a_question_with_other_grades_or_copies_is_counted_anew() -> None:
    (item,) = count([question("a")], [grade("a", index, letter) for index, letter in enumerate("cww")], 3).questions
    other = dataclasses.replace(item, grades=tuple(grade("a", index, "c") for index in range(3)))
    assert (item.correct, other.correct, other.rate, other.votes()[0]) == (1, 3, 1.0, [(3, 3)])
    assert dataclasses.replace(item, independent=1).correct == 1
