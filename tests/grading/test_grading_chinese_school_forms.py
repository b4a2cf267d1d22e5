"""School forms in Chinese: numbered blanks, rounded values, results, ordinals, discounts, bearings; with wrong twins.

For: harness.answers.grammar.spellings, harness.answers.words, harness.grading.find.chinese_forms.
"""

from __future__ import annotations

from itertools import product

import pytest

from harness.grading.compare.wording import obstacle
from tests.grading.test_grading_chinese_sentences import outcome

ROWS = (
    ("3，5，7", "（1）3 （2）5 （3）7|（1）3；（2）5；（3）7|①3；②5；③7|第一空填3，第二空填5，第三空填7",
     "（1）3 （2）5 （3）9|①3；②5|第一空填3，第二空填5，第三空填6|（2）5 （1）3 （3）7"),
    ("约20千克", "大约重20千克|20千克左右|约为20千克|大约是20千克|约等于20kg|小明的体重约为20千克",
     "大约重200千克|21千克左右|约为20米|20千克以上|至少20千克|小明猜约为20千克"),
    ("约31.4米",
     "约走31.4米|大约走31.4米|大约要走31.4米|一圈约31.4米|绕花坛走一圈约走31.4米|绕花坛走一圈大约走了31.4米|约需31.4米",
     "约走13.4米|大约走31.4千米|约走31.4米的一半|不约走31.4米|至少约走31.4米|大约再走31.4米"
     "|大约少走31.4米|大约不走31.4米|走半圈约走31.4米|走一圈半约走31.4米|走2圈约走31.4米|小明说约走31.4米|如果约走31.4米|每分钟约走31.4米|约省31.4米"),
    ("2.05", "精确到百分位约是2.05", "精确到百分位约是20.5|精确到百分位不约是2.05"),
    ("5", "原式=5|原式=2+3=5|原式=10÷2=5", "原式=6|原式=2+4=6|原式≠5|原式=5吗？|如果原式=5"),
    ("(x+2)(x-3)", "原式=(x+2)(x-3)|因式分解的结果是(x+2)(x-3)|分解因式得(x-3)(x+2)",
     "原式=(x-2)(x-3)|因式分解的结果不是(x+2)(x-3)|分解因式得(x-2)(x+3)"),
    ("6π", "周长是6π|圆的周长是6π", "周长是9π|周长是6|周长不是6π|半周长与6π相等"),
    ("南偏东30°", "南偏东30度|东偏南60°|在南偏东30°方向|南偏东三十度",
     "北偏东30°|南偏西30°|东偏南30°|南偏东60°|南偏东130°|东偏西30°"),
    ("0.5公顷", "半公顷", "半公里|5公顷"),
    ("8:05", "8点零5分|8点5分|8：05", "8点50分|20点5分|8时50分"),
    ("a<b", "a小于b|b大于a", "a大于b|b小于a|a小于a"),
)  # fmt: skip
"""Rows (reference, equal texts, others), texts between bars."""

SEVERAL = (
    ("3，5，7", "分别为3，5，7|依次填3、5、7|这三个数依次是3、5、7", "依次填3、5、8|分别不为3，5，7|分别为3，5"),
    ("x=1或x=-2", "方程的根是1和-2|方程的两个根分别是-2，1", "方程的根是1和2|方程的根不是1和-2|方程的一个根是1"),
)
"""Rows likewise, of sentences that are not read in a box."""

PROVEN = (
    ("约20千克", "大约重200千克"),
    ("约31.4米", "一圈约走13.4米"),
    ("5", "原式=2+4=6"),
    ("(x+2)(x-3)", "原式=(x-2)(x-3)"),
    ("a<b", "b小于a"),
)
"""Pairs (reference, text that is proven to differ)."""

FRAMES = ("{}", "答：{}。", "\\boxed{{{}}}", "所以{}。")


def texts(joined: str) -> list[str]:
    return joined.split("|") if joined else []


