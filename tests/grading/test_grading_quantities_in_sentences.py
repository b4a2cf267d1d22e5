r"""Sentences of school answers that hold a quantity beside a second one, a reason, or a box, made by the thousand: each
right form is accepted, and no wrong twin of it is.

For: harness.grading.find.chinese_answers, harness.grading.find.chinese, harness.grading.verdict.
"""

from __future__ import annotations

from itertools import product

import pytest

import harness
from tests.budget import thinned
from tests.grading.outcomes import outcome

PLACES = (
    "答：{}。",
    "最终答案：{}",
    "因此，{}。",
    "**答：{}。**",
    r"\boxed{{{}}}",
    r"\boxed{{\text{{{}}}}}",
)
"""Places of a sentence that answers; all are a label, a box or a conclusion."""

SENTENCES = (
    # sentence, quantity, the same in another unit (wrong), another value, a second quantity of the sentence
    ("5小时行驶{}", "350千米", "350米", "70千米", "5小时"),
    ("汽车5小时可以行驶{}", "350千米", "350米", "345千米", "5小时"),
    ("3袋大米重{}", "45千克", "45克", "15千克", "3袋"),
    ("买6本练习本要{}", "18元", "18角", "3元", "6本"),
    ("6本练习本一共{}", "18元", "18角", "12元", "6本"),
    ("这件衣服现价{}", "160元", "160角", "40元", ""),
    ("根据勾股定理，斜边长为{}", "10厘米", "10米", "14厘米", ""),
    ("由题意得，斜边的长是{}", "10厘米", "10米", "14厘米", ""),
    ("会游泳的占{}", "四分之三", "", "四分之一", ""),
    ("会游泳的同学占全班人数的{}", "3/4", "", "1/4", ""),
    ("摸到红球的可能性是{}", "1/2", "", "1/3", ""),
    ("底端离墙{}", "4米", "4分米", "5米", ""),
    ("6和8的最小公倍数是{}", "24", "", "48", ""),
    ("到期后可以取出{}", "11500元", "11500角", "1500元", ""),
    ("两天一共用去{}", "7/12", "", "5/12", ""),
    ("最后余下{}", "5根", "5厘米", "4根", ""),
    ("圆锥体积{}", "75立方厘米", "75平方厘米", "226立方厘米", ""),
    ("x的值是{}", "5", "", "15", ""),
)


@pytest.mark.parametrize(("sentence", "quantity", "other_unit", "other", "second"), SENTENCES)
def test_a_sentence_states_its_quantity_and_no_other(
    sentence: str, quantity: str, other_unit: str, other: str, second: str
) -> None:
    for place in PLACES:
        if place.startswith("因此") and "，" in sentence:
            continue
        reply = place.format(sentence.format(quantity))
        assert outcome(quantity, reply) == "correct", reply
        assert outcome(quantity, place.format(sentence.format(other))) != "correct", (reply, other)
        if other_unit:
            assert outcome(quantity, place.format(sentence.format(other_unit))) != "correct", (reply, other_unit)
        if second:
            assert outcome(second, reply) == "undecided", (reply, second)


LIMITS = (
    "不是{}", "约{}", "不到{}", "不超过{}", "至少{}", "比{}多", "{}的一半", "{}左右", "{}以上", "{}多", "{}或1{}",
    "{}吗？", "1{}和{}", "只有一半是{}", "恐怕是{}", "{}，不对", "{}，还差一些", "{}以内", "接近{}", "小于{}",
    "{}的2倍", "1{}减{}",
)  # fmt: skip


@pytest.mark.parametrize(("sentence", "quantity"), thinned(row[:2] for row in SENTENCES))
def test_a_limited_quantity_is_not_stated(sentence: str, quantity: str) -> None:
    for place, limit in product(PLACES, LIMITS):
        reply = place.format(sentence.format(limit.replace("{}", quantity)))
        assert outcome(quantity, reply) != "correct", reply


