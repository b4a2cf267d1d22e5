"""Plain numbers are compared without trees, with the verdict and the rule that the trees give.

For: reasoning_answers.compare.plain_numbers, reasoning_answers.compare.equivalence.
"""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from reasoning_answers.compare.equivalence import equal, near_miss
from reasoning_answers.compare.plain_numbers import plain_number
from reasoning_answers.records import GradeRules

RULES = GradeRules()


@st.composite
def written(draw: st.DrawFn, value: Fraction) -> str:
    """A spelling of the value as a plain number."""
    times = draw(st.sampled_from([1, 1, 2, 3, 10]))
    top, bottom, sign = abs(value.numerator) * times, value.denominator * times, "-" if value < 0 else ""
    forms = [] if value == 0 else [f"{sign}{top}/{bottom}", rf"{sign}\frac{{{top}}}{{{bottom}}}"]
    forms += [] if value == 0 else [rf"{sign}\tfrac{{{top}}}{{{bottom}}}"]
    if value.denominator == 1:
        forms.append(str(value.numerator))
    if 10**6 % value.denominator == 0 and abs(value) < 10**6:
        digits = f"{abs(value.numerator) * (10**6 // value.denominator):07d}"
        places = draw(st.integers(max(1, len(digits[-6:].rstrip("0"))), 6))
        forms.append(f"{sign}{digits[:-6]}.{digits[-6:][:places]}")
    return draw(st.sampled_from(forms))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """(reference, answer): two plain numbers, of one value in half of the cases."""
    values = st.builds(Fraction, st.integers(-2000, 2000), st.sampled_from([1, 2, 3, 4, 5, 7, 8, 12, 100, 1000]))
    first = draw(values)
    near = st.builds(lambda digits: Fraction(round(first * 10**digits), 10**digits), st.integers(0, 4))
    second = draw(st.one_of(st.just(first), st.just(first), values, near, st.just(-first)))
    return draw(written(first)), draw(written(second))


@given(pairs(), st.sampled_from(["integer", "number", "expression"]))
def test_plain_numbers_are_judged_as_their_trees(pair: tuple[str, str], kind: str) -> None:
    reference, answer = pair
    assert plain_number(reference) is not None
    assert plain_number(answer) is not None
    # A space before it leaves a number what it is, and only a grammar reads it.
    by_trees = equal(f" {reference}", f" {answer}", kind, RULES)
    judged = equal(reference, answer, kind, RULES)
    assert (judged.equal, judged.rule) == (by_trees.equal, by_trees.rule)
    if judged.equal is False:
        assert near_miss(reference, answer, kind, RULES) == near_miss(f" {reference}", f" {answer}", kind, RULES)


def test_other_texts_are_no_plain_numbers() -> None:
    others = [
        "",
        "-0",
        "007",
        "1.",
        ".5",
        "1/0",
        "1/-2",
        "1 /2",
        r"\frac{1}{0}",
        "1,000",
        "0.1234567",
        "1/2/3",
        "½",
        "x",
        "٣",
    ]
    assert [text for text in others if plain_number(text) is not None] == []