@pytest.mark.parametrize(("reference", "right", "others"), [*ROWS, *SEVERAL])
def test_a_school_form_is_read_and_its_twins_are_not(reference: str, right: str, others: str) -> None:
    frames = FRAMES[:2] if (reference, right, others) in SEVERAL else FRAMES[:3]
    replies = [frame.format(text) for text in texts(right) for frame in frames]
    assert [reply for reply in replies if outcome(reference, reply) != "correct"] == []
    replies = [frame.format(text) for text in texts(others) for frame in FRAMES]
    assert [reply for reply in replies if outcome(reference, reply) == "correct"] == []


@pytest.mark.parametrize(("reference", "text"), PROVEN)
def test_another_value_in_a_school_form_is_wrong(reference: str, text: str) -> None:
    assert outcome(reference, text) == "wrong"


WORDS = (
    ("第三组", "第3组|是第三组", "第二组|第4组|第13组", "第三名|三组的一半"),
    ("八折", "8折|打八折|打8折", "七折|打9折", "八五折|八成五"),
    ("偶数", "双数|是偶数", "奇数|单数|是单数", "不是偶数|质数"),
    ("质数", "素数|是素数", "合数", "奇数"),
    ("不可能", "不可能事件|不可能发生", "可能|一定", "不一定"),
    ("三角形", "是三角形", "四边形|五边形", "直角三角形|不是三角形"),
    ("无解", "方程无解|没有解", "", "有解|方程有解"),
)
"""Rows (reference, words that say the same, words that cannot both be right, words that say neither)."""


@pytest.mark.parametrize(("reference", "right", "wrong", "undecided"), WORDS)
def test_words_of_school_are_the_same_exclude_each_other_or_are_open(
    reference: str, right: str, wrong: str, undecided: str
) -> None:
    for frame in FRAMES[:3]:
        verdicts = {
            text: outcome(reference, frame.format(text)) for text in texts(f"{right}|{wrong}|{undecided}") if text
        }
        assert {verdicts[text] for text in texts(right)} <= {"correct"}, verdicts
        assert {verdicts[text] for text in texts(wrong)} <= {"wrong"}, verdicts
        assert {verdicts[text] for text in texts(undecided)} <= {"undecided", "no_answer"}, verdicts


def test_roots_in_another_order_are_open_and_other_roots_are_wrong() -> None:
    assert outcome("x₁=3，x₂=5", "x₁=5，x₂=3") == "undecided"
    assert outcome("x₁=3，x₂=5", "x₁=5，x₂=4") == "wrong"
    assert outcome("x=3，y=5", "x=5，y=3") == "wrong"


def test_a_rounded_value_is_open_beside_an_exact_one() -> None:
    for text in ("大约重20千克", "20千克左右", "约为20千克", "体重约为20千克", "约需20千克"):
        assert [outcome("20千克", frame.format(text)) for frame in FRAMES] == ["undecided"] * len(FRAMES), text


SIGNS = (("√", "对", "正确", "对的"), ("×", "错", "错误", "不对"))
IN_BRACKETS = ("（{}）", "({})", "【{}】", "( {} )")


def test_brackets_around_a_whole_judgement_are_no_part_of_it() -> None:
    for right, wrong in (SIGNS, SIGNS[::-1]):
        for key, bracket in product((right[0], right[1], IN_BRACKETS[0].format(right[0])), IN_BRACKETS):
            for frame in ("{}", "答：{}", "答：{}。", "\\boxed{{{}}}", "7是42的因数。{}", "42÷7=6。\n{}"):
                replies = [[frame.format(bracket.format(word)) for word in words] for words in (right, wrong)]
                assert {outcome(key, reply) for reply in replies[0]} == {"correct"}, (key, replies[0])
                assert {outcome(key, reply) for reply in replies[1]} == {"wrong"}, (key, replies[1])
            assert outcome(key, bracket.format(right[0])) == "correct" == outcome(key, f"答：{right[1]}。")
    for reply in (
        "1. 7是质数。（√）2. 9是质数。（×）",
        "所以这句话是错的。（√）",
        "（√）（×）",
        "（）",
        "（不√）",
        "不能填（√）",
    ):
        assert outcome("√", reply) == outcome("×", reply) == "undecided", reply


