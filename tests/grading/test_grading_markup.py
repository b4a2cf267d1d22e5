"""Sentences in Chinese with bold marks and formulas in dollar signs: sentences × markup × right and wrong values.

For: harness.grading.find.markup.
"""

from __future__ import annotations

from itertools import product

import pytest

from harness.grading import grade
from harness.grading.find.markup import without_markup
from tests.grading.given import question, sample

SENTENCES = {
    "20平方厘米": ("三角形的面积是{}。", "因此，三角形的面积是{}。", "答：三角形的面积是{}。", "所以一共铺了{}"),
    "24张": ("小华还剩{}邮票。", "所以小华还剩{}。"),
    "x>2": ("不等式的解集为{}。", "所以不等式的解集是{}。"),
    "(2,-3)": ("所以顶点坐标为{}。", "对称点的坐标是{}。"),
    "3/4": ("女生占全班的{}。", "所以这个分数是{}。"),
    "60°": ("所以∠A={}。", "这个角是{}。"),
    "x=3或x=-2": ("所以方程的解是{}。",),
}
"""Reference → sentences that state it."""

LATEX = {
    "20平方厘米": (
        r"$20\text{平方厘米}$",
        "$20$平方厘米",
        r"$20\,\mathrm{平方厘米}$",
        r"\(20\)平方厘米",
        r"$\mathbf{20}$ 平方厘米",
    ),
    "24张": ("$24$张", r"$24\text{张}$", r"$\mathbf{24}$ 张"),
    "x>2": ("$x>2$", r"$x \gt 2$", "$$x>2$$"),
    "(2,-3)": ("$(2,-3)$", r"$\left(2,-3\right)$"),
    "3/4": (r"$\frac{3}{4}$", r"$\frac34$", "$3/4$"),
    "60°": (r"$60^\circ$", r"$60^{\circ}$"),
    "x=3或x=-2": ("$x=3$ 或 $x=-2$",),
}
BOLD = ("{}", "**{}**", "__{}__", " **{}**")
WRONG = {
    "20平方厘米": ("20厘米", "30平方厘米"),
    "24张": ("42张",),
    "x>2": ("x<2", "x>3"),
    "(2,-3)": ("(-3,2)",),
    "3/4": ("4/3",),
    "60°": ("6°", "60厘米"),
    "x=3或x=-2": ("x=3或x=2",),
}
WRONG_LATEX = {
    "20厘米": (r"$20\text{厘米}$", "$20$厘米"),
    "30平方厘米": (r"$30\text{平方厘米}$",),
    "42张": ("$42$张",),
    "x<2": ("$x<2$",),
    "x>3": ("$x>3$",),
    "(-3,2)": ("$(-3,2)$",),
    "4/3": (r"$\frac{4}{3}$",),
    "6°": (r"$6^\circ$",),
    "60厘米": (r"$60\text{厘米}$",),
    "x=3或x=2": ("$x=3$ 或 $x=2$",),
}
LEFT_OPEN = ("如果{}，那么结论成立。", "小明认为{}", "{}吗？", "假设{}")
"""What may be around a sentence that then states nothing."""


def verdict(reference: str, reply: str) -> str:
    return grade(question(reference, kind="expression"), sample(reply)).verdict


@pytest.mark.parametrize("reference", SENTENCES)
def test_a_sentence_with_markup_states_what_the_plain_one_states(reference: str) -> None:
    for sentence, value, bold in product(SENTENCES[reference], (reference, *LATEX[reference]), BOLD):
        for reply in (sentence.format(bold.format(value)), f"**{sentence.format(value)}**"):
            assert verdict(reference, reply) == "correct", reply


@pytest.mark.parametrize("reference", WRONG)
def test_a_wrong_value_in_markup_is_never_correct(reference: str) -> None:
    for sentence, wrong, bold in product(SENTENCES[reference], WRONG[reference], BOLD):
        for value in (wrong, *WRONG_LATEX[wrong]):
            reply = sentence.format(bold.format(value))
            assert verdict(reference, reply) != "correct", reply


@pytest.mark.parametrize("reference", SENTENCES)
def test_markup_does_not_hide_what_leaves_a_sentence_open(reference: str) -> None:
    sentence = SENTENCES[reference][0].removesuffix("。")
    for value, bold, around in product((reference, *LATEX[reference]), BOLD, LEFT_OPEN):
        reply = around.format(sentence.format(bold.format(value)))
        assert verdict(reference, reply) != "correct", reply


@pytest.mark.parametrize(
    ("reference", "reply", "expected"),
    [
        (r"2\sqrt{3}厘米", r"所以边长是 $2\sqrt{3}$ 厘米。", "correct"),
        (r"2\sqrt{3}厘米", r"所以边长是 $2\sqrt{5}$ 厘米。", "wrong"),
        (r"2\sqrt{3}厘米", r"所以边长不是 $2\sqrt{3}$ 厘米。", "undecided"),
        (r"9\pi", r"面积为 $\mathbf{9\pi}$。", "correct"),
        (r"9\pi", r"面积为 $\mathbf{6\pi}$。", "wrong"),
        ("70707", r"面积为 $9\pi$。", "wrong"),
        ("19.5元", "**一共花了 19.5 元。**", "correct"),
        ("19.5元", "**一共花了 15.9 元。**", "wrong"),
        ("40千米", "**答：两地的实际距离为 $40$ 千米。**", "correct"),
        ("23", "结果等于 2**3", "undecided"),
        ("20平方厘米", "面积是 $20$ 平方厘米的一半。", "undecided"),
        ("20", r"所以最大值是 $x+20$。", "undecided"),
        ("20", r"所以差是 $20-x$。", "undecided"),
    ],
)
def test_formulas_and_marks_that_are_no_plain_value(reference: str, reply: str, expected: str) -> None:
    assert verdict(reference, reply) == expected


def test_positions_and_reasons_are_those_of_the_reply() -> None:
    reply = "小华还剩 **24 张**邮票。"
    graded = grade(question("24张", kind="expression"), sample(reply))
    assert graded.span is not None
    assert reply[slice(*graded.span)] == "**24 张**邮票"
    plain = without_markup(r"面积是 $20\text{平方厘米}$，边长是 $2\sqrt{3}$")
    assert plain.text == "面积是 20平方厘米，边长是 70707"
    assert plain.answer(15, 20) == r"2\sqrt{3}"
    assert plain.source(4, 10) == (4, 19)
