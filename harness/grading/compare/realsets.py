"""Sets of real numbers: intervals, inequalities, unions and differences as one sorted list of pieces."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple

from harness.answers.grammar.tree import INFINITY, Node, is_scalar, neg, num, substitute, symbols
from harness.grading.bounds import MAX_ALTERNATIVES
from harness.grading.compare.exact import exact
from harness.grading.compare.radicals import NotExact, rational

_ORDERED = frozenset(("<", ">", "<=", ">="))
_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!=", "=": "="}
_MINUS_INFINITY = neg(INFINITY)


class Piece(NamedTuple):
    """low..high, each end closed or not; a point has equal ends."""

    low: Node
    high: Node
    closed_low: bool
    closed_high: bool


class NotASet(ValueError):
    """The node is no set of reals that can be written as pieces."""


def real_set(node: Node) -> list[Piece]:
    """The pieces of a set, sorted and merged. Raises `NotASet`."""
    return _merged(_pieces(node, 0))


def same_sets(left: list[Piece], right: list[Piece], same: Callable[[Node, Node], bool]) -> bool:
    """Piece by piece, ends compared as scalars."""
    return len(left) == len(right) and all(
        one.closed_low == other.closed_low
        and one.closed_high == other.closed_high
        and same(one.low, other.low)
        and same(one.high, other.high)
        for one, other in zip(left, right, strict=True)
    )


def is_inequality(node: Node) -> bool:
    """A relation with an order or ≠ in it."""
    return node.op == "rel" and any(sign in _ORDERED or sign == "!=" for sign in node.args[1])


def whole_numbers(node: Node) -> Node:
    """`{x ∈ ℤ | 1 < x < 5}` written out as {2, 3, 4}; other nodes, and endless sets, stay as they are."""
    if node.op != "builder" or node.args[0].op != "member" or node.args[0].args[1].op != "sym":
        return node
    domain = str(node.args[0].args[1].args[0])
    if domain not in _WHOLE:
        return node
    found: list[int] = []
    try:
        for low, high, closed_low, closed_high in real_set(node.args[1]):
            first, last = max(_key(low), _WHOLE[domain]), _key(high)
            if (
                not isinstance(first, Fraction | int)
                or not isinstance(last, Fraction)
                or last - first > MAX_ALTERNATIVES
            ):
                return node
            span = range(ceil(first), floor(last) + 1)
            found += [n for n in span if (closed_low or n > _key(low)) and (closed_high or n < last)]
    except NotASet:
        return node
    return node if domain == "N" and 0 in found else Node("set", tuple(num(n) for n in found))


_WHOLE: dict[str, Any] = {"Z": float("-inf"), "N": 0, "N*": 1, "N_+": 1, "Z^+": 1, "Z_+": 1}
"""Least member of a set of whole numbers. Whether 0 is in ℕ nobody knows."""


def _pieces(node: Node, depth: int) -> list[Piece]:
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
        return [Piece(item, item, True, True) for item in args if _is_value(item)]
    if op == "sym" and args[0] == "R":
        return [Piece(_MINUS_INFINITY, INFINITY, False, False)]
    if op == "member":
        return _pieces(args[1], depth)
    if op == "union":
        return [piece for part in args for piece in _pieces(part, depth)]
    if op == "inter":
        if len(set(map(_subject, args))) > 1:
            raise NotASet("conditions on several variables")
        pieces = _pieces(args[0], depth)
        for part in args[1:]:
            pieces = _intersected(pieces, _merged(_pieces(part, depth)))
        return pieces
    if op == "minus":
        return _intersected(_merged(_pieces(args[0], depth)), _complement(_merged(_pieces(args[1], depth))))
    if op == "builder":
        if args[0].op == "member":
            raise NotASet("a set of some reals only")
        return _pieces(args[1], depth)
    if op == "list" and args and all(is_inequality(item) or item.op in ("rel", "member") for item in args):
        return _conditions(args, depth)
    if op == "rel":
        return _solution(node)
    raise NotASet(op)


def _subject(condition: Node) -> str:
    """The letter that an inequality bounds; empty for a set, and for one that bounds none alone."""
    if condition.op == "member":
        return str(condition.args[0].args[0]) if condition.args[0].op == "sym" else ""
    if condition.op != "rel":
        return ""
    operands = condition.args[0]
    if len(operands) == 3:
        operands = operands[1:2]
    alone = [one.args[0] for one in operands if one.op == "sym"]
    if alone:
        return str(alone[0])
    names = sorted(letters(condition))
    return names[0] if len(names) == 1 else ""


def _conditions(items: tuple[Node, ...], depth: int) -> list[Piece]:
    """Several conditions on one variable: holes (x ≠ 2) are taken out, the rest is put together."""
    holes = [item for item in items if item.op == "rel" and item.args[1] == ("!=",)]
    rest = [item for item in items if item not in holes]
    if not rest:
        pieces = _merged(_pieces(holes[0], depth))
        rest_pieces = pieces
    else:
        rest_pieces = _merged([piece for item in rest for piece in _pieces(item, depth)])
    for hole in holes:
        rest_pieces = _intersected(rest_pieces, _merged(_pieces(hole, depth)))
    names = {name for item in items for name in letters(item)}
    if len(names) > 1:
        raise NotASet("several variables")
    return rest_pieces


def letters(condition: Node) -> frozenset[str]:
    """Letters of an inequality, or of several that hold together; none of sets."""
    if condition.op == "inter":
        return frozenset().union(*map(letters, condition.args))
    sides = condition.args[0] if condition.op == "rel" else condition.args[:1] if condition.op == "member" else ()
    return frozenset(name for operand in sides for name in symbols(operand))


def _is_value(item: Node) -> bool:
    if not is_scalar(item):
        raise NotASet("a set of structures")
    return True


def _interval(low: Node, high: Node, closed_low: bool, closed_high: bool) -> Piece:
    if not (is_scalar(low) and is_scalar(high)):
        raise NotASet("an interval of structures")
    return Piece(low, high, closed_low, closed_high)


# --- inequalities ---
def _solution(node: Node) -> list[Piece]:
    operands, signs = node.args
    if not all(is_scalar(operand) for operand in operands):
        raise NotASet("a relation between structures")
    if len(signs) == 1:
        left, right = operands
        sign = signs[0]
        if left.op == "sym" and left.args[0] not in symbols(right):
            return _ray(sign, right)
        if right.op == "sym" and right.args[0] not in symbols(left):
            return _ray(_FLIPPED.get(sign, sign), left)
        if left.op == "fn" and left.args[0] == "abs" and not symbols(right):
            return _absolute(left.args[1], sign, right)
        if right.op == "fn" and right.args[0] == "abs" and not symbols(left):
            return _absolute(right.args[1], _FLIPPED.get(sign, sign), left)
        return _linear(left, sign, right)
    if len(signs) == 2 and all(sign in _ORDERED for sign in signs):
        low, middle, high = operands
        first, second = signs
        if middle.op != "sym":  # 2 < 2x < 6
            if symbols(low) or symbols(high):
                raise NotASet("bounds with variables")
            return _intersected(_linear(low, first, middle), _linear(middle, second, high))
        if first in (">", ">=") and second in (">", ">="):
            low, high, first, second = high, low, _FLIPPED[second], _FLIPPED[first]
        if first in ("<", "<=") and second in ("<", "<="):
            return [Piece(low, high, first == "<=", second == "<=")]
    raise NotASet("a chain of relations")


def _ray(sign: str, bound: Node) -> list[Piece]:
    if sign in ("<", "<="):
        return [Piece(_MINUS_INFINITY, bound, False, sign == "<=")]
    if sign in (">", ">="):
        return [Piece(bound, INFINITY, sign == ">=", False)]
    if sign == "=":
        return [Piece(bound, bound, True, True)]
    if sign == "!=":
        return [Piece(_MINUS_INFINITY, bound, False, False), Piece(bound, INFINITY, False, False)]
    raise NotASet(sign)


def _absolute(inside: Node, sign: str, bound: Node) -> list[Piece]:
    """|u| < b is -b < u < b; |u| > b is u < -b or u > b."""
    if sign not in _ORDERED:
        raise NotASet(sign)
    below, above = _linear(inside, sign, bound), _linear(inside, _FLIPPED[sign], neg(bound))
    return _intersected(below, above) if sign in ("<", "<=") else _merged([*below, *above])


def _linear(left: Node, sign: str, right: Node) -> list[Piece]:
    """a·x + b against c·x + d, with rational coefficients: the one bound that it says."""
    names = symbols(left) | symbols(right)
    if len(names) != 1:
        raise NotASet("not one variable")
    variable = Node("sym", tuple(names))
    difference = Node("add", (left, neg(right)))
    values = []
    for place in (0, 1, 2, 5):
        try:
            value = rational(exact(substitute(difference, variable, num(place))))
        except NotExact as error:
            raise NotASet("not linear") from error
        if value is None:
            raise NotASet("not rational")
        values.append(value)
    slope = values[1] - values[0]
    if slope == 0 or values[2] - values[1] != slope or values[3] - values[0] != 5 * slope:
        raise NotASet("not linear")
    return _ray(sign if slope > 0 else _FLIPPED.get(sign, sign), num(-values[0] / slope))


# --- order of the ends ---
def _key(node: Node) -> Any:
    """A number to sort an end by. Raises `NotASet` for ends with variables."""
    if node == INFINITY:
        return float("inf")
    if node == _MINUS_INFINITY:
        return float("-inf")
    try:
        value = rational(exact(node))
    except NotExact:
        value = None
    if value is not None:
        return value
    from harness.grading.compare.numeric import NotNumeric, number_of

    try:
        number = number_of(node)
    except NotNumeric as error:
        raise NotASet("ends that cannot be ordered") from error
    if hasattr(number, "_mpc_"):
        if number.imag != 0:
            raise NotASet("complex ends")
        number = number.real
    if abs(number) > 1e30:
        raise NotASet("ends that cannot be ordered")
    return Fraction(int(number * 10**25), 10**25)


def _merged(pieces: list[Piece]) -> list[Piece]:
    if len(pieces) == 1:
        return pieces
    try:
        ordered = sorted(pieces, key=lambda piece: (_key(piece.low), not piece.closed_low))
    except NotASet:
        return pieces
    merged: list[Piece] = []
    for piece in ordered:
        low, high = _key(piece.low), _key(piece.high)
        if low > high or (low == high and not (piece.closed_low and piece.closed_high)):
            continue
        if merged:
            last = merged[-1]
            end = _key(last.high)
            if low < end or (low == end and (piece.closed_low or last.closed_high)):
                if high > end:
                    merged[-1] = Piece(last.low, piece.high, last.closed_low, piece.closed_high)
                elif high == end:
                    merged[-1] = last._replace(closed_high=last.closed_high or piece.closed_high)
                continue
        merged.append(piece)
    return merged


def _complement(pieces: list[Piece]) -> list[Piece]:
    rest: list[Piece] = []
    low, closed = _MINUS_INFINITY, False
    for piece in pieces:
        rest.append(Piece(low, piece.low, closed, not piece.closed_low))
        low, closed = piece.high, not piece.closed_high
    rest.append(Piece(low, INFINITY, closed and low != INFINITY, False))
    return [
        piece._replace(closed_high=False) if piece.high == INFINITY else piece
        for piece in rest
        if piece.low != INFINITY and piece.high != _MINUS_INFINITY
    ]


def _intersected(left: list[Piece], right: list[Piece]) -> list[Piece]:
    found = []
    for one in left:
        for other in right:
            if (one_low := _key(one.low)) == (other_low := _key(other.low)):
                low, closed_low = one.low, one.closed_low and other.closed_low
            else:
                low, closed_low = (one.low, one.closed_low) if one_low > other_low else (other.low, other.closed_low)
            if (one_high := _key(one.high)) == (other_high := _key(other.high)):
                high, closed_high = one.high, one.closed_high and other.closed_high
            else:
                high, closed_high = (
                    (one.high, one.closed_high) if one_high < other_high else (other.high, other.closed_high)
                )
            if _key(low) < _key(high) or (_key(low) == _key(high) and closed_low and closed_high):
                found.append(Piece(low, high, closed_low, closed_high))
    return found
