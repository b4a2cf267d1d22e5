r"""Words beside a number by the thousand: what says nothing is passed over, anything else is never accepted.

Each right answer has wrong twins made of the same words: an unknown noun with a preposition, a condition, another name.

For: harness.answers.grammar.remarks, harness.answers.grammar.units, harness.grading.compare.labels,
harness.grading.compare.structures.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.answers.grammar.numerals import multiplies
from harness.core.records import GradeRules
from harness.grading.compare.equivalence import equal
from tests.budget import examples

pytestmark = [pytest.mark.slow, pytest.mark.fuzz]

RULES = GradeRules()
many = settings(max_examples=examples(1_000), deadline=None)
numbers = st.integers(2, 10**6)
words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9).map(lambda stem: f"q{stem}")  # no English word
CONDITIONS = ["if", "when", "for", "provided", "unless", "where", "whenever", "as long as", "only if", "assuming"]
LINKS = ["with", "without", "in", "at", "under", "over", "before", "after", "of them", "per", "from", "except", "by"]
HEDGES = [
    "nearly",
    "almost",
    "about",
    "roughly",
    "at least",
    "at most",
    "more than",
    "less than",
    "not",
    "never",
    "twice",
]
NAMES = [("maximum", "minimum"), ("perimeter", "area"), ("mean", "median"), ("sum", "product"), ("width", "height")]
CHINESE = [("面积", "周长"), ("最大值", "最小值"), ("长", "宽"), ("最多", "最少")]


def accepted(reference: str, answer: str) -> bool:
    return equal(reference, answer, "expression", RULES).equal is True


@many
@given(numbers, words)
def test_a_plural_that_was_counted_is_passed_over_and_a_phrase_is_not(number: int, noun: str) -> None:
    # `qiemes` has the ending of a fraction in French: 3 cinquièmes.
    assume(not multiplies(f"{noun}es"))
    reference = str(number)
    assert accepted(reference, rf"{number}\text{{ {noun}es}}")
    assert not accepted(reference, rf"{number + 1}\text{{ {noun}es}}")


@many
@given(numbers, words, words, st.sampled_from(LINKS))
def test_a_phrase_with_a_preposition_is_not_passed_over(number: int, noun: str, second: str, link: str) -> None:
    assert not accepted(str(number), rf"{number}\text{{ {noun}es {link} {second}es}}")
    assert not accepted(str(number), rf"{number}\text{{ {link} {second}es}}")


@many
@given(
    numbers, st.sampled_from(CONDITIONS), st.sampled_from("nxkt"), st.integers(0, 99), st.sampled_from(["<", ">", "="])
)
def test_a_condition_is_compared(number: int, condition: str, letter: str, bound: int, sign: str) -> None:
    reference, stated = str(number), rf"{number}\text{{ {condition} }}{letter}{sign}{bound}"
    assert not accepted(reference, stated)
    assert not accepted(reference, rf"{number}\text{{ {condition} {letter} is odd}}")
    assert accepted(reference, rf"{number}\text{{ for all real }}{letter}")


@many
@given(numbers, st.sampled_from(HEDGES))
def test_a_hedge_before_an_exact_number_is_not_passed_over(number: int, hedge: str) -> None:
    assert not accepted(str(number), rf"\text{{{hedge} }}{number}")
    assert accepted(str(number), rf"\text{{exactly }}{number}")


@many
@given(numbers, st.sampled_from(NAMES), st.sampled_from(["} = ", " is }"]))
def test_another_name_is_not_the_name(number: int, names: tuple[str, str], sign: str) -> None:
    first, second = names
    assert accepted(rf"\text{{{first}}} = {number}", rf"\text{{The {first}{sign}{number}")
    assert not accepted(rf"\text{{{first}}} = {number}", rf"\text{{The {second}{sign}{number}")
    assert not accepted(rf"\text{{{first} length}} = {number}", rf"\text{{{second} length{sign}{number}")


@many
@given(numbers, st.sampled_from(CHINESE), st.sampled_from(["为", "是", "等于"]))
def test_another_name_in_chinese_is_not_the_name(number: int, names: tuple[str, str], verb: str) -> None:
    first, second = names
    assert accepted(f"{first}为{number}", f"{first}{verb}{number}")
    assert not accepted(f"{first}为{number}", f"{second}{verb}{number}")
