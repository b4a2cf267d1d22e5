"""Identities: whether two expressions with letters are equal, or proportional, for all values of their letters.

Two methods, in this order. A finite field (`modular`) decides every pair of rational functions; with functions such as
sin it can only prove identities that follow by algebra. Then both expressions are evaluated at fixed points that look
random: one point at which they differ refutes the identity; to accept it takes three points or more, with as many
digits as `numeric` asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from harness.answers.grammar.tree import Node, names, symbols, walk
from harness.grading.bounds import IDENTITY_POINTS, MAX_EVALUATIONS
from harness.grading.compare.modular import identical_in_field, proportional_in_field
from harness.grading.compare.numeric import Evaluation, differ, evaluations, same_number
from harness.grading.compare.point import NotNumeric, Point

_INTEGER_NAMES = names("n m k j l i N M K p q r s")
"""Letters that often stand for integers."""

_INTEGER_FUNCTIONS = names("factorial binom floor ceil mod sum prod gcd lcm arrangements")
"""Functions that are simpler at integers, or have only integers as values."""

_STEPS = names("abs sgn max min floor ceil mod gcd lcm")
"""Functions with corners or jumps."""

_BRANCHED = names("arcsin arccos arcsec arccsc arccosh arctanh arctan arccot")
"""Inverse functions, whose formulas change from one branch to the next."""

_MIN_POINTS = 3
"""Number of points at which both expressions must have a value; with fewer nothing is decided."""

_SPANS_OF_A_RATIO = 10
"""A ratio is compared with this multiple of the span in digits (`numeric` explains the span). A value needs fewer
digits: one changed term of a sum changes a ratio by less than it changes the sum.
"""

PointAt = Callable[[int], Point]
"""Function of a number of digits that returns a point at which trees are evaluated with that many digits."""


def identical(left: Node, right: Node, *, positive: bool = False) -> bool | None:
    """Whether two expressions are equal at all points where both are defined and real; None if no method can decide.

    Expressions that are almost nowhere both real, such as those with i, are compared by their complex values.
    positive: letters are positive numbers.
    """
    proven = identical_in_field(left, right)
    if proven is not None:
        return proven
    if not any(node.op in ("sym", "apply") for tree in (left, right) for node in walk(tree)):
        return same_number(left, right)
    agreed = _agreement(left, right, _points(positive), real=True)
    # Too few points were real. Other sizes come before complex values, at which branches of roots may differ.
    if agreed is None:
        agreed = _agreement(left, right, _points_of_all_sizes(positive), real=True)
    if agreed is None:
        agreed = _agreement(left, right, _points(positive))
    # An identity that only integers fulfil, such as cos nπ = (−1)^n, fails at other points.
    if agreed is not True and _over_integers(left, right):
        agreed = _agreement(left, right, _integer_points())
    if agreed and _has_steps(left, right):
        agreed = _agreement(left, right, _wide_points(_over_integers(left, right)), real=True)
        # A step is taken at integers: ⌊x⌋ and ⌈x⌉ − 1 differ nowhere else.
        agreed = agreed and _agreement(left, right, _integer_points(), real=True) is not False
    if agreed and _may_break(left, right):
        # The usual points may all lie on one side of a break: |y + 5| is y + 5 at each of them.
        return _agreement(left, right, _points_of_all_sizes(positive), real=True) is not False
    return agreed


def proportional(left: Node, right: Node) -> Any | None:
    """Return the constant ratio left / right, a number, if it is the same for all values of the letters; else None.

    If the field cannot tell, the ratio must be the same at three points; None for functions with breaks.
    """
    is_constant = proportional_in_field(left, right)
    if is_constant is False:
        return None
    ratio = None
    n_points = 0
    for point_at in _points(False):
        try:
            value = _ratio_at(left, right, point_at)
        except NotNumeric:
            continue
        if value is None:
            continue
        # The field has proven that the ratio is constant, so that its value at any point is enough.
        if is_constant:
            return value.values[0]
        if ratio is not None and differ(ratio.values[0], value.values[0], max(ratio.tolerance, value.tolerance)):
            return None
        ratio = value
        n_points += 1
    # The points may all lie on one side of a break: |y + 5| is y + 5 at each of them.
    if ratio is None or n_points < _MIN_POINTS or _may_break(left, right):
        return None
    return ratio.values[0]


def _may_break(*trees: Node) -> bool:
    """Whether the trees hold a function with steps, corners or branches."""
    return _has_steps(*trees) or any(_has_branches(node) for tree in trees for node in walk(tree))


def _ratio_at(left: Node, right: Node, point_at: PointAt) -> Evaluation | None:
    """Return the ratio of two expressions at a point, with as many digits as suffice; None if both are 0 there.

    Raises `NotNumeric`: an expression has no value there, or only one of them is 0.
    """
    # The last evaluation has the digits that suffice.
    *_, evaluation = (None, *evaluations((left, right), point_at, span_factor=_SPANS_OF_A_RATIO))
    if evaluation is None:
        raise NotNumeric("no value")
    top, bottom = evaluation.values
    if not top and not bottom:
        return None
    if not top or not bottom:
        raise NotNumeric("one side is zero")
    return evaluation._replace(values=(top / bottom,))


# --- points ---
def _points(positive: bool) -> Iterator[PointAt]:
    """Yield the usual points, which share one budget. positive: letters stand for positive numbers only."""
    budget = [MAX_EVALUATIONS]
    for index in range(IDENTITY_POINTS):
        # The first half stays positive, where roots and logarithms are real.
        yield _point(index, budget, negative=not positive and index >= IDENTITY_POINTS // 2)


def _wide_points(integers: bool) -> Iterator[PointAt]:
    """Yield many points of different sizes, for functions such as floor that are constant between their steps."""
    budget = [MAX_EVALUATIONS]
    for index in range(6 * IDENTITY_POINTS):
        yield _point(index, budget, integers=integers, stretch=(7, 41, 293)[index % 3])


def _points_of_all_sizes(positive: bool) -> Iterator[PointAt]:
    """Yield points of either sign, or positive ones, with letters from ten thousandths to millions."""
    budget = [MAX_EVALUATIONS]
    for power in range(-4, 7):
        for index in range(IDENTITY_POINTS):
            negative = not positive and index >= IDENTITY_POINTS // 2
            yield _point(index, budget, negative=negative, stretch=Fraction(10) ** power)


def _integer_points() -> Iterator[PointAt]:
    """Yield points at which the letters are integers."""
    budget = [MAX_EVALUATIONS]
    for index in range(2 * IDENTITY_POINTS):
        yield _point(index, budget, integers=True)


def _point(index: int, budget: list[int], **values: Any) -> PointAt:
    """Return a function that takes a number of digits and returns point number `index` with that precision.

    budget: a list of one number, the evaluations left. values: which values the letters get, as for `Point`.
    """
    return lambda digits: Point(digits, index, budget, **values)


def _agreement(left: Node, right: Node, points: Iterator[PointAt], *, real: bool = False) -> bool | None:
    """Whether two expressions have the same value at all `points`; None if fewer than three points count.

    A point counts if both have a value there; with `real`, only if both values are real.
    """
    n_points = 0
    for point_at in points:
        agreed = _agree_at(left, right, point_at, real=real)
        if agreed is False:
            return False
        n_points += agreed is True
    return True if n_points >= _MIN_POINTS else None


def _agree_at(left: Node, right: Node, point_at: PointAt, *, real: bool) -> bool | None:
    """Whether two expressions have the same value at a point; None if one has no value there.

    real: a complex value counts as no value.
    """
    try:
        for evaluation in evaluations((left, right), point_at):
            point = evaluation.point
            left_value, right_value = evaluation.values
            is_complex = bool(point.mp.im(left_value) or point.mp.im(right_value))
            if real and is_complex:
                return None
            if differ(left_value, right_value, evaluation.tolerance):
                # Outside of the real domain roots and logarithms choose branches.
                return None if point.negative and is_complex else False
            if evaluation.sufficient:
                return True
    except NotNumeric:
        pass
    return None


# --- kinds of expressions ---
def _over_integers(left: Node, right: Node) -> bool:
    """Whether the expressions may be meant for integers only: all letters have names that integers often have, and an
    operation is simpler at integers.

    Such operations are functions such as n!, powers such as (-1)^n, and sines and cosines: sin(nπ) is 0.
    """
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
    """Whether the trees hold a function with steps or corners, between which it is constant or linear."""
    return any(node.op == "fn" and node.args[0] in _STEPS for tree in trees for node in walk(tree))


def _has_branches(node: Node) -> bool:
    """Whether `node` is a root or an inverse function with letters: √(u²) is |u|, so that its formula changes where u
    is 0. A power with a letter in its exponent is taken for positive numbers only, as is usual.
    """
    if node.op == "root":
        return bool(symbols(node.args[1]))
    if node.op == "pow":
        base, exponent = node.args
        is_integer = exponent.op == "num" and exponent.args[0].denominator == 1
        return bool(symbols(base)) and not symbols(exponent) and not is_integer
    return node.op == "fn" and node.args[0] in _BRANCHED and bool(symbols(node))


def _is_negative(node: Node) -> bool:
    return node.op == "neg" or (node.op == "num" and node.args[0] < 0)
