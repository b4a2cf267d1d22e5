"""Sets of real numbers: intervals, inequalities, unions and differences as one sorted list of disjoint intervals.

An inequality in one letter becomes its solution set if it is linear or quadratic in the letter, or the absolute value
of something linear. Endpoints are ordered by their exact values, or otherwise by 150 decimals; endpoints with letters
cannot be ordered, and sets with such endpoints are only compared as written. Two sets are equal if their lists are
equal, endpoint by endpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

from reasoning_answers.compare.exact import exact
from reasoning_answers.compare.numeric import real_of
from reasoning_answers.compare.point import NotNumeric
from reasoning_answers.grammar.tree import INFINITY, Node, is_scalar, neg, num, substitute, symbols

_ORDERED = frozenset(("<", ">", "<=", ">="))
"""Signs of inequalities."""

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!=", "=": "="}
"""Sign of a relation → its sign when the sides are swapped."""

_MINUS_INFINITY = neg(INFINITY)
_DECIMALS = 150
"""Number of decimals to which irrational endpoints of intervals are computed when they are sorted."""

_MAX_END = 10**30
"""Largest size of irrational endpoints that are sorted: 300 digits cover their 150 decimals, and 120 for terms that
cancel.
"""


class RealInterval(NamedTuple):
    """The reals from low to high, each end closed or open; a point has equal closed ends."""

    low: Node
    high: Node
    closed_low: bool
    closed_high: bool


class NotASet(ValueError):
    """The node is not a set of reals that can be written as a list of intervals."""


def real_set(node: Node) -> list[RealInterval]:
    """Return the intervals of a set, sorted and merged. Raises `NotASet`."""
    return _merge(_pieces(node, 0))


def same_sets(left: list[RealInterval], right: list[RealInterval], same: Callable[[Node, Node], bool]) -> bool:
    """Whether two lists of intervals are equal. same: a function that returns whether two endpoints are equal."""
    return len(left) == len(right) and all(
        left_piece.closed_low == right_piece.closed_low
        and left_piece.closed_high == right_piece.closed_high
        and same(left_piece.low, right_piece.low)
        and same(left_piece.high, right_piece.high)
        for left_piece, right_piece in zip(left, right, strict=True)
    )


def is_inequality(node: Node) -> bool:
    """Whether `node` is a relation with <, ≤, >, ≥ or ≠ in it."""
    return node.op == "rel" and any(sign in _ORDERED or sign == "!=" for sign in node.args[1])


def _pieces(node: Node, depth: int) -> list[RealInterval]:
    """Return intervals whose union is the set `node`, in any order and perhaps overlapping. Raises `NotASet`.

    depth: how many levels of the formula are above this part; too many raise an error.
    """
    if depth > 30:
        raise NotASet("nested too deeply")
    depth += 1
    op, args = node
    if op == "interval":
        return [_interval(*args)]
    if op == "tuple" and len(args) == 2:
        return [_interval(args[0], args[1], False, False)]
    if op == "bracket" and len(args) == 2:
        return [_interval(args[0], args[1], True, True)]
    if op == "set":
        return [_interval(item, item, True, True) for item in args]
    if op == "sym" and args[0] == "R":
        return [RealInterval(_MINUS_INFINITY, INFINITY, False, False)]
    if op == "member":
        return _pieces(args[1], depth)
    if op == "union":
        return [piece for part in args for piece in _pieces(part, depth)]
    if op == "inter":
        # x > 1 and y < 2 is a region of the plane, not a set of reals.
        if len(set(map(_subject, args))) > 1:
            raise NotASet("conditions on several variables")
        pieces = _pieces(args[0], depth)
        for part in args[1:]:
            pieces = _intersect(pieces, _merge(_pieces(part, depth)))
        return pieces
    if op == "minus":
        return _intersect(_merge(_pieces(args[0], depth)), _complement(_merge(_pieces(args[1], depth))))
    if op == "builder":
        if args[0].op == "member":
            raise NotASet("a set that is not a union of intervals")
        return _pieces(args[1], depth)
    if op == "list" and args and all(is_inequality(item) or item.op in ("rel", "member") for item in args):
        return _conditions(args, depth)
    if op == "rel":
        return _solution(node)
    raise NotASet(op)


def _subject(condition: Node) -> str:
    """Return the letter that an inequality bounds, x of 2a < x, or a membership; "" for a set, or if it could be any of
    several letters.
    """
    if condition.op == "member" and condition.args[0].op == "sym":
        return str(condition.args[0].name)
    if condition.op != "rel":
        return ""
    operands = condition.args[0]
    bare_letters = [operand.args[0] for operand in operands if operand.op == "sym"]
    if bare_letters:
        return str(bare_letters[0])
    names = sorted(letters(condition))
    return names[0] if len(names) == 1 else ""


def _conditions(items: tuple[Node, ...], depth: int) -> list[RealInterval]:
    """Return the solutions of a list of conditions on one letter: x < 1, x > 5, x ≠ 7 is (-∞, 1) ∪ (5, 7) ∪ (7, ∞).

    Conditions with < or > are alternatives, so their solutions are united; the points excluded by ≠ are removed.
    items: the conditions. depth: how many levels of the formula are above them; too many raise an error.
    """
    holes = [item for item in items if item.op == "rel" and item.args[1] == ("!=",)]
    others = [item for item in items if item not in holes]
    # Without other conditions, the holes are in the whole line: the first ≠ yields the line without its own point.
    alternatives = others or holes[:1]
    pieces = _merge([piece for item in alternatives for piece in _pieces(item, depth)])
    for hole in holes:
        pieces = _intersect(pieces, _merge(_pieces(hole, depth)))
    if len({name for item in items for name in letters(item)}) > 1:
        raise NotASet("several variables")
    return pieces


def letters(condition: Node) -> frozenset[str]:
    """Return the letters of an inequality, or of several that must hold together; none for a set."""
    if condition.op == "inter":
        return frozenset().union(*map(letters, condition.args))
    if condition.op == "member":
        return symbols(condition.args[0])
    sides = condition.args[0] if condition.op == "rel" else ()
    return frozenset(name for side in sides for name in symbols(side))


def _interval(low: Node, high: Node, closed_low: bool, closed_high: bool) -> RealInterval:
    """Return the interval between two scalars. Raises `NotASet` for other endpoints."""
    if not (is_scalar(low) and is_scalar(high)):
        raise NotASet("a set of structures")
    return RealInterval(low, high, closed_low, closed_high)


# --- equations and inequalities ---
_MAX_DEGREE = 2
"""Largest degree of an inequality that is solved."""


def _solution(node: Node) -> list[RealInterval]:
    """Return the solutions of a relation in one letter. Raises `NotASet`."""
    operands, signs = node.args
    if not all(is_scalar(operand) for operand in operands):
        raise NotASet("a relation between structures")
    if len(signs) == 1:
        (left, right), sign = operands, signs[0]
        if left.op != "sym" and (right.op == "sym" or not symbols(left)):  # 2 < x, 3 > |x|
            left, right, sign = right, left, _FLIPPED.get(sign, sign)
        if left.op == "sym" and left.args[0] not in symbols(right):
            # The relation is already solved for its letter. Its bound may be irrational or have letters, which
            # `_polynomial` rejects.
            return _ray(sign, right)
        if left.op == "fn" and left.args[0] == "abs" and not symbols(right):
            return _absolute(left.args[1], sign, right)
        return _polynomial(left, sign, right)
    if len(signs) == 2 and all(sign in _ORDERED for sign in signs):
        low, middle, high = operands
        first, second = signs
        if middle.op != "sym":  # 2 < 2x < 6
            halves = [Node("rel", ((low, middle), (first,))), Node("rel", ((middle, high), (second,)))]
            return _intersect(*(_merge(_solution(half)) for half in halves))
        if first in (">", ">=") and second in (">", ">="):
            low, high, first, second = high, low, _FLIPPED[second], _FLIPPED[first]
        if first in ("<", "<=") and second in ("<", "<="):
            return [RealInterval(low, high, first == "<=", second == "<=")]
    raise NotASet("a chain of relations")


def _ray(sign: str, bound: Node) -> list[RealInterval]:
    """Return the solutions of x `sign` `bound`."""
    if sign in ("<", "<="):
        return [RealInterval(_MINUS_INFINITY, bound, closed_low=False, closed_high=sign == "<=")]
    if sign in (">", ">="):
        return [RealInterval(bound, INFINITY, closed_low=sign == ">=", closed_high=False)]
    if sign == "=":
        return [RealInterval(bound, bound, closed_low=True, closed_high=True)]
    if sign == "!=":
        return [*_ray("<", bound), *_ray(">", bound)]
    raise NotASet(sign)


def _absolute(inside: Node, sign: str, bound: Node) -> list[RealInterval]:
    """Return the solutions of |u| `sign` b: |u| < b is -b < u < b, and |u| > b is u < -b or u > b."""
    if sign not in _ORDERED:
        raise NotASet(sign)
    if "z" in symbols(inside):
        raise NotASet("z may be complex")
    below, above = _polynomial(inside, sign, bound), _polynomial(inside, _FLIPPED[sign], neg(bound))
    return _intersect(below, above) if sign in ("<", "<=") else _merge([*below, *above])


def _polynomial(left: Node, sign: str, right: Node) -> list[RealInterval]:
    """Return the solutions of a relation of degree 1 or 2 in its only letter. Raises `NotASet`.

    sign: the sign of the relation, such as `<`.
    """
    at0, at1, at2 = _values(left, right)
    square = (at2 - 2 * at1 + at0) / 2
    linear = at1 - at0 - square
    if not (leading := square or linear):
        raise NotASet("no letter is left")
    # Division by a negative leading coefficient reverses the sign.
    sign = sign if leading > 0 else _FLIPPED.get(sign, sign)
    if not square:
        return _ray(sign, num(-at0 / linear))
    discriminant = linear * linear - 4 * square * at0
    if sign not in _ORDERED or discriminant < 0:
        raise NotASet("no ends")
    root, middle = Node("root", (num(2), num(discriminant))), num(-linear / (2 * square))
    half = Node("div", (root, num(2 * abs(square))))
    low, high = Node("add", (middle, neg(half))), Node("add", (middle, half))
    if sign in ("<", "<="):
        return [RealInterval(low, high, sign == "<=", sign == "<=")]
    return _merge([*_ray("<" if sign == ">" else "<=", low), *_ray(sign, high)])


def _values(left: Node, right: Node) -> list[Fraction]:
    """Return the values of left − right with 0, 1 and 2 for its only letter, which determine a line or parabola.

    Raises `NotASet` unless there is exactly one letter, the expression is a polynomial of degree at most 2, and the
    values are rational.
    """
    names = symbols(left) | symbols(right)
    if len(names) != 1:
        raise NotASet("not one variable")
    variable = Node("sym", tuple(names))
    difference = Node("add", (left, neg(right)))
    if _degree(difference) > _MAX_DEGREE:
        raise NotASet("not quadratic")
    values = []
    for point in (0, 1, 2):
        value = exact(substitute(difference, variable, num(point)))
        if value is None:
            raise NotASet("not rational")
        values.append(value)
    return values


def _degree(node: Node) -> int:
    """Return a bound of the degree of a polynomial, from its operations alone. Raises `NotASet` for anything else."""
    op, args = node
    if not symbols(node):
        return 0
    if op == "sym":
        return 1
    if op in ("add", "neg"):
        return max(map(_degree, args))
    if op == "mul":
        return sum(map(_degree, args))
    if op == "div" and not symbols(args[1]):
        return _degree(args[0])
    if op == "pow":
        base, exponent = args
        if exponent.op == "num" and exponent.value.denominator == 1 and 0 <= exponent.value <= _MAX_DEGREE:
            return _degree(base) * int(exponent.value)
    raise NotASet("no polynomial")


# --- order of the ends ---
def _sort_key(node: Node) -> Any:
    """Return the number by which an endpoint of an interval is sorted. Raises `NotASet` if it has letters or is
    complex.
    """
    if node == INFINITY:
        return float("inf")
    if node == _MINUS_INFINITY:
        return float("-inf")
    if (value := exact(node)) is not None:
        return value
    try:
        number = real_of(node, 2 * _DECIMALS, _DECIMALS)
    except NotNumeric as error:
        raise NotASet("interval endpoints whose order cannot be determined") from error
    if abs(number) > _MAX_END:
        raise NotASet("interval endpoints whose order cannot be determined")
    return number


def _merge(pieces: list[RealInterval]) -> list[RealInterval]:
    """Sort intervals, drop empty ones, and join those that touch or overlap.

    A single interval is returned unchanged, and so are all intervals if their endpoints cannot be ordered, such as
    endpoints with letters.
    """
    if len(pieces) == 1:
        return pieces
    try:
        ordered = sorted(pieces, key=lambda piece: (_sort_key(piece.low), not piece.closed_low))
    except NotASet:
        return pieces
    merged: list[RealInterval] = []
    for piece in ordered:
        low, high = _sort_key(piece.low), _sort_key(piece.high)
        if low > high or (low == high and not (piece.closed_low and piece.closed_high)):
            continue
        last = merged[-1] if merged else piece  # the interval that `piece` may be joined to
        end = _sort_key(last.high)
        if not merged or low > end or (low == end and not (piece.closed_low or last.closed_high)):
            merged.append(piece)
        elif (high, piece.closed_high) > (end, last.closed_high):
            merged[-1] = last._replace(high=piece.high, closed_high=piece.closed_high)
    return merged


def _complement(pieces: list[RealInterval]) -> list[RealInterval]:
    """Return the reals outside `pieces`, a result of `_merge`."""
    gaps: list[RealInterval] = []
    low, closed = _MINUS_INFINITY, False  # where the next gap begins
    for piece in pieces:
        gaps.append(RealInterval(low, piece.low, closed, not piece.closed_low))
        low, closed = piece.high, not piece.closed_high
    gaps.append(RealInterval(low, INFINITY, closed, closed_high=False))
    return [
        gap._replace(closed_high=False) if gap.high == INFINITY else gap
        for gap in gaps
        if gap.low != INFINITY and gap.high != _MINUS_INFINITY
    ]


def _intersect(left: list[RealInterval], right: list[RealInterval]) -> list[RealInterval]:
    """Return the intersection of two unions of intervals. Raises `NotASet` if endpoints cannot be ordered."""
    common = []
    for pair in product(left, right):
        # Of two equal ends, the open one counts.
        lower = max(pair, key=lambda piece: (_sort_key(piece.low), not piece.closed_low))
        upper = min(pair, key=lambda piece: (_sort_key(piece.high), piece.closed_high))
        low, high = _sort_key(lower.low), _sort_key(upper.high)
        if low < high or (low == high and lower.closed_low and upper.closed_high):
            common.append(RealInterval(lower.low, upper.high, lower.closed_low, upper.closed_high))
    return common
