r"""What stands directly beside a box, made by the thousand: a unit and a sign are compared, a part decides nothing.

For: harness.grading.find.beside_box.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import harness
from harness.answers.grammar.units import unit_of
from tests.grading.outcomes import outcome

NUMBERS = st.integers(2, 9000)
FORMULAS = [
    ("$", "$"),
    ("$$", "$$"),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
    ("$ ", " $"),
    (r"$x = ", "$"),
    (r"\[ A \approx ", r" \]"),
]
ENGLISH = [
    "cm", "m", "km", "mm", "kg", "g", "inches", "feet", "miles", "hours", "minutes", "dollars", "cents",
    "square inches", "cubic feet", "miles per hour", "cm^2", "m/s", "degrees", "liters",
]  # fmt: skip
CHINESE = ["厘米", "米", "千米", "平方米", "立方米", "升", "毫升", "元", "美元", "角", "小时", "分钟", "千克", "吨"]
BEHIND_TEXT = [" {}.", " {}", " {} of it.", r"\text{{ {} }}.", " {}, as asked."]
BEHIND_FORMULA = [r"\text{{ {} }}", r"\ \text{{{}}}", r"\,\mathrm{{{}}}", r"~\mathrm{{~{}}}", r"\quad\text{{{}}}"]


@st.composite
def boxed_with(draw: st.DrawFn, number: int, unit: str) -> str:
    """A reply whose box holds the number, with the unit behind it, inside or outside of its formula."""
    before, behind = draw(st.sampled_from([*FORMULAS, ("", "")]))
    box = rf"\boxed{{{number}}}"
    if unit in CHINESE:
        return f"所以答案是{before}{box}{behind}{unit}" + draw(st.sampled_from(["。", "", "，谢谢。"]))
    simple = unit.replace(" ", "").isalpha() and " " not in unit
    if before and draw(st.booleans()) and simple:
        inside = draw(st.sampled_from(BEHIND_FORMULA)).format(unit)
        return f"The answer is {before}{box}{inside}{behind}."
    return f"The answer is {before}{box}{behind}" + draw(st.sampled_from(BEHIND_TEXT)).format(unit)


def size(unit: str) -> tuple[object, Fraction]:
    named = unit_of(unit)
    assert named is not None
    return named.dimension, named.factor


@given(st.data(), NUMBERS, st.sampled_from([ENGLISH, CHINESE]))
def test_another_unit_behind_the_box_is_another_answer(data: st.DataObject, number: int, units: list[str]) -> None:
    unit, other = data.draw(st.sampled_from(units)), data.draw(st.sampled_from(units))
    assume(size(unit) != size(other))
    assert outcome(f"{number} {unit}", data.draw(boxed_with(number, other))) != "correct"


@given(st.data(), NUMBERS, st.sampled_from([*ENGLISH, *CHINESE]))
def test_the_same_unit_and_a_unit_on_one_side_are_the_answer(data: st.DataObject, number: int, unit: str) -> None:
    reply = data.draw(boxed_with(number, unit))
    assert outcome(str(number), reply) == "correct", reply
    assert outcome(rf"{number}\text{{ {unit} }}", reply) == "correct", reply


@pytest.mark.parametrize(
    ("reference", "reply", "expected"),
    [
        ("3700升", r"所以 \boxed{3.7}立方米", "correct"),
        ("90分", r"\boxed{1.5}小时", "correct"),
        ("0.3 m", r"The answer is \boxed{30} cm.", "correct"),
        ("5个苹果", r"\boxed{5}个苹果", "correct"),
        ("5个苹果", r"\boxed{5}个", "correct"),
        ("5个苹果", r"\boxed{5}个梨", "undecided"),
        ("5 apples", r"\boxed{5} pears.", "undecided"),
        ("0.5", r"$\boxed{50}\%$", "correct"),
        ("0.5", r"$\boxed{50}$ percent", "correct"),
        ("5%", r"\boxed{5}‰", "undecided"),
        ("20 degrees Celsius", r"$\boxed{20}^\circ\mathrm{F}$", "wrong"),
        ("120", r"$\boxed{120}^{\circ}$", "correct"),
        ("25 um", r"$\boxed{25}\ \mu\mathrm{m}$", "correct"),
        ("12", r"There are $\boxed{12}$ degrees in it.", "correct"),
        ("12 cm", r"it is \boxed{12} in the end", "correct"),
        ("12", r"\boxed{12}\n\n5 cm are left over", "correct"),
        ("12 cm", "\\boxed{12}\nHere miles are units", "correct"),
        ("12 km", r"$\boxed{12}$ (cm)", "wrong"),
        ("12 cm", r"$\boxed{12}~(\mathrm{cm})$", "correct"),
        ("12", r"\boxed{12} (m = 3)", "undecided"),
        ("12", r"\boxed{12} million", "wrong"),
        ("12000000", r"$\boxed{12}$ million people.", "correct"),
        ("120000", r"\boxed{12}万元", "correct"),
        ("12", r"either $\boxed{12}$ or $13$.", "wrong"),
        ("3/5", r"$\boxed{\frac35}$ or $0.6$.", "correct"),
        ("12", r"\boxed{12} times 3", "undecided"),
        ("12", r"\boxed{12} squared", "undecided"),
        ("12", r"negative $\boxed{12}$", "undecided"),
        ("12", r"not \boxed{12}", "undecided"),
        ("12", r"$x \neq \boxed{12}$", "undecided"),
    ],
)
def test_what_is_read_behind_a_box(reference: str, reply: str, expected: str) -> None:
    assert outcome(reference, reply) == expected


@pytest.mark.parametrize(
    "form", ["$-{}$", "$x = -{}$", "so $x=-{}$", r"\[ y \approx - {} \]", "so x = -{}.", r"\(\Rightarrow -{}\)"]
)
@pytest.mark.parametrize("number", [7, 2024])
def test_a_minus_before_the_box_is_its_sign(form: str, number: int) -> None:
    reply = form.format(rf"\boxed{{{number}}}")
    assert (outcome(str(-number), reply), outcome(str(number), reply)) == ("correct", "wrong")


PARTS = [
    "${0}x$", "${0}^2$", "${0}^{{n}}$", "${0}+1$", "${0} - 1$", "${0}/2$", r"${0}\cdot 3$", r"${0}\times 3$",
    "${0}!$", r"${0}\pi$", "$2{0}$", "$x{0}$", r"$3\cdot{0}$", "$(2+1){0}$", r"$\frac{{{0}}}{{2}}$",
    r"$\frac12{0}$", r"$\sqrt{{{0}}}$", "$x^{{{0}}}$", "$1+{0}$", "$1-{0}$", r"$\left({0},3\right)$", r"$\log{0}$",
    r"$\binom{{{0}}}{{2}}$", "$5 {0}$", r"${0}\sqrt2$", "${0}(x+1)$", r"${0}_{{7}}$", "x{0}", "3{0}", "{0}x",
    "{0}^2", "{0}+1", "{0}/2", "{0}×2", "{0}÷2", "2/{0}", r"\frac{{{0}}}{{2}}", r"\sqrt{{{0}}}", "-{0}", "{0}‰",
]  # fmt: skip


@pytest.mark.parametrize("form", PARTS)
@pytest.mark.parametrize(("number", "lead"), [(7, ""), (2024, "The answer is "), (12, "Hence we have ")])
def test_a_part_of_a_formula_decides_nothing(form: str, number: int, lead: str) -> None:
    reply = lead + form.format(rf"\boxed{{{number}}}")
    assert outcome(str(number), reply) == outcome(str(number + 1), reply) == "undecided"


WHOLE = [
    "${0}$", "$${0}$$", r"\({0}\)", r"\[{0}\]", r"\[ x = {0} \]", r"\[ x = {0}. \]", "{0}", "**{0}**", "`{0}`",
    "<b>{0}</b>", "({0})", "- {0}", "1. {0}", "x={0}", "$x={0}$, so we are done", "${0}$-th", "{0}!", "{0}?",
    "答案是{0}。", "答案是${0}$。", r"$\text{{(a) }}{0}$", r"$\textbf{{{0}}}$", r"$\color{{red}}{{{0}}}$",
    r"$\therefore {0}$", r"$x \to {0}$", r"$\large {0}$", r"$\underline{{{0}}}$",
    r"\begin{{align*}} x &= {0} \end{{align*}}", r"\begin{{aligned}} x &= 1 \\ &= {0} \end{{aligned}}",
    r"${0}\text{{, as asked}}$", r"${0} \pmod{{10007}}$", r"${0} \quad \blacksquare$", r"$x = {0} = y$",
    r"${0}, \quad x > 0$", "{0}</answer>", "{0}<|im_end|>", r"Answer: {0} \\", "{0} because it is",
    "{0} (see above)", "{0}; done", r"$\$ {0}$", r"\${0}", "{0}🎉",
]  # fmt: skip
"""Surroundings that leave a box its value."""


OPERATIONS = (
    "1÷", "5\\div", "5 \\div ", "\\sqrt", "\\sqrt[3]", "\\frac12\\times", "6 × ",
    "x \\cdot ", "\\sin", "5 + ", "2 * ", "7/", "2^",
)  # fmt: skip
NO_OPERATIONS = (
    "- ", "* ", "+ ", "3 × 4 = ", "4 \\div 2 = ", "3 × 4 = 12, so ", "(a) ",
    "**", "** ", "× wrong: 12. ", "Step 3: \\sqrt 4 gives ", "3) ",
)  # fmt: skip


@pytest.mark.parametrize("value", ["3/4", "\\frac34", "12"])
def test_an_operation_before_a_box_outside_a_formula_decides_nothing(value: str) -> None:
    for operation in OPERATIONS:
        replies = [f"{operation}\\boxed{{{value}}}", f"So it is {operation}\\boxed{{{value}}}."]
        if operation[-1] in "÷× ":
            replies.append(f"{operation}$\\boxed{{{value}}}$")
        assert {harness.grade(value, reply).outcome for reply in replies} == {"undecided"}, operation
    for words in NO_OPERATIONS:
        reply = f"{words}\\boxed{{{value}}}"
        assert (harness.grade(value, reply).outcome, harness.grade("5", reply).outcome) == ("correct", "wrong"), reply


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize("number", [7, 2024])
def test_ends_relations_words_and_styles_leave_the_value(form: str, number: int) -> None:
    reply = form.format(rf"\boxed{{{number}}}")
    assert (outcome(str(number), reply), outcome(str(number + 1), reply)) == ("correct", "wrong")


@given(
    st.data(),
    NUMBERS,
    st.sampled_from([ENGLISH, CHINESE]),
    st.sampled_from(["The answer is {}.", "Answer: {}", "答案是{}。"]),
)
def test_a_unit_behind_a_formula_is_compared_too(data: st.DataObject, number: int, units: list[str], form: str) -> None:
    unit, other = data.draw(st.sampled_from(units)), data.draw(st.sampled_from(units))
    assume(size(unit) != size(other))
    before, behind = data.draw(st.sampled_from([("$", "$"), (r"\(", r"\)")]))
    space = "" if unit in CHINESE else " "
    assert outcome(f"{number} {unit}", form.format(f"{before}{number}{behind}{space}{other}")) != "correct"
    assert outcome(rf"{number}\text{{ {unit} }}", form.format(f"{before}{number}{behind}{space}{unit}")) == "correct"
    assert outcome(str(number), form.format(f"{before}{number}{behind}{space}{unit}")) == "correct"


@pytest.mark.parametrize(
    ("reference", "reply", "expected"),
    [
        ("12 euros", r"It costs $\$\boxed{12}$.", "wrong"),
        ("12 dollars", r"It costs \$\boxed{12}.", "correct"),
        ("12 dollars", r"It costs £\boxed{12}.", "wrong"),
        ("12", r"It costs £\boxed{12}.", "correct"),
        ("-12", r"$x = -\$\boxed{12}$", "correct"),
        ("3/4", r"$\$\boxed{\frac34}$", "correct"),
    ],
)
def test_a_currency_before_the_box_is_compared(reference: str, reply: str, expected: str) -> None:
    assert outcome(reference, reply) == expected


@pytest.mark.parametrize("unit", ["m", "g", "s", "L", "N", "m/s", "m²"])
def test_a_reference_with_a_letter_that_names_a_unit_does_not_refuse_its_number(unit: str) -> None:
    assert outcome(f"5 {unit}", r"\boxed{5}") == "undecided"
    assert outcome(f"5 {unit}", r"\boxed{6}") == "wrong"
    assert outcome(f"5{unit}", r"\boxed{5}") == "undecided"
    assert outcome("5 x", r"\boxed{5}") == outcome("5n", r"\boxed{5}") == "wrong", "a letter is a variable"


IN_BRACKETS = [
    "{box}（{unit}）", "{box}({unit})", "{box} ({unit})", "${box}$（{unit}）", "${box}（{unit}）$",
    r"${box}\text{{（{unit}）}}$", "{box}（单位：{unit}）", "{box}(单位:{unit})", "{box}，单位：{unit}",
    "{box}，单位{unit}。",
    "{box}\n\n单位是{unit}。", "${box}$\n\n单位：{unit}", "{box}。（单位为{unit}）", "{box}\n\n注意：单位是{unit}。",
    "答案是{number}。单位是{unit}。", "所以答案是{number}（{unit}）。", "答：{number}（{unit}）",
    r"\boxed{{{number}（{unit}）}}", r"\boxed{{{number}({unit})}}", r"\boxed{{{number}（单位：{unit}）}}",
    r"\boxed{{\frac{{{number}}}{{1}}（{unit}）}}",
]  # fmt: skip
SCHOOL_UNITS = [
    "厘米", "米", "千米", "平方米", "立方米", "升", "毫升", "元", "角", "小时", "分钟", "千克", "吨", "千米/时", "倍",
    "℃", "℉",
]  # fmt: skip


@pytest.mark.parametrize("form", IN_BRACKETS)
@pytest.mark.parametrize("unit", SCHOOL_UNITS)
def test_a_unit_in_brackets_or_behind_its_label_is_compared(form: str, unit: str) -> None:
    if unit in ("℃", "℉") and ("答" in form or "单位" in form or "text" in form or "(" in form.replace("（", "")):
        return  # schools write these two with the number
    for other in SCHOOL_UNITS:
        reply = form.format(box=r"\boxed{180}", number=180, unit=unit)
        per_hour = {unit, other} == {"千米", "千米/时"}  # see test_grading_rates
        expected = "correct" if unit == other else "undecided" if per_hour else "wrong"
        assert outcome(f"180{other}", reply) == expected, (other, reply)
    assert outcome(f"90{unit}", reply) == "wrong"


@pytest.mark.parametrize("form", IN_BRACKETS)
@pytest.mark.parametrize("noun", ["人", "个", "袋", "棵", "名学生"])
def test_what_was_counted_in_brackets_is_no_other_unit(form: str, noun: str) -> None:
    if noun == "名学生" and "答" in form:
        return
    reply = form.format(box=r"\boxed{36}", number=36, unit=noun)
    assert outcome("36升", reply) == outcome("36箱", reply) == "undecided"
    assert outcome(f"36{noun}", reply) == outcome("36", reply) == "correct"


@pytest.mark.parametrize(
    ("reference", "reply", "expected"),
    [
        ("12升", r"\boxed{12}（本题）", "correct"),
        ("12升", r"\boxed{12}（对）", "correct"),
        ("12", r"\boxed{12}（见上）", "correct"),
        ("12升", r"\boxed{12}。单位换算要小心。", "correct"),
        ("12", r"\boxed{12}. The unit circle has radius one.", "correct"),
        ("12 litres", r"\boxed{12}. The unit is litres.", "correct"),
        ("12 litres", r"\boxed{12}. The unit is millilitres.", "wrong"),
        ("12 litres", r"$\boxed{12}$ (unit: $\text{mL}$)", "wrong"),
        ("18㎡", r"\boxed{18}㎡", "correct"),
        ("18㎡", r"\boxed{18}㎠", "wrong"),
        ("18℃", r"\boxed{18}℉", "wrong"),
        ("18℃", r"\boxed{18}（°F）", "wrong"),
        ("615人", r"\boxed{615}（个班）", "undecided"),
        ("24", r"\boxed{24}个不同的三位数", "correct"),
        ("24", r"\boxed{24}个三角形的面积", "undecided"),
        ("24", r"\boxed{24}个三角形", "correct"),
    ],
)
def test_what_stands_in_brackets_behind_a_box(reference: str, reply: str, expected: str) -> None:
    assert outcome(reference, reply) == expected


@pytest.mark.parametrize("unit", ["千克", "千米", "元", "升", "小时", "千米/时", "倍", "个"])
def test_a_number_that_goes_on_behind_its_unit_is_undecided(unit: str) -> None:
    more = ["多", "半", "几", "左右", "以上", "的一半", "的两倍", "的3倍", "五角", "三百", "零5分", "余"]
    for box in (r"\boxed{200}", r"$\boxed{200}$"):
        for behind in more:
            assert outcome(f"200{unit}", f"所以是{box}{unit}{behind}。") == "undecided", (unit, behind)
        for behind in ("", "。", "，答毕。", "是正确的。", "就够了。"):
            assert outcome(f"200{unit}", f"所以是{box}{unit}{behind}") == "correct", (unit, behind)


def test_a_unit_that_begins_with_a_numeral_is_no_other_value() -> None:
    for unit in ("千克", "千米", "千米/时", "千克/元"):
        for before, behind in (("", ""), ("$", "$"), ("**", "**")):
            reply = rf"答案：{before}\boxed{{200}}{behind}{unit}"
            assert grade(f"200{unit}", reply) == grade(f"200{unit}", f"{reply}。") == "correct"
            assert grade(f"200{unit}", f"{reply}。等等，不对。") == "undecided"
            assert grade(f"200{unit}", f"{reply}。所以是300{unit}。") == "undecided"


def grade(reference: str, reply: str) -> str:
    return harness.grade(reference, reply).outcome


COUNTERS = "桶罐壶缸筐篮捆串束盘碟锅盆勺车船卷册幅株堆摞群批箱瓶杯袋盒碗"
"""Classifiers by which goods are counted."""


@pytest.mark.parametrize("unit", ["升", "毫升", "千克", "元", "个"])
@pytest.mark.parametrize(
    "form", [r"\boxed{{180}}{}", r"$\boxed{{180}}${}。", r"\boxed{{180{}}}", r"所以是\boxed{{180}} {}。"]
)
def test_a_counter_behind_a_box_has_the_verdict_of_the_counter_in_the_box(form: str, unit: str) -> None:
    for counter in COUNTERS:
        reply = form.format(counter)
        assert outcome(f"180{unit}", reply) == "undecided", reply
        assert outcome(f"180{counter}", reply) == "correct", reply
        assert outcome("180", reply) == "correct", reply
        assert outcome(f"181{counter}", reply) != "correct", reply


@pytest.mark.parametrize("reference", ["2500 mL", "2500 ml", r"2500\text{ mL}"])
def test_millilitres_are_a_unit_and_no_product(reference: str) -> None:
    number = "2500"
    for answer in ("2500 mL", "2500 ml", "2.5 L", r"2500\text{ mL}"):
        assert outcome(reference, rf"\boxed{{{answer}}}") == "correct"
    assert outcome(reference, rf"\boxed{{{number}}}") == "correct"
    assert harness.grade(reference, rf"\boxed{{{reference}}}. So we get {number}.").outcome == "correct"
    for answer in ("2500 L", "2500 mg", "2501 mL", "25 mL"):
        assert outcome(reference, rf"\boxed{{{answer}}}") == "wrong"
