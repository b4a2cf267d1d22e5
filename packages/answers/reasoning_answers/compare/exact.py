"""The exact value of a tree: a rule for each kind of node, in rational numbers.

A tree may have no rational value here, such as √2 and any tree with a letter; `scalars` then tries its other methods.
Each rule estimates the size of its result before it computes the result.

At the end, rounded decimals: whether two parts of a chain such as `√2 ≈ 1.414 = 1.41421…` are one value. A decimal
stands for every value that rounds to the decimal, or begins with its digits: 3.14 and 3.1416 match π, 3.15 does not.
The unit of a decimal is the place value of its last digit: 0.01 for 3.14, 100 for 1200, 10³ for 5 · 10³.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial, gcd, isqrt, lcm, log2, prod
from typing import Any

from reasoning_answers.bounds import MAX_BITS, MAX_DEPTH, MAX_FACTORIAL, MAX_POWER_BITS, MAX_RANGE, MIN_ROUNDED
from reasoning_answers.codec import digest
from reasoning_answers.compare.numeric import number_of, real_of, same_number
from reasoning_answers.compare.point import NotNumeric
from reasoning_answers.grammar.tree import Node, num, substitute, symbols

_MAX_KNOWN = 128
"""Number of trees whose values are cached; one value may take 25 kilobytes."""

_MAX_WRITTEN_BITS = 10_000

_MAX_DEGREE = 1_000
"""Largest degree of a root that is computed."""


class NotExact(ValueError):
    """The node has no rational value here, or computing it would exceed a limit."""


class Undefined(NotExact):
    """The node has no value at all: a division by zero, or zero to a power that is not positive."""


def exact(node: Node) -> Fraction | None:
    """Return the value of a closed form; None if it has no rational value here."""
    value = _cached_value(node)
    return None if isinstance(value, NotExact) else value


def is_undefined(node: Node) -> bool:
    """Whether a closed form has no value because it divides by zero or does something similar."""
    return isinstance(_cached_value(node), Undefined)


def written(value: Fraction) -> str:
    """Return `value` in decimal digits; a number too long for Python to print, as its size and a checksum."""
    bits = max(value.numerator.bit_length(), value.denominator.bit_length())
    if bits <= _MAX_WRITTEN_BITS:
        return str(value)
    return f"a number of {bits:,} bits, {digest(f'{value.numerator:x}/{value.denominator:x}')}"


@lru_cache(maxsize=_MAX_KNOWN)
def _cached_value(node: Node) -> Fraction | NotExact:
    """Return the value of a tree, or the exception that explains why it has none.

    Cached, since a comparison, a near miss and a vote need the same values.
    """
    try:
        return _exact(node, 0)
    except NotExact as error:
        return type(error)(*error.args)  # without its traceback, which would keep the trees alive


def _exact(node: Node, depth: int) -> Fraction:
    """Return the exact value of a node. depth: how deep the node is nested. Raises `NotExact`."""
    if depth > 4 * MAX_DEPTH:
        raise NotExact("nested too deeply")
    rule = _RULES.get(node.op)
    if rule is None:
        raise NotExact(node.op)
    value = rule(node, depth + 1)
    if node.op not in ("pow", "neg"):
        _check_size(value)
    return value


def _check_size(value: Fraction) -> None:
    """Raise `NotExact` for a number beyond `MAX_BITS`."""
    if value.numerator.bit_length() > MAX_BITS or value.denominator.bit_length() > MAX_BITS:
        raise NotExact("too large")


# --- one rule for each kind of node ---
def _values(node: Node, depth: int) -> list[Fraction]:
    """Return the values of the parts of a node."""
    return [_exact(part, depth) for part in node.args]


def _mul(node: Node, depth: int) -> Fraction:
    """Compute a product, checking its size at each factor."""
    result = Fraction(1)
    for factor in _values(node, depth):
        result *= factor
        _check_size(result)
    return result


def _div(node: Node, depth: int) -> Fraction:
    top, bottom = _values(node, depth)
    if not bottom:
        raise Undefined("division by zero")
    return top / bottom


def _pow(node: Node, depth: int) -> Fraction:
    """Compute a power; the root of a negative number is the real root, as in school: the cube root of -8 is -2."""
    base, exponent = _values(node, depth)
    if not base and exponent <= 0:
        raise Undefined("a power of zero")
    if exponent.denominator != 1:
        if exponent.denominator >= _MAX_DEGREE:
            raise NotExact("an invalid root degree")
        base = _root(base, exponent.denominator)
    size = max(abs(base.numerator), base.denominator)
    if exponent.numerator.bit_length() > MAX_POWER_BITS.bit_length() or (
        abs(exponent.numerator) * log2(size) > MAX_POWER_BITS
    ):
        raise NotExact("a power that is too large")
    return base**exponent.numerator


def _root(number: Fraction, degree: int) -> Fraction:
    """Return the root of a rational number if it is rational. Raises `NotExact` for any other root."""
    if number < 0 and degree % 2 == 0:
        raise NotExact("a complex root")
    parts = [_whole_root(abs(number.numerator), degree), _whole_root(number.denominator, degree)]
    return Fraction(*parts) * (-1 if number < 0 else 1)


def _whole_root(number: int, degree: int) -> int:
    """Return the root of an integer if it is an integer. Raises `NotExact` for any other root."""
    if degree == 2:
        root = isqrt(number)
    else:
        low, high = 0, 1 << -(-number.bit_length() // degree)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
        root = low
    if root**degree != number:
        raise NotExact("an irrational root")
    return root


def _base(node: Node, _depth: int) -> Fraction:
    """Compute a number written in a base other than ten."""
    value = digits_in_base(*node.args)
    if value is None:
        raise NotExact("a digit that is too large for its base")
    return value


def digits_in_base(digits: str, base: int) -> Fraction | None:
    """Return the value of `digits` in `base`; None if the base is not 2 to 36 or a digit is not valid in it."""
    # `int` takes time quadratic in the digits unless the base is a power of 2.
    if not 2 <= base <= 36 or len(digits) > 400:
        return None
    whole, _, fraction = digits.lower().partition(".")
    try:
        return Fraction(int(whole + fraction, base), base ** len(fraction))
    except ValueError:
        return None


def _fn(node: Node, depth: int) -> Fraction:
    """Compute a function of `_FUNCTIONS`, a sum or a product."""
    name, *arguments = node.args
    if name in ("sum", "prod"):
        return _sum(node, depth)
    rule = _FUNCTIONS.get(name)
    if rule is None:
        raise NotExact(name)
    try:
        return Fraction(rule(*(_exact(argument, depth) for argument in arguments)))
    except TypeError as error:  # a function written with the wrong number of arguments
        raise NotExact(name) from error


def _integers(*values: Fraction) -> list[int]:
    """Return the values as integers. Raises `NotExact` if one of them is not an integer."""
    if any(value.denominator != 1 for value in values):
        raise NotExact("arguments that are not integers")
    return [value.numerator for value in values]


def _factorial(value: Fraction) -> int:
    (number,) = _integers(value)
    if number < 0 or number > MAX_FACTORIAL:
        raise NotExact("a factorial")
    return factorial(number)


def _binomial(upper: Fraction, lower: Fraction) -> int:
    """Return the binomial coefficient C(upper, lower). Raises `NotExact` if it is too large or not integral."""
    n, k = _integers(upper, lower)
    # C(n, k) is below n^min(k, n − k).
    if n < 0 or k < 0 or min(k, n - k) * max(n, 1).bit_length() > MAX_BITS:
        raise NotExact("a binomial coefficient")
    return comb(n, k)


def _mod(left: Fraction, right: Fraction) -> Fraction:
    if right == 0:
        raise Undefined("modulo zero")
    return left % right


_FUNCTIONS: dict[str, Callable[..., Fraction | int]] = {
    "factorial": _factorial,
    "binom": _binomial,
    "floor": lambda value: value.numerator // value.denominator,
    "ceil": lambda value: -((-value.numerator) // value.denominator),
    "abs": lambda value: abs(value),
    "sgn": lambda value: (value > 0) - (value < 0),
    "mod": _mod,
    "gcd": lambda *values: gcd(*_integers(*values)),
    "lcm": lambda *values: lcm(*_integers(*values)),
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
}


def _sum(node: Node, depth: int) -> Fraction:
    """Compute a sum or product with integer limits, term by term.

    depth: how many levels of the formula are above this part; too many raise an error.
    """
    name, variable, start, end, body = node.args
    low, high = _integers(_exact(start, depth), _exact(end, depth))
    if variable.op not in ("sym", "const") or high - low > MAX_RANGE:
        raise NotExact("limits")
    total = Fraction(0 if name == "sum" else 1)
    for step in range(low, high + 1):
        term = _exact(substitute(body, variable, num(step)), depth)
        total = total + term if name == "sum" else total * term
        _check_size(total)
    return total


_RULES: dict[str, Callable[[Node, int], Fraction]] = {
    "num": lambda node, _depth: node.args[0],
    "neg": lambda node, depth: -_exact(node.args[0], depth),
    "add": lambda node, depth: sum(_values(node, depth), Fraction(0)),
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "root": lambda node, depth: _pow(Node("pow", (node.args[1], Node("div", (num(1), node.args[0])))), depth),
    "base": _base,
    "fn": _fn,
    "pct": lambda node, depth: _exact(node.args[0], depth) / 100,
}


# --- rounded decimals ---
def is_same_or_rounded(left: Node, right: Node) -> bool | None:
    """Whether two values are equal, or one is a rounded decimal of the other; None if that cannot be decided.

    Numbers cannot check a chain with letters, such as `x = 2a ≈ 1.4a`; it counts as equal.
    """
    try:
        left_value, right_value = number_of(left), number_of(right)
    except NotNumeric:
        # A chain with letters cannot be checked numerically, and does not count against the answer.
        if left == right or symbols(left) or symbols(right):
            return True
        return None if exact(left) is None or exact(right) is None else exact(left) == exact(right)
    equal = same_number(left, right)
    if equal:
        return True
    if _integer(left) is not None and _integer(right) is not None:
        return False  # two integers are not roundings of one another, even if one ends in zeros
    for unit, decimal, value in (
        (_unit(left), left_value, right_value),
        (_unit(right), right_value, left_value),
    ):
        if unit is not None and _stands_for(decimal, value, abs(float(unit))):
            return True
    return equal


def _integer(node: Node) -> Fraction | None:
    """Return the value of `node` if it is exactly an integer; otherwise None."""
    value = exact(node)
    return value if value is not None and value.denominator == 1 else None


def _stands_for(rounded: Any, value: Any, unit: float) -> bool:
    """Whether `value` rounds or truncates to `rounded` in steps of `unit`."""
    if getattr(rounded, "imag", 0) or getattr(value, "imag", 0):
        return False
    # The unit is a float and the value is exact: so use a little over one half, and below a little under one.
    if abs(value - rounded) <= unit * 0.5000001:
        return True
    cut_off = (value - rounded) * (1 if value > 0 else -1)  # the digits that were cut, with the sign of the value
    return bool(0 <= cut_off < unit * 0.9999999)


def _unit(node: Node) -> Fraction | None:
    """Return what 1 in the last digit of a decimal is worth: 0.01 for 1.41; None if `node` is not a decimal.

    Percentages and multiples by exact factors count, too: 0.001 for 14.1 %.
    """
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
    """Whether the number is an integer power of 10."""
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


_DECIMALS = 40
"""Number of decimals of an irrational value that is compared with a rounded one."""


_FLOAT_DIGITS = 15
"""A decimal with at least this many significant digits is a float printed in full, not rounded by hand."""


def decimal_places(node: Node) -> int:
    """Return the decimal places of a literal; -1 for anything else."""
    return int(node.args[1]) if node.op == "num" else -1


def rounds_to(rounded: Node, value: Any) -> bool:
    """Whether `value`, rounded to the decimal places of the literal `rounded`, is that literal."""
    places = decimal_places(rounded)
    if rounded.op != "num" or (places == -1 and rounded.value.denominator == 1):
        return False  # an integer is not rounded
    half = Fraction(1, 2) * Fraction(10) ** -places
    return bool(abs(value - rounded.value) <= half)


def may_be_rounded(reference: Node, answer: Node, answer_exact: Fraction | None) -> bool:
    """Whether the reference is a decimal of at least three significant digits to which the answer rounds."""
    places = decimal_places(reference)
    if places < 1:
        return False
    digits = reference.value
    if digits.denominator == 1 or abs(digits.numerator) * 10**places < MIN_ROUNDED * digits.denominator:
        return False
    value = decimal_value(answer, answer_exact)
    return value is not None and rounds_to(reference, value)


def decimal_value(node: Node, value: Fraction | None) -> Fraction | None:
    """Return `value`, the exact value of `node`, if it has one, otherwise its value to 30 digits; None if it is not
    real or cannot be computed.
    """
    try:
        return real_of(node, 30, _DECIMALS) if value is None else value
    except NotNumeric:
        return None


def float_printout(reference: Node, answer: Node, left: Fraction, right: Fraction) -> bool:
    """Whether one side is a nonterminating fraction and the other its full float, 1/12 and 0.0833333333333333."""
    for literal, decimal, fraction in ((reference, left, right), (answer, right, left)):
        places, bottom = decimal_places(literal), fraction.denominator
        # A fraction whose denominator divides a power of ten, such as 1/8, has an exact decimal: one near it is wrong.
        if places < _FLOAT_DIGITS or 10 ** bottom.bit_length() % bottom == 0:
            continue
        digits = str(abs(decimal.numerator) * 10**places // decimal.denominator).lstrip("0")
        if len(digits) >= _FLOAT_DIGITS and abs(decimal - fraction) < Fraction(10) ** -places:
            return True
    return False
