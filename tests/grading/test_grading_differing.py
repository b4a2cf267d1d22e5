"""Answers that differ by construction are never accepted: `differing.pair`, one pair a seed.

For: harness.grading.compare.breaks, harness.grading.compare.piecewise, harness.grading.compare.identities,
harness.grading.compare.numeric, harness.grading.compare.rounding.
"""

from __future__ import annotations

from string import ascii_letters

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.drafts import kind_of
from harness.core.records import GradeRules
from harness.grading.compare.equivalence import equal
from tests.budget import examples
from tests.grading.differing import pair

RULES = GradeRules()


def verdict(reference: str, answer: str) -> bool | None:
    return equal(reference, answer, kind_of(reference), RULES).equal


@pytest.mark.fuzz
def test_pairs_that_differ_by_construction_are_not_accepted() -> None:
    accepted = []
    for seed in range(examples(40)):
        differing = pair(seed)
        if verdict(differing.reference, differing.answer):
            accepted.append((seed, differing))
    assert accepted == []


def cases(value: str, rest: str = "0", condition: str = "0<x<2") -> str:
    return rf"\begin{{cases}}{value}&{condition}\\{rest}&\text{{otherwise}}\end{{cases}}"


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        # A Taylor polynomial in nested form, and functions that differ in their seventh power.
        (
            "e^{10^{-50}x}",
            r"1+10^{-50}x(1+\frac{10^{-50}x}{2}(1+\frac{10^{-50}x}{3}(1+\frac{10^{-50}x}{4}(1+\frac{10^{-50}x}{5}"
            r"(1+\frac{10^{-50}x}{6}(1+\frac{10^{-50}x}{7}))))))",
            False,
        ),
        (r"\sin(\tan 10^{-50})", r"\tan(\sin 10^{-50})", False),
        (r"\ln(1+e^{-2024})", r"\ln(e^{-2024}+1)", True),
        # A short piece between the points of any list.
        (r"\max(0,1-|999x-143|)", "0", False),
        (r"\max(0,1-(999x-143)^2)", "0", False),
        (r"\frac{1-(999x-143)^2+\sqrt{(1-(999x-143)^2)^2}}{2}", "0", False),
        (r"\max(0,x-1000)\max(0,y-1000)", "0", False),
        (r"\max(0,x+y-1000)\max(0,x-y)\max(0,1001-x-\frac{y}{2})", "0", False),
        (r"\max(0,10^{-60}-|x^2-2|)", "0", None),
        (r"\max(0,\sin x-0.999999)", "0", False),
        (r"\max(0,\sin(x^2)-0.999999)", "0", None),
        (r"\max(0,\lfloor x\rfloor-1000)", "0", None),
        (r"\int_0^1\max(0,1-|999x-143|)\,dx", "0", None),
        # Their right twins.
        (r"|x^2-1|", "|x-1||x+1|", True),
        (r"|x^3-2x|", "|x||x^2-2|", True),
        (r"|x+y|+|x-y|", r"2\max(|x|,|y|)", True),
        (r"\max(x,\max(y,z))", r"\max(\max(x,y),z)", True),
        (r"|\sin x|", r"\sqrt{1-\cos^2x}", True),
        (r"\sqrt{x^2}", "|x|", True),
        (r"\sqrt{\frac{k}{m}}\sqrt{\frac{m}{k}}", "1", True),
        # A branch beyond the points, and right ones whose breaks cannot be computed.
        (r"\sqrt{(2^x-1024)^2}", "1024-2^x", None),
        (r"\sqrt{(\ln x-50)^2}", r"50-\ln x", None),
        (r"\sqrt{(xy-10^4)^2}", "10^4-xy", None),
        (r"((x-1000)^2)^{0.5}", "1000-x", False),
        (r"\sqrt{(x-y-10^4)^2}", "10^4+y-x", False),
        (r"\sqrt{1-\sin^2\frac{x}{1000}}", r"\cos\frac{x}{1000}", False),
        (r"\arcsin(\sin\frac{x}{1000})", r"\frac{x}{1000}", None),
        (r"2\arctan\frac{x}{1000}", r"\arctan\frac{2000x}{10^6-x^2}", False),
        (r"\sqrt{\frac{mg}{k}}\cdot\sqrt{\frac{gk}{m}}", "g", False),
        (r"\sqrt{e^{2x}+2+e^{-2x}}", "e^x+e^{-x}", True),
        (r"\sqrt{(\sin x+2)^2}", r"\sin x+2", True),
        (r"\sqrt{2+2\cos x}", r"2\sqrt{\cos^2\frac{x}{2}}", True),
        (r"2\sqrt{\sin x}\cos x", r"\frac{\sin 2x}{\sqrt{\sin x}}", True),
        (r"\frac{\sqrt{v^2+2gh}-v}{g}", r"\frac{2h}{\sqrt{v^2+2gh}+v}", True),
        (r"\frac{-b+\sqrt{b^2-4ac}}{2a}", r"\frac{2c}{-b-\sqrt{b^2-4ac}}", True),
        (r"\frac{1}{(r^2+z^2)^{3/2}}", r"\frac{\sqrt{z^2+r^2}}{(r^2+z^2)^2}", True),
        (r"\sqrt{3}\sqrt{1-\ln x}", r"\sqrt{3-3\ln x}", True),
        (r"\sqrt{\sqrt{x}+1}", r"(\sqrt{x}+1)^{1/2}", True),
        (r"\arctan(e^x)", r"\frac{\pi}{2}-\arctan(e^{-x})", True),
        (r"\sqrt[3]{(2^x-1024)^3}", "2^x-1024", True),
        (r"\sqrt[n]{a^m}", "a^{m/n}", True),
        (r"\sum_{k=1}^{3}\sqrt{k}\,x", r"x+\sqrt{2}x+\sqrt{3}x", True),
        (r"\int_0^1x\,dx+\sqrt{(2^x-1024)^2}", r"\frac{1}{2}+1024-2^x", False),
        (r"\sum_{k=1}^{2}\sqrt{(2^{kx}-2^{400})^2}", r"2^{401}-2^x-2^{2x}", None),
        # Cases are compared between their bounds, not only at points there.
        (cases("x"), cases("1"), False),
        (cases("x^2"), cases("x^2+(x-1)(17x-10)"), None),
        (cases("x"), cases(r"\sqrt{x^2}"), True),
        (cases("x", "-x", r"x\ge0"), "|x|", True),
        # Every part of a chain, or undecided.
        (r"\arctan(10^{1032})", r"\arctan(10^{1032})=\arctan(10^{1031})", None),
        ("3", r"\begin{vmatrix}2&1\\1&2\end{vmatrix}=3", True),
        ("3", r"\begin{vmatrix}2&1\\1&3\end{vmatrix}=3", False),
        # The value of an option that the reference states.
        ("C. 1-i", r"\frac{2}{1+i}", True),
        ("C. 1-i", r"\frac{2}{1-i}", False),
        ("C. 1-i", "C", True),
        ("C. 1-i", "B", False),
    ],
)
def test_what_is_not_proven_is_not_accepted(reference: str, answer: str, expected: bool | None) -> None:
    assert verdict(reference, answer) is expected


