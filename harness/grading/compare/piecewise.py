"""Functions that are defined by cases, such as |x| = x if x ≥ 0, else −x; compared by their values.

Two functions of one real variable are equal if they agree at every bound of a condition, and if the expressions that
hold between two bounds a < b, or beyond the last one, are equal there. That is so if they are equal everywhere, or once
x is replaced by an expression that takes every value of the interval:

    a < x < b    x = a + (b − a) u²/(1 + u²)        x > a    x = a + u²        x < a    x = a − u²

A point at which the functions differ refutes them. Cases whose conditions are words are compared one by one, in
`structures`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from harness.answers.grammar.tree import Node, neg, num, substitute, sym, symbols, walk
from harness.grading.compare.exact import exact

_ELSE = ("otherwise", "else", "其他", "其它", "否则")
_ORDER: dict[str, Callable[[Fraction], bool]] = {
    "<": lambda gap: gap < 0, "<=": lambda gap: gap <= 0, ">": lambda gap: gap > 0, ">=": lambda gap: gap >= 0,
    "=": lambda gap: gap == 0, "!=": lambda gap: gap != 0,
}  # fmt: skip
_SHARES = (Fraction(1, 2), Fraction(5, 17))
"""The functions are compared at these fractions of the way from one bound to the next."""

_SPREAD = (Fraction(1, 3), Fraction(5, 7), Fraction(2), Fraction(31, 3), Fraction(1009, 10))
"""Distances beyond the lowest and highest bound at which the functions are compared."""


class NotPiecewise(ValueError):
    """The node is no function of one variable by solved conditions with rational bounds."""


class _Case(NamedTuple):
    """A case: its value, and the condition under which it holds; the condition is None for "otherwise"."""

    value: Node
    condition: Node | None


def same_piecewise(left: Node, right: Node, same: Callable[[Node, Node], bool | None]) -> bool | None:
    """Whether two functions, at least one of them by cases, agree at all points.

    None if `same` cannot tell at a point or between bounds, or if two cases of a function contradict each other. Raises
    `NotPiecewise`.
    """
    functions = [_cases_of(node) if node.op == "cases" else [_Case(node, None)] for node in (left, right)]
    variables = {
        name for side in functions for row in side for node in row if node is not None for name in symbols(node)
    }
    if len(variables) != 1:
        raise NotPiecewise("not one variable")
    variable = sym(*variables)
    bounds = _bounds(variable, [row.condition for side in functions for row in side if row.condition is not None])
    for point in (*bounds, *_between(bounds)):
        if any(_contradicts(side, variable, point, same) for side in functions):
            return None
        left_value, right_value = (_value(side, variable, point) for side in functions)
        if (left_value is None) != (right_value is None):
            return False
        if left_value is not None and right_value is not None:
            verdict = same(*(substitute(value, variable, num(point)) for value in (left_value, right_value)))
            if not verdict:
                return verdict
    for point, inside in _pieces(bounds):
        left_value, right_value = (_value(side, variable, point) for side in functions)
        if left_value is None or right_value is None or same(left_value, right_value):
            continue
        # Undecided, not different: the functions may differ at a bound only, a value that `inside` takes although the
        # interval does not have it.
        if not same(*(substitute(value, variable, inside) for value in (left_value, right_value))):
            return None
    return True


def _pieces(bounds: list[Fraction]) -> Iterator[tuple[Fraction, Node]]:
    """Yield each interval between bounds and beyond: a point of it, and an expression that takes all its values."""
    square = Node("pow", (sym("u"), num(2)))
    share = Node("div", (square, Node("add", (num(1), square))))
    yield bounds[0] - 1, Node("add", (num(bounds[0]), neg(square)))
    yield bounds[-1] + 1, Node("add", (num(bounds[-1]), square))
    for low, high in pairwise(bounds):
        yield (low + high) / 2, Node("add", (num(low), Node("mul", (num(high - low), share))))


def _cases_of(node: Node) -> list[_Case]:
    """Return the cases of a node of kind "cases". Raises `NotPiecewise`."""
    cases = []
    for case in node.args:
        if case.op != "list" or len(case.args) != 2:
            raise NotPiecewise("a case without a condition")
        value, condition = case.args
        word = condition.args[0].lower().strip(" .") if condition.op == "text" else ""
        if not word.startswith(_ELSE) and condition.op not in ("rel", "list", "inter"):
            raise NotPiecewise("a condition in words")
        cases.append(_Case(value, None if word else condition))
    return cases


def _bounds(variable: Node, conditions: list[Node]) -> list[Fraction]:
    """Return every number at which one of the conditions begins or ceases to hold, and 0, in order."""
    # A formula such as |x| breaks at 0 without a condition that says so.
    bounds = {Fraction(0)}
    for condition in conditions:
        for relation in walk(condition):
            if relation.op == "rel":
                bounds |= {_zero(side, variable) for side in relation.args[0] if side != variable}
    return sorted(bounds)


def _between(bounds: list[Fraction]) -> list[Fraction]:
    """Return the points at which functions are compared: between neighbouring bounds, and beyond the outer ones."""
    between = [low + (high - low) * share for low, high in pairwise(bounds) for share in _SHARES]
    return [*between, *(end for step in _SPREAD for end in (bounds[0] - step, bounds[-1] + step))]


def _zero(side: Node, variable: Node) -> Fraction:
    """Return the value of one side of a condition. Raises `NotPiecewise` if it has the variable or is not rational."""
    if variable.args[0] in symbols(side):
        raise NotPiecewise("a condition that is not solved")
    value = exact(side)
    if value is None:
        raise NotPiecewise("an irrational bound")
    return value


def _value(rows: list[_Case], variable: Node, point: Fraction) -> Node | None:
    """Return the expression of the first case that holds at `point`; None if no case does."""
    for row in rows:
        if row.condition is None or _holds(row.condition, variable, point):
            return row.value
    return None


def _contradicts(rows: list[_Case], variable: Node, point: Fraction, same: Callable[[Node, Node], bool | None]) -> bool:
    """Whether two cases hold at `point` and give different values, so that they define no function."""
    values = [
        substitute(row.value, variable, num(point))
        for row in rows
        if row.condition is not None and _holds(row.condition, variable, point)
    ]
    return any(not same(values[0], value) for value in values[1:])


def _holds(condition: Node, variable: Node, point: Fraction) -> bool:
    """Whether `condition` holds at `point`. Raises `NotPiecewise` if that cannot be computed."""
    if condition.op in ("list", "inter"):
        return all(_holds(part, variable, point) for part in condition.args)
    if condition.op != "rel":
        raise NotPiecewise("a condition in words")
    operands, signs = condition.args
    # There is one sign fewer than operands, so the lengths differ.
    for left, right, sign in zip(operands, operands[1:], signs, strict=False):
        gap = exact(substitute(Node("add", (left, neg(right))), variable, num(point)))
        if gap is None or sign not in _ORDER:
            raise NotPiecewise("a condition")
        if not _ORDER[sign](gap):
            return False
    return True