SUPPOSED = ("如果{}", "小明说{}", "假设{}", "{}是错的", "并非{}", "已知{}", "题目说{}", "有人认为{}", "没有证据说{}")


@pytest.mark.parametrize(("sentence", "quantity"), [row[:2] for row in SENTENCES])
def test_a_supposed_or_quoted_sentence_is_not_an_answer(sentence: str, quantity: str) -> None:
    for place, frame in product(PLACES, SUPPOSED):
        reply = place.format(frame.format(sentence.format(quantity)))
        assert outcome(quantity, reply) != "correct", reply


@pytest.mark.parametrize("sentence", ["5小时行驶350千米。", "3袋大米重45千克。", "车5小时行驶350千米。"])
def test_a_time_beside_the_quantity_may_be_a_premise_without_a_label(sentence: str) -> None:
    for reference in ("350千米", "45千克"):
        assert outcome(reference, f"先看条件。\n{sentence}") != "correct"


@pytest.mark.parametrize(("reply", "reference", "verdict"), [
    ("3÷6=1/2，所以概率为1/2。", "1/2", "correct"), ("3÷6=1/2，所以概率为1/3。", "1/3", "undecided"),
    ("10÷40=25%，所以近视的占25%。", "25%", "correct"), ("10÷40=25%，所以近视的占35%。", "35%", "undecided"),
    ("1/3+1/4=7/12，所以一共用去十二分之七。", "7/12", "correct"),
    ("1/3+1/4=7/12，所以一共用去七分之十二。", "12/7", "undecided"),
    ("3x=15，所以x的值是5。", "5", "correct"), ("3x=15，所以x的值是15。", "5", "wrong"),
    ("2x>6，所以x的取值范围是x>3。", "x>3", "correct"), ("2x>6，所以x的取值范围是x<3。", "x>3", "wrong"),
    ("关于x轴对称，所以它的坐标是(3,-2)。", "(3,-2)", "correct"),
    ("关于x轴对称，所以它的坐标是(3,2)。", "(3,-2)", "wrong"),
    ("如果关于x轴对称，那么它的坐标是(3,-2)。", "(3,-2)", "undecided"),
])  # fmt: skip
def test_a_conclusion_behind_its_reason(reply: str, reference: str, verdict: str) -> None:
    assert outcome(reference, reply) == verdict


@pytest.mark.parametrize(("clause", "verdict"), [
    ("平均每小时行{}", "correct"), ("这辆车每小时行驶{}", "correct"), ("速度是每小时{}", "correct"),
    ("每分钟行{}", "wrong"), ("每天行{}", "wrong"), ("5小时行{}", "undecided"), ("每小时不能行{}", "undecided"),
])  # fmt: skip
def test_a_rate_in_a_sentence_has_its_per(clause: str, verdict: str) -> None:
    reply = f"答：{clause.format('40千米')}。"
    assert outcome("40千米/小时", reply) in ({verdict, "undecided"} if verdict != "correct" else {verdict})
    assert outcome("50千米/小时", reply) != "correct"


def test_a_share_is_no_ratio() -> None:
    for place in PLACES:
        assert outcome("3:5", place.format("男生占全班的3/5")) != "correct"
        assert outcome("3/5", place.format("男生占全班的3/5")) == "correct"


def test_a_sentence_as_a_reference_is_compared_with_the_whole_box() -> None:
    assert outcome("5小时行驶350千米", r"\boxed{5小时行驶350千米}") == "correct"


@pytest.mark.parametrize("time", ["9:40", "9时40分", "上午9时40分"])
def test_a_clause_says_when_something_ends(time: str) -> None:
    for place in PLACES[:2]:
        assert outcome("9:40", place.format(f"电影{time}结束")) == "correct"
        assert outcome("9:45", place.format(f"电影{time}结束")) == "wrong"
        for twin in (f"电影{time}还没结束", f"电影在{time}之前结束", f"电影8:00到{time}结束", f"如果{time}开始"):
            assert outcome("9:40", place.format(twin)) != "correct", twin


