"""The signs ± and ∓: the values that an answer with them stands for, written out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from harness.answers.grammar.tree import Node, neg, num, walk
from harness.grading.bounds import MAX_ALTERNATIVES


def has_signs(node: Node) -> bool:
    """Whether ± or ∓ stands in the tree."""
    return any(here.op in ("pm", "mp") for here in walk(node))


def items_of(node: Node) -> tuple[Node, ...]:
    """Return the items of a list; of any other node the node itself."""
    return node.args if node.op == "list" else (node,)


def values_of_signs(node: Node, independent: bool) -> Node | None:
    """Return all values that `node` with its ± stands for, as a list node; None if there are over `MAX_ALTERNATIVES`.

    All signs of an item change together: `1 ± 2 ∓ 3` is two values. independent: each ± of a tuple, set or list
    changes by itself, so that (±a, ±b) is four points.
    """
    items: list[Node] = []
    for item in items_of(node):
        signs = [here for here in walk(item) if here.op in ("pm", "mp")]
        if not signs:
            items.append(item)
            continue
        # With ∓ the signs depend on each other, so none of them changes by itself.
        free = independent and item.op in ("tuple", "set", "list", "bracket") and not any(s.op == "mp" for s in signs)
        choices: Iterable[tuple[int, ...]]
        if free:
            if 2 ** len(signs) > MAX_ALTERNATIVES:
                return None
            choices = product((1, -1), repeat=len(signs))
        else:
            choices = ((1,) * len(signs), (-1,) * len(signs))
        # {1 ± x} is one set of two values, not a list of two sets.
        if item.op == "set":
            inner = values_of_signs(Node("list", item.args), False)
            assert inner is not None
            items.append(Node("set", items_of(inner)))
            continue
        items.extend(_with_signs(item, list(choice)) for choice in choices)
    return items[0] if len(items) == 1 else Node("list", tuple(items))


def _with_signs(node: Node, signs: list[int]) -> Node:
    """Return `node` with its ± and ∓ replaced from left to right by `signs`, each 1 or -1; the list is emptied."""
    if node.op in ("pm", "mp"):
        is_minus = (signs.pop(0) == -1) == (node.op == "pm")  # ∓ has the other sign
        left, right = _with_signs(node.args[0], signs), _with_signs(node.args[1], signs)
        right = neg(right) if is_minus else right
        return right if left == num(0) else Node("add", (left, right))
    parts: list[object] = []
    for part in node.args:
        if isinstance(part, Node):
            parts.append(_with_signs(part, signs))
        elif isinstance(part, tuple):  # a row of a matrix, or the sides of a relation
            parts.append(tuple(_with_signs(cell, signs) if isinstance(cell, Node) else cell for cell in part))
        else:
            parts.append(part)
    return Node(node.op, tuple(parts))
