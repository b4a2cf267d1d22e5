"""Inequalities and other relations, compared as they are written."""

from __future__ import annotations

from collections.abc import Callable

from harness.answers.grammar.tree import Node, is_scalar, neg, symbols
from harness.grading.compare.scalars import Answer

_FLIP = {">": "<", ">=": "<="}
_SYMMETRIC = frozenset("∧∨∥⊥≅∼≡≈")


def same_relations(reference: Node, answer: Node, same: Callable[[Node, Node], bool]) -> Answer:
    """The same chain, read from either end, or in any order where its signs have no direction; or one inequality whose
    sides differ by a positive factor."""
    one, other = _oriented(reference), _oriented(answer)
    if one.args[1] == other.args[1] and all(map(same, one.args[0], other.args[0])):
        return Answer(True, "relation")
    if one.args[1] == other.args[1] and one.args[1] in (("<",), ("<=",), ("!=",)):
        left, right = (_gap(node) for node in (one, other))
        if left is not None and right is not None and symbols(left) and symbols(right):
            from harness.grading.compare.identities import proportional

            ratio = proportional(left, right)
            if ratio is not None and (one.args[1] == ("!=",) or (not hasattr(ratio, "_mpc_") and ratio > 0)):
                return Answer(True, "relation")
    return Answer(False, "relation")


def _gap(node: Node) -> Node | None:
    left, right = node.args[0]
    return Node("add", (left, neg(right))) if is_scalar(left) and is_scalar(right) else None


def _oriented(node: Node) -> Node:
    operands, signs = node.args
    if len(set(signs)) == 1 and signs[0] in _SYMMETRIC:
        return Node("rel", (tuple(sorted(operands, key=repr)), signs))
    if any(sign in _FLIP for sign in signs) and all(sign in _FLIP or sign == "=" for sign in signs):
        return Node("rel", (tuple(reversed(operands)), tuple(_FLIP.get(sign, sign) for sign in reversed(signs))))
    return node
