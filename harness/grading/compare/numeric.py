"""Values by numbers: a tree evaluated at a point, closed forms to 50 and then 200 digits.

All numbers are kept small before they are computed: a power, factorial or exponential whose result would be huge is
refused.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any
from zlib import crc32

import mpmath

from harness.answers.bounds import MAX_DEPTH
from harness.answers.grammar.tree import I, Node, substitute, sym, symbols, walk
from harness.grading.bounds import CERTAIN_DIGITS, IDENTITY_DIGITS, MAX_EVALUATIONS, MAX_RANGE
from harness.grading.compare.exact import digits_in_base

ROUGH_DIGITS = 15
"""Digits that two values with an integral in them must share."""

_INTEGRAL_DIGITS = 25
_INTEGRAL_COST = MAX_EVALUATIONS // 40
"""Nodes of the budget that an integral uses besides those it evaluates."""

_MAX_LOG2 = 100_000.0
_MAX_ARGUMENT = 1e12


class NotNumeric(ValueError):
    """The node has no number here, or computing it would break a bound."""


@cache
def _context(digits: int) -> Any:
    """An arithmetic of its own for each precision, so that the global one is never changed."""
    context = mpmath.mp.clone()
    context.dps = digits
    return context


class Point:
    """One evaluation: digits, values of the variables, and a budget of nodes that several evaluations share."""

    def __init__(
        self,
        digits: int,
        index: int,
        budget: list[int],
        *,
        integers: bool = False,
        negative: bool = False,
        stretch: int | Fraction = 1,
        complex_values: bool = False,
    ):
        self.mp = _context(digits)
        self.index = index
        self.budget = budget
        self.integers = integers
        self.negative = negative
        self.stretch = stretch
        self.complex_values = complex_values
        self.rough = False
        self.bound: dict[str, Any] = {}

    def variable(self, name: str) -> Any:
        """The value of a variable at this point: between 0.3 and 2.3, of either sign, or a small integer."""
        if name in self.bound:
            return self.bound[name]
        state = crc32(f"{name} {self.index}".encode("utf-8", "surrogatepass"))
        if self.integers:
            return self.mp.mpf(2 + (state >> 4) % (11 * int(self.stretch)) + (self.index & 1))
        value = self.mp.mpf(state % 1_999_993) / 999_983 + self.mp.mpf(3) / 10
        value = value * self.stretch.numerator / self.stretch.denominator
        if self.complex_values:
            return self.mp.mpc(value, self.mp.mpf(state % 999_979) / 499_979 - self.mp.mpf(7) / 10)
        return -value if self.negative and state & 1 else value

    def value(self, node: Node, depth: int = 0) -> Any:
        """The number that `node` is. Raises `NotNumeric`."""
        self.budget[0] -= 1
        if self.budget[0] < 0 or depth > 4 * MAX_DEPTH:
            raise NotNumeric("too much to compute")
        op, args = node
        mp = self.mp
        depth += 1
        if op == "num":
            if max(args[0].numerator.bit_length(), args[0].denominator.bit_length()) > _MAX_LOG2:
                raise NotNumeric("too large")
            return mp.mpf(args[0].numerator) / args[0].denominator
        if op == "sym":
            return self.variable(args[0])
        if op == "const":
            if args[0] == "i":
                return mp.mpc(0, 1)
            if args[0] in ("pi", "e"):
                return +getattr(mp, args[0])
            raise NotNumeric(args[0])
        if op == "add":
            return mp.fsum(self.value(term, depth) for term in args)
        if op == "mul":
            product = mp.mpf(1)
            for factor in args:
                product = product * self.value(factor, depth)
            return product
        if op == "neg":
            return -self.value(args[0], depth)
        if op == "div":
            bottom = self.value(args[1], depth)
            if bottom == 0:
                raise NotNumeric("division by zero")
            return self.value(args[0], depth) / bottom
        if op == "pow":
            return self.power(args[0], args[1], depth)
        if op == "root":
            return self.root(self.value(args[1], depth), self.value(args[0], depth))
        if op == "deg":
            return self.value(args[0], depth) * mp.pi / 180
        if op == "pct":
            return self.value(args[0], depth) / 100
        if op == "fn":
            return self.function(args[0], args[1:], depth)
        if op == "apply":
            return self.variable(f"apply {node!r}")
        if op == "base":
            value = digits_in_base(*args)
            if value is None:
                raise NotNumeric("digits that the base has not")
            return mp.mpf(value.numerator) / value.denominator
        raise NotNumeric(op)

    def power(self, base_node: Node, exponent_node: Node, depth: int) -> Any:
        mp = self.mp
        base, exponent = self.value(base_node, depth), self.value(exponent_node, depth)
        if base == 0:
            if mp.re(exponent) > 0:
                return mp.mpf(0)
            raise NotNumeric("a power of zero")
        size = abs(exponent) * (abs(mp.log(abs(base), 2)) + (4 if mp.im(base) or mp.re(base) < 0 else 0))
        if size > _MAX_LOG2:
            raise NotNumeric("too large a power")
        if exponent_node.op == "div" and mp.im(base) == 0 and base < 0:
            top, bottom = (self.value(part, depth) for part in exponent_node.args)
            if bottom == int(mp.re(bottom)) and int(mp.re(bottom)) % 2 == 1 and top == int(mp.re(top)):
                return self.root(base, bottom) ** int(mp.re(top))
        return mp.power(base, exponent)

    def root(self, radicand: Any, degree: Any) -> Any:
        mp = self.mp
        if mp.im(degree) or degree != int(degree) or not 0 < degree < 1000:
            raise NotNumeric("the degree of a root")
        if int(degree) % 2 == 1 and mp.im(radicand) == 0 and radicand < 0:
            return -mp.root(-radicand, int(degree))
        if radicand == 0:
            return mp.mpf(0)
        return mp.sqrt(radicand) if degree == 2 else mp.root(radicand, int(degree))

    def function(self, name: str, arguments: tuple[Any, ...], depth: int) -> Any:
        mp = self.mp
        if name in ("sum", "prod"):
            return self.expanded(name, arguments, depth)
        if name == "int":
            return self.integral(arguments, depth)
        values = [self.value(argument, depth) for argument in arguments]
        if name == "bar" and I in walk(arguments[0]) and not symbols(arguments[0]):
            return mp.conj(values[0])
        if any(abs(value) > _MAX_ARGUMENT for value in values):
            raise NotNumeric("too large an argument")
        x = values[0]
        if name in _ELEMENTARY:
            if len(values) != 1:
                raise NotNumeric("too many arguments")
            if name in ("exp", "sinh", "cosh", "tanh", "coth", "sech", "csch") and abs(x) > 50_000:
                raise NotNumeric("too large an argument")
            try:
                return getattr(mp, _ELEMENTARY[name])(x)
            except (ZeroDivisionError, ValueError) as error:
                raise NotNumeric(name) from error
        if name in ("ln", "log", "lg"):
            if any(value == 0 for value in values) or (len(values) == 2 and values[1] == 1):
                raise NotNumeric("a logarithm")
            if name == "ln":
                return mp.log(x)
            return mp.log(x) / mp.log(values[1] if len(values) > 1 else 10)
        if name == "abs":
            return abs(x)
        if name == "Re":
            return mp.re(x)
        if name == "Im":
            return mp.im(x)
        if name == "arg":
            return mp.arg(x)
        if any(mp.im(value) for value in values):
            raise NotNumeric("a complex argument")
        return self.real_function(name, values)

    def real_function(self, name: str, values: list[Any]) -> Any:
        mp = self.mp
        x = values[0]
        if name == "floor":
            return mp.floor(x)
        if name == "ceil":
            return mp.ceil(x)
        if name == "sgn":
            return mp.sign(x)
        if name == "factorial":
            if not -0.999 < x < 3_000:
                raise NotNumeric("a factorial")
            return mp.factorial(x)
        if name == "double factorial":
            if not -0.999 < x < 3_000:
                raise NotNumeric("a factorial")
            return mp.fac2(x)
        if name == "binom" and len(values) == 2:
            if max(abs(x), abs(values[1])) > 3_000 or x < 0:
                raise NotNumeric("a binomial coefficient")
            return mp.binomial(x, values[1])
        if name == "mod" and len(values) == 2 and values[1] != 0:
            return x - values[1] * mp.floor(x / values[1])
        if name == "max":
            return max(values)
        if name == "min":
            return min(values)
        raise NotNumeric(name)

    def integral(self, arguments: tuple[Any, ...], depth: int) -> Any:
        r"""`\int_a^b f dx` by Gauss and Legendre, to about 20 digits for smooth f; the node budget bounds the work."""
        from harness.answers.grammar.tree import integrand

        parts = integrand(arguments)
        if parts is None:
            raise NotNumeric("an integral")
        low, high, variable, body = parts
        # Fewer digits than elsewhere: the places of the method are expensive to compute.
        inner = Point(_INTEGRAL_DIGITS, self.index, self.budget, integers=self.integers, negative=self.negative)
        inner.stretch = self.stretch
        inner.bound = dict(self.bound)
        ends = [inner.value(low, depth), inner.value(high, depth)]
        if any(inner.mp.im(end) for end in ends):
            raise NotNumeric("limits")
        self.rough = True
        name = f"bound {variable}"
        body = substitute(body, sym(variable), sym(name))
        self.budget[0] -= _INTEGRAL_COST

        def integrand_at(abscissa: Any) -> Any:
            inner.bound[name] = abscissa
            return inner.value(body, depth)

        return inner.mp.quad(integrand_at, ends, method="gauss-legendre", maxdegree=4)

    def expanded(self, name: str, arguments: tuple[Any, ...], depth: int) -> Any:
        mp = self.mp
        variable, start, end, body = arguments
        low, high = self.value(start, depth), self.value(end, depth)
        if variable.op not in ("sym", "const") or mp.im(low) or mp.im(high) or low != int(low) or high != int(high):
            raise NotNumeric("limits")
        if high - low > MAX_RANGE:
            raise NotNumeric("too many terms")
        name_inside = f"bound {variable.args[0]}"
        body = substitute(body, variable, sym(name_inside))
        total = mp.mpf(0 if name == "sum" else 1)
        for step in range(int(low), int(high) + 1):
            self.bound[name_inside] = mp.mpf(step)
            term = self.value(body, depth)
            total = total + term if name == "sum" else total * term
        self.bound.pop(name_inside, None)
        return total


_ELEMENTARY = {
    "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "coth": "coth", "sech": "sech", "csch": "csch", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan",
    "arccot": "acot", "arcsec": "asec", "arccsc": "acsc", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "exp": "exp",
}  # fmt: skip


def close(left: Any, right: Any, digits: int) -> bool:
    """Equal to `digits` significant digits."""
    difference = abs(left - right)
    if difference == 0:
        return True
    return bool(difference <= max(abs(left), abs(right)) * 10.0**-digits)


def number_of(node: Node, digits: int = 30) -> Any:
    """A closed form to `digits` digits (mpf or mpc). Raises `NotNumeric`."""
    if symbols(node):
        raise NotNumeric("variables")
    return guarded(Point(digits + 10, 0, [MAX_EVALUATIONS]), node)


def same_number(left: Node, right: Node) -> bool | None:
    """Are two closed forms the same number? None when one of them has no number."""
    budget = [MAX_EVALUATIONS]
    for digits in (IDENTITY_DIGITS, CERTAIN_DIGITS):
        point = Point(digits + 15, 0, budget)
        try:
            left_value, right_value = guarded(point, left), guarded(point, right)
        except NotNumeric:
            return None
        if point.rough:
            return close(left_value, right_value, ROUGH_DIGITS)
        # A cancellation to (almost) zero has no significant digits; it is compared absolutely.
        if not close(left_value, right_value, digits) and abs(left_value - right_value) > 10.0**-digits:
            return False
        if abs(left_value) < 10.0**-digits and abs(right_value) < 10.0**-digits and left_value != right_value:
            continue
    return True


def guarded(point: Point, node: Node) -> Any:
    """The finite number that `node` is at `point`. Raises `NotNumeric`."""
    try:
        value = point.value(node)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        if isinstance(error, NotNumeric):
            raise
        raise NotNumeric(str(error)) from error
    if not (point.mp.isfinite(value)):
        raise NotNumeric("infinite")
    return value
