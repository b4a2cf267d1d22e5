"""A chain of numbers as a reference, 3.5>3.05>3.005: lists and chains in its order are right, and no other ones.

For: harness.grading.compare.relations.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

import pytest

import harness

SEPARATORS = ("，", "、", "；", ", ", ";")
SPELLINGS = (lambda value: f"{float(value):g}", lambda value: rf"\frac{{{value.numerator}}}{{{value.denominator}}}")
"""A number as a decimal and as a fraction; all have finite decimals."""


def chains() -> Iterator[tuple[list[Fraction], str, random.Random]]:
    """Three or four different numbers in order, and the sign between them."""
    chance = random.Random(27)
    for _ in range(12):
        values = sorted(Fraction(value, 40) for value in chance.sample(range(-120, 160), chance.choice((3, 4))))
        yield (values, "<", chance) if chance.random() < 0.5 else (values[::-1], ">", chance)


def written(values: list[Fraction], between: str, chance: random.Random) -> str:
    return between.join(chance.choice(SPELLINGS)(value) for value in values)


def outcome(reference: str, answer: str) -> str:
    return harness.grade(reference, rf"\boxed{{{answer}}}").outcome


def test_the_values_in_the_order_of_the_chain_are_right_and_in_another_order_they_are_not() -> None:
    for values, sign, chance in chains():
        reference = sign.join(SPELLINGS[0](value) for value in values)
        for order in permutations(values):
            right, backwards = list(order) == values, list(order) == values[::-1]
            listed = written(list(order), chance.choice(SEPARATORS), chance)
            expected = "correct" if right else "undecided" if backwards else "wrong"
            assert outcome(reference, listed) == expected, (reference, listed)
            for direction in "<>":
                chain = written(list(order), direction, chance)
                holds = right if direction == sign else backwards
                assert outcome(reference, chain) == ("correct" if holds else "wrong"), (reference, chain)


def test_other_values_are_not_right() -> None:
    for values, sign, chance in chains():
        reference = sign.join(SPELLINGS[0](value) for value in values)
        spoilt = list(values)
        spoilt[chance.randrange(len(values))] += 3  # far from what a rounded value could be
        for others in (spoilt, values[:-1], [*values, values[-1]]):
            assert outcome(reference, written(others, chance.choice(SEPARATORS), chance)) == "wrong", (
                reference,
                others,
            )
            assert outcome(reference, written(others, sign, chance)) != "correct", (reference, others)


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("1/2>1/3", "1/2, 1/3"),
        ("1≤2≤3", "1, 2, 3"),
        ("0.5=1/2>1/3", "0.5, 1/2, 1/3"),
        ("1<3>2", "1, 3, 2"),
        ("3.5>3.05>3.005", r"\{3.5, 3.05, 3.005\}"),
        ("3.5>3.05>3.005", "3.5>3.05, 3.05>3.005"),
        ("3.5，3.05，3.005", "3.5>3.05>3.005"),
    ],
)
def test_what_does_not_say_the_order_is_undecided(reference: str, answer: str) -> None:
    assert outcome(reference, answer) == "undecided"


def test_a_list_and_a_chain_in_one_order_are_one_vote() -> None:
    replies = {
        "correct": ("3.5，3.05，3.005", "3.5、3.05、3.005", "7/2; 3.05; 3.005", "3.5>3.05>3.005", "3.005<3.05<3.5"),
        "wrong": ("3.5，3.005，3.05", "3.5>3.005>3.05", "3.05<3.005<3.5"),
    }
    for expected, answers in replies.items():
        grades = [harness.grade("3.5>3.05>3.005", rf"\boxed{{{answer}}}") for answer in answers]
        assert {grade.outcome for grade in grades} == {expected}
        assert len({grade.vote for grade in grades}) == 1
