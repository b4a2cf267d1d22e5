"""What follows a quantity in a Chinese sentence, made by the thousand: a sentence that goes on behind the unit never
states the value before it.

For: harness.grading.find.chinese, harness.answers.grammar.spellings.
"""

from __future__ import annotations

import random
from itertools import product

import pytest

import harness
from harness.grading import verdict as deciding
from tests.budget import examples, share_of, thinned
from tests.grading.outcomes import outcome, question_with, verdict_on

CORRECT = deciding.AnswerVerdict("correct", "text", None)
"""A verdict that an unstated answer does not keep."""

NUMBERS = (("3", "三"), ("5", "五"), ("12", "十二"), ("36", "三十六"), ("100", "一百"), ("240", "二百四十"))
"""Numbers in digits and in words."""

MEASURES = (
    "元",
    "米",
    "厘米",
    "千米",
    "升",
    "千克",
    "吨",
    "小时",
    "分钟",
    "天",
    "年",
    "岁",
    "平方米",
    "块",
    "点",
    "周",
)
CLASSIFIERS = ("个", "人", "本", "只", "名", "箱", "棵", "种")
FORMS = (
    "答：一共{}。", "答：一共是{}。", "所以一共有{}。", "所以结果是{}。", "答：还剩{}。", "因此共有{}。",
    "答：需要{}。", "答案是{}。",
    "总数为{}。", "所以长{}。", "答：{}。", "最终答案：{}。", "故答案为：{}。", "这时是{}。",
    "所以，总价是{}。", "一共用了{}", "答：他今年{}。",
)  # fmt: skip
"""Sentences that state a quantity."""

GOES_ON = (
    "半", "多", "几", "余", "左右", "上下", "以上", "以下", "以内", "以外", "不到", "多一点", "少一点", "还多",
    "的一半", "的两倍", "的三分之一", "又三分之一",
    "五", "五六", "三十", "零五", "零三分", "五角", "三分", "五厘米", "三十分", "二百克", "四角五分", "五毫升",
    "到六{u}", "至六{u}", "或六{u}", "、六{u}", "～六{u}", "和六{u}",
    "除以二", "乘二", "减一{u}", "加一{u}", "一{u}", "，还差一{u}", "，不对", "吗", "强", "弱", "前", "后",
    "一下", "整的两倍",
)  # fmt: skip
"""What changes a quantity behind its unit, or leaves it open; {u} is the unit."""

OTHER_NOUNS = ("梨", "学生", "三角形", "苹果的价格", "小时", "百分点")


@pytest.mark.parametrize("unit", thinned([*MEASURES, *CLASSIFIERS]))
def test_a_sentence_that_goes_on_behind_the_unit_does_not_state_the_value(unit: str) -> None:
    pairs = [*product(NUMBERS, FORMS, GOES_ON)]
    accepted = []
    for (digits, words), form, behind in random.Random(unit).sample(pairs, min(examples(600), len(pairs))):
        for number in (digits, words):
            reply = form.format(f"{number}{unit}{behind.format(u=unit)}")
            accepted += [(reference, reply) for reference in (f"{digits}{unit}", digits) if _accepts(reference, reply)]
    assert accepted == []


def _accepts(reference: str, reply: str) -> bool:
    """Whether a reply is correct. An unstated answer, as most are here, is not decided: that is half of the work."""
    extraction = deciding.find(question_with(reference), reply)
    if extraction is None or deciding.as_stated(extraction, CORRECT).outcome != "correct":
        return False
    return deciding.as_stated(extraction, verdict_on(reference, extraction.answer)).outcome == "correct"


@pytest.mark.parametrize("unit", [*MEASURES, *CLASSIFIERS])
def test_a_sentence_that_ends_with_the_unit_states_the_value(unit: str) -> None:
    for (digits, words), form in share_of(product(NUMBERS, FORMS)):
        for number in (digits, words):
            reply = form.format(f"{number}{unit}")
            assert outcome(f"{digits}{unit}", reply) == "correct", reply
            assert outcome(f"{int(digits) + 1}{unit}", reply) != "correct", reply


