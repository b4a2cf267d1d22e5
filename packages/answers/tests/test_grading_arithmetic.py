"""Exact values of generated closed forms, beside fractions; their bounds; and the primes of the field.

For: reasoning_answers.compare.exact, reasoning_answers.compare.modular, reasoning_answers.compare.numeric.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from asked import examples

from reasoning_answers.bounds import MAX_BITS, MAX_POWER_BITS
from reasoning_answers.compare.exact import exact, is_undefined
from reasoning_answers.compare.modular import PRIME_BITS, Residues, identical_in_field
from reasoning_answers.compare.numeric import proportional
from reasoning_answers.grammar.numerals import number_in_words, numeral
from reasoning_answers.grammar.parse import parse
from reasoning_answers.grammar.tree import Node


def value_of(text: str) -> Fraction | None:
    return exact(parse(text))


@pytest.mark.parametrize("seed", range(examples(200)))
def test_sums_products_quotients_and_powers_are_those_of_fractions(seed: int) -> None:
    draw = random.Random(seed)

    def form(depth: int) -> tuple[str, Fraction]:
        if not depth:
            number = draw.randint(-9, 9)
            return f"({number})", Fraction(number)
        (left, first), (right, second) = form(depth - 1), form(depth - 1)
        shape = draw.choice("+-*/^r")
        if shape == "r":
            return rf"\sqrt[3]{{({left})^3}}", first
        if shape == "^":
            power = draw.randint(1, 3)
            return f"({left})^{power}", first**power
        if shape == "/" and not second:
            return form(depth)
        values = {"+": first + second, "-": first - second, "*": first * second, "/": second and first / second}
        return f"({left}{shape}{right})", values[shape]

    text, value = form(3)
    assert value_of(text) == value, text


def test_a_root_has_a_value_only_if_it_is_rational() -> None:
    for degree in range(2, 9):
        for root in (Fraction(1), Fraction(2, 3), Fraction(10**40), Fraction(7, 10**6)):
            written = root**degree
            text = rf"\sqrt[{degree}]{{\frac{{{written.numerator}}}{{{written.denominator}}}}}"
            assert value_of(text) == root
            assert value_of(text.replace(r"{\frac", r"{2*\frac")) is None
            assert value_of(text.replace(r"{\frac", r"{-\frac")) == (-root if degree % 2 else None)
    assert is_undefined(parse(r"\frac{1}{2-\sqrt{4}}"))
    assert not is_undefined(parse(r"\frac{1}{\sqrt2}"))


def test_numbers_of_so_many_bits_are_computed_and_longer_ones_refused() -> None:
    assert value_of(f"2^{{{MAX_POWER_BITS - 1}}}") == 2 ** (MAX_POWER_BITS - 1)
    assert value_of(f"2^{{-{MAX_BITS - 1}}}") == Fraction(1, 2 ** (MAX_BITS - 1))
    for text in (
        f"2^{{{MAX_POWER_BITS + 1}}}",
        f"2^{{{MAX_BITS - 1}}}*2*2",
        "3^{10^{13}}",
        r"\sum_{k=1}^{9999} 2^{3k}",
    ):
        assert value_of(text) is None, text


def test_the_field_has_primes_of_255_bits_in_which_minus_one_is_a_square() -> None:
    for index in (72, 1_000 + os.getpid()):  # another one in each process, since primes are kept
        prime = Residues(index).prime
        assert prime.bit_length() == PRIME_BITS
        assert prime % 4 == 1
        assert all(pow(base, prime - 1, prime) == 1 for base in (2, 3, 5, 7, 11, 13, 1_000_003))
        assert all(prime % divisor for divisor in range(2, 2_000))
        field = Residues(index)
        assert field.value(parse("i^2")) == prime - 1


@pytest.mark.parametrize("compare", [identical_in_field, proportional])
def test_expressions_are_compared_in_either_order(compare: Callable[[Node, Node], bool | None]) -> None:
    texts = ["x^2-1", "(x-1)(x+1)", "2x^2-2", "x", "0", r"\sin x", r"2\sin x", r"\frac{1}{x}", r"\frac{x}{x-x}", "3y"]
    trees = [parse(text) for text in texts]
    for left in trees:
        for right in trees:
            assert compare(left, right) == compare(right, left)
    assert compare(trees[0], trees[1]) is True
    assert compare(trees[0], trees[2]) is (compare is proportional)
    assert compare(trees[0], trees[3]) is False


def test_each_word_for_a_number_is_that_number() -> None:
    ones = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    tens = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
    parts = "half third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth fifteenth twentieth hundredth"
    assert [numeral(word) for word in f"{ones} seventeen eighteen nineteen".split()] == [*range(20)]
    assert [numeral(word) for word in tens.split()] == [*range(20, 110, 10)]
    assert [number_in_words(f"one {part}") for part in parts.split()] == [
        f"1/{n}" for n in (*range(2, 13), 15, 20, 100)
    ]
