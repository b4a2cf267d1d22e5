"""Near misses: in what way a wrong answer is almost right."""

from __future__ import annotations

import pytest

from reasoning_answers import Rules, grade


def missed(reference: str, reply: str, rules: Rules | None = None) -> tuple[str, str | None]:
    """(verdict, near miss)."""
    verdict = grade(reference, reply, rules=rules or Rules())
    return verdict.outcome, verdict.near_miss


@pytest.mark.parametrize(
    ("reference", "answer", "near"),
    [
        ("12.55", r"\frac{113}{9}", None),
        ("6.5", r"\sqrt{41.75}", "rounded"),
        ("6.46", r"\sqrt{42}", None),
        (r"41\%", r"\sqrt2-1", None),
        (r"4.1\%", r"\frac{\sqrt2-1}{10}", "rounded"),
        ("0.46", r"\frac{11}{24}", "rounded"),
        ("0.458", r"\frac{10}{24}", None),
        ("0.458", "0.46", None),
        (r"5\text{ cm}", r"5\text{ m}", "unit"),
        (r"5\text{ cm}", r"6\text{ m}", None),
        (r"5\text{ dollars}", r"5\text{ cents}", "unit"),
        (r"5^\circ", r"5\%", "unit"),
        ("7", "8", None),
    ],
)
def test_a_wrong_answer_may_miss_by_little(reference: str, answer: str, near: str | None) -> None:
    assert missed(reference, rf"\boxed{{{answer}}}") == ("wrong", near)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [("12.56", r"\frac{113}{9}"), ("6.46", r"\sqrt{41.75}"), (r"41.4\%", r"\sqrt2-1"), ("0.458", r"\frac{11}{24}")],
)
def test_an_answer_rounded_to_three_digits_is_undecided(reference: str, answer: str) -> None:
    assert missed(reference, rf"\boxed{{{answer}}}") == ("undecided", None)


def test_a_rounded_reference_accepts_its_exact_value_if_the_card_says_so() -> None:
    rules = Rules(round_to_reference=True)
    assert missed("0.458", r"\boxed{\frac{11}{24}}", rules) == ("correct", None)
    assert missed("0.458", r"\boxed{\frac{10}{24}}", rules) == ("wrong", None)


def test_another_box_with_the_right_answer_is_a_near_miss() -> None:
    assert missed("7", r"\boxed{7}. No, it is \boxed{8}.") == ("wrong", "another box")
    assert missed("7", r"\boxed{6}. No, it is \boxed{8}.") == ("wrong", None)
    assert missed("7", r"\boxed{8}. No, it is \boxed{7}.") == ("correct", None)


def test_only_a_wrong_answer_is_a_near_miss() -> None:
    undecided = grade("C", "猜测对应选项 C。\n\n\\boxed{2}", kind="choice", choices=("1", "3", "2", "4"))
    assert (undecided.outcome, undecided.near_miss) == ("undecided", None)
    assert missed("7", r"<think>\boxed{7} is a guess") == ("no_answer", None)
