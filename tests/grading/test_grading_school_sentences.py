"""Last sentences of school solutions: what a blank holds, a number in digits, a last step, a calculation, a premise.

For: harness.grading.find.chinese_forms, harness.grading.find.chinese_answers.
"""

from __future__ import annotations

from itertools import product

from tests.grading.outcomes import outcome

PLACES = ("{}", "{}。", "答：{}。", "先看条件。\n\n{}。", "**{}**")
SENTENCES = {
    "括号里应填{}": ("25", "26"), "空格里填{}": ("25", "52"),
    "方框中应该填{}": ("7", "-7"), "这个数写作：{}": ("50.08", "50.8"),
    "这个小数写作{}": ("50.08", "58"), "系数化为1，得{}": ("x>3", "x<3"), "两边同时除以2，得{}": ("x=5", "x=6"),
    "移项，得{}": ("x≥2", "x>2"), "质数有{}": ("2和3", "2、3、5"), "相同的数有{}": ("12、24、36", "12、24"),
    "6和8的最小公倍数是{}": ("2×2×2×3=24", "2×2×3=12"), "面积是{}": ("4×6=24平方厘米", "4×5=20平方厘米"),
}  # fmt: skip
"""Sentence → a right and a wrong answer in it."""

REFERENCES = {"2和3": "2，3", "12、24、36": "12，24，36", "2×2×2×3=24": "24", "4×6=24平方厘米": "24平方厘米"}
DENIED = ("小明说{}", "不是{}", "如果{}", "可能{}", "{}吗？", "{}左右", "{}以上", "{}是错的")
PREMISES = ("观察发现，这些数依次是1²、2²、3²，", "6=2×3，8=2×2×2，", "用公式：x=(1±√25)/2，", "甲有15个，乙多3个，")
LIMITED = (
    "小明认为甲有15个，",
    "如果甲有15个，",
    "题目说甲有15个，",
    "一共24+21=45，",
    "不知道甲有几个，",
    "4×5=20（平方厘米），",
)


def test_last_sentences_of_school_solutions_state_their_value() -> None:
    for (sentence, (right, other)), place in product(SENTENCES.items(), PLACES):
        reference = REFERENCES.get(right, right)
        assert outcome(reference, place.format(sentence.format(right))) == "correct", (sentence, place)
        assert outcome(reference, place.format(sentence.format(other))) == "wrong", (sentence, place)
        for denied in DENIED[:: 1 + len(place) // 2] if "：" not in sentence else ():
            twin = place.format(denied.format(sentence.format(right)))
            assert outcome(reference, twin) != "correct", twin


def test_a_conclusion_stands_behind_a_premise_that_limits_nothing() -> None:
    for (sentence, (right, other)), premise in product([*SENTENCES.items()][:5] + [*SENTENCES.items()][-3:], PREMISES):
        reference = REFERENCES.get(right, right)
        assert outcome(reference, f"{premise}所以{sentence.format(right)}。") == "correct", (premise, sentence)
        assert outcome(reference, f"{premise}因此{sentence.format(other)}。") == "wrong", (premise, sentence)
    for (sentence, (right, _)), premise in product([*SENTENCES.items()][:5], LIMITED):
        assert outcome(right, f"{premise}所以{sentence.format(right)}。") == "undecided", (premise, sentence)


LINES = (("1/2+1/3", "=3/6+2/6", "=5/6"), ("原式=2(x²-4)", "=2(x+2)(x-2)"), ("24:36", "= (24÷12):(36÷12)", "= 2:3"))


def test_the_last_side_of_an_equation_over_lines_is_its_result() -> None:
    for lines in LINES:
        value = lines[-1].lstrip("= ")
        assert outcome(value, "\n".join(lines)) == outcome(value, "先化简。\n" + "\n".join(lines)) == "correct", lines
        assert outcome(value, "\n".join((*lines[:-1], "=7/9"))) == "wrong", lines
        for twin in (
            (*lines, "不对"),
            (*lines[:-1], f"≈{value}"),
            (*lines[:-1], f"<{value}"),
            (*lines[:-1], f"={value}?"),
        ):
            assert outcome(value, "\n".join(twin)) != "correct", twin


def test_the_chance_of_an_event_is_no_guess() -> None:
    for head in ("有两种等可能的结果，正面朝上的可能性是1/2，", "正面朝上的可能性是1/2，"):
        assert outcome("A", f"{head}所以选择A选项。") == "correct"
        assert outcome("A", f"{head}所以选择B选项。") == "wrong"
    for guess in ("很大的可能性是1/2，所以选A。", "有可能性选A", "可能是1/2，所以选A。", "可能选A"):
        assert outcome("A", guess) == "undecided", guess
