r"""Notation in which letters do not multiply as numbers do, made by the thousand: none of it is taken for a product.

For each operator pairs are made that are equal if it is a factor, and differ if it is what it says. None may be
accepted. Their right twins, in which numbers only change places, stay right.

For: harness.answers.grammar.atoms, harness.answers.grammar.latex_commands, harness.grading.compare.products.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import harness
from harness.benchmarks.drafts import kind_of
from harness.core.records import GradeRules
from harness.grading.compare.equivalence import equal

RULES = GradeRules()

VARIABLES = st.sampled_from(["x", "y", "t", "r", "u", "z", r"\theta"])
CAPITALS = st.sampled_from("ABMPQSX")
FUNCTIONS = st.sampled_from(["F", "P", "E", "N", "V", "p", "u", r"\phi", r"\sigma", r"\mu", r"\zeta", r"\mathbb{E}"])
COUNTS = st.integers(2, 9)


def verdict(reference: str, answer: str) -> bool | None:
    return equal(reference, answer, kind_of(reference), RULES).equal


def refused(reference: str, answer: str) -> None:
    """Neither of the two is accepted for the other."""
    assert not verdict(reference, answer)
    assert not verdict(answer, reference)


@given(st.sampled_from(["d", r"\partial ", r"\Delta ", r"\delta "]), VARIABLES, VARIABLES, COUNTS)
def test_a_differential_is_no_factor(sign: str, above: str, below: str, n: int) -> None:
    assume(above != below)
    refused(rf"\frac{{{sign}{above}}}{{{sign}{below}}}", rf"\frac{{{above}}}{{{below}}}")
    refused(rf"{n}\frac{{{sign}{above}}}{{{sign}{below}}}", rf"\frac{{{n}{above}}}{{{below}}}")
    refused(rf"\frac{{{sign}^2{above}}}{{{sign}{below}^2}}", rf"\frac{{{sign}{above}}}{{{below}^2}}")
    derivative = rf"\frac{{{sign}{above}}}{{{sign}{below}}}"
    assert verdict(rf"{n}{derivative}+{above}", rf"{above}+{n}{derivative}")


@given(VARIABLES, COUNTS, COUNTS)
def test_a_derivative_to_be_worked_out_decides_nothing(variable: str, n: int, power: int) -> None:
    reference = rf"\frac{{d}}{{d{variable}}}{n}{variable}^{power}"
    refused(reference, f"{n}{variable}^{power - 1}")
    assert verdict(reference, f"{n * power}{variable}^{power - 1}") is None


@given(FUNCTIONS, VARIABLES, COUNTS)
def test_a_bracket_behind_a_letter_holds_its_arguments(name: str, variable: str, n: int) -> None:
    refused(rf"{name}({variable}^{n})", rf"{name}({variable})^{n}")
    refused(rf"{name}({n}{variable})", rf"{n}{name}({variable})")
    refused(rf"{name}({variable})", rf"{variable} {name}")
    assert verdict(rf"{n}{name}({variable})+1", rf"1+{name}({variable})\cdot {n}")
    assert verdict(rf"{name}({variable})=({variable}+1)^2", rf"{variable}^2+2{variable}+1")


@given(st.sampled_from("PEV"), CAPITALS, CAPITALS, COUNTS, st.sampled_from([("(", ")"), ("[", "]")]))
def test_a_capital_before_capitals_is_a_function_of_them(
    name: str, first: str, second: str, n: int, brackets: tuple[str, str]
) -> None:
    assume(len({name, first, second}) == 3)
    opens, closes = brackets
    refused(f"{name}{opens}{first}{second}{closes}", f"{name}{opens}{first}{closes}{second}")
    refused(f"{name}{opens}{first}^{n}{closes}", f"{name}{opens}{first}{closes}^{n}")
    refused(f"{name}{opens}{first}+{second}{closes}^{n}", f"{name}^{n}{opens}{first}+{second}{closes}")
    refused(f"{name}({first})=\\frac1{n}", f"{name}({second})=\\frac1{n}")
    assert verdict(f"{name}{opens}{first}{closes}=\\frac1{n}", f"\\frac1{n}")


@given(VARIABLES, COUNTS, COUNTS)
def test_a_bracket_with_a_sum_is_a_factor(variable: str, n: int, more: int) -> None:
    assert verdict(f"{variable}({variable}+{n})", f"{variable}^2+{n}{variable}")
    assert verdict(f"P(1+r)^{n}", f"P(r+1)^{n}")
    assert verdict(f"n[{more}a+(n-1)d]", f"{more}an+n^2d-nd")


MATRICES = st.lists(
    st.tuples(st.sampled_from("ABPQ"), st.sampled_from(["", "^{-1}", "^T", r"^{\top}"])), min_size=2, max_size=4
)


@given(MATRICES, st.randoms(use_true_random=False))
def test_the_order_of_matrices_counts(factors: list[tuple[str, str]], chance: object) -> None:
    written = [letter + mark for letter, mark in factors]
    other = [*written]
    chance.shuffle(other)  # type: ignore[attr-defined]
    assume(other != written and any(mark for _, mark in factors))
    assert not verdict("".join(written), "".join(other))
    assert verdict("".join(written), " ".join(written))


@given(CAPITALS, CAPITALS, COUNTS)
def test_capitals_in_both_orders_are_matrices(first: str, second: str, n: int) -> None:
    assume(first != second)
    refused(f"{n}{first}{second}-{n}{second}{first}", "0")
    refused(f"{first}^{{-1}}{n}{second}{first}", f"{n}{second}")
    refused(f"({first}{second})^{{-1}}", f"{first}^{{-1}}{second}^{{-1}}")


@given(
    st.sampled_from([r"\vec", r"\mathbf", r"\boldsymbol", r"\overrightarrow"]), VARIABLES, VARIABLES,
    st.sampled_from([r"\times", r"\cdot"]), st.booleans(),
)  # fmt: skip
def test_a_product_of_vectors_is_no_product_of_numbers(
    mark: str, first: str, second: str, sign: str, bare: bool
) -> None:
    assume(first != second and "\\" not in first + second)
    left, right = ((f"{mark} {letter} " if bare else f"{mark}{{{letter}}}") for letter in (first, second))
    other = r"\cdot" if sign == r"\times" else r"\times"
    refused(f"{left}{sign} {right}", f"{right}{sign} {left}")
    refused(f"{left}{sign} {right}", f"{left}{other} {right}")
    refused(f"{left}{sign} {right}", f"{first}{second}")
    assert verdict(f"2{left}+{right}", f"{right}+2{left}")


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        (r"f\circ g", r"g\circ f", None),
        (r"f\circ g", "fg", None),
        (r"f\circ g", r"f\circ g", True),
        (r"x\star y", "xy", None),
        (r"\nabla\times F", r"\nabla\cdot F", None),
        (r"\angle ABC", r"\triangle ABC", None),
        (r"\angle ABC", r"\angle ABC", True),
        (r"\text{red and blue}", r"\text{red or blue}", None),
        (r"\text{red and blue}", r"\text{blue and red}", True),
        (r"O(n\log n)", r"\mathcal{O}(\log n\cdot n)", True),
        ("V=IR", "V=RI", True),
        ("kT^{-1}", r"\frac{k}{T}", True),
        ("KT^{-1}", r"\frac{K}{T}", None),
        ("O(n^2)", "O(n^3)", None),
        ("E(AB)", "E(A)B", None),
        ("(A)(B)", "AB", True),
        (r"30^\circ", r"\frac{\pi}{6}", True),
        ("a+nd-d", "a+(n-1)d", True),
        (r"\frac{ad-bc}{c+d}", r"\frac{da-bc}{d+c}", None),  # da may be a differential
        (r"\int_0^1 x\,dx", r"\frac12", True),
        (r"y(x)=Ce^x", "y=Ce^x", True),
        ("1000 cm^3", "1 dm^3", True),
        (r"\pi\text{ rad}", r"\pi rad", True),
        ("a hundred", "100", True),
    ],
)
def test_what_operators_are_and_what_they_are_not(reference: str, answer: str, expected: bool | None) -> None:
    assert verdict(reference, answer) is expected


def test_the_verdict_says_why_it_is_open() -> None:
    assert "matrices" in " ".join(harness.grade("A^{-1}B", r"\boxed{BA^{-1}}").steps)
    assert "vectors" in " ".join(harness.grade(r"\vec a\times\vec b", r"\boxed{\vec b\times\vec a}").steps)
