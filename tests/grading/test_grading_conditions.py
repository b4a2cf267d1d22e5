"""Generated adversaries: an answer under a condition, as a bound, of another name or rounded is never correct.

For: harness.grading.find.qualifiers, harness.grading.find.refusals, harness.grading.compare.labels,
harness.grading.compare.scalars.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import pytest

from harness.benchmarks.drafts import kind_of
from harness.core.records import GradeRules
from harness.grading import grade
from harness.grading.compare.equivalence import equal
from tests.grading.given import question, sample

CONDITIONS = (
    "If n is even", "Unless $n = 2$", "Assuming that the dice are fair", "Provided $a > 0$", "When $x > 0$",
    "For n > 3", "Suppose we ignore friction", "As long as p is prime", "So if k = 2", "With $p=2$", "假设独立",
    "如果 $a>0$", "当 n>5 时",
)  # fmt: skip
LEADS = (
    "Therefore", "When rounded to the nearest integer", "For the second part", "In total", "Adding these up", "综上",
)  # fmt: skip
STATEMENTS = (
    "{}, the answer is 12.", "{}, the answer is $12$.", "{} the final answer is: 12",
    r"{}, the answer is \boxed{{12}}.", "{}，答案是12。", r"{}，答案为 $\boxed{{12}}$。",
)  # fmt: skip
TAILS = (
    "if n is even", ", provided $a > 0$", "unless $n = 2$", ", assuming the dice are fair", "as long as p is prime",
    "only when n is odd",
)  # fmt: skip
FRONTS = (
    "The answer is 12 {}.", "The answer equals 12 {}.", "The answer is $12$ {}.",
    r"The answer is \boxed{{12}} {}.", r"So $\boxed{{12}}$ {}.",
)  # fmt: skip
BOUNDS = (
    "at least {}", "at most {} of these", "more than {} of the cubes", "about {} in all of them", "至少是{}",
    "最多是{}",
)  # fmt: skip
NAMES = (
    "d", "r", "AB", "CD", r"\angle A", r"\angle B", "f(1)", "f(2)", "S_5", "a_5", "a", r"\text{area}",
    r"\text{perimeter}",
)  # fmt: skip


def verdict_of(response: str) -> str:
    """The verdict on a response, of which the reference is 12."""
    return grade(question("12"), sample(response)).verdict


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_condition_before_the_answer_leaves_it_undecided(statement: str) -> None:
    assert {verdict_of(statement.format(condition)) for condition in CONDITIONS} == {"undecided"}
    parted = statement[2] in ",，"
    # Without a comma, only words that lead to an answer are told from a condition.
    for lead in LEADS:
        verdict = verdict_of(f"We look at n. {statement.format(lead)}")
        leads = parted and (lead != "For the second part" or "boxed" in statement)
        assert verdict == ("correct" if leads or lead in ("Therefore", "In total") else "undecided")


@pytest.mark.parametrize("front", FRONTS)
def test_a_condition_behind_the_answer_leaves_it_undecided(front: str) -> None:
    assert {verdict_of(front.format(tail)) for tail in TAILS} == {"undecided"}
    assert verdict_of("We get a sum of 12 if n is even.") == "undecided"
    assert verdict_of(f"{front.format(', as required')}\n\nIf n is odd, ask again.") == "correct"


def test_a_condition_that_is_a_step_of_the_calculation_does_not_count() -> None:
    for reply in (
        "The answer is therefore 12.",
        "If each costs 3, then 4 cost 12, so the answer is 12.",
        r"If $x = 3$, then $4x = \boxed{12}$.",
    ):
        assert verdict_of(reply) == "correct"


def test_a_bound_is_no_value() -> None:
    assert not {verdict_of(f"The answer is {bound.format(12)}.") for bound in BOUNDS} & {"correct", "wrong"}
    assert verdict_of("The answer is a total of 12 of the cubes.") == "correct"


@pytest.mark.parametrize("lead", ["You ask whether", "I wonder if", "Nobody knows if", "You asked me whether"])
def test_an_answer_that_nobody_states_is_none(lead: str) -> None:
    assert verdict_of(f"{lead} the answer is 12. I cannot say.") == "no_answer"
    assert verdict_of("We conclude that the answer is 12. I checked it.") == "correct"


def test_another_name_is_never_the_same() -> None:
    for name, other in permutations(NAMES, 2):
        reference, answer = f"{name} = 6", f"{other} = 6"
        assert equal(reference, answer, kind_of(reference), GradeRules()).equal is None, (reference, answer)
    for name, value in product(NAMES, ("6", "{} = 6", "6.0")):
        reference, answer = f"{name} = 6", value.format(name)
        assert equal(reference, answer, kind_of(reference), GradeRules()).equal, (reference, answer)


@pytest.mark.parametrize("reference", ["12.5", "-0.75", "1234.5", "0.125", "3.1416"])
def test_a_decimal_comma_is_undecided_and_another_number_wrong(reference: str) -> None:
    comma = reference.replace(".", ",")
    compared = [equal(*pair, kind_of(pair[0]), GradeRules()).equal for pair in ((reference, comma), (comma, reference))]
    assert compared == [None, None]
    for other in (comma + "1", comma.replace(",", ", "), comma + ",1", f"({comma})"):
        assert equal(reference, other, kind_of(reference), GradeRules()).equal is False, other


def test_an_empty_box_is_no_answer() -> None:
    for reply in (r"\boxed{}", r"So \boxed{ }.", r"The answer: \boxed{}", r"\boxed{?}", r"I got 12. \boxed{}"):
        assert verdict_of(reply) == "no_answer", reply
    assert verdict_of(r"\boxed{12}. Put it into \boxed{}.") == verdict_of(r"The answer is 12. \boxed{}") == "correct"


@pytest.mark.parametrize(("top", "bottom"), [(542, 3), (1587, 52), (-10, 3), (22, 7), (1, 15), (355, 113)])
@pytest.mark.parametrize("places", [1, 2, 3, 5, 8])
def test_an_exact_answer_that_rounds_to_the_reference_is_undecided(top: int, bottom: int, places: int) -> None:
    steps = round(Fraction(top * 10**places, bottom))
    digits = str(abs(steps)).rjust(places + 1, "0")
    sign = "-" * (steps < 0)
    answer = f"{sign}\\frac{{{abs(top)}}}{{{bottom}}}"
    for unit in ("", r"\%", r"\text{ s}"):
        reference = f"{sign}{digits[:-places]}.{digits[-places:]}{unit}"
        verdict = equal(reference, f"{answer}{unit}", kind_of(reference), GradeRules()).equal
        assert verdict is (None if abs(steps) >= 100 else False), reference
        last = str(int(digits[-1]) ^ 1)  # another last digit
        other = f"{reference[: len(sign) + len(digits)]}{last}{unit}"
        assert equal(other, f"{answer}{unit}", kind_of(other), GradeRules()).equal is False, other
        assert equal(f"{answer}{unit}", reference, "expression", GradeRules()).equal is False, reference
