"""Identities by numbers: two expressions at fixed random points.

A disagreement at one point is certain. An agreement at 50 digits on all points is taken as equality.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from harness.answers.grammar.tree import Node, names, symbols, walk
from harness.grading.bounds import IDENTITY_DIGITS, IDENTITY_POINTS, MAX_EVALUATIONS
from harness.grading.compare.numeric import ROUGH_DIGITS, NotNumeric, Point, close, guarded

_INTEGER_NAMES = names("n m k j l i N M K p q r s")
_INTEGER_FUNCTIONS = names("factorial binom floor ceil mod sum prod gcd lcm arrangements")
_STEPS = names("floor ceil mod sgn max min abs gcd lcm")
_TINY = 1e-20
_STRETCHES = (Fraction(1, 8), 3, 17, 131)
"""Factors by which variables are moved away from the usual points, when too few of those give real values."""


def identical(left: Node, right: Node, *, positive: bool = False) -> bool | None:
    """Do two expressions agree wherever both are defined and real? None when too few points could be evaluated.

    Expressions that are hardly anywhere real together, as those with i, are compared at their complex values.
    """
    if _of_complex_parts(left, right):
        return _agreement(left, right, _complex_points())
    agreed = _agreement(left, right, _points(positive), real=True)
    if agreed is None:
        agreed = _agreement(left, right, _spread_points(positive), real=True)
    if agreed is None:
        agreed = _agreement(left, right, _points(positive))
    if agreed is not True and _over_integers(left, right):
        agreed = _agreement(left, right, _integer_points())
    if agreed and _has_steps(left, right):
        wide = _agreement(left, right, _wide_points(_over_integers(left, right)), real=True)
        return agreed if wide is None else wide
    return agreed


def proportional(left: Node, right: Node) -> Any | None:
    """The constant ratio left / right when it is the same at all points, else None."""
    ratio = None
    seen = 0
    for point in _points(False):
        try:
            left_value, right_value = guarded(point, left), guarded(point, right)
        except NotNumeric:
            continue
        if abs(right_value) < _TINY and abs(left_value) < _TINY:
            continue  # where both vanish, or nearly, the ratio has no digits left
        if abs(right_value) < _TINY or abs(left_value) < _TINY:
            return None
        if ratio is not None and not close(ratio, left_value / right_value, IDENTITY_DIGITS - 15):
            return None
        ratio = left_value / right_value
        seen += 1
    return ratio if seen >= 3 else None


def _points(positive: bool) -> Iterator[Point]:
    budget = [MAX_EVALUATIONS]
    for index in range(IDENTITY_POINTS):
        yield Point(IDENTITY_DIGITS, index, budget, negative=not positive and index >= IDENTITY_POINTS // 2)


def _spread_points(positive: bool) -> Iterator[Point]:
    """Points of other sizes, for expressions that are real only near zero or far from it."""
    budget = [MAX_EVALUATIONS]
    for stretch in _STRETCHES:
        for index in range(IDENTITY_POINTS):
            negative = not positive and index >= IDENTITY_POINTS // 2
            yield Point(IDENTITY_DIGITS, index, budget, negative=negative, stretch=stretch)


def _complex_points() -> Iterator[Point]:
    """Points off the real line, where Re z and z differ."""
    budget = [MAX_EVALUATIONS]
    for index in range(IDENTITY_POINTS):
        yield Point(IDENTITY_DIGITS, index, budget, complex_values=True)


def _wide_points(integers: bool) -> Iterator[Point]:
    """Many points of different sizes, for functions that are constant in between, such as floor."""
    budget = [MAX_EVALUATIONS]
    for index in range(6 * IDENTITY_POINTS):
        yield Point(IDENTITY_DIGITS, index, budget, integers=integers, stretch=(7, 41, 293)[index % 3])


def _integer_points() -> Iterator[Point]:
    budget = [MAX_EVALUATIONS]
    for index in range(2 * IDENTITY_POINTS):
        yield Point(IDENTITY_DIGITS, index, budget, integers=True)


def _agreement(left: Node, right: Node, points: Iterator[Point], *, real: bool = False) -> bool | None:
    """Three points or more at which both have a value, and at all of them the same; real: only real values count."""
    seen = 0
    for point in points:
        try:
            left_value, right_value = guarded(point, left), guarded(point, right)
        except NotNumeric:
            continue
        if real and (point.mp.im(left_value) or point.mp.im(right_value)):
            continue
        if point.rough and close(left_value, right_value, ROUGH_DIGITS):
            seen += 1
            continue
        if not close(left_value, right_value, IDENTITY_DIGITS - 15) and abs(left_value - right_value) > 10.0 ** (
            15 - IDENTITY_DIGITS
        ):
            if not (point.negative and (point.mp.im(left_value) or point.mp.im(right_value))):
                return False
            continue  # outside the real domain, where roots and logarithms choose branches
        seen += 1
    return True if seen >= 3 else None


def _over_integers(left: Node, right: Node) -> bool:
    """Whole-number functions of variables that by custom are whole numbers."""
    variables = symbols(left) | symbols(right)
    if not variables or not all(name.partition("_")[0] in _INTEGER_NAMES for name in variables):
        return False
    for node in (*walk(left), *walk(right)):
        if node.op == "fn" and node.args[0] in _INTEGER_FUNCTIONS | {"sin", "cos"}:
            return True
        if node.op == "pow" and node.args[1].op != "num" and _is_negative(node.args[0]):
            return True  # (-1)^n
    return False


def _has_steps(*trees: Node) -> bool:
    return any(node.op == "fn" and node.args[0] in _STEPS for tree in trees for node in walk(tree))


def _of_complex_parts(*trees: Node) -> bool:
    return any(node.op == "fn" and node.args[0] in ("Re", "Im", "arg") for tree in trees for node in walk(tree))


def _is_negative(node: Node) -> bool:
    return node.op == "neg" or (node.op == "num" and node.args[0] < 0)
