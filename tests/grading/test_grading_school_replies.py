r"""Replies as pupils and models write them to school questions: each right notation beside its wrong twin.

For: harness.answers.grammar, harness.grading.find.chinese, harness.grading.find.extract, harness.grading.compare.
"""

from __future__ import annotations

import pytest

import harness


def outcome(reference: str, reply: str) -> str:
    return harness.grade(reference, reply).outcome


@pytest.mark.parametrize("unit", ["平方米", "立方米", "平方厘米"])
@pytest.mark.parametrize("reply", [r"\boxed{{{}}}", "{}", "答：一共{}。"])
def test_a_thousand_before_a_power_multiplies_the_number(unit: str, reply: str) -> None:
    for spelled in (f"五千{unit}", f"5千{unit}"):
        assert outcome(f"5000{unit}", reply.format(spelled)) == "correct"
        assert outcome(f"5{unit[:2]}千米", reply.format(spelled)) == "wrong"
    assert outcome(f"5{unit[:2]}千米", reply.format(f"五{unit[:2]}千米")) == "correct"


@pytest.mark.parametrize("sign", ["∠", r"\angle "])
@pytest.mark.parametrize("number", [1, 2, 3, 12])
def test_an_angle_with_a_number_is_a_name(sign: str, number: int) -> None:
    for reply in (rf"\boxed{{{sign}{number} = 70^\circ}}", f"{sign}{number} = 180° - 110° = 70°"):
        assert outcome("70°", reply) == "correct"
        assert outcome("60°", reply) == "wrong"
        assert outcome(f"{number}", reply) != "correct"
    assert outcome(f"∠{number}", rf"\boxed{{{number}}}") == "undecided"
    assert outcome("∠2=∠3", rf"\boxed{{{sign}3={sign}2}}") == "correct"
    assert outcome("∠2=∠3", rf"\boxed{{{sign}2={sign}4}}") != "correct"
    assert outcome(r"5\angle 30^\circ", r"\boxed{5\angle 60^\circ}") != "correct"  # a size, and no name


@pytest.mark.parametrize("names", [("x", "y"), ("∠1", "∠2"), ("∠A", "∠B")])
def test_of_two_named_values_no_rule_reads_which_was_asked_for(names: tuple[str, str]) -> None:
    reply = rf"\boxed{{{names[0]}=70, {names[1]}=110}}"
    assert [outcome(reference, reply) for reference in ("70", "110", "80")] == ["undecided", "undecided", "wrong"]


@pytest.mark.parametrize(
    ("reply", "right", "wrong", "left_open"),
    [
        ("8.996≈9.00", ("9.00", "8.996"), ("9.10",), ()),
        ("1/3≈0.33", ("0.33", "1/3"), ("0.34",), ()),
        ("398×5≈2000", (), ("3000",), ("2000", "1990")),
        ("1000≈1001", (), ("1001", "1000"), ()),
    ],
)
@pytest.mark.parametrize("place", ["{}", r"\boxed{{{}}}"])
def test_a_value_and_its_rounding_are_one_answer(
    reply: str, right: tuple[str, ...], wrong: tuple[str, ...], left_open: tuple[str, ...], place: str
) -> None:
    for verdict, references in (("correct", right), ("wrong", wrong), ("undecided", left_open)):
        assert {outcome(reference, place.format(reply)) for reference in references} <= {verdict}, (verdict, references)


@pytest.mark.parametrize("word", ["即", "也就是"])
def test_a_value_restated_behind_a_comma_is_one_value(word: str) -> None:
    assert outcome("96%", f"0.96，{word}96%") == outcome("0.96", f"96%，{word}0.96") == "correct"
    assert outcome("96%", f"0.95，{word}95%") == outcome("3/4", f"6/8，{word}4/3") == "wrong"
    assert outcome("3,4", f"3，{word}4") != "correct"


