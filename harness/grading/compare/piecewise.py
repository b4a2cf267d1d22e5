"""Functions given by cases: compared as functions, at the places where a case ends and between them.

A function of one real variable by cases equals another, or an expression such as |x|, when both agree at every bound
of a condition and at several places inside and beyond. Cases whose conditions are words are compared row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from harness.answers.grammar.tree import Node, neg, num, substitute, sym, symbols, walk
from harness.grading.compare.exact import exact
from harness.grading.compare.radicals import NotExact, rational

_ELSE = ("otherwise", "else", "其他", "其它", "否则")
_ORDER: dict[str, Callable[[Fraction], bool]] = {
    "<": lambda gap: gap < 0, "<=": lambda gap: gap <= 0, ">": lambda gap: gap > 0, ">=": lambda gap: gap >= 0,
    "=": lambda gap: gap == 0, "!=": lambda gap: gap != 0,
}  # fmt: skip
_SPREAD = (Fraction(1, 3), Fraction(5, 7), Fraction(2), Fraction(31, 3), Fraction(1009, 10))
"""How far from the bounds other places are tried."""


class NotPiecewise(ValueError):
    """Not a function of one variable by conditions on it."""


class _Row(NamedTuple):
    """A case: its value, and the condition under which it holds; None = in all other cases."""

    value: Node
    condition: Node | None


def same_piecewise(left: Node, right: Node, same: Callable[[Node, Node], bool | None]) -> bool | None:
    """Do two functions, at least one of them by cases, agree? None when a place cannot be decided.

    Raises `NotPiecewise`.
    """
    rows = [_rows(node) if node.op == "cases" else [_Row(node, None)] for node in (left, right)]
    variables = {name for side in rows for row in side for node in row if node is not None for name in symbols(node)}
    if len(variables) != 1:
        raise NotPiecewise("not one variable")
    variable = sym(*variables)
    for place in _places(variable, [row.condition for side in rows for row in side if row.condition is not None]):
        one, other = (_value(side, variable, place) for side in rows)
        if (one is None) != (other is None):
            return False
        if one is not None and other is not None:
            verdict = same(one, other)
            if not verdict:
                return verdict
    return True


def _rows(node: Node) -> list[_Row]:
    found = []
    for case in node.args:
        if case.op != "list" or len(case.args) != 2:
            raise NotPiecewise("a case without a condition")
        value, condition = case.args
        word = condition.args[0].lower().strip(" .") if condition.op == "text" else ""
        if not word.startswith(_ELSE) and condition.op not in ("rel", "list", "inter"):
            raise NotPiecewise("a condition in words")
        found.append(_Row(value, None if word else condition))
    return found


def _places(variable: Node, conditions: list[Node]) -> list[Fraction]:
    """Every bound of a condition, and places around all of them."""
    bounds = {Fraction(0)}
    for condition in conditions:
        for relation in walk(condition):
            if relation.op == "rel":
                bounds |= {_zero(side, variable) for side in relation.args[0] if side != variable}
    low, high = min(bounds), max(bounds)
    ordered = sorted(bounds)
    between = [(one + other) / 2 for one, other in pairwise(ordered)]
    beyond = [end for step in _SPREAD for end in (low - step, high + step)]
    return [*ordered, *between, *beyond]


def _zero(side: Node, variable: Node) -> Fraction:
    """The bound that one side of a condition is. Raises `NotPiecewise` when it is no rational number."""
    if variable.args[0] in symbols(side):
        raise NotPiecewise("a condition that is not solved")
    try:
        value = rational(exact(side))
    except NotExact as error:
        raise NotPiecewise("a bound") from error
    if value is None:
        raise NotPiecewise("an irrational bound")
    return value


def _value(rows: list[_Row], variable: Node, place: Fraction) -> Node | None:
    """The value at `place`, as the first case that holds has it; None outside of all cases."""
    for row in rows:
        if row.condition is None or _holds(row.condition, variable, place):
            return substitute(row.value, variable, num(place))
    return None


def _holds(condition: Node, variable: Node, place: Fraction) -> bool:
    if condition.op in ("list", "inter"):
        return all(_holds(part, variable, place) for part in condition.args)
    if condition.op != "rel":
        raise NotPiecewise("a condition in words")
    operands, signs = condition.args
    for left, right, sign in zip(operands, operands[1:], signs, strict=False):
        try:
            gap = rational(exact(substitute(Node("add", (left, neg(right))), variable, num(place))))
        except NotExact as error:
            raise NotPiecewise("a condition") from error
        if gap is None or sign not in _ORDER:
            raise NotPiecewise("a condition")
        if not _ORDER[sign](gap):
            return False
    return True
