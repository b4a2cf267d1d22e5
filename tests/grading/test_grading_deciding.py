r"""Which rule decides a pair, and what: a later rule that would decide the same hides a fault of an earlier one.

For: harness.grading.compare.exact, harness.grading.compare.radicals, harness.grading.compare.numeric,
harness.grading.compare.point, harness.grading.compare.modular, harness.grading.compare.scalars,
harness.grading.compare.ratios, harness.grading.compare.rounding, harness.grading.compare.realsets,
harness.grading.compare.structures, harness.grading.compare.equations, harness.grading.compare.identities.
"""

from __future__ import annotations

import cmath
from collections.abc import Sequence

import pytest

from harness.answers.grammar.parse import parse
from harness.benchmarks.drafts import kind_of
from harness.core.records import GradeRules
from harness.grading.compare.equivalence import equal
from harness.grading.compare.exact import digits_in_base, exact
from harness.grading.compare.modular import Residues
from harness.grading.compare.numeric import number_of
from harness.grading.compare.point import NotNumeric
from harness.grading.compare.radicals import NotExact, Undefined, freeze
from tests.budget import share_of
from tests.grading.deciding import ENDLESS, EXACT, NUMBERS, PLAIN, RULED
from tests.grading.given import RULES

VERDICTS = {True: "equal", False: "differ", None: "open"}
CARDS = {
    "relative": GradeRules(relative_tolerance=0.01),
    "absolute": GradeRules(absolute_tolerance=0.1),
    "rounded": GradeRules(round_to_reference=True),
    "ordered": GradeRules(ordered=True),
}
CLOSE = 1e-12


def decided(reference: str, answer: str, rules: GradeRules = RULES) -> str:
    """The verdict and the rule, as in the tables."""
    result = equal(reference, answer, kind_of(reference), rules)
    return f"{VERDICTS[result.equal]} {result.rule}"


def others(rows: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str], str]:
    """Pairs that are not decided as their rows say, and how they are decided."""
    return {
        (reference, answer): outcome
        for reference, answer, expected in rows
        if (outcome := decided(reference, answer)) != expected
    }


@pytest.mark.parametrize("part", range(8))
def test_the_rule_that_can_tell_decides(part: int) -> None:
    assert others(PLAIN[part::8]) == {}


def test_no_rule_computes_a_limit_or_a_sum_without_end() -> None:
    assert others(ENDLESS) == {}


def card(words: str) -> GradeRules:
    switch, _, name = words.partition(" ")
    return CARDS[words] if not name else GradeRules(conventions={name: switch == "with"})


def test_the_rules_of_a_card_decide() -> None:
    outcomes = {(words, left, right): decided(left, right, card(words)) for words, left, right, _ in RULED}
    assert outcomes == {(words, left, right): expected for words, left, right, expected in RULED}


def test_a_form_is_asked_of_the_number_that_the_answer_is() -> None:
    rules = GradeRules(form="decimal")
    assert equal("1234", "1,234", "integer", rules).equal is True
    assert equal("1.5", r"\frac32", "number", rules).equal is False


NOT_LINEAR = [
    "|{}|", r"\sqrt{{{0}^2}}", r"\lfloor {} \rfloor", r"\lceil {} \rceil", "{0}+{0}({0}-1)({0}-2)",
    r"\frac{{{0}+|{0}|}}{{2}}", "|{}+5|-5", r"\max({0},0)", r"{0}+\sin(\pi {0})", r"\frac{{|{0}^3|}}{{{0}^2+0}}",
]  # fmt: skip
"""Functions that are the letter itself at 0, 1 and 2 (or undefined), and elsewhere not."""


@pytest.mark.parametrize("value", ["x", "2x", "x^2", "x+z", r"\frac{6}{x}", "x-1"])
def test_an_equation_that_is_not_linear_in_a_letter_is_not_solved_for_it(value: str) -> None:
    assert decided(f"3y=3({value})", f"y={value}").startswith("equal")
    for function in share_of(NOT_LINEAR):
        left = function.format("y")
        for reference, answer in ((f"{left}={value}", f"y={value}"), (f"y={value}", f"{left}={value}")):
            assert not decided(reference, answer).startswith("equal"), (reference, answer)


def exact_value(text: str) -> str:
    try:
        return freeze(exact(parse(text)))
    except Undefined:
        return "no value"
    except NotExact:
        return "no exact value"


def test_a_closed_form_has_one_exact_value_or_none() -> None:
    assert {text: exact_value(text) for text in EXACT} == EXACT


def test_numbers_in_a_base_have_at_most_400_digits() -> None:
    assert digits_in_base("1" * 400, 2) == 2**400 - 1
    assert digits_in_base("1" * 401, 2) is None
    assert (digits_in_base("z", 36), digits_in_base("z", 35), digits_in_base("1", 37)) == (35, None, None)


def number(text: str) -> complex | None:
    try:
        return complex(number_of(parse(text)))
    except NotNumeric:
        return None


def test_a_closed_form_has_the_number_that_the_standard_library_gives() -> None:
    wrong = {}
    for text, expected in NUMBERS.items():
        value = number(text)
        if value is None or expected is None:
            same = value is expected
        else:
            same = cmath.isclose(value, expected, rel_tol=CLOSE, abs_tol=CLOSE)
        if not same:
            wrong[text] = value
    assert wrong == {}


@pytest.mark.parametrize(
    ("shape", "rule"),
    [
        ("x+{}^2", "field"),
        ("x+{}^3", "field"),
        (r"x+2\cdot{}", "field"),
        ("x+{}y", "field"),
        (r"x+\frac{{{}}}{{2}}", "field"),
        (r"x+\frac{{1}}{{2}}\cdot{}", "field"),
        ("x-({}z)^2", "field"),
        (r"x+{}\%", "field"),
        (r"x+{}\sin y", "numeric"),
        (r"x+\frac{{{}}}{{\ln 7}}", "numeric"),
    ],
)
def test_a_multiple_of_the_prime_of_the_field_is_not_zero(shape: str, rule: str) -> None:
    prime = str(Residues(0).prime)
    assert decided(shape.format(prime), "x") == f"differ {rule}"
    assert decided("x", f"{shape.format(prime)}-({shape.format(prime)})+x").startswith("equal")
