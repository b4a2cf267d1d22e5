"""Quantities whose unit is in letters directly behind the number: 15m/s may be a product of letters."""

from __future__ import annotations

from itertools import cycle, product

import msgspec

from harness.core.records import Message
from harness.grading.verdict import grade
from tests.grading.given import question, sample

UNITS = {
    "m/s": ("米/秒", "km/h"), "m/s²": ("米/秒²", "m/s"), "kg/m³": ("千克/立方米", "g/cm³"), "N/kg": ("牛/千克", "N"),
    "N": ("牛", "kg"), "J": ("焦耳", "W"), "W": ("瓦", "J"), "kW": ("千瓦", "W"), "Pa": ("帕", "kPa"),
    "kPa": ("千帕", "Pa"), "A": ("安培", "mA"), "mA": ("毫安", "A"), "V": ("伏", "A"), "Ω": ("欧姆", "kΩ"),
    "Hz": ("赫兹", "kHz"), "g": ("克", "kg"), "mL": ("毫升", "L"), "dm": ("分米", "m"), "cm³": ("立方厘米", "cm²"),
    "km/h": ("千米/时", "m/s"), "kW·h": ("千瓦时", "kW"),
}  # fmt: skip
"""Unit → the same unit in Chinese, and another one."""

QUANTITIES = (
    "它的大小是多少",
    "用2kg的物体加热5min，结果是多少（c=4.2×10³）",
    r"在 $20\,\mathrm{min}$ 内它是多少",
    "3cm长的导体的读数为几",
)
"""Questions without a variable."""

VARIABLES = (
    "小明每天走{0}米，5天走多少米", "每份2{0}千克，5份是多少千克", "每箱2{0}个，5箱多少个", "3{0}+2{0}等于多少",
    "3{0}与2{0}的和是多少", "长为${0}$，宽为5，面积是多少",
    "每天走a{0}米，a是1，5天走多少米", "矩阵{0}的5倍是多少", "化简3{0}", "x={0}²，求多少",
)  # fmt: skip
"""Questions in which a letter is a variable, or may be one."""


def outcome(text: str, reference: str, reply: str) -> str:
    """The verdict on a reply to a question with this text."""
    asked = msgspec.structs.replace(question(reference), messages=(Message(role="user", content=text),))
    return grade(asked, sample(reply)).verdict


def wide(text: str) -> str:
    """The text in full-width letters."""
    return "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in text)


def test_letters_that_the_question_does_not_use_are_the_unit_of_the_reference() -> None:
    cases = product(UNITS.items(), ("0.5", "1.2×10³"))
    for ((unit, (chinese, other)), number), text in zip(cases, cycle(QUANTITIES), strict=False):
        reference = f"{number}{unit}"
        right = (number, f"{number} {unit}", f"{number}{chinese}", f"\\boxed{{{number}}}", wide(reference))
        for reply in right:
            assert outcome(text, reference, reply) == "correct", (text, reference, reply)
        for reply in (f"7{number}", f"{number}{other}", f"7{number}{unit}", f"{number}元"):
            assert outcome(text, reference, reply) in ("wrong", "undecided"), (text, reference, reply)
        if unit != "Ω" or "×" not in number:
            assert outcome(text, f"{number}{chinese}", reference) == "correct", (text, reference, chinese)
        assert outcome("", reference, number) != "wrong", reference


def test_a_letter_that_may_be_a_variable_of_the_question_is_never_dropped() -> None:
    for letter, text in product("mgstLANJWVC", VARIABLES):
        for reference in (f"5{letter}", f"15{letter}²"):
            number = reference.partition(letter)[0]
            assert outcome(text.format(letter), reference, number) == "undecided", (text, reference)
    assert outcome("小明每天走x米，5天走多少米", "5x", "5") == outcome("", "5n", "5") == "wrong"


def test_the_unit_behind_how_many_makes_terms_quantities() -> None:
    text = "一根绳子长3m，另一根长2m，共长多少"
    assert (outcome(text, "5m", "5"), outcome(text + "米", "5m", "5")) == ("undecided", "correct")


def test_a_chain_with_letters_counts_by_its_last_value() -> None:
    text = "功率为600W的电器工作3h，用20N的力移动3m，是多少"
    for reference, chain, expected in (
        ("60J", "W=Fs=20N×3m=60J", "correct"),
        ("60J", "W=Fs=20N×3m=60W", "undecided"),
        ("1.8kW·h", "W=Pt=600W×3h=1800kW·h", "undecided"),
        ("0.5A", "I=U/R=6V/12Ω=0.5A", "correct"),
        ("0.5A", "I=U/R=6V/12Ω=2A", "wrong"),
        ("15m/s", "300÷20=15(m/s)", "correct"),
        ("15m/s", r"\frac{300}{20}=15m/s", "correct"),
        ("15m/s", "300÷20=16(m/s)", "wrong"),
        ("15m/s", "300÷10=15(m/s)", "wrong"),
    ):
        assert outcome(text, reference, chain) == expected, (reference, chain)
    for chain in ("W=Fs=20N×3m=60W", "W=20N×3m=3W"):
        assert outcome("", "60J", chain) == "undecided", chain


def test_degrees_of_electricity_and_of_angles() -> None:
    for reference, reply, expected in (
        *((left, right, "correct") for left, right in product(("1.8kW·h", "1.8千瓦时", "1.8度", "1.8度电"), repeat=2)),
        ("1.8kW·h", "1.8°", "undecided"),
        ("1.8kW·h", "18度", "wrong"),
        ("6480000J", "1.8度", "correct"),
        ("30度", "30J", "wrong"),
        ("30°15′", "30度15分", "correct"),
        ("30°15′", "30°15分", "correct"),
        ("30度15分", "30.25°", "correct"),
        ("30°15′20″", "30度15分20秒", "correct"),
        ("30°15′", "30度45分", "wrong"),
        ("30°15′", "15度30分", "wrong"),
        ("30°15′", "30分15秒", "wrong"),
        ("30°15′20″", "30度15分30秒", "wrong"),
    ):
        assert outcome("", reference, reply) == expected, (reference, reply)
