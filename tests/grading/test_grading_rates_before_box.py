r"""A clause with "each" before a box: `每支要\boxed{12元}` may be the price of one where the total was asked for.

For: harness.grading.find.qualifiers.
"""

from __future__ import annotations

import pytest

import harness

BOXES = (
    r"\boxed{{{n}{unit}}}",
    r"\boxed{{{n}}}{unit}",
    r"$\boxed{{{n}}}$ {unit}",
    r"$\boxed{{{n}\text{{{unit}}}}}$",
    r"**\boxed{{{n}{unit}}}**",
)
RATES = {
    "元": ("每支要", "所以每人付", "平均每本", "答案：每支的价钱是", "一共5支，每支"),
    "千米": ("每小时行驶", "汽车的速度是每小时", "平均每天走了"),
    " dollars": ("each pays ", "Every ticket costs ", "So each of them pays ", "per day he spends "),
    " km": ("per hour it goes ", "Every day he runs "),
}
TOTALS = {
    "元": ("一共要付", "每支2元，6支要", "每支2元×6=", "已知每支的价钱。答：一共要"),
    "千米": ("每小时行15千米，4小时行", "每天的路程已知，总路程是"),
    " dollars": ("Each pays 3, so the total is ", "In total they pay ", "Each pays the same. Together they pay "),
    " km": ("The length of each side is ", "At 15 km per hour, it goes "),
}
"""Unit → words before a box, without and with another quantity or a mark behind "each"."""


@pytest.mark.parametrize("unit", RATES)
def test_a_rate_before_a_box_is_undecided_beside_an_amount(unit: str) -> None:
    for box in BOXES:
        for n in ("12", "60", "1.5"):
            boxed, amount = box.format(n=n, unit=unit), f"{n}{unit}"
            for words in RATES[unit]:
                assert harness.grade(amount, f"{words}{boxed}。").outcome == "undecided", words + boxed
                assert harness.grade(n, words + boxed).outcome == "correct", words + boxed
            for words in TOTALS[unit]:
                assert harness.grade(amount, words + boxed).outcome == "correct", words + boxed
                assert harness.grade(f"7{amount}", words + boxed).outcome == "wrong", words + boxed


@pytest.mark.parametrize(
    ("reference", "reply"),
    [
        ("60千米/小时", r"汽车每小时行\boxed{60千米/小时}"),
        ("每小时60千米", r"汽车每小时行\boxed{60千米/小时}"),
        (r"60^\circ", r"Each angle is \boxed{60^\circ}"),
        ("25%", r"每年增长\boxed{25\%}"),
        ("12 dollars per day", r"each pays \boxed{12} dollars per day"),
    ],
)
def test_a_rate_beside_a_rate_and_a_number_without_a_unit_keep_their_verdict(reference: str, reply: str) -> None:
    assert harness.grade(reference, reply).outcome == "correct"
