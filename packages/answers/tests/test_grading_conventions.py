"""The conventions that a card switches on and off.

For: reasoning_answers.compare.
"""

from __future__ import annotations

import pytest
from asked import answered, question, verdict_on

from reasoning_answers.compare.conventions import CONVENTIONS
from reasoning_answers.records import GradeRules


def verdict(reference: str, answer: str, conventions: dict[str, bool]) -> str:
    return verdict_on(
        question(reference, rules=GradeRules(conventions=conventions)), answered(rf"\boxed{{{answer}}}")
    ).outcome


PAIRS = {
    "units_dropped": [(r"5\text{ cm}", "5"), ("$24", "24"), ("24$", "24")],
    "percent_dropped": [(r"50\%", "50")],
    "percent_value": [(r"50\%", "0.5")],
    "degrees_dropped": [(r"90^\circ", "90"), (r"x+30^\circ", "x+30")],
    "degrees_radians": [(r"30^\circ", r"\frac{\pi}{6}")],
    "labels_dropped": [("5", "x=5"), ("x=1", "1"), ("x=1,y=2", "(1,2)")],
    "lists_unordered": [("1,2", "2,1")],
    "list_as_set": [(r"\{1,2\}", "1,2")],
    "list_as_tuple": [("(1,2)", "1,2")],
    "inequality_as_interval": [(r"(3,\infty)", "x>3")],
    "vector_as_tuple": [(r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)")],
    "ratio_as_quotient": [("2:1", "2")],
    "base_dropped": [("204_5", "204")],
    "bound_variables": [("f(z)=z^2", "f(x)=x^2")],
    "positive_variables": [(r"\sqrt{x^2}", "x")],
    "text_case": [(r"\text{Even}", r"\text{even}")],
}
"""Convention → pairs that are equal by it alone."""


@pytest.mark.parametrize("name", CONVENTIONS)
def test_convention_can_be_switched(name: str) -> None:
    for reference, answer in PAIRS[name]:
        assert verdict(reference, answer, {name: True}) == "correct", (reference, answer)
        assert verdict(reference, answer, {name: False}) != "correct", (reference, answer)


def test_a_price_keeps_its_own_unit_where_units_are_not_dropped() -> None:
    assert verdict("$24", "24 dollars", {"units_dropped": False}) == "correct"