@pytest.mark.parametrize("noun", OTHER_NOUNS)
def test_another_noun_behind_a_classifier_is_another_answer(noun: str) -> None:
    for (digits, words), form in share_of(product(NUMBERS, FORMS)):
        for number in (digits, words):
            assert outcome(f"{digits}个苹果", form.format(f"{number}个{noun}")) != "correct"
            assert outcome(f"{digits}个苹果", form.format(f"{number}个苹果")) == "correct"
            assert outcome(f"{digits}个苹果", form.format(f"{number}个")) == "correct"


PARTS = [
    ("12.5元", "{}十二元五角"), ("12.5元", "{}十二块五"), ("12.05元", "{}十二元五分"),
    ("100.5元", "{}一百元零五角"), ("1.25元", "{}一元二角五分"),
    ("2.05米", "{}两米五厘米"), ("2.5米", "{}两米五"), ("1.75米", "{}一米七五"), ("5.3升", "{}五升三百毫升"),
    ("2.3千米", "{}两千米三百米"),
    ("1.5小时", "{}一小时三十分"), ("3.5小时", "{}三小时半"), ("3.5天", "{}3天半"), ("2.5个", "{}两个半"),
    ("5.5升", "{}五升半"),
    ("3点半", "{}三点半"), ("17:35", "{}下午5:35"), ("-12℃", "{}零下12℃"), ("-5", "{}负5"), ("1/2", "{}一半"),
    ("3700升", "{}3700升水"),
    ("15", "{}十五人参加"), ("5天", "{}5天完成"),
]  # fmt: skip
"""(reference, what stands at the end of a sentence)."""


@pytest.mark.parametrize(("reference", "end"), PARTS)
def test_all_parts_of_a_quantity_are_read(reference: str, end: str) -> None:
    for lead in ("答：结果是", "所以结果是", "答案是", "因此，结果为"):
        if end.endswith("半") and end[2:-1].isdigit():
            continue
        reply = end.format(lead) + "。"
        assert outcome(reference, reply) == "correct", reply
        for other, _ in PARTS:
            if other != reference:
                assert outcome(other, reply) != "correct", (other, reply)


@pytest.mark.parametrize(
    ("reference", "reply", "expected"),
    [
        ("四分之三", "所以还剩这个蛋糕的四分之三。", "correct"),
        ("24岁", "所以爸爸比小明大二十四岁。", "undecided"),
        ("90分钟", "所以电影放映了九十分钟。", "undecided"),
        ("160元", "所以打折后一百六十元。", "undecided"),
        ("12元", "所以一共有十二元左右。", "undecided"),
        ("对", "所以这句话是正确的。", "correct"),
        ("错", "所以这句话是正确的。", "wrong"),
        ("对", "这句话是对的，因为0是最小的自然数。", "correct"),
        ("错", "这种说法不正确。", "correct"),
        ("对", "所以小明的话是正确的。", "undecided"),
        ("12元", "让我们一步一步来思考这个问题。", "no_answer"),
        ("25人", "答：男生有25人，女生有20人。", "undecided"),
        ("45人", "答：男生有25人，女生有20人，一共有45人。", "correct"),
        ("x=5", "x=5是方程的解。", "undecided"),
        ("3小时", "所以需要3时。", "correct"),
        ("3小时", "所以需要3分。", "wrong"),
        ("3小时", "所以需要3时多。", "undecided"),
    ],
)
def test_what_a_sentence_in_chinese_decides(reference: str, reply: str, expected: str) -> None:
    assert outcome(reference, reply) == expected


@pytest.mark.parametrize(("reference", "reply", "expected"), [
    ("错", "所以判断为×。", "correct"), ("对", "所以判断为×。", "wrong"),
    ("对", "所以判断为√，因为它成立。", "correct"),
    ("√", r"所以判断为$\surd$。", "correct"), ("√", r"判断为\surd", "correct"), ("×", r"判断为$\times$", "correct"),
    ("×", r"判断为\surd", "wrong"), ("√", r"判断为$\times$。", "wrong"), ("√", r"不能判断为\surd", "undecided"),
    ("错", "所以判断为√。", "wrong"), ("错", "所以不能判断为×。", "undecided"),
])  # fmt: skip
def test_a_sign_judges_a_statement_as_its_word_does(reference: str, reply: str, expected: str) -> None:
    assert harness.grade(reference, reply).outcome == expected
