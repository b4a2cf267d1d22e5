"""Numbered blanks state the order of their values; the work behind an answer may end in a result of its own.

For: harness.answers.grammar.numbered_blanks, harness.grading.compare.blanks, harness.grading.find.explanation.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.grading.outcomes import outcome

BLANKS = ("①{}②{}", "（1）{} （2）{}", "(1) {} (2) {}", "第一空填{}，第二空填{}")
REFERENCES = (*BLANKS, "{}；{}", "{}，{}")
VALUES = (("3", "5"), ("1/2", "0.25"), ("20", "9"))


@pytest.mark.parametrize(("reference", "answer"), [*product(REFERENCES, BLANKS)])
def test_numbered_blanks_in_another_order_are_not_correct(reference: str, answer: str) -> None:
    for first, second in VALUES:
        gold = reference.format(first, second)
        assert outcome(gold, rf"\boxed{{{answer.format(first, second)}}}") == "correct", (gold, answer)
        assert outcome(gold, rf"\boxed{{{answer.format(second, first)}}}") in ("undecided", "wrong"), (gold, answer)
        assert outcome(gold, rf"\boxed{{{answer.format(first, '77')}}}") != "correct", (gold, answer)


@pytest.mark.parametrize("formula", ["(1)+(2)", "(1)(2)", r"(1)\cdot(2)+1+1", "(1)-(2)+3"])
def test_numbers_in_brackets_of_a_formula_number_no_blanks(formula: str) -> None:
    assert outcome(formula, rf"\boxed{{{formula}}}") == "correct"


RESULTS = ("解得{}。", "最后得{}。", "最终求得{}", "所以{}。", "移项，得到等式，因此{}", "{}")


@pytest.mark.parametrize("title", ["【解析】", "\n### 解析\n", "\n**分析**：", "。解析：", "\n思路："])
@pytest.mark.parametrize("result", RESULTS)
def test_work_that_ends_in_another_result_is_not_correct(title: str, result: str) -> None:
    for right, wrong in (("x≥2", "x≥3"), ("5", "6")):
        for head in ("【答案】", "答案：", "### 答案\n"):
            assert outcome(right, f"{head}{right}{title}{result.format(wrong)}") != "correct", head
            if "得到" not in result and "求得" not in result and (title.startswith("\n") or "#" not in head):
                assert outcome(right, f"{head}{right}{title}{result.format(right)}") == "correct", head


def test_a_numbered_part_may_be_a_point() -> None:
    assert outcome("y=2x+1；(0,1)", "(1)y=2x+1；(2)(0,1)") == outcome("5；(0,1)", "（1）5（2）（0,1）") == "correct"
    for wrong in ("(1)y=2x+1；(2)(1,0)", "(1)y=3x+1；(2)(1,1)"):
        assert outcome("y=2x+1；(0,1)", wrong) != "correct"
    assert outcome("5；(0,1)", "(1)(0,1)(2)5") != "correct"
