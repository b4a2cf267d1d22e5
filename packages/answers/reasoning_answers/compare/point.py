"""Evaluation of a tree at a point: at fixed values of its letters, with a given number of digits.

The point records the span of the numbers that occur: how many powers of ten they are from 1. `numeric` explains how the
span determines the number of digits that a comparison needs.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil, log, log10
from typing import Any
from zlib import crc32

import mpmath
from mpmath.libmp import mpf_log, to_float

from reasoning_answers.bounds import MAX_DEPTH, MAX_RANGE
from reasoning_answers.grammar.tree import LEFT_OPEN, I, Node, num, substitute, symbols, walk

NOISE_DIGITS = 20
"""Number of digits at the end of a number that rounding errors may have reached."""

_MAX_LOG2 = 100_000.0
"""Largest |log₂| of a number or power that is computed."""

_MAX_ARGUMENT = 1e12
"""Largest size of a function's argument."""

_MAX_EXPONENTIAL = 50_000
"""Largest size of the argument of an exponential or hyperbolic function."""

_MAX_GAMMA_DIGITS = 400
"""Largest number of digits for the factorial of a non-integer: with more, it takes seconds."""

_LOG10_OF_2 = log10(2)
_LOG10_OF_E = 0.4342944819


class NotNumeric(ValueError):
    """The node has no value here, or computing it would exceed a limit."""


class Vanishing(NotNumeric):
    """A divisor or similar quantity is 0, perhaps only because there are too few digits."""


@cache
def _context(digits: int) -> Any:
    """Return the mpmath context for a precision, so that the global context never changes."""
    context = mpmath.mp.clone()
    context.dps = digits
    return context


