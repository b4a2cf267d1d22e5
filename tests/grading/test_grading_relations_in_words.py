"""Inequalities and values whose signs are Chinese words: all pairs of relations and numbers, and what may stand beside.

For: harness.answers.grammar.relations_in_words, harness.grading.compare.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.budget import share_of
from tests.grading.test_grading_chinese_sentences import outcome

WORDS = {
    ">": ("大于",),
    "<": ("小于",),
    "≥": ("大于等于", "大于或等于", "不小于"),
    "≤": ("小于等于", "小于或等于", "不大于", "不超过"),
    "≠": ("不等于",),
}
NUMBERS = {"3": ("3", "三"), "-3": ("-3", "负3", "负三"), "1/2": ("1/2",), "0": ("0", "零")}
STATED_IN = ("\\boxed{{{}}}", "答：{}。", "答案是{}", "{}", "所以{}。", "先移项。\n{}。", "**{}**")


@pytest.mark.parametrize("sign", WORDS)
def test_a_relation_in_words_is_its_sign_and_no_other(sign: str) -> None:
    for number, frame in share_of(product(NUMBERS, STATED_IN)):
        reference = f"x{sign}{number}"
        for other, value in product(WORDS, NUMBERS):
            expected = "correct" if (other, value) == (sign, number) else "wrong"
            texts = [f"x{word}{spelled}" for word, spelled in product(WORDS[other], NUMBERS[value])]
            got = {text: outcome(reference, frame.format(text)) for text in texts}
            assert set(got.values()) == {expected}, got


PAIRS = (
    (
        "3<x<5",
        "x大于3且小于5 x大于3且x小于5 x大于3，小于5 3小于x小于5",
        "x大于3或小于5 x大于5且小于3 x大于等于3且小于5 x大于3",
    ),
    ("-3<x≤2", "x大于负3且不大于2 x大于-3，小于或等于2 -3小于x小于等于2", "x大于-3且小于2 x大于-3或不大于2"),
    ("x<0或x>1", "x小于0或大于1 x大于1或者x小于0", "x小于0且大于1 x大于0或小于1"),
    ("x≥-1且x≠2", "x大于等于-1且x不等于2 x不等于2且不小于-1", "x大于-1且x不等于2 x大于等于1且x不等于2"),
    ("x>3", "3小于x", "3大于x 3不大于x"),
    ("x=2，y=3", "x等于2，y等于3 x是2，y是3 x的值是2，y的值是3 x=2，y等于3", "x等于3，y等于2 x是2，y是5"),
    ("x=1或x=-2", "x等于1或-2 x是负2或1 x1=1,x2=-2 x1=-2，x2=1", "x等于1或2 x1=-1,x2=2"),
    ("y=2x+1", "y等于2x+1 y等于1+2x", "y等于2x-1 y等于x+2"),
)
"""Rows (reference, texts that equal it, texts that differ from it)."""


@pytest.mark.parametrize(("reference", "right", "wrong"), PAIRS)
def test_two_relations_and_several_values_are_read(reference: str, right: str, wrong: str) -> None:
    for frame in STATED_IN:
        assert [text for text in right.split() if outcome(reference, frame.format(text)) != "correct"] == [], frame
        assert [text for text in wrong.split() if outcome(reference, frame.format(text)) != "wrong"] == [], frame


OPEN = (
    "如果x大于3 小明说x大于3 已知x大于3 x大于3左右 x大于3吗？ 大概x大于3 x大于3时成立 题目中x大于3 y大于3 2x大于3 "
    "不是x大于3 可能x大于3 当x大于3 x大于3，y大于3 x大于3或y小于5 x大于大于3 x不大于等于3 x大于3的数 x至少大于3 "
    "若x大于3 x大于3米 x大于3是错的 设x大于3 x大于3，不对 x大于x x大于三三"
)


@pytest.mark.parametrize("text", OPEN.split())
def test_a_relation_that_is_limited_or_not_the_whole_answer_is_never_right(text: str) -> None:
    replies = (frame.format(text) for frame in (*STATED_IN[1:], "{}。但这是错的。"))
    assert [reply for reply in replies if outcome("x>3", reply) == "correct"] == []


def test_an_alternative_with_an_unequal_sign_leaves_nothing_out() -> None:
    for reference in ("x≥-1且x≠2", "[-1,2)∪(2,+∞)", "x≥-1，x≠2"):
        assert outcome(reference, "\\boxed{x≥-1且x≠2}") == "correct"
        for text in ("x≥-1或x≠2", "x≥-1\\text{ or }x\\neq 2", "x大于等于-1或不等于2", "x\\ge-1\\lor x\\ne 2"):
            assert outcome(reference, f"\\boxed{{{text}}}") != "correct", text
    assert outcome("x<1或x>5，x≠7", "\\boxed{x>5或x<1，x≠7}") == "correct"