LETTERS = [letter for letter in ascii_letters if letter not in "ei"]
NEW_LETTERS = [*LETTERS, r"\alpha", r"\varphi", r"\zeta", r"\sigma", r"\omega", r"\Phi", "x_1", "XV"]
SHAPES_OF_LETTERS = (
    "{0}",
    "{1}{0}",
    "{0}({1})",
    "{1}+{0}",
    "{0}_3({1})",
    r"\frac{{{0}}}{{{1}}}",
    "{0}'({1})",
    "f({0})",
)


@given(st.sampled_from(NEW_LETTERS), st.sampled_from(SHAPES_OF_LETTERS), st.integers(1, 99), st.integers(-99, 99))
def test_a_letter_that_nobody_has_explained_decides_nothing(letter: str, shape: str, n: int, reference: int) -> None:
    """The answer may be right, as \varphi(8) is for 4, or wrong."""
    assert verdict(str(reference), shape.format(letter, n)) is None


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("5", "x=6", False),  # the letter names the value
        ("5", "f(2)=6", False),
        ("7", r"\sum_{k=1}^{3}k", False),  # the sum brings its letter along
        ("6", r"\sum_{k=1}^{3}k", True),
        (r"\frac{1}{3}", r"\int_0^1 x\,dx", False),
        ("x^2", "x^2+x", False),  # the reference has the letter
        ("f(2)+1", "f(2)-1", False),
        ("0", "a-a", True),
    ],
)
def test_a_letter_that_is_explained_decides(reference: str, answer: str, expected: bool) -> None:
    assert verdict(reference, answer) is expected
