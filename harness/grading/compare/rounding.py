"""Rounded decimals: whether two parts of a chain such as `√2 ≈ 1.414 = 1.41421…` are one value.

A decimal stands for every value that rounds to the decimal, or begins with its digits: 3.14 and 3.1416 stand for π,
3.15 does not. The unit of a decimal is the place of its last digit: 0.01 for 3.14, 100 for 1200, 10³ for 5 · 10³.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

from harness.answers.grammar.tree import Node, symbols
from harness.grading.compare.exact import exact


def is_same_or_rounded(left: Node, right: Node) -> bool | None:
    """Whether two values are equal, or one is a rounded decimal of the other; None if that cannot be decided.

    Numbers cannot check a chain with letters, such as `x = 2a ≈ 1.4a`; it counts as equal.
    """
    from harness.grading.compare.numeric import number_of, same_number
    from harness.grading.compare.point import NotNumeric

    try:
        left_value, right_value = number_of(left), number_of(right)
    except NotNumeric:
        # A chain with letters cannot be checked by numbers, and is not held against the answer.
        if left == right or symbols(left) or symbols(right):
            return True
        return None if exact(left) is None or exact(right) is None else exact(left) == exact(right)
    equal = same_number(left, right)
    if equal:
        return True
    if _integer(left) is not None and _integer(right) is not None:
        return False  # two integers are no roundings of one another, even if one ends in zeros
    for unit, decimal, value in (
        (_unit(left), left_value, right_value),
        (_unit(right), right_value, left_value),
    ):
        if unit is not None and _stands_for(decimal, value, abs(float(unit))):
            return True
    return equal


def _integer(node: Node) -> Fraction | None:
    """Return the value of `node` if it is an integer, exactly; else None."""
    value = exact(node)
    return value if value is not None and value.denominator == 1 else None


def _stands_for(rounded: Any, value: Any, unit: float) -> bool:
    """Whether `value` rounds to `rounded` in steps of `unit`, or is cut to it."""
    if getattr(rounded, "imag", 0) or getattr(value, "imag", 0):
        return False
    # The unit is a float and the value is exact: so a little over one half, and below a little under one.
    if abs(value - rounded) <= unit * 0.5000001:
        return True
    cut_off = (value - rounded) * (1 if value > 0 else -1)  # the digits that were cut, with the sign of the value
    return bool(0 <= cut_off < unit * 0.9999999)


def _unit(node: Node) -> Fraction | None:
    """Return what 1 in the last digit of a decimal is worth: 0.01 of 1.41; None if `node` is no decimal.

    Percentages and multiples by exact factors count, too: 0.001 of 14.1 %.
    """
    if node.op == "neg":
        return _unit(node.args[0])
    if node.op == "pct":
        unit = _unit(node.args[0])
        return None if unit is None else unit / 100
    if node.op == "num":
        value, places = node.args
        if places >= 0:
            return Fraction(1, 10**places)
        return Fraction(_power_of_ten_in(value.numerator)) if value.denominator == 1 and value else None
    if node.op == "mul":  # 3.14 · 10³
        unit = _unit(node.args[0])
        factors = list(map(exact, node.args[1:]))
        if unit is None or not all(factor is not None and _is_power_of_ten(factor) for factor in factors):
            return None
        return unit * prod(factor for factor in factors if factor is not None)
    return None


def _is_power_of_ten(number: Fraction) -> bool:
    """Whether the number is 10 to an integer exponent."""
    if number <= 0:
        return False
    whole = number if number >= 1 else 1 / number
    return whole.denominator == 1 and _power_of_ten_in(whole.numerator) == whole


def _power_of_ten_in(number: int) -> int:
    """Return the largest power of ten that divides `number`, which is not 0."""
    power = 1
    while number % (10 * power) == 0:
        power *= 10
    return power
