"""Computes how many digits tell two algebraic numbers apart: the root separation bound of Burnikel, Funke, Mehlhorn,
Schirra and Schmitt (BFMSS).

For an expression of integers, + − · / and roots the bound follows from the expression alone. Each node gets two numbers
u and l: its value is a quotient of two algebraic integers, whose conjugates are at most u and at most l in size:

    integer n     u = |n|                   l = 1
    a ± b         u = u_a l_b + u_b l_a     l = l_a l_b
    a · b         u = u_a u_b               l = l_a l_b
    a / b         u = u_a l_b               l = l_a u_b
    ᵏ√a           u = (u_a l_a^(k−1))^(1/k), l = l_a

With D the product of the degrees of all different roots, the value is 0 or at least 1 / (u^(D−1) · l) in size. So two
values that agree to that many digits are one number: a proof. (C. Burnikel et al., "A separation bound for real
algebraic expressions", Algorithmica 55, 2009.) The cosine of kπ/n counts as a root: twice it is an algebraic integer
with conjugates of size 2 and a degree below n.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2
from typing import NamedTuple

from harness.answers.bounds import MAX_DEPTH
from harness.answers.grammar.tree import PI, Node, neg
from harness.grading.bounds import MAX_DIGITS
from harness.grading.compare.exact import exact
from harness.grading.compare.radicals import ONE, NotExact, rational

_DECIMALS_OF_A_BIT = 0.30103
# Beyond this degree even u = 1 bit asks for more than `MAX_DIGITS` digits.
_MAX_DEGREE = 1 << 16


class NotAlgebraic(ValueError):
    """The node holds more than integers, + − · /, roots and sin, cos or tan of rational multiples of π."""


class _Size(NamedTuple):
    """How large a number's numerator and denominator can be: the binary logarithms of their bounds, u and l."""

    u: float
    l: float  # noqa: E741  the letter of the paper


def digits_to_separate(left: Node, right: Node) -> int | None:
    """Return how many digits after the point tell two algebraic numbers apart; None if one is not algebraic.

    Two values that agree to that many digits are equal. The result exceeds `MAX_DIGITS` if the degree is too high to
    bound.
    """
    degrees: dict[Node, int] = {}
    try:
        size = _size(Node("add", (left, neg(right))), degrees, 0)
    except NotAlgebraic:
        return None
    degree = 1
    for part in degrees.values():
        degree *= part
        # Checked at each factor, as the product of many degrees would itself be a huge integer.
        if degree > _MAX_DEGREE:
            return MAX_DIGITS + 1
    return ceil((size.u * (degree - 1) + size.l + size.u) * _DECIMALS_OF_A_BIT) + 1


def _size(node: Node, degrees: dict[Node, int], depth: int) -> _Size:
    """Return the bounds of an expression's numerator (u) and denominator (l), by the table at the top of the module.

    degrees: root → its degree; the roots of this node are added. depth: how many levels of the formula stand above this
    part; too many raise. Raises `NotAlgebraic`.
    """
    if depth > 4 * MAX_DEPTH:
        raise NotAlgebraic("nested too deeply")
    op, args = node
    if op == "num":
        return _Size(_log2(abs(args[0].numerator)), _log2(args[0].denominator))
    if op == "neg":
        return _size(args[0], degrees, depth + 1)
    if op == "pct":
        return _quotient(_size(args[0], degrees, depth + 1), _Size(log2(100), 0))
    if op == "add":
        return _sum([_size(part, degrees, depth + 1) for part in args])
    if op == "mul":
        sizes = [_size(part, degrees, depth + 1) for part in args]
        return _Size(sum(size.u for size in sizes), sum(size.l for size in sizes))
    if op == "div":
        return _quotient(_size(args[0], degrees, depth + 1), _size(args[1], degrees, depth + 1))
    if op == "root":
        # `_power` refuses the exponent 0, for a root of degree 0 is no number.
        degree = _rational(args[0])
        return _power(args[1], 1 / degree if degree else Fraction(0), degrees, depth)
    if op == "pow":
        return _power(args[0], _rational(args[1]), degrees, depth)
    if op == "fn" and len(args) == 2 and args[0] in ("sin", "cos", "tan"):
        return _trigonometric(args[0], args[1], degrees)
    raise NotAlgebraic(op)


def _log2(number: int) -> float:
    """Return an upper bound of log₂ |number|, which the theorem needs; `math.log2` may round down."""
    return float(number.bit_length())


def _sum(sizes: list[_Size]) -> _Size:
    """Bound the numerator (u) and the denominator (l) of a sum, from the bounds of its terms.

    A sum is at most its largest term times the number of terms. To add the bounds, not their logarithms, would overflow
    a float.
    """
    below = sum(size.l for size in sizes)
    return _Size(max(size.u + below - size.l for size in sizes) + log2(len(sizes)), below)


def _quotient(top: _Size, bottom: _Size) -> _Size:
    """Bound the numerator (u) and the denominator (l) of a quotient."""
    return _Size(top.u + bottom.l, top.l + bottom.u)


def _rational(node: Node) -> Fraction:
    """Return the rational number that `node` is. Raises `NotAlgebraic`."""
    try:
        value = rational(exact(node))
    except NotExact as error:
        raise NotAlgebraic("an exponent") from error
    if value is None:
        raise NotAlgebraic("an irrational exponent")
    return value


def _power(base: Node, exponent: Fraction, degrees: dict[Node, int], depth: int) -> _Size:
    """Bound the numerator (u) and the denominator (l) of `base` to the power `exponent`.

    degrees: root → its degree; a root that the power needs is added. depth: how many levels of the formula stand above
    this part; too many raise. Raises `NotAlgebraic`.
    """
    if not 0 < exponent.denominator < 1_000 or abs(exponent.numerator) > 1 << 20 or not exponent:
        raise NotAlgebraic("an exponent")
    inner = _size(base, degrees, depth + 1)
    k = exponent.denominator
    if k > 1:
        # The key is the root itself, so that a √2 that occurs twice counts once in D.
        degrees[Node("root", (k, base))] = k
        inner = _Size((inner.u + inner.l * (k - 1)) / k, inner.l)
    times = abs(exponent.numerator)
    raised = _Size(inner.u * times, inner.l * times)
    return raised if exponent > 0 else _Size(raised.l, raised.u)


def _trigonometric(name: str, angle: Node, degrees: dict[Node, int]) -> _Size:
    """Bound the numerator (u) and the denominator (l) of sin, cos or tan of a rational multiple of π.

    degrees: root → its degree; roots that are needed are added.
    """
    if angle.op == "deg":
        turns: Fraction | None = _rational(angle.args[0]) / 180
    else:
        try:
            value = exact(angle)
        except NotExact as error:
            raise NotAlgebraic("an angle") from error
        # The exact value 0 is the empty dict; a rational multiple of π has the one key π.
        turns = None if value else Fraction(0)
        if len(value) == 1:
            turns = value.get(ONE._replace(pi=Fraction(1)))
    if turns is None:
        raise NotAlgebraic("an angle")
    # sin kπ/n is half a sum of two roots of unity of order at most 4n. The degree of such a root is below 4n.
    degrees[Node("fn", ("cos", PI, turns.denominator))] = max(4 * turns.denominator, 2)
    return _Size(1, 1) if name != "tan" else _Size(2, 2)
