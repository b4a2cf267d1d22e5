"""Several values on lines of their own, or with a space between them, are one answer beside several values."""

from __future__ import annotations

from collections import Counter

import pytest

import harness
from tests.grading.values_in_lines import pairs


def test_made_replies_with_a_line_or_a_space_between_their_values() -> None:
    made = list(pairs())
    outcomes = Counter((pair.is_right, harness.grade(pair.reference, pair.reply).outcome) for pair in made)
    assert outcomes[True, "correct"] == sum(pair.is_right for pair in made) > 200
    assert outcomes[False, "correct"] == 0
    # A value less or another value is shown to differ; only a value more leaves open which ones are the answer.
    assert outcomes[False, "wrong"] > 200


@pytest.mark.parametrize(
    ("reference", "reply"),
    [
        ("x=5，y=2", "1. x=5\n2. y=2"),
        ("x=5，y=2", "- x=5\n- y=2"),
        ("x=5，y=2", "**x=5**\n**y=2**"),
        ("x=5，y=2", "解：①+②得：4x=20\nx=5\n把x=5代入①得\ny=2\n所以方程组的解是\nx=5\ny=2"),
        ("(-1, 2)", "x=-1\ny=2"),
        ("x=2或x=3", "x=2或\nx=3"),
        ("x=2, x=3", "The solutions are\nx=2\nx=3"),
        ("12", "5\n7\n12"),
    ],
)
def test_lines_that_state_all_values(reference: str, reply: str) -> None:
    assert harness.grade(reference, reply).outcome == "correct"


@pytest.mark.parametrize(
    ("reference", "reply"),
    [
        ("x=5，y=2", "已知：\nx=5\ny=2"),
        ("x=5，y=2", "假设\nx=5\ny=2"),
        ("x=5，y=2", "答案不是：\nx=5\ny=2"),
        ("x=5，y=2", "x=5或\ny=2"),
        ("x=2或x=3", "x=2\n且x=3"),
        ("x=2或x=3", "x=2\nx=3\nx=4"),
        ("4和-4", "\\boxed{4 -4}"),
        ("2和3", "2 3"),
    ],
)
def test_lines_that_may_be_no_answer_or_another_one_are_undecided(reference: str, reply: str) -> None:
    assert harness.grade(reference, reply).outcome == "undecided"


@pytest.mark.parametrize(
    ("reference", "reply"),
    [
        ("x=5，y=2", "y=5\nx=2"),
        ("x=5，y=2", "解得：\ny=2"),
        ("(-1, 2)", "x=2\ny=-1"),
        ("x=2或x=3", "\\boxed{x_1=3\\ x_2=4}"),
    ],
)
def test_lines_with_other_values_are_wrong(reference: str, reply: str) -> None:
    assert harness.grade(reference, reply).outcome == "wrong"
