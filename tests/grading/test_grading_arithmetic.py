"""Exact values of generated closed forms, beside complex numbers; their bounds; and the primes of the field.

For: harness.grading.compare.radicals, harness.grading.compare.exact, harness.grading.compare.modular.
"""

from __future__ import annotations

import cmath
import os
import random
from collections.abc import Callable
from fractions import Fraction
from math import isqrt, prod

import pytest

from harness.answers.grammar.parse import parse
from harness.answers.grammar.tree import Node, num
from harness.grading.bounds import MAX_BITS, MAX_TERMS, MAX_TRIAL_DIVISOR
from harness.grading.compare.exact import exact
from harness.grading.compare.modular import PRIME_BITS, Residues, identical_in_field, proportional_in_field
from harness.grading.compare.radicals import (
    NotExact,
    Undefined,
    Value,
    add,
    divide,
    factors,
    freeze,
    multiply,
    of,
    power,
    scale,
)
from tests.budget import examples

SUMS, POWERS = examples(600), examples(1_500)


def complex_of(value: Value) -> complex:
    """The number that a value stands for, by its definition."""
    total = 0j
    for monomial, coefficient in value.items():
        radical = prod((float(prime) ** float(exponent) for prime, exponent in monomial.radical), start=1.0)
        powers = cmath.pi ** float(monomial.pi) * cmath.e ** float(monomial.e)
        total += float(coefficient) * radical * powers * 1j**monomial.i
    return total


def canonical(value: Value) -> bool:
    """Whether no coefficient is 0, primes ascend, and exponents of primes lie between 0 and 1."""
    return all(
        coefficient
        and monomial.i in (0, 1)
        and [prime for prime, _ in monomial.radical] == sorted({prime for prime, _ in monomial.radical})
        and all(0 < exponent < 1 for _, exponent in monomial.radical)
        for monomial, coefficient in value.items()
    )


def close(left: complex, right: complex) -> bool:
    return cmath.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)


def term(draw: random.Random) -> Value:
    """A rational number times roots, powers of pi and e, and perhaps i."""
    value = of(Fraction(draw.randint(-9, 9), draw.randint(1, 6)))
    for _ in range(draw.randint(0, 2)):
        value = multiply(
            value, power(of(draw.randint(2, 12)), Fraction(draw.randint(-5, 5), draw.choice([1, 2, 2, 3])))
        )
    for name in draw.sample(["pi", "e", "i", "", "", ""], 2):
        if name:
            raised = power(exact(Node("const", (name,))), Fraction(draw.randint(-3, 3)))
            value = multiply(value, raised)
    return value


def test_sums_products_and_quotients_are_those_of_complex_numbers() -> None:
    draw = random.Random(3)
    n_divided = 0
    for _ in range(SUMS):
        left, right, third = (add(term(draw), term(draw)) for _ in range(3))
        factor = Fraction(draw.randint(-4, 4), 3)
        for value, expected in (
            (add(left, right), complex_of(left) + complex_of(right)),
            (multiply(left, right), complex_of(left) * complex_of(right)),
            (scale(left, factor), complex_of(left) * float(factor)),
        ):
            assert canonical(value)
            assert close(complex_of(value), expected)
        assert multiply(add(left, right), third) == add(multiply(left, third), multiply(right, third))
        assert add(left, scale(left, Fraction(-1))) == {}
        assert (freeze(left) == freeze(right)) is (left == right)
        try:
            quotient = divide(left, right)
        except Undefined:
            assert right == {}
        except NotExact:
            continue
        else:
            n_divided += 1
            assert canonical(quotient)
            assert multiply(quotient, right) == left
    assert n_divided > SUMS // 4


def test_powers_are_those_of_complex_numbers() -> None:
    draw = random.Random(4)
    n_raised = 0
    for _ in range(POWERS):
        base = add(term(draw), draw.choice([{}, {}, term(draw)]))
        exponent = Fraction(draw.randint(-6, 6), draw.choice([1, 1, 2, 3]))
        try:
            value = power(base, exponent)
        except Undefined:
            assert base == {}
            assert exponent <= 0
            continue
        except (NotExact, OverflowError):
            continue
        n_raised += 1
        assert canonical(value)
        number = complex_of(base)
        if exponent.denominator == 3 and number.imag == 0 and number.real < 0:
            expected = (-1) ** (exponent.numerator % 2) * complex(-number) ** float(exponent)  # the real root
        else:
            expected = number ** float(exponent) if base else 0j
        assert cmath.isclose(complex_of(value), expected, rel_tol=1e-7, abs_tol=1e-7), (base, exponent)
    assert n_raised > POWERS * 7 // 15


