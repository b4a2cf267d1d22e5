"""Equality of inequalities and other relations as they are written; `realsets` compares their solutions."""

from __future__ import annotations

from collections.abc import Callable

from harness.answers.grammar.tree import Node, symbols
from harness.grading.compare.equations import difference
from harness.grading.compare.scalars import Comparison

_FLIP = {">": "<", ">=": "<="}
"""Sign of a relation that is written from its other end → its sign then."""

_SYMMETRIC = frozenset("∧∨∥⊥≅∼≡≈")
"""Signs whose sides may change places."""


def same_relations(reference: Node, answer: Node, same: Callable[[Node, Node], bool]) -> Comparison:
    """Compare two relations as they are written: equal, or undecided.

    They are equal if one is the other read from its right end (1 < x is x > 1), if their sign has no direction and
    their sides are the same in any order, or if they are single inequalities whose differences left − right are the
    same up to a positive factor.
    """
    left, right = _orient(reference), _orient(answer)
    (left_operands, signs), (right_operands, right_signs) = left.args, right.args
    if signs == right_signs and all(map(same, left_operands, right_operands)):
        return Comparison(True, "relation")
    if signs == right_signs and signs in (("<",), ("<=",), ("!=",)):
        left_gap, right_gap = difference(left), difference(right)
        if left_gap is not None and right_gap is not None and symbols(left_gap) and symbols(right_gap):
            from harness.grading.compare.identities import proportional

            ratio = proportional(left_gap, right_gap)
            # A negative factor would turn the sign round; ≠ has no direction, so any factor will do.
            if ratio is not None and (left.args[1] == ("!=",) or (not hasattr(ratio, "_mpc_") and ratio > 0)):
                return Comparison(True, "relation")
    return Comparison(None, "relation")


def _orient(node: Node) -> Node:
    """Return the relation in one of its two spellings: 2 < x for x > 2; with a sign such as ≈, its sides are sorted."""
    operands, signs = node.args
    if len(set(signs)) == 1 and signs[0] in _SYMMETRIC:
        return Node("rel", (tuple(sorted(operands, key=repr)), signs))
    if any(sign in _FLIP for sign in signs) and all(sign in _FLIP or sign == "=" for sign in signs):
        return Node("rel", (tuple(reversed(operands)), tuple(_FLIP.get(sign, sign) for sign in reversed(signs))))
    return node
