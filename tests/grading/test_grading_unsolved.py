"""An equation or inequality that is still to be solved is no answer beside its solution, and no wrong one either."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import harness
from harness.core.records import GradeRules
from harness.grading.compare.equivalence import equal

SOLUTIONS = (3, -2, 5, 12)
SIGNS = ("=", ">", "<", "\\ge", "\\le", "\\ne")


def steps(name: str, sign: str, value: int) -> Iterator[str]:
    """Yield relations that have the solution `name sign value`, and are not solved."""
    for factor, addend in ((1, 1), (1, -3), (2, 0), (3, -4), (5, 7)):
        left = f"{'' if factor == 1 else factor}{name}{f'{addend:+}' if addend else ''}"
        yield f"{left}{sign}{factor * value + addend}"
    yield f"{name}{-value:+}{sign}0"
    yield f"2{name}{sign}{name}{value:+}"


def solved(name: str, sign: str, value: int) -> Iterator[str]:
    """Yield spellings of the solution."""
    yield f"{name} {sign} {value}"
    yield f"{name}{sign}{2 * value}/2"
    turned = {">": "<", "<": ">", "\\ge": "\\le", "\\le": "\\ge"}.get(sign, sign)
    yield f"{value}{turned} {name}"


def test_steps_are_undecided_and_solutions_correct() -> None:
    n_pairs = 0
    for name in ("x", "m"):
        for sign in SIGNS:
            for value in SOLUTIONS:
                reference = f"{name}{sign} {value}"
                for step in steps(name, sign, value):
                    n_pairs += 1
                    assert equal(reference, step, "expression", GradeRules()).equal is None, (reference, step)
                for answer in solved(name, sign, value):
                    n_pairs += 1
                    assert equal(reference, answer, "expression", GradeRules()).equal is True, (reference, answer)
                    other = f"{name}{sign} {value + 1}"
                    assert equal(other, answer, "expression", GradeRules()).equal is False, (other, answer)
    assert n_pairs > 400


@pytest.mark.parametrize(
    ("reference", "reply", "outcome"),
    [
        ("x=3", "3x-4=5", "undecided"),
        ("x=3", "\\boxed{3x=9}", "undecided"),
        ("x>3", "\\{x|2x>6\\}", "undecided"),
        ("1<x<3", "\\boxed{|x-2|<1}", "undecided"),
        ("x<1或x>3", "\\boxed{(x-1)(x-3)>0}", "undecided"),
        ("x=3", "\\boxed{2x=6, x=3}", "correct"),
        ("-3<x<3", "\\boxed{|x|<3}", "correct"),
        # A curve and a set have no form that is the solution.
        ("2x+3y=6", "\\boxed{4x+6y=12}", "correct"),
        ("y=2x+1", "\\boxed{2x-y+1=0}", "correct"),
        ("(1,3)", "\\boxed{(x-1)(x-3)<0}", "correct"),
        ("a=0\\text{ or }b=1", "\\boxed{ab=a}", "correct"),
        ("x>3", "\\boxed{2x>8}", "wrong"),
    ],
)
def test_a_reply_with_an_unsolved_step(reference: str, reply: str, outcome: str) -> None:
    assert harness.grade(reference, reply).outcome == outcome


def test_the_simplest_form_does_not_accept_a_step() -> None:
    simplest = GradeRules(form="simplest")
    assert equal("x=3", "3x=9", "expression", simplest).equal is None
