"""Intervals and warnings of tallies, and what must not change a result.

For: harness.scoring.uncertainty.
"""

from __future__ import annotations

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
)
from tests.scoring.graded import grade, question


def tally(name: str, letters: str, independent: int | None = None, **metadata: str) -> QuestionTally:
    """A question with one sample for each letter: c is correct, w is wrong."""
    grades = tuple(grade(name, index, letter) for index, letter in enumerate(letters))
    return QuestionTally.of(question(name, **metadata), grades, len(letters), independent)


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


# -- repeats -------------------------------------------------------------------------------------------------------


def test_a_question_with_other_grades_or_copies_is_counted_anew() -> None:
    (item,) = count([question("a")], [grade("a", index, letter) for index, letter in enumerate("cww")], 3).questions
    other = QuestionTally.of(item.question, [grade("a", index, "c") for index in range(3)], 3)
    assert (item.correct, other.correct, other.rate, other.votes()[0]) == (1, 3, 1.0, [(3, 3)])
    assert QuestionTally.of(item.question, item.grades, 3, 1).correct == 1