def test_a_judgement_with_its_reason_behind_it_is_the_answer() -> None:
    reasons = ("因为2是质数，也是偶数。", "由于2是偶数。", "\n\n理由：2是偶数，也是质数。")
    for words, others in (SIGNS, SIGNS[::-1]):
        for judged, reason in product((f"这句话是{words[1]}的。", f"{words[2]}。", f"**判断：{words[2]}**\n"), reasons):
            reply = judged + reason
            assert (outcome(words[0], reply), outcome(others[0], reply)) == ("correct", "wrong"), reply
            assert outcome("2", reply) == "undecided", reply
            for spoilt in (
                f"小明说{reply}",
                f"如果{reply}",
                f"{reply}所以这句话是{others[1]}的",
                f"{reply}不对，再想想。",
            ):
                assert outcome(words[0], spoilt) != "correct", spoilt
            for end in ("，所以这句话是{}的。", "，说法{}，是吧。", "，打{}"):
                spoilt = reply.rstrip("。") + end.format(others[0] if "打" in end else others[2 if "法" in end else 1])
                assert outcome(words[0], spoilt) == "undecided", spoilt


def test_a_conclusion_has_the_number_of_its_calculation_in_any_unit() -> None:
    for value, calculation, sentence, unit in (
        ("10", "25×2/5", "吃了{}", "千克"), ("80", "240÷3", "速度是{}", "千米/时"), ("5", "2+3", "一共走了{}", "千米"),
        ("4", "1÷(1/6+1/12)", "两人合作{}完成", "天"), ("30", "6×5", "面积是{}", "平方米"),
    ):  # fmt: skip
        for shown, lead in product(("", unit, f"（{unit}）"), ("所以", "因此，", "∴")):
            reply = f"{calculation}={{}}{shown}，{lead}{sentence.format('{}' + unit)}。"
            assert outcome(f"{value}{unit}", reply.format(value, value)) == "correct", reply
            assert outcome(f"{value}{unit}", reply.format("77", "77")) == "wrong", reply
            assert outcome(f"{value}{unit}", reply.format("77", value)) == "undecided", reply
            assert outcome(f"{value}{unit}", reply.format(value, "77")) == "undecided", reply


def test_therefore_has_one_reading_whatever_ends_its_line() -> None:
    for (reference, wrong), space, end in product(
        (("x=6", "x=7"), ("∠C=65°", "∠C=66°"), ("x≥2", "x≥3"), ("x=3或x=-2", "x=3或x=2")),
        ("", " "),
        ("", "。", ".", "\n"),
    ):
        for before in ("", "3x=18\n", "解：移项\n"):
            assert outcome(reference, f"{before}∴{space}{reference}{end}") == "correct", (reference, before, end)
            assert outcome(reference, f"{before}∴{space}{wrong}{end}") != "correct", (wrong, before, end)


def test_an_exponent_that_lost_its_place_leaves_the_answer_open() -> None:
    for sign, minus in product(("×", "*", r"\times "), "-−"):
        answer = f"5.2{sign}10{minus}5"
        assert [outcome(key, answer) for key in ("5.2×10^-5", r"5.2\times10^{-5}", "5.2×10⁻⁵")] == ["undecided"] * 3
        assert [outcome(key, answer) for key in ("5.2×10^-6", "5.2×10^5", "47", "4")] == [
            *["wrong"] * 2,
            "correct",
            "wrong",
        ]


def test_a_cell_that_a_spreadsheet_changed_is_open_and_its_reason_says_so() -> None:
    for reference, cell in (("1/4", "1月4日"), ("1/4", "4-Jan"), ("5:3", "5:03"), ("16:15", "16:15:00")):
        assert outcome(reference, cell) == "undecided"
        assert "may be what a spreadsheet made of another one" in obstacle(reference, cell)
    assert "spreadsheet" not in obstacle("6月1日", "5月1日")
