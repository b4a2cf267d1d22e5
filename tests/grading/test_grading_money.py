r"""Prices: signs of money × units × positions. A bare `$` before a number is a dollar, `$24$` is a formula.

For: harness.answers.grammar.characters, harness.grading.compare.equivalence, harness.grading.find.beside_box.
"""

from __future__ import annotations

from itertools import product

import pytest

import harness
from harness.benchmarks.drafts import kind_of
from harness.core.records import GradeRules
from harness.grading.compare.equivalence import equal

SIGNS = {
    "$": "dollars",
    r"\$": "dollars",
    "＄": "dollars",
    "€": "euros",
    "£": "pounds",
    "¥": "yuan",
    "￥": "yuan",
}
"""Sign of money → the name of its unit."""

POSITIONS = ("{sign}{n}", "{sign} {n}", "{n}{sign}", "-{sign}{n}", "{sign}{n}.00")
NAMES = ("dollars", "euros", "pounds", "yuan", "元", "美元", "欧元", "英镑")
OTHER_UNITS = ("cents", "km", "%", "角", "apples", "kg", "hours", "million dollars")
SAME = {
    "dollars": ("dollars", "美元"),
    "euros": ("euros", "欧元"),
    "pounds": ("pounds", "英镑"),
    "yuan": ("yuan", "元"),
}
"""Name of a unit of money → the names that are the same unit."""

REPLIES = (r"\boxed{{{}}}", r"The answer is $\boxed{{{}}}$.", r"\boxed{{{}}}。")
PRICES = tuple(product(SIGNS, POSITIONS))


def price(sign: str, position: str, number: int) -> tuple[str, str]:
    """A price, and its number."""
    return position.format(sign=sign, n=number), f"-{number}" if position.startswith("-") else str(number)


@pytest.mark.parametrize(("sign", "position"), PRICES)
@pytest.mark.parametrize("number", [24, 5, 1200])
def test_a_price_is_the_bare_number_or_its_own_unit_and_no_other_unit(sign: str, position: str, number: int) -> None:
    reference, bare = price(sign, position, number)
    unit = SIGNS[sign]
    for reply in REPLIES:
        for right in (bare, *(f"{bare} {name}" for name in SAME[unit])):
            assert harness.grade(reference, reply.format(right)).outcome == "correct", right
        others = [f"{bare} {name}" for name in (*NAMES, *OTHER_UNITS) if name not in SAME[unit]]
        others += [f"{other}{number}" for other in ("€", "£", "¥", r"\$") if SIGNS[other] != unit]
        for wrong in (*others, str(number + 1), f"{sign}{number + 1}"):
            assert harness.grade(reference, reply.format(wrong)).outcome != "correct", wrong


@pytest.mark.parametrize(("sign", "position"), PRICES)
def test_a_price_as_the_answer_has_its_unit_too(sign: str, position: str) -> None:
    answer, bare = price(sign, position, 24)
    for reply in REPLIES[:1]:
        for name in SAME[SIGNS[sign]]:
            assert harness.grade(f"{bare} {name}", reply.format(answer)).outcome == "correct"
        for other in ("24 km", "24 cents", "24 kg"):
            assert harness.grade(other, reply.format(answer)).outcome != "correct", other


@pytest.mark.parametrize(
    ("reference", "answer", "outcome"),
    [
        ("$24$", "24", "correct"),
        ("$24$", r"24\text{ cm}", "correct"),
        ("$x=24$", "24", "correct"),
        ("$2$ and $3$", "2, 3", "correct"),
        ("24", "$24$", "correct"),
        ("24 km", "$24$", "correct"),
        ("$24, $36", r"\$24, \$36", "correct"),
        ("$24, $36", "24 km, 36 km", "wrong"),
        ("$1,234.50", "1234.5 dollars", "correct"),
        ("$1,234.50", "1234.5 km", "wrong"),
        ("$5 million", "5000000 dollars", "correct"),
        ("$5 million", "5 dollars", "wrong"),
        ("$3/4", "75 cents", "correct"),
        ("$3/4", "0.75 km", "wrong"),
        (r"$18\frac34", "18.75 dollars", "correct"),
        ("$.50", "50 cents", "correct"),
        ("$.50", "50 dollars", "wrong"),
    ],
)
def test_where_a_dollar_sign_is_money(reference: str, answer: str, outcome: str) -> None:
    assert harness.grade(reference, rf"\boxed{{{answer}}}").outcome == outcome


@pytest.mark.parametrize("reply", ["So the price is $24.", "So the total is $24.", "Answer: $24", "The answer is $24."])
def test_a_price_in_a_sentence_has_its_unit(reply: str) -> None:
    for reference in ("$24", "24", "24 dollars"):
        assert harness.grade(reference, reply).outcome == "correct", reference
    for reference in ("24 km", "24 cents", "€24", "$25"):
        assert harness.grade(reference, reply).outcome != "correct", reference


@pytest.mark.parametrize("reference", ["$24", r"\$24", "24$"])
def test_a_card_that_keeps_units_tells_a_price_from_a_number(reference: str) -> None:
    rules = GradeRules(conventions={"units_dropped": False})
    assert equal(reference, "24", kind_of(reference), rules).equal is not True
    assert equal(reference, "24 dollars", kind_of(reference), rules).equal
