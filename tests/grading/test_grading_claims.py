"""Answers that state more than the reference asks for: right forms are never wrong, their wrong twins never correct.

For: harness.grading.compare.claims, harness.grading.compare.scalars, harness.grading.compare.ratios, harness.grading.
"""

from __future__ import annotations

import pytest

import harness


def _grade(reference: str, answer: str) -> str:
    return harness.grade(reference, answer).outcome


@pytest.mark.parametrize("number", ["0.3", "0.25", r"\frac14", "7/12", "-0.3", r"\frac{\sqrt2}{2}"])
def test_a_percent_sign_behind_a_number_below_1_is_not_left_out(number: str) -> None:
    assert _grade(number, rf"\boxed{{{number}\%}}") == "undecided"
    assert _grade(rf"{number}\%", rf"\boxed{{{number}}}") == "undecided"


@pytest.mark.parametrize(
    ("number", "hundredth"), [("1", "0.01"), ("3.5", "0.035"), ("50", "0.5"), (r"\frac{100}3", "1/3")]
)
def test_a_percent_sign_behind_1_and_more_may_be_left_out(number: str, hundredth: str) -> None:
    for reference in (number, hundredth):
        assert _grade(reference, rf"\boxed{{{number}\%}}") == "correct"


@pytest.mark.parametrize("half", ["下午{}", "晚上{}", r"{} \text{{ p.m.}}", "{} PM"])
def test_a_time_of_the_other_half_of_the_day_is_undecided_beside_a_bare_one(half: str) -> None:
    for hour in (7, 8, 11):
        assert _grade(f"{hour}:55", rf"\boxed{{{half.format(f'{hour}:55')}}}") == "undecided"
        assert _grade(f"{hour + 12}:55", rf"\boxed{{{half.format(f'{hour}:55')}}}") == "correct"


@pytest.mark.parametrize("answer", ["8:55", "上午8:55", "上午8时55分", "早上8点55分", r"8:55\text{ a.m.}"])
def test_a_bare_time_before_noon_is_the_one_of_the_morning(answer: str) -> None:
    assert _grade("8:55", rf"\boxed{{{answer}}}") == "correct"
    assert _grade("8:50", rf"\boxed{{{answer}}}") == "wrong"


def test_a_time_of_day_is_one_quantity() -> None:
    steps = harness.grade("8:55", "答：火车8:55出发，9时20分到达。").steps
    assert any("2 quantities (8:55, 9时20分)" in step for step in steps)


@pytest.mark.parametrize(("reference", "answer", "outcome"), [
    ("6元/千克", "600分/千克", "correct"), ("6元/千克", "6分/千克", "wrong"), ("6元/千克", "60分/千克", "wrong"),
    ("600分/千克", "6元/千克", "correct"), ("6元每千克", "600分每千克", "correct"), ("60米/分", "1米/秒", "correct"),
    ("1元/秒", "60元/分", "correct"), ("1元/秒", "1元/分", "wrong"),
])  # fmt: skip
def test_fen_inside_a_rate_of_money_is_no_minute(reference: str, answer: str, outcome: str) -> None:
    assert _grade(reference, rf"\boxed{{{answer}}}") == outcome
