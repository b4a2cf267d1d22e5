"""Which questions moved between two runs, and how surely."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scoring.moves import moves, pairs
from harness.scoring.stats_differences import fisher
from harness.scoring.tally import QuestionTally
from tests.scoring.graded import grade, question


def tally(question_id: str, correct: int, n: int, *, row: str = "") -> QuestionTally:
    grades = tuple(grade(question_id, index, "c" if index < correct else "w") for index in range(n))
    asked = question(question_id)
    return QuestionTally.of(msgspec.structs.replace(asked, row_digest=row or asked.row_digest), grades, n)


@given(st.integers(0, 64), st.integers(1, 64), st.integers(0, 64), st.integers(1, 64))
def test_p_is_a_chance_and_does_not_depend_on_which_run_comes_first(a: int, n: int, b: int, m: int) -> None:
    a, b = min(a, n), min(b, m)
    p = fisher(a, n, b, m)
    assert 0 < p <= 1 + 1e-12
    assert p == pytest.approx(fisher(b, m, a, n))
    assert p == pytest.approx(fisher(n - a, n, m - b, m))


def test_what_fell_most_comes_first_and_what_stayed_is_no_move() -> None:
    first = [tally("same", 4, 8), tally("fell", 8, 8), tally("rose", 0, 8), tally("slipped", 8, 8)]
    second = [tally("same", 2, 4), tally("fell", 0, 8), tally("rose", 8, 8), tally("slipped", 7, 8)]
    found = moves(first, second)
    assert [move.question.question_id for move in found] == ["fell", "slipped", "rose"]
    assert [move.change for move in found] == [-1.0, -0.125, 1.0]
    # Four questions are compared, so Holm multiplies the smallest p by four.
    assert found[0].p == pytest.approx(4 * fisher(8, 8, 0, 8))
    assert found[1].p == 1.0


def test_an_id_that_stands_for_another_row_and_a_question_without_samples_are_no_pair() -> None:
    first = [tally("q1", 1, 2), tally("q2", 1, 2), tally("q3", 0, 0)]
    second = [tally("q1", 0, 2, row="another"), tally("q2", 0, 2), tally("q3", 1, 1)]
    assert [a.question.question_id for a, _ in pairs(first, second)] == ["q2"]
