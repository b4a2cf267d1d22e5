"""The exact value of a tree: a rule for each kind of node, in the arithmetic of `radicals`.

A tree without an exact value here, for example one with a letter, raises `NotExact`; `scalars` then tries its other
methods. Each rule estimates the size of its result before it computes the result.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial, gcd, lcm, prod

from harness.answers.bounds import MAX_DEPTH
from harness.answers.grammar.tree import Node, num, substitute
from harness.grading.bounds import MAX_BITS, MAX_FACTORIAL, MAX_RANGE, MAX_TERMS
from harness.grading.compare.radicals import (
    ONE,
    Monomial,
    NotExact,
    Undefined,
    Value,
    add,
    divide,
    factors,
    multiply,
    of,
    power,
    rational,
    scale,
)

_MAX_KNOWN = 128
"""Number of trees whose values are cached; one value may take half a megabyte."""


def exact(node: Node) -> Value:
    """Return the value of a closed form, canonical: equal values have equal dicts. Raises `NotExact`, `Undefined`.

    The dict belongs to the cache, and must not be changed.
    """
    value = _cached_value(node)
    if isinstance(value, NotExact):
        # A new exception, for the cached one would get a longer traceback with each raise.
        raise type(value)(*value.args)
    return value


@lru_cache(maxsize=_MAX_KNOWN)
def _cached_value(node: Node) -> Value | NotExact:
    """Return the value of a tree, or the exception that says why it has none.

    Cached, since a comparison, a near miss and a vote need the same values.
    """
    try:
        return _exact(node, 0)
    except NotExact as error:
        return type(error)(*error.args)  # without its traceback, which would keep the trees alive


def _exact(node: Node, depth: int) -> Value:
    """Return the exact value of a node. depth: how deep the node is nested. Raises `NotExact`."""
    if depth > 4 * MAX_DEPTH:
        raise NotExact("nested too deeply")
    rule = _RULES.get(node.op)
    if rule is None:
        raise NotExact(node.op)
    value = rule(node, depth + 1)
    if len(value) > MAX_TERMS:
        raise NotExact("too many terms")
    return value


# --- one rule for each kind of node ---
def _add(node: Node, depth: int) -> Value:
    """Compute a sum."""
    total: Value = {}
    for term in node.args:
        total = add(total, _exact(term, depth))
    return total


def _mul(node: Node, depth: int) -> Value:
    """Compute a product."""
    result = of(1)
    for factor in node.args:
        result = multiply(result, _exact(factor, depth))
    return result


def _pow(node: Node, depth: int) -> Value:
    """Compute a power: of e as a monomial, of any other base by `radicals.power`.

    depth: how many levels of the formula stand above this part; too many raise.
    """
    base, exponent = node.args
    raised = rational(_exact(exponent, depth))
    if base.op == "const" and base.args[0] == "e":
        if raised is None:
            raise NotExact("a power of e")
        return {Monomial((), Fraction(0), raised, 0): Fraction(1)}
    if raised is None:
        raise NotExact("an irrational exponent")
    return power(_exact(base, depth), raised)


def _root(node: Node, depth: int) -> Value:
    """Compute a root with an integer degree."""
    degree = rational(_exact(node.args[0], depth))
    if degree is None or degree.denominator != 1 or not 0 < degree.numerator < 1000:
        raise NotExact("the degree of a root")
    return power(_exact(node.args[1], depth), 1 / degree)


def _const(node: Node, _depth: int) -> Value:
    """Return the value of a constant: π, e or i."""
    name = node.args[0]
    if name == "pi":
        return {ONE._replace(pi=Fraction(1)): Fraction(1)}
    if name == "e":
        return {ONE._replace(e=Fraction(1)): Fraction(1)}
    if name == "i":
        return {ONE._replace(i=1): Fraction(1)}
    raise NotExact(name)


def _base(node: Node, _depth: int) -> Value:
    """Compute a number that is written in another base than ten."""
    digits, base = node.args
    value = digits_in_base(digits, base)
    if value is None:
        raise NotExact("a digit is not below its base")
    return of(value)


def digits_in_base(digits: str, base: int) -> Fraction | None:
    """Return the value of `digits` in `base`; None if the base is not 2 to 36 or has no such digits."""
    # `int` takes time quadratic in the digits unless the base is a power of 2.
    if not 2 <= base <= 36 or len(digits) > 400:
        return None
    whole, _, fraction = digits.lower().partition(".")
    try:
        return Fraction(int(whole + fraction, base), base ** len(fraction))
    except ValueError:
        return None


def _fn(node: Node, depth: int) -> Value:
    """Compute a function of `_FUNCTIONS` with rational arguments.

    depth: how many levels of the formula stand above this part; too many raise.
    """
    name, *arguments = node.args
    rule = _FUNCTIONS.get(name)
    if rule is None:
        raise NotExact(name)
    values = [rational(_exact(argument, depth)) for argument in arguments]
    # floor, max or sgn of an irrational argument needs digits, which `numeric` computes.
    if any(value is None for value in values):
        raise NotExact(name)
    try:
        return rule(*(value for value in values if value is not None))
    except TypeError as error:  # a function written with the wrong number of arguments
        raise NotExact(name) from error


def _integers(*values: Fraction) -> list[int]:
    """Return the values as integers. Raises `NotExact` if one of them is no integer."""
    if any(value.denominator != 1 for value in values):
        raise NotExact("integers expected")
    return [value.numerator for value in values]


def _factorial(value: Fraction) -> Value:
    """Compute n!."""
    (number,) = _integers(value)
    if number < 0 or number > MAX_FACTORIAL:
        raise NotExact("a factorial")
    return of(factorial(number))


def _double_factorial(value: Fraction) -> Value:
    """Compute n!! = n (n − 2) (n − 4) …."""
    (number,) = _integers(value)
    if number < 0 or number > MAX_FACTORIAL:
        raise NotExact("a factorial")
    return of(prod(range(number, 0, -2)))


def _binomial(upper: Fraction, lower: Fraction) -> Value:
    """Return the binomial coefficient C(upper, lower). Raises `NotExact` if it is too large or they are no integers."""
    n, k = _integers(upper, lower)
    # C(n, k) is below n^min(k, n − k).
    if n < 0 or k < 0 or min(k, n - k) * max(n, 1).bit_length() > MAX_BITS:
        raise NotExact("a binomial coefficient")
    return of(comb(n, k))


def _arrangements(upper: Fraction, lower: Fraction) -> Value:
    """Compute n! / (n − k)!, the number of arrangements of k of n things."""
    n, k = _integers(upper, lower)
    if not 0 <= k <= n <= 2_000:
        raise NotExact("arrangements")
    return of(factorial(n) // factorial(n - k))


def _mod(left: Fraction, right: Fraction) -> Value:
    if right == 0:
        raise Undefined("modulo zero")
    return of(left % right)


def _logarithm(value: Fraction, base: Fraction = Fraction(10)) -> Value:
    """Return the logarithm of a rational power of the base. Raises `NotExact` for any other value."""
    if value <= 0 or base <= 0 or base == 1:
        raise NotExact("a logarithm")
    if value == 1:
        return {}
    tops, bottoms = dict(_signed_factors(value)), dict(_signed_factors(base))
    # A logarithm of rational numbers is rational only if both have the same primes, in one proportion.
    if tops.keys() != bottoms.keys():
        raise NotExact("a logarithm")
    ratios = {Fraction(tops[prime], bottoms[prime]) for prime in tops}
    if len(ratios) != 1:
        raise NotExact("a logarithm")
    return of(ratios.pop())


def _natural_logarithm(value: Fraction) -> Value:
    """Return ln of a rational number if it is rational, which only ln 1 is. Raises `NotExact` for any other number."""
    if value == 1:
        return {}
    raise NotExact("a logarithm")


def _signed_factors(value: Fraction) -> list[tuple[int, int]]:
    """Return (prime, exponent) of a rational number; exponents of the denominator are negative."""
    return factors(value.numerator) + [(prime, -count) for prime, count in factors(value.denominator)]


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "factorial": _factorial,
    "double factorial": _double_factorial,
    "binom": _binomial,
    "arrangements": _arrangements,
    "floor": lambda value: of(value.numerator // value.denominator),
    "ceil": lambda value: of(-((-value.numerator) // value.denominator)),
    "abs": lambda value: of(abs(value)),
    "sgn": lambda value: of((value > 0) - (value < 0)),
    "mod": _mod,
    "gcd": lambda *values: of(gcd(*_integers(*values))),
    "lcm": lambda *values: of(lcm(*_integers(*values))),
    "max": lambda *values: of(max(values)),
    "min": lambda *values: of(min(values)),
    "log": _logarithm,
    "lg": _logarithm,
    "ln": _natural_logarithm,
    "exp": lambda value: {Monomial((), Fraction(0), value, 0): Fraction(1)},
}


def _sum(node: Node, depth: int) -> Value:
    """Compute a sum or product with integer limits, term by term.

    depth: how many levels of the formula stand above this part; too many raise.
    """
    name, variable, start, end, body = node.args
    limits = [rational(_exact(limit, depth)) for limit in (start, end)]
    if any(limit is None or limit.denominator != 1 for limit in limits) or variable.op not in ("sym", "const"):
        raise NotExact("limits")
    low, high = (int(limit) for limit in limits if limit is not None)
    if high - low > MAX_RANGE:
        raise NotExact("too many terms")
    total = of(0) if name == "sum" else of(1)
    for step in range(low, high + 1):
        term = _exact(substitute(body, variable, num(step)), depth)
        total = add(total, term) if name == "sum" else multiply(total, term)
    return total


def _determinant(node: Node, depth: int) -> Value:
    """Return the determinant of the matrix in `node`. Raises `NotExact` for over 6 rows, or if it is not square.

    depth: how many levels of the formula stand above this part; too many raise.
    """
    rows = [[_exact(cell, depth) for cell in row] for row in node.args[0].args]
    # The expansion takes n! products: 720 for 6 rows.
    if len(rows) > 6 or any(len(row) != len(rows) for row in rows):
        raise NotExact("a determinant")
    return _expand(rows)


def _expand(rows: list[list[Value]]) -> Value:
    """Return the determinant of a square matrix, by its first row."""
    if len(rows) == 1:
        return rows[0][0]
    total: Value = {}
    for column, cell in enumerate(rows[0]):
        if cell:
            minor = multiply(cell, _expand([row[:column] + row[column + 1 :] for row in rows[1:]]))
            total = add(total, minor if column % 2 == 0 else scale(minor, Fraction(-1)))
    return total


_RULES: dict[str, Callable[[Node, int], Value]] = {
    "num": lambda node, _depth: of(node.args[0]),
    "const": _const,
    "neg": lambda node, depth: scale(_exact(node.args[0], depth), Fraction(-1)),
    "add": _add,
    "mul": _mul,
    "div": lambda node, depth: divide(_exact(node.args[0], depth), _exact(node.args[1], depth)),
    "pow": _pow,
    "root": _root,
    "base": _base,
    "det": _determinant,
    "fn": lambda node, depth: _sum(node, depth) if node.args[0] in ("sum", "prod") else _fn(node, depth),
    "pct": lambda node, depth: scale(_exact(node.args[0], depth), Fraction(1, 100)),
}
