"""Answers that differ by construction are never accepted: `differing.pair`, one pair a seed.

For: harness.grading.compare.breaks, harness.grading.compare.piecewise, harness.grading.compare.identities,
harness.grading.compare.numeric, harness.grading.compare.rounding.
"""

from __future__ import annotations

import pytest

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
        (r"\max(0,\sin x-0.999999)", "0", None),
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
