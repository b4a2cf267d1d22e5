"""What equals what: pairs of answers by category, and the switches of the conventions.

For: harness.answers, harness.answers.grammar, harness.grading.compare, harness.grading.
"""

from __future__ import annotations

import pytest

from harness.benchmarks.drafts import kind_of
from harness.core.records import GradeRules
from harness.grading.compare.conventions import CONVENTIONS
from harness.grading.compare.equivalence import equal
from tests.grading.given import RULES
from tests.grading.pairs import PAIRS
from tests.grading.twins import TWINS


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        pytest.param(*row, id=f"{category}-{index}")
        for category, rows in (PAIRS | TWINS).items()
        for index, row in enumerate(rows)
    ],
)
def test_pair_is_judged_as_the_conventions_say(reference: str, answer: str, expected: bool) -> None:
    assert bool(equal(reference, answer, kind_of(reference), RULES).equal) is expected


@pytest.mark.parametrize(
    ("name", "reference", "answer"),
    [
        ("units_dropped", r"5\text{ cm}", "5"),
        ("percent_dropped", r"50\%", "50"),
        ("percent_value", r"50\%", "0.5"),
        ("degrees_dropped", r"90^\circ", "90"),
        ("degrees_radians", r"30^\circ", r"\frac{\pi}{6}"),
        ("labels_dropped", "5", "x=5"),
        ("equations_solved", "y+1=2x", "2x-1"),
        ("lists_unordered", "1,2", "2,1"),
        ("list_as_set", r"\{1,2\}", "1,2"),
        ("list_as_tuple", "(1,2)", "1,2"),
        ("inequality_as_interval", r"(3,\infty)", "x>3"),
        ("vector_as_tuple", r"\begin{pmatrix}1\\2\end{pmatrix}", "(1,2)"),
        ("ratio_as_quotient", "2:1", "2"),
        ("base_dropped", "204_5", "204"),
        ("clock_24", r"3:30\text{ p.m.}", "15:30"),
        ("bound_variables", "f(z)=z^2", "f(x)=x^2"),
        ("positive_variables", r"\sqrt{x^2}", "x"),
        ("text_case", r"\text{Even}", r"\text{even}"),
    ],
)
def test_convention_can_be_switched(name: str, reference: str, answer: str) -> None:
    kind = kind_of(reference)
    on = equal(reference, answer, kind, GradeRules(conventions={name: True})).equal
    off = equal(reference, answer, kind, GradeRules(conventions={name: False})).equal
    assert (on, bool(off)) == (True, False)


def test_every_convention_is_tried_by_a_switch_test() -> None:
    marks = test_convention_can_be_switched.pytestmark  # type: ignore[attr-defined]
    assert {row[0] for row in marks[0].args[1]} == set(CONVENTIONS)


@pytest.mark.parametrize(
    ("rules", "reference", "answer", "expected"),
    [
        (GradeRules(relative_tolerance=0.01), "4.5e33", "4.52e33", True),
        (GradeRules(relative_tolerance=0.01), "4.5e33", "4.6e33", False),
        (GradeRules(relative_tolerance=0.01), "100", "100.9", True),
        (GradeRules(absolute_tolerance=0.1), "4.2", "4.3", True),
        (GradeRules(absolute_tolerance=0.1), "4.2", "4.31", False),
        (GradeRules(round_to_reference=True), "30.52", r"\frac{1587}{52}", True),
        (GradeRules(round_to_reference=True), "30.52", r"\frac{1588}{52}", False),
        (GradeRules(round_to_reference=True), "3.14", r"\pi", True),
        (GradeRules(round_to_reference=True), "180.67", r"\frac{542}{3}\text{ seconds}", True),
        (GradeRules(round_to_reference=True), "25", "24.6", False),
        (GradeRules(ordered=True), "1,2", "2,1", False),
        (GradeRules(ordered=True), "1,2", "1,2", True),
    ],
)
def test_card_states_a_tolerance_or_an_order(rules: GradeRules, reference: str, answer: str, expected: bool) -> None:
    assert bool(equal(reference, answer, kind_of(reference), rules).equal) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("B", True),
        ("(B)", True),
        ("blue", True),
        (r"\text{Blue}", True),
        ("B. blue", True),
        ("red", False),
        ("C", False),
        ("green", False),
    ],
)
def test_choice_is_a_letter_or_the_text_of_its_option(answer: str, expected: bool) -> None:
    assert bool(equal("B", answer, "choice", RULES, ("red", "blue", "white")).equal) is expected


def test_sentence_as_reference_is_left_undecided() -> None:
    reference = "the product of all primes below one hundred that are one more than a square"
    assert equal(reference, "primes of the form n squared plus one, multiplied", "text", RULES).equal is None
    assert equal(reference, reference.upper(), "text", RULES).equal is True
