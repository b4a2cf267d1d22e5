r"""An inequality in one letter is equal to a set of reals exactly where both hold the same numbers.

For: harness.grading.compare.realsets.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import pytest

import harness
from tests.grading.outcomes import outcome

POINTS = [n / 8 for n in range(-88, 89)]
Holds = Callable[[float], bool]


def inequalities(chance: random.Random) -> Iterator[tuple[str, Holds]]:
    """An inequality of each kind, with what holds it. Many take the same values at a few whole numbers."""
    a, b, c = chance.randrange(1, 6), chance.randrange(1, 9), chance.randrange(2, 4)
    low, high = sorted((a, a + b))
    yield f"|x|<{b}", lambda x: abs(x) < b
    yield f"|x-{a}|<{b}", lambda x: abs(x - a) < b
    yield f"{c}|x|<{b}", lambda x: c * abs(x) < b
    yield f"|x|+x<{b}", lambda x: abs(x) + x < b
    yield f"0<|x|<{b}", lambda x: 0 < abs(x) < b
    yield rf"{low}<|x|<{high}", lambda x: low < abs(x) < high
    yield rf"\lfloor x\rfloor<{b}", lambda x: math.floor(x) < b
    yield f"x^2<{a * a}", lambda x: x * x < a * a
    yield f"{a}<x^2<{b}", lambda x: a < x * x < b
    yield f"x^3<{a}", lambda x: x**3 < a
    yield f"x(x-1)(x-2)(x-5)+x<{b}", lambda x: x * (x - 1) * (x - 2) * (x - 5) + x < b
    yield f"x(x-1)(x-2)+{c}x<{b}", lambda x: x * (x - 1) * (x - 2) + c * x < b
    yield f"{c}x+{a}<{b}", lambda x: c * x + a < b
    yield f"{low}<{c}x<{high}", lambda x: low < c * x < high
    yield rf"\max(x,{a})<{b}", lambda x: max(x, a) < b


def sets(chance: random.Random) -> Iterator[tuple[str, Holds]]:
    """Open sets with whole ends."""
    a, b = chance.randrange(0, 6), chance.randrange(1, 9)
    low, high = a, a + b
    yield f"({low},{high})", lambda x: low < x < high
    yield rf"(-\infty,{b})", lambda x: x < b
    yield f"(-{b},{b})", lambda x: -b < x < b
    yield rf"(-{high},-{low})\cup({low},{high})", lambda x: low < abs(x) < high
    yield rf"(-\infty,-{b})\cup({b},\infty)", lambda x: abs(x) > b


@pytest.mark.slow
def test_an_inequality_and_a_set_are_equal_exactly_where_they_hold_the_same_numbers() -> None:
    chance, n_equal = random.Random(15), 0
    for _ in range(60):
        for inequality, holds in inequalities(chance):
            for reference, contains in sets(chance):
                graded = harness.grade(reference, rf"\boxed{{{inequality}}}").outcome
                same = all(holds(x) == contains(x) for x in POINTS)
                assert graded in ("undecided", "correct" if same else "wrong"), (reference, inequality)
                n_equal += graded == "correct"
    assert n_equal > 15


CONCLUDES = (
    "{w}", "So {w}.", "Thus {w}.", "Therefore, {w}.", "We get {w}.", "This gives {w}.", "So we find that {w}.",
    "The domain is {w}.",
    "Hence the solution set is {w}.", "The range of values is {w}.", "The answer is {w}.",
)  # fmt: skip
REPEATS = (
    "We know {w}.", "We know that {w}.", "We have {w}.", "We need {w}.", "Given {w}.", "Note that {w}.",
    "Since {w}.", "Let {w}.",
    "Suppose {w}.", "We solve {w}.", "The condition is {w}.", "Condition: {w}.", "Question: {w}",
    "I need to solve {w}.",
    "It is given that {w}.", "As stated, {w}.", "By hypothesis, {w}.", "Now {w}.", "Consider {w}.",
    "The problem says {w}.",
)  # fmt: skip


@pytest.mark.parametrize(
    ("reference", "inequality"), [("(1, 5)", "1<x<5"), ("[2, \\infty)", "x \\ge 2"), ("x > 3", "x > 3")]
)
def test_an_inequality_is_the_answer_as_a_result_only(reference: str, inequality: str) -> None:
    outcomes = {
        form: harness.grade(reference, form.format(w=f"${inequality}$")).outcome for form in (*CONCLUDES, *REPEATS)
    }
    assert {form for form, outcome in outcomes.items() if outcome == "correct"} == set(CONCLUDES)
    plain = {
        form for form in REPEATS if harness.grade(reference, form.format(w=inequality)).outcome in ("correct", "wrong")
    }
    assert plain == set()


def test_a_bound_is_stated_alone_behind_so_with_every_sign_in_text_and_in_formulas() -> None:
    behind = ("所以{}。", "因此 ${}$。", "故{}", "So {}.", "Therefore ${}$.", "∴{}", "3x-1=0，所以{}。")
    open_words = (
        "因为{}。",
        "已知{}。",
        "那么{}。",
        "所以设{}。",
        "所以当{}时。",
        "所以{}吗？",
        "题目说{}，所以{}。",
        "Since {}",
    )
    open_words += ("We know {}.", "Suppose {}.", "Given {}.", "So maybe {}.", "So not {}.", "So {}?", "Then {}.")
    for sign, other in zip("<>≤≥", "≤≥<>", strict=True):
        bound = f"x{sign}4"
        for form in behind:
            assert outcome(bound, form.replace("{}", bound)) == "correct", form
            for wrong in (f"x{sign}5", f"x{other}4"):
                assert outcome(bound, form.replace("{}", wrong)) in ("wrong", "undecided"), (form, wrong)
        for form in open_words:
            assert outcome(bound, form.replace("{}", bound)) == "undecided", form
    assert outcome("x=2或x=3", "所以x=2或x=3。") == "correct"
    assert outcome("x=2或x=3", "所以x=2或x=4。") == "wrong"
    assert outcome("x=2或x=3", "因为x=2或x=3。") == "undecided"
