"""Expressions that differ by a little: a term scaled, an exponent or a digit changed. None of them may be accepted.

Each pair is a sum of terms and the same sum with one change of a size between 10⁻³⁰⁰ and 10³⁰⁰. The right twin is the
sum with its terms in another order, which is never called different.

For: reasoning_answers.compare.numeric, reasoning_answers.compare.point, reasoning_answers.compare.numeric,
reasoning_answers.compare.modular, reasoning_answers.compare.exact.
"""

from __future__ import annotations

import pytest
from asked import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reasoning_answers.compare.equivalence import equal
from reasoning_answers.records import GradeRules

pytestmark = [pytest.mark.slow, pytest.mark.fuzz]

RULES = GradeRules()
bounded = settings(max_examples=examples(60), deadline=None)

OF_LETTERS = [
    r"x^{%d}",
    r"2^{x}",
    r"\sin x",
    r"\ln(x+%d)",
    r"\sqrt{x+%d}",
    r"e^{-x}",
    r"\cos^{%d} x",
    r"\frac{1}{x+%d}",
    r"(2x-1)^{%d}",
    r"\arctan x",
    r"|x|",
    r"\tanh x",
    r"xy",
    r"y^{%d}",
    r"\lfloor x\rfloor",
]
CLOSED = [
    r"\sqrt{%d}",
    r"\ln %d",
    r"\pi^{%d}",
    r"e^{-%d}",
    r"\sin %d",
    r"\arctan %d",
    r"\sqrt[3]{%d}",
    r"\sqrt{2+\sqrt{%d}}",
    r"\cos\frac{\pi}{%d}",
    r"\tanh %d",
    r"2^{-%d}",
    r"\sqrt{2}^{\sqrt{%d}}",
]
TINY = [r"10^{-%d}", r"\frac{1}{10^{%d}}", r"e^{-%d}", r"2^{-%d}"]


def terms(shapes: list[str]) -> st.SearchStrategy[list[str]]:
    term = st.tuples(st.sampled_from(shapes), st.integers(2, 400)).map(
        lambda pair: pair[0] % pair[1] if "%d" in pair[0] else pair[0]
    )
    return st.lists(term, min_size=1, max_size=3, unique=True)


def is_accepted(reference: str, answer: str) -> bool:
    return equal(reference, answer, "expression", RULES).equal is True


def is_refused(reference: str, answer: str) -> bool:
    return equal(reference, answer, "expression", RULES).equal is False


@bounded
@pytest.mark.parametrize("shapes", [OF_LETTERS, CLOSED], ids=["letters", "closed"])
@given(data=st.data(), tiny=st.sampled_from(TINY), exponent=st.integers(1, 300), place=st.integers(0, 2))
def test_a_sum_with_one_term_scaled_by_a_little_is_not_accepted(
    shapes: list[str], data: st.DataObject, tiny: str, exponent: int, place: int
) -> None:
    summands = data.draw(terms(shapes))
    index = place % len(summands)
    assume(summands[index] != r"\cos\frac{\pi}{2}")  # 0, which no factor changes
    scaled = [*summands]
    scaled[index] = rf"(1+{tiny % exponent})\cdot {summands[index]}"
    for name in ("", "y="):
        assert not is_accepted(name + "+".join(summands), name + "+".join(scaled))
    assert not is_refused("+".join(summands), "+".join(reversed(summands)))


@bounded
@pytest.mark.parametrize("shapes", [OF_LETTERS, CLOSED], ids=["letters", "closed"])
@given(data=st.data(), tiny=st.sampled_from(TINY), exponent=st.integers(1, 300))
def test_a_sum_with_a_tiny_term_more_is_not_accepted(
    shapes: list[str], data: st.DataObject, tiny: str, exponent: int
) -> None:
    total = "+".join(data.draw(terms(shapes)))
    assert not is_accepted(total, rf"{total}+{tiny % exponent}")
    assert not is_accepted(rf"\ln({total}+1000)", rf"\ln({total}+1000-{tiny % exponent})")


EXPONENTS = [
    "y=x^{%d}",
    "y=(2x-1)^{%d}",
    "x_{n+1}=x_n^{%d}",
    r"y=2^x\cdot 3^{%d}",
    r"\ln(1+e^{-%d})",
    r"\tanh %d",
    r"\cosh %d",
    r"\sqrt{x^{%d}+1}",
    r"\pi^{%d}+1",
    r"(1+\frac{1}{x})^{%d}",
    r"\arctan(10^{%d})",
    r"e^{-%d}+x",
    r"\sin(x)^{%d}",
    "(x+1)^{%d}-1",
]


@bounded
@given(shape=st.sampled_from(EXPONENTS), exponent=st.integers(1, 3_000), step=st.integers(1, 3))
def test_another_exponent_is_not_accepted(shape: str, exponent: int, step: int) -> None:
    assert not is_accepted(shape % exponent, shape % (exponent + step))
    assert not is_refused(shape % exponent, shape % exponent + "+0")


@bounded
@given(st.integers(1, 10**40), st.integers(0, 60), st.sampled_from([r"\pi", "x", r"\sin x", r"\sqrt{3}", r"\ln 5"]))
def test_another_digit_is_not_accepted(digits: int, position: int, factor: str) -> None:
    changed = digits + 10 ** (position % len(str(digits)))
    assert not is_accepted(rf"{digits}\cdot {factor}", rf"{changed}\cdot {factor}")
    assert not is_accepted(rf"0.{digits}\cdot {factor}+1", rf"0.{digits}1\cdot {factor}+1")
    assert is_accepted(rf"{digits}\cdot {factor}", rf"{factor}\cdot {digits}")
