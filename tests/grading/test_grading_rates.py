r"""Units per a further unit: a price for a kilogram beside a price, a speed beside a distance.

For: harness.grading.compare.scalars, harness.answers.grammar.rates.
"""

from __future__ import annotations

from itertools import product

import pytest

import harness
from harness.grading.verdict import grade
from tests.budget import share_of
from tests.grading.given import question, sample

PLAIN = {"元": ("元",), "千米": ("千米", "公里"), "米": ("米",), "升": ("升",), "吨": ("吨",)}
"""A unit → its spellings."""

FURTHER = {"千克": ("千克", "公斤"), "小时": ("小时", "时"), "秒": ("秒",), "平方米": ("平方米",)}
WITH_PER = ("{n}{unit}/{further}", "每{further}{n}{unit}", "{n}{unit}每{further}")
REPLIES = (r"\boxed{{{}}}", "答：{}。")
NUMBERS = ("6", "12.5", "120")


def outcome(reference: str, answer: str, reply: str) -> str:
    return harness.grade(reference, reply.format(answer)).outcome


@pytest.mark.parametrize("unit", PLAIN)
@pytest.mark.parametrize("further", FURTHER)
def test_the_same_number_per_a_further_unit_is_neither_right_nor_wrong(unit: str, further: str) -> None:
    for reply, number, form, spelled, name in share_of(
        product(REPLIES, NUMBERS, WITH_PER, PLAIN[unit], FURTHER[further])
    ):
        per = form.format(n=number, unit=spelled, further=name)
        plain, case = f"{number}{unit}", f"{per!r} in {reply!r}"
        if form == "{n}{unit}每{further}" and "答" in reply:
            continue  # schools write the two others
        assert outcome(plain, per, reply) == "undecided", case
        assert outcome(per, plain, reply) == "undecided", case
        assert outcome(f"{number}{unit}/{further}", per, reply) == "correct", case
        # Wrong twins: another number, another unit before the "per", an area.
        assert (
            outcome(f"7{plain}", per, reply)
            == outcome(f"7{per}" if per[0].isdigit() else "7米/秒", plain, reply)
            == "wrong"
        )
        others = [other for other in PLAIN if other != unit]
        assert {outcome(f"{number}{other}", per, reply) for other in others} == {"wrong"}, case


@pytest.mark.parametrize(("reference", "answer"), [("12平方米", "12米"), ("12米", "12立方米"), ("5米/秒", "5千米")])
def test_a_unit_that_only_shares_a_dimension_is_another_unit(reference: str, answer: str) -> None:
    assert outcome(reference, answer, REPLIES[0]) == outcome(answer, reference, REPLIES[0]) == "wrong"


@pytest.mark.parametrize(("plain", "per"), [("60 miles", "60 mph"), ("60 km", "60 kmh"), ("60 km", r"60 km·h^{-1}")])
def test_a_speed_without_a_slash_is_a_length_per_a_further_unit(plain: str, per: str) -> None:
    plain, per = (rf"60\text{{ {text.partition(' ')[2]}}}" for text in (plain, per))
    assert outcome(plain, per, REPLIES[0]) == outcome(per, plain, REPLIES[0]) == "undecided"
    assert outcome(per, per, REPLIES[0]) == "correct"
    assert outcome(f"1{plain}", per, REPLIES[0]) == outcome(f"1{per}", plain, REPLIES[0]) == "wrong"


@pytest.mark.parametrize("number", [2, 5, 10])
@pytest.mark.parametrize(("top", "bottom"), [(3, 3), (3, 2), (7, 2), (4, 1)])
def test_a_number_beside_an_improper_fraction_is_neither_a_product_nor_a_mixed_number(
    number: int, top: int, bottom: int
) -> None:
    improper = rf"{number}\frac{{{top}}}{{{bottom}}}"
    product_of, mixed = rf"\frac{{{number * top}}}{{{bottom}}}", rf"\frac{{{number * bottom + top}}}{{{bottom}}}"
    for value in (product_of, mixed):
        assert outcome(value, improper, REPLIES[0]) == outcome(improper, value, REPLIES[0]) == "undecided"
    # Wrong twins: a sign of multiplication, and a proper fraction.
    spelled = improper.replace(r"\frac", r" \cdot \frac")
    assert [outcome(value, spelled, REPLIES[0]) for value in (product_of, mixed)] == ["correct", "wrong"]
    proper = rf"{number}\frac{{{bottom}}}{{{top + 1}}}"
    assert outcome(rf"\frac{{{number * (top + 1) + bottom}}}{{{top + 1}}}", proper, REPLIES[0]) == "correct"


SLASHED = (
    "### 答案\n{}", "### 答案\n**{}**。", "单价是{}。", "所以单价是{}。", "答：单价是{}。", "{}", r"\boxed{{{}}}",
    "小明说单价是{}。", "不是{}。", r"\boxed{{{}}}（即{}）", "先算出{}，再乘2。",
)  # fmt: skip


@pytest.mark.parametrize(("value", "others"), [("12元/千克", ("21元/千克", "12元/克")), ("3/4", ("4/3", "4"))])
def test_a_full_width_slash_is_read_like_another(value: str, others: tuple[str, ...]) -> None:
    replies = [form.format(*[value] * form.count("{}")) for form in SLASHED]
    replies += [rf"\boxed{{{value[:2]}}}{value[2:]}", rf"$\boxed{{{value[:2]}}}${value[2:]}。"] if "元" in value else []
    for reference, reply in product((value, *others), replies):
        slashed = reply.replace("/", "／")
        expected = harness.grade(reference, reply).outcome
        assert harness.grade(reference, slashed).outcome == expected, (reference, slashed)
    assert {harness.grade(value, reply.replace("/", "／")).outcome for reply in replies[:5]} == {"correct"}


def test_the_text_of_a_reference_is_right_and_a_further_answer_leaves_the_per_of_the_rate_out() -> None:
    said = "每千克苹果6元"
    for reply in (said, f"{said}。", f"答：{said}。", f"12÷2=6（元）\n**答**：{said}", f"答案：{said}"):
        assert decided(reply, said) == decided(reply, "6元/千克", said) == "correct", reply
    for reply in (
        f"答：不是{said}。",
        f"小明答：{said}。",
        f"答：{said}吗？",
        f"答：5元。\n答：{said}。",
        f"答：{said}多。",
    ):
        assert decided(reply, "6元/千克", said) != "correct", reply
    for thing, other in (("千克", "箱"), ("箱", "千克"), ("本", "支"), ("平方米", "米")):
        assert decided(f"答：每{thing}货6元。", f"6元/{thing}", "6元") == "correct"
        assert decided(f"答：每{thing}货7元。", f"6元/{thing}", "6元") != "correct"
        assert decided(f"答：每{other}货6元。", f"6元/{thing}", "6元") == "undecided"
        assert (
            decided(f"答：每{thing}货6元。", f"6元/{thing}") == decided(f"答：每{thing}货6元。", "6元") == "undecided"
        )


def decided(reply: str, *references: str) -> str:
    return grade(question(*references), sample(reply)).verdict
