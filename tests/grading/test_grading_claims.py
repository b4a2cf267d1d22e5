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


_QUANTITIES = [
    # value, the same in another unit, another value in that unit, the sum of the first two
    ("60升", "60000毫升", "6000毫升", "120升"),
    ("3.5小时", "210分钟", "200分钟", "7小时"),
    ("3.5小时", "3小时30分", "3小时50分", "7小时"),
    ("2.05米", "2米5厘米", "2米50厘米", "4.1米"),
    ("19.5元", "19元5角", "19元6角", "39元"),
    ("5千克", "10斤", "5斤", "10千克"),
    ("8000平方米", "0.8公顷", "8公顷", "16000平方米"),
    (r"1.5\text{ m}", r"150\text{ cm}", r"15\text{ cm}", r"3\text{ m}"),
    ("90 minutes", "1.5 hours", "15 hours", "180 minutes"),
]
_RESTATED = [
    r"\boxed{{{0}（{1}）}}", r"\boxed{{{0} ({1})}}", r"\boxed{{{0}（即{1}）}}", r"\boxed{{{0}，即{1}}}",
    r"\boxed{{{0} = {1}}}",
    "答：{0}（{1}）。", "答案：{0}，也就是{1}。", "The answer is {0} ({1}).",
]  # fmt: skip


@pytest.mark.parametrize("form", _RESTATED)
@pytest.mark.parametrize(("value", "again", "other", "total"), _QUANTITIES)
def test_a_quantity_in_brackets_restates_the_one_before_it(
    value: str, again: str, other: str, total: str, form: str
) -> None:
    restated, contradicted = form.format(value, again), form.format(value, other)
    assert _grade(value, restated) != "wrong"
    assert _grade(total, restated) != "correct"
    for reference in (value, total, other):
        assert _grade(reference, contradicted) == "undecided"


def test_a_restated_quantity_is_read_in_a_box() -> None:
    for value, again, _, total in _QUANTITIES:
        for form in _RESTATED[:5]:
            assert _grade(value, form.format(value, again)) == "correct", (value, form)
            assert _grade(total, form.format(value, again)) == "wrong", (total, form)
    assert _grade("60升（60000毫升）", r"\boxed{60升}") == "correct"
    assert _grade("2米5厘米", r"\boxed{205厘米}") == "correct"


_NAMED = [("长", "宽", "厘米"), ("出勤率", "缺勤率", "%"), ("花坛的面积", "花坛的周长", "米")]
_SEVERAL = [
    "答：{0}是{2}{4}，{1}是{3}{4}。",
    r"\boxed{{{0}={2}{4}，{1}={3}{4}}}",
    r"\boxed{{{0}：{2}{4}；{1}：{3}{4}}}",
]


@pytest.mark.parametrize("form", _SEVERAL)
@pytest.mark.parametrize(("first", "second", "unit"), _NAMED)
def test_a_value_among_others_of_other_names_is_undecided(form: str, first: str, second: str, unit: str) -> None:
    answer = form.format(first, second, 15, 12, unit)
    assert _grade(f"15{unit}", answer) == _grade(f"12{unit}", answer) == "undecided"
    assert _grade(f"27{unit}", answer) != "correct"


@pytest.mark.parametrize("answer", [r"\boxed{x=3, x=-2}", r"\boxed{3, -2}", "$x=3$，$x=-2$"])
def test_one_of_several_solutions_is_no_answer(answer: str) -> None:
    for reference in ("3", "-2", "x=3"):
        assert _grade(reference, answer) == "wrong"


_WORK = [
    # a step, its conclusion, a wrong conclusion
    ("4-4m>0", "m<1", "m<2"), (r"\Delta=4-4m>0", "m<1", "m>1"), ("x-8=0", "x=8", "x=9"),
    ("|x-1|>2", "x<-1或x>3", "x<-1或x>2"), ("(x-3)(x+2)=0", "x=3或x=-2", "x=3或x=2"),
    (r"d=\sqrt{9+16}=5", "d=5", "d=4"), (r"\cos A=\frac12", r"A=60^\circ", r"A=30^\circ"),
    ("4-x^2>0", r"x\in(-2,2)", r"x\in(-2,3)"),
]  # fmt: skip


