"""A last sentence that is the question with a quantity in place of 多少 or 几 states what was asked for.

For: harness.grading.find.asked.
"""

from __future__ import annotations

from itertools import cycle

from msgspec.structs import replace

from harness.core.records import Message
from harness.grading.processes.pool import question_on, sample_of
from harness.grading.verdict import grade
from tests.grading.outcomes import outcome

QUESTIONS = (
    ("每段最长是", "多少", "", "分米"), ("如果每分钟走75米，", "几", "可以到达", "分钟"),
    ("平均每人植树", "多少", "", "棵"), ("9个零件至少称", "几", "", "次"), ("这个水箱最多能装水", "多少", "", "升"),
    ("这个数扩大到原来的", "多少", "", "倍"), ("每袋最多装", "多少", "大米", "千克"), ("男生比女生多", "几", "", "人"),
)  # fmt: skip
"""What stands before 多少, the word that asks, what stands behind the unit, and the unit."""

FORMS = (
    "答：{}{}{}{}。", "**答：{}{}{}{}。**", "48÷6=8\n答：{}{}{}{}", "所以{}{}{}{}。", r"答：{}**{}{}**{}。",
    r"答：{}$\boxed{{{}\text{{ {}}}}}${}。", r"答：{}$\boxed{{{}}}$ {}{}。", r"因此，{}\boxed{{{}{}}}{}。",
)  # fmt: skip


def verdict(asked: str, reference: str, reply: str) -> str:
    question = replace(question_on(reference), messages=(Message(role="user", content=asked),))
    return grade(question, sample_of(reply)).verdict


def test_a_sentence_that_repeats_the_question_with_a_quantity_states_the_quantity() -> None:
    for (before, word, behind, unit), number in zip(QUESTIONS, cycle(("6", "12", "3.5", "100")), strict=False):
        asked = f"一道题。{before}{word}{unit}{behind}？请把最终答案放在 \\boxed{{}} 中。"
        clause, reference = before.rpartition("，")[2], f"{number}{unit}"
        for form in FORMS:
            assert verdict(asked, reference, form.format(clause, number, unit, behind)) == "correct", (asked, form)
            for other in ("7", "61"):
                assert verdict(asked, reference, form.format(clause, other, unit, behind)) == "wrong", (asked, form)
    assert verdict("至少称几次？", "2次", "答：至少称两次。") == "correct"
    assert verdict("女生占几分之几？", "3/5", r"所以女生占$\frac{3}{5}$。") == "correct"


def test_another_word_in_the_sentence_leaves_it_as_it_is_read_without_the_question() -> None:
    for (before, word, behind, unit), form in zip(QUESTIONS, cycle(FORMS), strict=False):
        asked, reference = f"{before}{word}{unit}{behind}？", f"6{unit}"
        clause = before.rpartition("，")[2]
        twins = [
            form.format(f"{doubt}{clause}", "6", unit, behind)
            for doubt in ("小明说", "可能", "不是", "如果", "原来每天")
        ]
        twins += [
            form.format(clause, "6", unit, f"{behind}{more}") for more in ("左右", "以上", "吗？", "不行", "，不对")
        ]
        twins += [form.format(f"{clause}{more}", "6", unit, behind) for more in ("不到", "约", "超过", "2个")]
        twins += [
            form.format(clause, "6", unit, behind) + more
            for more in ("\n不对，是8。", "但题目要的是8。", "\n检查一遍？")
        ]
        twins += [
            f"\\boxed{{8}}\n{form.format(clause, '6', unit, behind)}",
            f"所以共8{unit}。\n{clause}6{unit}{behind}",
        ]
        for twin in twins:
            assert verdict(asked, reference, twin) == outcome(reference, twin), (asked, twin)
    for asked, reply in (
        ("没浇水的树至少有几棵？", "答：浇水的树至少有6棵。"),
        ("一共植树多少棵？", "答：平均每人植树6棵。"), ("至少要几棵？", "答：至多要6棵。"),
        ("每人最多种几棵？", "答：最多种6棵。"), ("平均每人植树多少棵？一共植树多少棵？", "答：平均每人植树6棵。"),
    ):  # fmt: skip
        assert verdict(asked, "6棵", reply) == "undecided", (asked, reply)


def test_a_longer_unit_is_not_cut_at_the_noun_that_the_question_asks_for() -> None:
    """36个人 where the question asks 多少人: the quantity is no 36个 before the question's 人."""
    for asked, reference, reply, expected in (
        ("舞蹈队有多少人？", "36人", "36个人", "correct"), ("舞蹈队有多少人？", "36人", r"\boxed{36个人}", "correct"),
        ("爷爷今年几岁？", "70岁", "70周岁", "correct"), ("这个角是多少度？", "45度", "45角度", "undecided"),
        ("这座桥用了几年？", "2年", "2周年", "undecided"), ("舞蹈队有多少人？", "36人", "35个人", "wrong"),
        ("平均每人植多少棵树？", "8棵", "平均每人植8棵树。", "correct"),
    ):  # fmt: skip
        assert verdict(asked, reference, reply) == expected, (asked, reply)


NAMED = {
    "长方形长5厘米，宽4厘米，周长多少？": (
        "18厘米",
        ("周长是", "它的周长=", "长方形的周长为"),
        ("面积是", "宽是", "对角线为"),
    ),
    "一支笔12元，一本书32元，书多少钱？": ("32元", ("书是", "书的价格是", "这本书为"), ("笔是", "笔的价格=")),
    "二次函数 y=x²-2x-3 的最小值是多少": ("-4", ("最小值是", "它的最小值=", "函数的最小值为"), ("最大值是", "最大值=")),
    "一共要付多少元？": ("32元", ("答案是", "一共是", "总价是", "结果为"), ()),
}


def test_a_value_with_another_name_than_the_asked_one_is_undecided() -> None:
    for text, (reference, rights, others) in NAMED.items():
        for form in ("{}{}", "答：{}{}。", "\\boxed{{{}{}}}", "12+20=32\n答：{}{}。"):
            for name in rights:
                assert verdict(text, reference, form.format(name, reference)) == "correct", (form, name)
            for name in others:
                assert verdict(text, reference, form.format(name, reference)) == "undecided", (form, name)
    # A reference with a name is compared with the name.
    assert verdict("长和宽各是多少？", "长是5厘米", "长是5厘米") == "correct"
    assert (
        verdict("12和18的最大公因数和最小公倍数分别是多少？", "6；36", "答：最大公因数是6，最小公倍数是36。")
        == "correct"
    )
