r"""Words of falling, loss or debt beside a quantity: 下降25% may answer "by how much" or "how did it change".

For: harness.grading.find.qualifiers, harness.grading.verdict.
"""

from __future__ import annotations

from itertools import product

import pytest

import harness

DOWN = {
    "今年比去年": ("下降", "减少了", "减少", "降低了", "下跌", "下调了"),
    "公司的利润": ("下降了", "负增长", "下滑"),
    "小明": ("亏了", "亏损", "欠", "还差"),
    "": ("下降", "负增长", "亏", "差", "少了", "降价"),
}
"""Subject → the words between it and a quantity that fell, was lost or is owed."""

UP = ("上升", "增长了", "增加", "提高了", "盈利")
# Words that hold a sign of the list and give no direction.
NEUTRAL = ("相差", "两人差", "两数的差是", "男生比女生少", "应付", "减少后是", "降价后是")
QUANTITIES = ("25%", "3米", "5元")
REPLIES = (
    "{before}{value}",
    "答：{before}{value}。",
    "{before}\\boxed{{{value}}}",
    "所以{before}$\\boxed{{{value}}}$。",
)
ENGLISH_DOWN = (
    r"It decreased by \boxed{{{}}}", r"The price fell by $\boxed{{{}}}$.", r"a loss of \boxed{{{}}}",
    r"It went down by \boxed{{{}}}", r"This is a \boxed{{{}}} decrease.",
)  # fmt: skip
ENGLISH_OTHER = (
    r"It increased by \boxed{{{}}}", r"Divided by \boxed{{{}}}", r"It fell to \boxed{{{}}}",
    r"The loss rose to \boxed{{{}}}",
    r"The decrease was steep. The rate is \boxed{{{}}}", r"a gain of \boxed{{{}}}",
    r"\boxed{{{}}} is the answer after the loss.",
)  # fmt: skip


def outcome(reference: str, reply: str) -> str:
    return harness.grade(reference, reply).outcome


@pytest.mark.parametrize(("subject", "value"), [*product(DOWN, QUANTITIES)])
def test_a_quantity_that_fell_is_neither_the_quantity_nor_its_negative(subject: str, value: str) -> None:
    written = value.replace("%", r"\%")
    for word, reply in product(DOWN[subject], REPLIES):
        text = reply.format(before=f"{subject}{word}", value=written if "boxed" in reply else value)
        assert {outcome(reference, text) for reference in (value, f"-{value}", f"+{value}")} == {"undecided"}, text
        # Wrong twins: another number is wrong with either sign, unless its sentence states no answer at all.
        assert outcome(f"7{value}", text) in (("wrong",) if "boxed" in reply else ("wrong", "undecided")), text


@pytest.mark.parametrize("value", QUANTITIES)
def test_a_word_that_gives_no_downward_direction_leaves_the_verdict(value: str) -> None:
    for word in (*UP, *NEUTRAL):
        text = f"{word}\\boxed{{{value}}}".replace("%", r"\%")
        assert (outcome(value, text), outcome(f"-{value}", text)) == ("correct", "wrong"), text


@pytest.mark.parametrize("value", [r"25\%", "5", r"\frac{1}{4}"])
def test_the_same_in_english_around_a_box(value: str) -> None:
    for form in ENGLISH_DOWN:
        text = form.format(value)
        assert outcome(value, text) == outcome(f"-{value}", text) == "undecided", text
        assert outcome(f"7{value}" if value[0] != "\\" else "7", text) == "wrong", text
    for form in ENGLISH_OTHER:
        text = form.format(value)
        assert (outcome(value, text), outcome(f"-{value}", text)) == ("correct", "wrong"), text


def test_an_answer_with_its_own_sign_keeps_its_verdict() -> None:
    assert outcome("-25%", r"今年比去年下降了，增长率是\boxed{-25\%}") == "correct"
    assert outcome("25%", "-25%") == "wrong"


def test_the_reason_names_the_other_value() -> None:
    steps = harness.grade("25%", "下降25%").steps
    assert any("fell or is owed, so that it may be -25%" in step for step in steps)