@pytest.mark.parametrize("word", ["对应选项{}", "答案对应选项{}", "答案选{}", "故选{}", "选项{}"])
def test_a_chinese_phrase_names_a_letter_and_a_denial_does_not(word: str) -> None:
    for place in PLACES:
        assert outcome("D", place.format(word.format("D"))) == "correct", (word, place)
        assert outcome("D", place.format(word.format("C"))) == "wrong", (word, place)
        for denied in ("{}错误", "{}不正确", "{}是错的", "{}还是选C", "{}或C", "{}有误", "不{}", "不是{}"):
            assert outcome("D", place.format(denied.format(word.format("D")))) != "correct", (word, denied, place)


RIGHT = ["√", "✓", "✔", r"\checkmark", r"\surd", r"\text{√}", "对", "正确"]
WRONG = ["×", "✗", "✘", r"\times", r"\text{×}", "错", "错误"]


@pytest.mark.parametrize("reference", [*RIGHT, *WRONG])
def test_all_spellings_of_right_and_wrong_are_decided_alike(reference: str) -> None:
    for reply in (*RIGHT, *WRONG):
        expected = "correct" if (reference in RIGHT) == (reply in RIGHT) else "wrong"
        assert outcome(reference, rf"\boxed{{{reply}}}") == expected, reply
    for formula in (r"\boxed{\sqrt{2}}", r"\boxed{2\times 3}", r"\boxed{2x}", r"\boxed{y}"):
        assert outcome(reference, formula) != "correct", formula


@pytest.mark.parametrize(("reference", "sentence"), [
    ("24人", "有24人参加不了合唱"), ("24人", "有24人参加合唱和舞蹈"), ("18元", "买6本练习本每本要18元"),
    ("10厘米", "根据小明的看法，斜边长为10厘米"), ("10厘米", "没有根据，斜边长为10厘米"),
    ("5元", "吃了5块蛋糕"), ("24", "6和8的最小公倍数减1是24"), ("3/4", "不会游泳的占四分之三"),
])  # fmt: skip
def test_a_sentence_near_to_a_form_states_nothing(reference: str, sentence: str) -> None:
    for place in PLACES:
        assert outcome(reference, place.format(sentence)) != "correct", (sentence, place)


def test_what_persons_take_part_in_does_not_change_their_number() -> None:
    for place in PLACES:
        assert outcome("24人", place.format("有24人参加合唱")) == "correct"
        assert outcome("25人", place.format("有24人参加合唱")) == "wrong"


CONVERTED = (
    ("12.5%", "把0.125化成百分数是12.5％", "把0.125化成百分数是125％"),
    ("12.5%", "把1/8化成百分数是12.5%", "把1/8化成百分数是8%"),
    ("0.15", "把15%化成小数是0.15", "把15%化成小数是1.5"),
    ("2.05", "精确到百分位是2.05", "精确到百分位是2.15"),
    ("25%", "出勤率的百分比是25%", "出勤率的百分比是75%"),
)


@pytest.mark.parametrize(("reference", "right", "wrong"), CONVERTED)
def test_a_name_with_hundredths_and_a_number_that_is_converted_are_no_quantities(
    reference: str, right: str, wrong: str
) -> None:
    for frame in ("答：{}。", "所以{}。"):
        assert harness.grade(reference, frame.format(right)).outcome == "correct"
        assert harness.grade(reference, frame.format(wrong)).outcome != "correct"
        for other in (
            f"不{right}",
            f"{right}的一半",
            right.replace("是", "不是"),
            right.replace("是", "再加1是"),
            f"{right}左右",
        ):
            assert harness.grade(reference, frame.format(other)).outcome != "correct", other


def test_a_message_names_no_part_of_a_percentage_as_a_quantity() -> None:
    steps = harness.grade("2.05", "答：精确到百分位而不是2.05和3。").steps
    assert any("2 quantities (2.05, 3)" in step for step in steps), steps