def test_the_number_of_its_items_is_no_item_of_a_list() -> None:
    for form in ("2、3、5，共3个", "有2、3和5，一共3个。", r"\boxed{2,3,5，共3个}"):
        assert outcome("2,3,5", form) == "correct", form
        assert outcome("2,3,7", form) == "wrong", form
    assert outcome("2,3,5", "2、3、7，共3个") == "wrong"
    assert outcome("2,3,3", "2、3，共3个") != "wrong"


@pytest.mark.parametrize("hour", [9, 12])
def test_a_bare_hour_beside_a_full_hour_is_no_ratio(hour: int) -> None:
    for reference in (f"{hour}:00", f"{hour}点整"):
        assert [outcome(reference, rf"\boxed{{{other}}}") for other in (hour, hour + 1)] == ["undecided", "wrong"]


MARKED = ("**26米**", "**26** 米", " $26$ 米", " **26米** ")


@pytest.mark.parametrize("number", MARKED)
@pytest.mark.parametrize(
    "form", ["所以周长是{}。", "答：周长是{}。", "$(8+5)\\times 2=26$\n\n因此，周长为{}。", "一共长{}"]
)
def test_marks_around_a_number_in_a_chinese_sentence_change_nothing(form: str, number: str) -> None:
    assert outcome("26米", form.format(number)) == "correct"
    assert outcome("26厘米", form.format(number)) == "wrong"
    assert outcome("13米", form.format(number)) == "wrong"
    for limited in (
        "所以周长不是{}。",
        "所以周长约是{}。",
        "所以周长是{}的一半。",
        "所以周长是{}左右。",
        "如果周长是{}，那么宽是5米。",
    ):
        assert outcome("26米", limited.format(number)) != "correct", limited


@pytest.mark.parametrize(
    "heading", ["【答案】{}", "【正确答案】{}", "【解析】看选项。\n【答案】{}", "【答案】{}\n【解析】因为它最大。"]
)
def test_a_heading_in_chinese_brackets_announces_the_answer(heading: str) -> None:
    assert [outcome("C", heading.format(letter)) for letter in "CB"] == ["correct", "wrong"]
    assert [outcome("5", heading.format(number)) for number in (5, 6)] == ["correct", "wrong"]


@pytest.mark.parametrize("word", ["约", "约为", "大约是"])
def test_an_answer_called_rough_is_wrong_only_if_it_is_no_rounding(word: str) -> None:
    for reference, rounded, other in (("1/3", "33.3%", "34%"), ("1/3", "0.33", "0.35"), ("2/3", "0.67", "0.7")):
        assert outcome(reference, rf"\boxed{{{word}{rounded}}}") == "undecided", (reference, rounded)
        assert outcome(reference, rf"\boxed{{{word}1{other}}}") == "wrong", (reference, other)


def test_what_stands_before_a_conclusion_is_no_item_of_a_list() -> None:
    solved = [outcome(reference, "(x-2)(x-3)=0，所以x=2或x=3。") for reference in ("x=2或x=3", "x=1或x=6")]
    assert solved == ["correct", "wrong"]
    assert [outcome(reference, "3x=15，所以x=5") for reference in ("5", "15")] == ["correct", "wrong"]


def test_a_sum_of_times_of_day_is_no_ratio() -> None:
    for reply in ("10:40+3:35=14:15", r"\boxed{10:40+3:35=14:15}"):
        assert outcome("14:15", reply) == "undecided"
    assert [outcome(reference, r"\boxed{2:4:6}") for reference in ("1:2:3", "1:2:4")] == ["correct", "wrong"]


def test_a_total_behind_one_other_quantity_is_not_taken_for_the_answer() -> None:
    for reference in ("500元", "10500元"):
        assert outcome(reference, "利息是500元，本息共10500元。") == "undecided"
    for total in ("苹果是12元，梨是24元，一共36元。", "每份12元，一共36元。", "苹果是12元，所以一共36元。"):
        assert [outcome(reference, total) for reference in ("36元", "12元", "30元")] == [
            "correct",
            "undecided",
            "wrong",
        ]