@pytest.mark.parametrize("comma", ["，", "，所以 ", "，因此 ", ", so ", ". Hence "])
@pytest.mark.parametrize(("step", "conclusion", "wrong"), _WORK)
def test_a_step_before_a_conclusion_is_no_part_of_the_answer(
    step: str, conclusion: str, wrong: str, comma: str
) -> None:
    assert _grade(conclusion, f"${step}${comma}${conclusion}$") != "wrong"
    assert _grade(conclusion, f"${step}${comma}${wrong}$") != "correct"


@pytest.mark.parametrize("link", [r"，所以", r" \text{ so } ", r",\ \text{所以}", "，因此，"])
@pytest.mark.parametrize(("step", "conclusion", "wrong"), _WORK)
def test_a_conclusion_in_a_box_replaces_the_step_before_it(step: str, conclusion: str, wrong: str, link: str) -> None:
    assert _grade(conclusion, rf"\boxed{{{step}{link}{conclusion}}}") == "correct"
    assert _grade(conclusion, rf"\boxed{{{step}{link}{wrong}}}") != "correct"


@pytest.mark.parametrize(("condition", "reference", "conclusion"), [
    ("x-1>0", "x>1", r"x\ne1"), ("4-x^2>0", "(-2,2)", r"x\neq 2"), ("x^2-2x-3>0", "x<-1或x>3", r"x\ne3"),
    ("4-4m>0", "m<1", r"m\ne1"),
])  # fmt: skip
def test_the_condition_of_the_question_does_not_rescue_a_wrong_conclusion(
    condition: str, reference: str, conclusion: str
) -> None:
    assert _grade(reference, f"${condition}$，所以 ${conclusion}$。") == "undecided"
    assert _grade(reference, f"${condition}$，所以 ${reference}$。") != "wrong"


@pytest.mark.parametrize(("answer", "reference", "outcome"), [
    (r"x\ge2,\ x<5", "2≤x<5", "correct"), (r"x\ge2,\ x<5", "[2,5)", "correct"), (r"x\ge2,\ x<5", "(2,5)", "wrong"),
    ("x<-1, x>3", "x<-1或x>3", "correct"), ("x<-1, x>3", "x>3", "wrong"),
    (r"x>0, x\ne1", r"(0,1)\cup(1,\infty)", "correct"), (r"x\ne1, x\ne2", r"x\ne1且x\ne2", "correct"),
    ("x>1, x>2", "x>1", "undecided"), ("x>1, x>2", "x>2", "undecided"),
    ("x>1, x>2", "x>3", "wrong"), (r"x-1>0, x\ne1", "x>1", "undecided"), ("4-4m>0, m<1", "m<1", "correct"),
])  # fmt: skip
def test_a_comma_between_inequalities_is_neither_and_nor_or(answer: str, reference: str, outcome: str) -> None:
    assert _grade(reference, rf"\boxed{{{answer}}}") == outcome


@pytest.mark.parametrize("total", ["全班一共有40人", "一共40人", "总共有40人", "所以全班有40人"])
@pytest.mark.parametrize("part", ["男生有15人", "参加的有15人", "女生25人，男生15人"])
def test_a_quantity_before_the_total_may_be_the_asked_one(part: str, total: str) -> None:
    answer = f"答：{part}，{total}。"
    assert _grade("15人", answer) == "undecided"
    assert _grade("40人", answer) != "wrong"
    assert _grade("16人", answer) != "correct"


def test_the_total_is_the_answer_and_other_numbers_are_wrong() -> None:
    answer = "答：男生有15人，全班一共有40人。"
    assert [_grade(f"{count}人", answer) for count in (40, 15, 14)] == ["correct", "undecided", "wrong"]
    assert _grade("40人", "上一题有40人。\n答：男生有15人，全班一共有41人。") == "wrong"
