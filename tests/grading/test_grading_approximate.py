r"""Signs of approximation beside exact and rounded references: `≈3` beside 3 is undecided, as 约3 is.

For: harness.grading.compare.approximate.
"""

from __future__ import annotations

import pytest

import harness
from harness.core.records import GradeRules
from harness.grading.compare.equivalence import equal

SIGNS = ("≈", r"\approx ", "≃", r"\simeq ", r"\approxeq ")
NAMES = ("", "x", "V", "S ", "体积", r"\text{Area} ", "x_1", "AB")
"""What stands before a sign that makes a value rough; nothing, or the name of the value."""

REPLIES = (r"\boxed{{{}}}", r"$\boxed{{{}}}$", "答：{}", "答案是{}")


def outcome(reference: str, reply: str) -> str:
    return harness.grade(reference, reply).outcome


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("name", NAMES)
def test_a_rough_value_is_undecided_beside_an_exact_reference(sign: str, name: str) -> None:
    for form, (n, unit) in [(form, value) for form in REPLIES for value in (("3", ""), ("3700", "升"), ("1/3", ""))]:
        answer = f"{name}{sign}{n}{unit}"
        reply = form.format(f"${answer}$" if "答" in form else answer)
        assert outcome(f"{n}{unit}", reply) == "undecided", reply
        assert outcome(f"{n}{unit}", reply.replace(sign, "=" if name else "")) == "correct", reply
        assert outcome(f"9{n}{unit}", reply) in ("wrong", "undecided"), reply


@pytest.mark.parametrize("sign", SIGNS)
def test_beside_a_rounded_reference_the_sign_is_dropped(sign: str) -> None:
    for name in ("", "x", r"\pi"):
        answer = rf"\boxed{{{name}{sign}3.14}}"
        assert (outcome("3.14", answer), outcome("3.15", answer)) == ("correct", "wrong"), answer
    assert outcome("33.3%", rf"\boxed{{{sign}33.3\%}}") == outcome(f"{sign}3", rf"\boxed{{{sign}3}}") == "correct"
    assert outcome("约3", rf"\boxed{{{sign}3}}") == "correct"


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("13", r"4\pi = 12.566 ≈ 13"),
        ("13", r"4\pi \approx 12.566 \approx 13"),
        (r"\sqrt2", r"\sqrt2 \approx 1.414"),
        (r"12\pi", r"12\pi \approx 37.7"),
        (r"\sqrt3", r"x = \sqrt3 \approx 1.732"),
        ("5", "~5"),  # a space of LaTeX in a box
        (r"\triangle ABC \cong \triangle DEF", r"\triangle ABC \cong \triangle DEF"),
        (r"\triangle ABC \sim \triangle DEF", r"\triangle ABC \sim \triangle DEF"),
    ],
)
def test_a_chain_that_computes_and_a_relation_keep_their_verdict(reference: str, answer: str) -> None:
    assert outcome(reference, rf"\boxed{{{answer}}}") == "correct"


def test_plain_text_and_equations() -> None:
    assert [outcome("3", reply) for reply in ("~3", "≈3", "x≈3", "∼3")] == ["undecided"] * 4
    assert [outcome("x=3", reply) for reply in ("3x≈9", "x≈3", "x=3")] == ["undecided", "undecided", "correct"]
    assert outcome("3", "≈4") == outcome("3", "~4") == "wrong"


def test_a_tolerance_allows_the_sign() -> None:
    assert equal("3700", r"\approx 3700", "number", GradeRules(relative_tolerance=0.01)).equal is True
    assert equal("3700", r"\approx 3700", "number", GradeRules()).equal is None
