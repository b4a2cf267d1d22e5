"""Rewriting of trees before they are compared, so that two ways to write the same answer become one tree."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from harness.answers.grammar.tree import I, Node, neg, num, substitute, sym, walk
from harness.grading.bounds import MAX_ALTERNATIVES

_ELLIPSIS = sym("…")
_UNIT_VECTORS = (I, sym("j"), sym("k"))


def without_ellipsis(node: Node) -> Node:
    """Write out the arithmetic sequence `1, 2, …, 5`; shorten `1, 2, 3, …, n` to `1, 2, …, n`.

    Any other node is returned unchanged.
    """
    if node.op not in ("list", "set", "tuple") or node.args.count(_ELLIPSIS) != 1:
        return node
    dots = node.args.index(_ELLIPSIS)
    before, after = node.args[:dots], node.args[dots + 1 :]
    if not before or len(after) != 1 or any(item.op != "num" for item in before):
        # After words or letters the step of the sequence is unknown.
        return node
    values = [item.args[0] for item in before]
    step = values[1] - values[0] if len(values) > 1 else Fraction(1)
    if step == 0 or any(later - earlier != step for earlier, later in pairwise(values)):
        return node
    if after[0].op != "num":
        return Node(node.op, (num(values[0]), num(values[0] + step), _ELLIPSIS, *after))
    count = (after[0].args[0] - values[0]) / step
    # A bound on the items, for an answer may write 1, 2, …, 10^9.
    if count.denominator != 1 or not 0 < count < 4 * MAX_ALTERNATIVES:
        return node
    return Node(node.op, tuple(num(values[0] + step * index) for index in range(int(count) + 1)))


def groups_as_tuples(node: Node) -> Node:
    """Return `1,2; 3,4`, groups of equal length between semicolons, as a list of tuples; any other node unchanged."""
    if node.op != "list" or not all(item.op == "list" for item in node.args):
        return node
    if any(len(item.args) != len(node.args[0].args) for item in node.args):
        return node
    # Equations between semicolons are assignments, which `assignments` compares.
    if any(part.op in ("rel", "member", "list") for item in node.args for part in item.args):
        return node
    return Node("list", tuple(Node("tuple", item.args) for item in node.args))


def components(node: Node, size: int) -> tuple[Node, ...] | None:
    """Return the `size` coordinates of a vector such as `a i + b j + c k`; None if `node` is no sum of unit vectors."""
    if size not in (2, 3) or node.op not in ("add", "mul", "neg", "const", "sym"):
        return None
    used = [unit for unit in _UNIT_VECTORS if substitute(node, unit, num(0)) != node]
    # A vector has an i or a j: k alone is more often a letter.
    if not used or (I not in used and _UNIT_VECTORS[1] not in used) or (size == 2 and _UNIT_VECTORS[2] in used):
        return None
    terms = node.args if node.op == "add" else (node,)
    coordinates = [num(0)] * 3
    for term in terms:
        # By substitution, since a unit vector may stand inside a product or quotient.
        inside = [index for index, unit in enumerate(_UNIT_VECTORS) if substitute(term, unit, num(0)) != term]
        if len(inside) != 1:
            return None
        (axis,) = inside
        factor = _factor(term, _UNIT_VECTORS[axis])
        if factor is None:
            return None
        is_first = coordinates[axis] == num(0)
        coordinates[axis] = factor if is_first else Node("add", (coordinates[axis], factor))
    return tuple(coordinates[:size])


def _factor(term: Node, unit: Node) -> Node | None:
    """Return the factor of a unit vector in one term; None if the vector is no plain factor of it."""
    if term == unit:
        return num(1)
    if term.op == "neg":
        inner = _factor(term.args[0], unit)
        return None if inner is None else neg(inner)
    if term.op == "mul" and term.args.count(unit) == 1:
        rest = tuple(part for part in term.args if part != unit)
        return rest[0] if len(rest) == 1 else Node("mul", rest)
    if term.op == "div" and term.args[1] != unit:
        inner = _factor(term.args[0], unit)
        return None if inner is None else Node("div", (inner, term.args[1]))
    return None


def without_degree_signs(node: Node) -> Node:
    """Return `180° - 2x` as `180 - 2x`: without the degree signs of its terms; those inside functions stay."""
    if not any(here.op == "deg" for here in walk(node)):
        return node
    if node.op == "deg":
        return without_degree_signs(node.args[0])
    if node.op in ("add", "mul", "neg", "div"):
        return Node(node.op, tuple(without_degree_signs(part) for part in node.args))
    return node