@pytest.mark.parametrize("a", range(1, 9))
def test_a_square_of_two_roots_has_them_as_its_root(a: int) -> None:
    for b in range(1, 12):
        for sign in (1, -1):
            roots = add(power(of(a), Fraction(1, 2)), scale(power(of(b), Fraction(1, 2)), Fraction(sign)))
            try:
                root = power(multiply(roots, roots), Fraction(1, 2))
            except NotExact:
                pytest.fail(f"{a} {b} {sign}")
            assert root == (roots if complex_of(roots).real >= 0 else scale(roots, Fraction(-1)))


def test_the_factors_of_a_number_multiply_to_it() -> None:
    draw = random.Random(5)
    for number in [*range(1, 400), *(draw.randint(1, 3_000_000) for _ in range(300))]:
        pairs = factors(number)
        primes = [prime for prime, _ in pairs]
        assert prod(prime**count for prime, count in pairs) == number
        assert primes == sorted(set(primes))
        assert all(prime > 1 and all(prime % d for d in range(2, isqrt(prime) + 1)) for prime in primes)
        assert all(count > 0 for _, count in pairs)
    large = 2_147_483_647  # a prime
    assert factors(large * large * 6) == [(2, 1), (3, 1), (large, 2)] if large < MAX_TRIAL_DIVISOR**2 else True
    assert factors(2_003 * 2_003) == [(2_003, 2)]
    assert factors(2**399) == [(2, 399)]
    for hard in (2_003 * 2_011, 2**400):
        with pytest.raises(NotExact):
            factors(hard)


def test_numbers_of_so_many_bits_are_computed_and_longer_ones_refused() -> None:
    largest, two = of(2 ** (MAX_BITS - 1)), of(2)
    half = power(of(2), Fraction(1, 2))
    for value in (largest, divide(of(1), largest)):
        assert multiply(value, of(1)) == value
        for factor in (value, two, divide(of(1), two)):
            longer = multiply_or_none(value, factor)
            assert (longer is None) is (factor == value or (factor == two) is (value == largest))
    # Neither side is a rational factor: √2 · 2^(bits − 1) times √2 has one bit more.
    assert multiply_or_none(multiply(largest, half), half) is None
    assert multiply_or_none(multiply(of(2 ** (MAX_BITS - 2)), half), half) == largest
    for exponent, computed in ((Fraction(MAX_BITS - 1, 2), True), (Fraction(10**13 + 1, 2), False)):
        try:
            power(of(2), exponent)
        except NotExact:
            assert not computed
        else:
            assert computed


def multiply_or_none(left: Value, right: Value) -> Value | None:
    try:
        return multiply(left, right)
    except NotExact:
        return None


def test_a_sum_of_so_many_different_roots_has_a_value_and_a_longer_one_has_none() -> None:
    primes = [n for n in range(2, 2_000) if all(n % d for d in range(2, isqrt(n) + 1))]
    for n_terms in (MAX_TERMS, MAX_TERMS + 1):
        roots = Node("add", tuple(Node("root", (num(2), num(prime))) for prime in primes[:n_terms]))
        if n_terms > MAX_TERMS:
            with pytest.raises(NotExact):
                exact(roots)
        else:
            assert len(exact(roots)) == n_terms


def test_the_field_has_primes_of_255_bits_in_which_minus_one_is_a_square() -> None:
    for index in (72, 1_000 + os.getpid()):  # another one in each process, since primes are kept
        prime = Residues(index).prime
        assert prime.bit_length() == PRIME_BITS
        assert prime % 4 == 1
        assert all(pow(base, prime - 1, prime) == 1 for base in (2, 3, 5, 7, 11, 13, 1_000_003))
        assert all(prime % divisor for divisor in range(2, 2_000))
        field = Residues(index)
        assert field.value(parse("i^2")) == prime - 1


Compare = Callable[[Node, Node], bool | None]


@pytest.mark.parametrize("compare", [identical_in_field, proportional_in_field])
def test_the_field_compares_in_either_order(compare: Compare) -> None:
    texts = ["x^2-1", "(x-1)(x+1)", "2x^2-2", "x", "0", r"\sin x", r"2\sin x", r"\frac{1}{x}", r"\frac{x}{x-x}", "3y"]
    trees = [parse(text) for text in texts]
    for left in trees:
        for right in trees:
            assert compare(left, right) == compare(right, left)
    assert compare(trees[0], trees[1]) is True
    assert compare(trees[0], trees[2]) is (compare is proportional_in_field)
    assert compare(trees[0], trees[3]) is False
