"""Numeric comparison: evaluate two trees at one point, with so many digits that values which agree are equal.

Fifty equal digits prove nothing: sin x and sin x + 10⁻⁶⁰ share them, and so do tanh 500 and 1. So an evaluation records
the *span* of its expression, the largest |log₁₀ v| of all numbers v that occur in it, including numbers hidden by a
function (tanh 500 is 1 − 2e⁻¹⁰⁰⁰). A term that could be lost contributes its own size to the span. Two values are
compared as follows:

    digits ≥ 6 · span + 100                     the precision, raised until these hold; beyond `MAX_DIGITS` undecided
    digits ≥ 2 · span + 1.5 · sum + 100         sum: of |log₁₀ v| of all these numbers
    tolerance = 10^−(digits − 2 · span − 20)    relative; rounding errors, also of cancelled terms, stay below it

    difference > tolerance    different, at any precision
    difference ≤ tolerance    equal, if the digits suffice; else more digits

A nonzero difference is about as large as a product of a few occurring terms, say (10^−span)² next to 10^span, and the
tolerance is smaller, 10^−(4 · span + 80). Nested forms differ by higher powers: 1 + ε(1 + ε/2 (1 + …)) of n brackets
and e^ε differ by ε^(n+1), tan sin ε and sin tan ε by ε⁷. Each power requires a number of the size of ε in the tree, so
the sum of the spans grows with it. For closed forms this argument is not a proof; for identities of functions,
evaluation at points that the author of an answer cannot know makes the result certain.

Identities (`identical`, `proportional`): whether two expressions with letters are equal, or proportional, for all
values of their letters. There are two methods, in this order. A finite field (`modular`) decides every pair of rational
functions; with functions such as sin it can only prove identities that follow by algebra. Then both expressions are
evaluated at fixed pseudorandom points: one point at which they differ refutes the identity; accepting it requires three
or more points, with as many digits as stated above.

A sum that cancels to nothing within the tolerance is 0. All numbers are kept small before they are computed: a power,
factorial or exponential with a huge result is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any, NamedTuple

from reasoning_answers.bounds import IDENTITY_POINTS, MAX_DIGITS, MAX_EVALUATIONS
from reasoning_answers.compare.modular import identical_in_field
from reasoning_answers.compare.point import NOISE_DIGITS, NotNumeric, Point, Vanishing, evaluate_at
from reasoning_answers.grammar.tree import Node, names, num, substitute, symbols, walk

FIRST_DIGITS = 70
"""Number of digits of the first evaluation, which distinguishes most different values."""

_SPAN_FACTOR = 6
_SUM_OF_SPANS_FACTOR = 1.5
_SPARE_DIGITS = 100
"""Constants of the rules above for when the digits suffice."""


class Evaluation(NamedTuple):
    """Values of several trees at one point, at one precision.

    tolerance: relative difference up to which two values may be one number. sufficient: whether the digits suffice, so
    that two values within the tolerance are one number.
    """

    values: tuple[Any, ...]
    point: Point
    tolerance: Any
    sufficient: bool


def evaluations(trees: Sequence[Node], point_at: Callable[[int], Point]) -> Iterator[Evaluation]:
    """Calculate the values of all trees with more and more digits, until the digits suffice for a comparison; yield
    each attempt.

    point_at: takes a number of digits and returns the point at which the trees are evaluated with that precision.
    Raises `NotNumeric`: a tree has no value, or needs more than `MAX_DIGITS`. Raises `Vanishing`: a divisor is 0 even
    with the digits that suffice.
    """
    digits = FIRST_DIGITS
    while True:
        point = point_at(digits)
        try:
            values = tuple(evaluate_at(point, tree) for tree in trees)
        except Vanishing:
            if digits >= _digits_needed(point):
                raise
            values = ()
        needed = _digits_needed(point)
        if values:
            yield Evaluation(values, point, point.tolerance(), digits >= needed)
        if digits >= needed:
            return
        if needed > MAX_DIGITS:
            raise NotNumeric("too many digits needed")
        digits = needed


def _digits_needed(point: Point) -> int:
    """Return how many digits an equality needs, given the spans that `point` has recorded."""
    by_sum = 2 * point.span + _SUM_OF_SPANS_FACTOR * point.sum_of_spans
    return ceil(max(_SPAN_FACTOR * point.span, by_sum)) + _SPARE_DIGITS


def differ(left: Any, right: Any, tolerance: Any) -> bool:
    """Whether two numbers differ by more than the relative `tolerance`."""
    return bool(abs(left - right) > tolerance * max(abs(left), abs(right)))


def same_number(left: Node, right: Node) -> bool | None:
    """Whether two closed forms are the same number; None if numbers cannot decide this."""
    budget = [MAX_EVALUATIONS]
    try:
        for evaluation in evaluations((left, right), lambda digits: Point(digits, index=0, budget=budget)):
            left_value, right_value = evaluation.values
            if differ(left_value, right_value, evaluation.tolerance):
                return False
            if evaluation.sufficient:
                return True
    except NotNumeric:
        pass
    return None


def number_of(node: Node, digits: int = 30) -> Any:
    """Return the value of a closed form to `digits` digits (mpf or mpc). Raises `NotNumeric`."""
    if symbols(node):
        raise NotNumeric("variables")
    budget = [MAX_EVALUATIONS]
    working = digits + 2 * NOISE_DIGITS
    point = Point(working, index=0, budget=budget)
    value = evaluate_at(point, node)
    # The relative error is 10^(2 · span + NOISE_DIGITS − working): below 10^−digits while 2 · span ≤ NOISE_DIGITS.
    if 2 * point.span > NOISE_DIGITS:
        if 2 * point.span > MAX_DIGITS:
            raise NotNumeric("too many digits needed")
        # 2 · span more digits would suffice; one more span leaves room for terms that appear only with more digits.
        value = evaluate_at(Point(working + ceil(3 * point.span), index=0, budget=budget), node)
    return value


def real_of(node: Node, digits: int, decimals: int) -> Fraction:
    """Return a real closed form rounded to `decimals` places, computed with `digits` digits. Raises `NotNumeric`."""
    number = number_of(node, digits)
    if number.imag != 0:
        raise NotNumeric("a complex number")
    return Fraction(int(number.real * 10**decimals), 10**decimals)


# --- identities ---
_INTEGER_NAMES = names("n m k j l i N M K p q r s")
"""Letters that often stand for integers."""

_INTEGER_FUNCTIONS = names("factorial binom floor ceil mod sum prod gcd lcm arrangements")
"""Functions that are simpler at integers, or have only integers as values."""

_STEPS = names("abs sgn max min floor ceil mod gcd lcm")
"""Functions with corners or jumps."""

_BRANCHED = names("arcsin arccos arcsec arccsc arccosh arctanh arctan arccot")
"""Inverse functions, whose formulas change from one branch to the next."""

_MIN_POINTS = 3
"""Number of points at which both expressions must have a value; with fewer points, nothing is decided."""

_STEP_SIZES = (7, 13, 41, 97, 293, 577)
"""Sizes of points for functions such as floor, which are constant between their steps."""

_ALL_SIZES = [Fraction(10) ** power for power in range(-4, 7)]
"""Sizes of points that range from ten thousandths to millions."""

_VALUES: tuple[Sequence[int | Fraction], ...] = ([1] * 64, list(range(2, 66)), [Fraction(1, n) for n in range(2, 66)])
"""Values of the unknowns at the points where a ratio is computed."""

PointAt = Callable[[int], Point]
"""Function of a number of digits that returns a point at which trees are evaluated with that many digits."""


def identical(left: Node, right: Node, *, positive: bool = False) -> bool | None:
    """Whether two expressions are equal at all points where both are defined and real; None if no method can decide.

    Expressions that are almost nowhere both real, such as expressions with i, are compared by their complex values.
    positive: whether the letters are positive numbers.
    """
    proven = identical_in_field(left, right)
    if proven is not None:
        return proven
    if not any(node.op in ("sym", "apply") for tree in (left, right) for node in walk(tree)):
        return same_number(left, right)
    agreed = _agreement(left, right, _points(positive), real=True)
    # Too few points were real. Other sizes are tried before complex values, at which branches of roots may differ.
    if agreed is None:
        agreed = _agreement(left, right, _points(positive, sizes=_ALL_SIZES), real=True)
    if agreed is None:
        agreed = _agreement(left, right, _points(positive))
    # An identity that only integers satisfy, such as cos nπ = (−1)^n, fails at other points.
    if agreed is not True and _over_integers(left, right):
        agreed = _agreement(left, right, _points(integers=True, sizes=(1, 2)))
    if agreed and _has_steps(left, right):
        wide = _points(integers=_over_integers(left, right), sizes=_STEP_SIZES)
        agreed = _agreement(left, right, wide, real=True)
        # A step is taken at integers: ⌊x⌋ and ⌈x⌉ − 1 differ nowhere else.
        agreed = agreed and _agreement(left, right, _points(integers=True, sizes=(1, 2)), real=True) is not False
    if agreed and _may_break(left, right):
        # The usual points may all be on one side of a break: |y + 5| is y + 5 at each of them.
        return _agreement(left, right, _points(positive, sizes=_ALL_SIZES), real=True) is not False
    return agreed


def proportional(left: Node, right: Node) -> bool:
    """Whether left / right can be shown to be one number for all values of the letters and of unknown functions.

    It is if left · right(p) equals right · left(p) for a point p where neither is 0.
    """
    unknowns = {here for tree in (left, right) for here in walk(tree) if here.op in ("sym", "apply")}
    # An unknown function first, the outermost one before those in its arguments.
    ordered = sorted(unknowns, key=lambda node: (node.op, -len(repr(node)), repr(node)))
    for values in _VALUES:
        at = [left, right]
        for unknown, value in zip(ordered, values, strict=False):
            at = [substitute(tree, unknown, num(value)) for tree in at]
        try:
            numbers = [number_of(tree) for tree in at]
        except NotNumeric:
            continue
        if any(numbers):
            # Numbers cannot show that |y + 5| and y + 5 are proportional everywhere.
            compare = identical_in_field if _may_break(left, right) else identical
            return all(numbers) and compare(Node("mul", (left, at[1])), Node("mul", (right, at[0]))) is True
    return False


def _may_break(*trees: Node) -> bool:
    """Whether the trees contain a function with steps, corners or branches."""
    return _has_steps(*trees) or any(_has_branches(node) for tree in trees for node in walk(tree))


# --- points ---
def _points(
    positive: bool = True, *, integers: bool = False, sizes: Sequence[int | Fraction] = (1,)
) -> Iterator[PointAt]:
    """Yield points of each of the sizes (`stretch` of `Point`), which share one budget.

    positive: whether the letters are positive at all points, not only at the first half of each size, where roots and
    logarithms are real. integers: whether they are integers, which are positive.
    """
    budget = [MAX_EVALUATIONS]
    for size in sizes:
        for index in range(IDENTITY_POINTS):
            negative = not positive and index >= IDENTITY_POINTS // 2
            yield partial(Point, index=index, budget=budget, integers=integers, negative=negative, stretch=size)


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

    real: whether a complex value counts as no value.
    """
    try:
        for evaluation in evaluations((left, right), point_at):
            point = evaluation.point
            left_value, right_value = evaluation.values
            is_complex = bool(point.mp.im(left_value) or point.mp.im(right_value))
            if real and is_complex:
                return None
            if differ(left_value, right_value, evaluation.tolerance):
                # Outside the real domain, roots and logarithms choose branches.
                return None if point.negative and is_complex else False
            if evaluation.sufficient:
                return True
    except NotNumeric:
        pass
    return None


# --- kinds of expressions ---
def _over_integers(left: Node, right: Node) -> bool:
    """Whether the expressions may be meant for integers only: all letters have names that are common for integers, and
    an operation is simpler at integers.

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
    """Whether the trees contain a function with steps or corners, between which it is constant or linear."""
    return any(node.op == "fn" and node.args[0] in _STEPS for tree in trees for node in walk(tree))


def _has_branches(node: Node) -> bool:
    """Whether `node` is a root or an inverse function with letters: √(u²) is |u|, so that its formula changes where u
    is 0. A power with a letter in its exponent is considered for positive numbers only, as is customary.
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