class Point:
    """Evaluates trees at one point, with a fixed number of digits.

    index: number of the point; each point gives the variables different values. budget: evaluations left, shared by
    several points; an evaluation with more digits costs more. integers, negative, stretch: which values
    the variables take. span, sum_of_spans: largest |log₁₀ v| of a number v that occurred so far, and the sum of all of
    them (see `numeric`).
    """

    def __init__(
        self,
        digits: int,
        index: int,
        budget: list[int],
        *,
        integers: bool = False,
        negative: bool = False,
        stretch: int | Fraction = 1,
    ):
        self.mp = _context(digits)
        self.digits = digits
        self.index = index
        self.budget = budget
        self.integers = integers
        self.negative = negative
        self.stretch = stretch
        self.span = 0.0
        self.sum_of_spans = 0.0
        # A product of long numbers takes time about quadratic in their digits.
        self._cost = 1 + (digits // 200) ** 2

    def variable(self, name: str) -> Any:
        """Return the value of a letter here: a pseudorandom number from 0.3 to 2.3 times `stretch`, which
        the point may make negative or a small integer.
        """
        hashed = crc32(f"{name} {self.index}".encode("utf-8", "surrogatepass"))
        if self.integers:
            # One of 11 values from 2 on; `stretch` times as many. Every other point adds 1, so that a letter to which
            # chance assigns one value at all points is even at some and odd at others. The 11 and the 4 are arbitrary.
            return self.mp.mpf(2 + (hashed >> 4) % (11 * int(self.stretch)) + (self.index & 1))
        # Both numbers are primes, so that no two letters have a simple ratio by chance.
        value = self.mp.mpf(hashed % 1_999_993) / 999_983 + self.mp.mpf(3) / 10
        value = value * self.stretch.numerator / self.stretch.denominator
        return -value if self.negative and hashed & 1 else value

    # --- span and noise ---
    def tolerance(self) -> Any:
        """Return the relative error that rounding may cause: 10^(2 span + NOISE_DIGITS − digits), at most 1."""
        return self.mp.mpf(10) ** min(0, ceil(2 * self.span) - (self.digits - NOISE_DIGITS))

    def widen_span(self, value: Any) -> None:
        """Raise `span` to |log₁₀ value| if that is larger: more digits may then be affected by rounding errors."""
        # Exponent and length from mpmath's own tuple: a logarithm of every value would be slow.
        for part in (value._mpf_,) if hasattr(value, "_mpf_") else value._mpc_:
            if part[1]:
                self._note(abs(part[2] + part[3]) * _LOG10_OF_2)

    def _note(self, span: float) -> None:
        """Add one number's span to `span`, the largest, and to `sum_of_spans`."""
        self.span = max(self.span, span)
        self.sum_of_spans += span

    def without_noise(self, value: Any, scale: Any) -> Any:
        """Return `value` with its real or imaginary part set to 0 if it is only the rounding error of a number as large
        as `scale`.
        """
        # The formula of `tolerance`, but at most 10^-NOISE_DIGITS of `scale`: a wide span must not erase a value.
        noise = self.mp.mpf(10) ** min(-NOISE_DIGITS, ceil(2 * self.span) + NOISE_DIGITS - self.digits) * scale
        if hasattr(value, "_mpf_"):
            return value if abs(value) > noise else self.mp.mpf(0)
        real, imaginary = (part if abs(part) > noise else self.mp.mpf(0) for part in (value.real, value.imag))
        return self.mp.mpc(real, imaginary) if imaginary else real

    def rounded(self, value: Any) -> Any:
        """Return `value`, rounded to an integer if rounding errors explain the difference.

        If they do not, the difference from the nearest integer widens the span.
        """
        nearest = self.mp.nint(value)
        gap = self.without_noise(value - nearest, max(self.mp.mpf(1), abs(value)))
        self.widen_span(gap)
        return value if gap else nearest

    # --- nodes ---
    def value(self, node: Node, depth: int = 0) -> Any:
        """Return the numeric value of `node`. Raises `NotNumeric`.

        depth: how many levels of the formula are above this part; too many raise an error.
        """
        self.budget[0] -= self._cost
        if self.budget[0] < 0 or depth > 4 * MAX_DEPTH:
            raise NotNumeric("too many operations")
        value = self.mp.convert(self.operation(node, depth + 1))
        self.widen_span(value)
        return value

    def operation(self, node: Node, depth: int) -> Any:
        """Compute the value of `node` from its parts, by its kind. depth: as in `value`. Raises `NotNumeric`."""
        op, args = node
        mp = self.mp
        if op == "num":
            if max(args[0].numerator.bit_length(), args[0].denominator.bit_length()) > _MAX_LOG2:
                raise NotNumeric("too large")
            # `span` (the digits that numbers of this size need) covers the denominator too, which the quotient hides:
            # 10^60 / (10^60 + 1) is nearly 1, and distinguishing it from 1 takes more than 60 digits.
            self.widen_span(mp.mpf(args[0].denominator))
            return mp.mpf(args[0].numerator) / args[0].denominator
        if op == "sym":
            return self.variable(args[0])
        if op == "const":
            if args[0] == "i":
                return mp.mpc(0, 1)
            if args[0] in ("pi", "e"):
                # The plus rounds mpmath's lazy constant to the digits of this context.
                return +getattr(mp, args[0])
            raise NotNumeric(args[0])
        if op == "add":
            terms = [self.value(term, depth) for term in args]
            return self.without_noise(mp.fsum(terms), max(map(abs, terms)))
        if op == "mul":
            product = mp.mpf(1)
            for factor in args:
                product = product * self.value(factor, depth)
            return product
        if op == "neg":
            return -self.value(args[0], depth)
        if op == "div":
            return self.value(args[0], depth) / self.value(args[1], depth)
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
            # A value of an unknown function is one more letter, named by its argument.
            return self.variable(f"apply {node!r}")
        raise NotNumeric(op)

    def power(self, base_node: Node, exponent_node: Node, depth: int) -> Any:
        """Return `base ** exponent`; for a negative base and a fractional exponent with odd denominator, the real
        value.

        Raises `NotNumeric`: the power is too large. Raises `Vanishing`: a power of zero that is not positive.
        """
        mp = self.mp
        base, exponent = self.value(base_node, depth), self.value(exponent_node, depth)
        if base == 0:
            if mp.re(exponent) > 0:
                return mp.mpf(0)
            raise Vanishing("a power of zero")
        # About |log₂| of the result. The logarithm of a negative or complex base also has an imaginary part,
        # which counts as 4.
        size = abs(exponent) * (abs(_log2(abs(base))) + (4 if mp.im(base) or mp.re(base) < 0 else 0))
        if size > _MAX_LOG2:
            raise NotNumeric("a power that is too large")
        if exponent_node.op == "div" and mp.im(base) == 0 and base < 0:
            top, bottom = (self.value(part, depth) for part in exponent_node.args)
            if bottom == int(mp.re(bottom)) and int(mp.re(bottom)) % 2 == 1 and top == int(mp.re(top)):
                return self.root(base, bottom) ** int(mp.re(top))
        value = mp.power(base, exponent)
        return self.without_noise(value, abs(value))

    def root(self, radicand: Any, degree: Any) -> Any:
        """Return the root of a positive integer degree; for a negative number, the real root if the degree is odd."""
        mp = self.mp
        if mp.im(degree) or degree != int(degree) or not 0 < degree < 1000:
            raise NotNumeric("an invalid root index")
        if int(degree) % 2 == 1 and mp.im(radicand) == 0 and radicand < 0:
            return -mp.root(-radicand, int(degree))
        if radicand == 0:
            return mp.mpf(0)
        return mp.sqrt(radicand) if degree == 2 else mp.root(radicand, int(degree))

    # --- functions ---
    def function(self, name: str, arguments: tuple[Any, ...], depth: int) -> Any:
        """Return the value of a function of real or complex numbers; integrals and limits are not evaluated.

        arguments: trees of the function's arguments.
        """
        mp = self.mp
        if name in ("sum", "prod"):
            return self.sum_or_product(name, arguments, depth)
        if name in LEFT_OPEN:
            raise NotNumeric(name)
        values = [self.value(argument, depth) for argument in arguments]
        # Without i, a bar marks a segment, a mean or a name, not a conjugate.
        if name == "bar" and I in walk(arguments[0]) and not symbols(arguments[0]):
            return mp.conj(values[0])
        if any(abs(value) > _MAX_ARGUMENT for value in values):
            raise NotNumeric("an argument that is too large")
        x = values[0]
        if name in _ELEMENTARY:
            if len(values) != 1:
                raise NotNumeric("too many arguments")
            return self.elementary(name, x)
        if name in ("ln", "log", "lg"):
            if any(value == 0 for value in values) or (len(values) == 2 and values[1] == 1):
                raise Vanishing("a logarithm")
            # Near 1 a logarithm is as small as the error of its argument.
            logarithm = self.without_noise(mp.log(x), mp.mpf(1))
            return logarithm if name == "ln" else logarithm / mp.log(values[1] if len(values) > 1 else 10)
        if name == "abs":
            return abs(x)
        if name in ("Re", "Im", "arg"):
            if symbols(arguments[0]):
                raise NotNumeric("the real or imaginary part of a variable")  # letters are real here, and z is not
            return {"Re": mp.re, "Im": mp.im, "arg": mp.arg}[name](x)
        if any(mp.im(value) for value in values):
            raise NotNumeric("a complex argument")
        return self.real_function(name, values)

    def elementary(self, name: str, x: Any) -> Any:
        """Compute a function of `_ELEMENTARY`; 0 if its value is only the rounding error of its argument."""
        mp = self.mp
        if name in _BRANCHED and not mp.im(x):
            x = self.rounded(x)  # at ±1 a rounding error would change the value by its square root
        if name in _EXPONENTIAL:
            if abs(x) > _MAX_EXPONENTIAL:
                raise NotNumeric("an argument that is too large")
            # tanh x is 1 - 2·exp(-2x) + …: its smallest term is not visible in its value.
            self._note(2 * _LOG10_OF_E * float(abs(mp.re(x))))
        try:
            value = getattr(mp, _ELEMENTARY[name])(x)
        except (ZeroDivisionError, ValueError) as error:
            raise NotNumeric(name) from error
        # `without_noise` would treat an infinity as noise and return 0.
        if not mp.isfinite(value):
            raise NotNumeric(name)
        # Near 0, a small value is not a rounding error: the argument is small.
        may_vanish = name in _WITH_ZEROS and abs(x) > 0.1
        return self.without_noise(value, max(mp.mpf(1), abs(x)) if may_vanish else abs(value))

    def real_function(self, name: str, values: list[Any]) -> Any:
        """Return the value of a function of real numbers; a number that is an integer up to rounding counts as an
        integer.

        Raises `NotNumeric` for an unknown function and for values out of range.
        """
        mp = self.mp
        x = values[0]
        if name == "floor":
            return mp.floor(self.rounded(x))
        if name == "ceil":
            return mp.ceil(self.rounded(x))
        if name == "sgn":
            return mp.sign(x)
        if name in ("factorial", "double factorial"):
            # The gamma function has a pole at -1.
            if not -0.999 < x < 3_000 or (self.digits > _MAX_GAMMA_DIGITS and x != int(x)):
                raise NotNumeric("a factorial")
            return mp.factorial(x) if name == "factorial" else mp.fac2(x)
        if name == "binom" and len(values) == 2:
            integers = all(value == int(value) for value in values)
            if max(abs(x), abs(values[1])) > 3_000 or x < 0 or (self.digits > _MAX_GAMMA_DIGITS and not integers):
                raise NotNumeric("a binomial coefficient")
            return mp.binomial(x, values[1])
        if name == "mod" and len(values) == 2 and values[1] != 0:
            quotient = self.rounded(x / values[1])
            return mp.mpf(0) if quotient == mp.nint(quotient) else x - values[1] * mp.floor(quotient)
        if name in ("max", "min"):
            return max(values) if name == "max" else min(values)
        raise NotNumeric(name)

    def sum_or_product(self, name: str, arguments: tuple[Any, ...], depth: int) -> Any:
        """Compute a sum or product with integer limits, term by term."""
        mp = self.mp
        variable, start, end, body = arguments
        low, high = self.value(start, depth), self.value(end, depth)
        if variable.op != "sym" or mp.im(low) or mp.im(high) or low != int(low) or high != int(high):
            raise NotNumeric("limits")
        if high - low > MAX_RANGE:
            raise NotNumeric("too many terms")
        steps = range(int(low), int(high) + 1)
        terms = [self.value(substitute(body, variable, num(step)), depth) for step in steps]
        if name == "prod":
            return mp.fprod(terms)
        return self.without_noise(mp.fsum(terms), max(map(abs, terms), default=mp.mpf(0)))


_ELEMENTARY = {
    "sin": "sin", "cos": "cos", "tan": "tan", "cot": "cot", "sec": "sec", "csc": "csc", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "coth": "coth", "sech": "sech", "csch": "csch", "arcsin": "asin", "arccos": "acos",
    "arctan": "atan",
    "arccot": "acot", "arcsec": "asec", "arccsc": "acsc", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "exp": "exp",
}  # fmt: skip
"""Functions of one argument, each with its name in mpmath."""

_EXPONENTIAL = frozenset(("exp", "sinh", "cosh", "tanh", "coth", "sech", "csch"))
"""Functions that contain a power of e with their argument."""

_WITH_ZEROS = frozenset(("sin", "cos", "tan", "cot", "arccos", "arccosh", "arcsec"))
"""Functions that are 0 at arguments other than 0."""

_BRANCHED = frozenset(("arcsin", "arccos", "arcsec", "arccsc", "arccosh", "arctanh"))
"""Inverse functions with an endpoint or a pole at 1 or -1."""


def _log2(value: Any) -> float:
    """Return log₂ of a positive number of any precision, to the digits of a float: enough for bounds."""
    return float(to_float(mpf_log(value._mpf_, 53))) / log(2)


def evaluate_at(point: Point, node: Node) -> Any:
    """Return the finite value of `node` at `point`. Raises `NotNumeric`."""
    try:
        value = point.value(node)
    except ZeroDivisionError as error:
        raise Vanishing(str(error)) from error
    except (OverflowError, ValueError, TypeError) as error:
        # `NotNumeric` is a ValueError too, but has its own message.
        if isinstance(error, NotNumeric):
            raise
        raise NotNumeric(str(error)) from error
    if not (point.mp.isfinite(value)):
        raise NotNumeric("infinite")
    return value
