"""The sign ±: what an answer with it stands for, written out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from harness.answers.grammar.tree import Node, neg, num, walk
from harness.grading.bounds import MAX_ALTERNATIVES


def has_signs(node: Node) -> bool:
    """Some ± or ∓ stands in it."""
    return any(here.op in ("pm", "mp") for here in walk(node))


def items_of(node: Node) -> tuple[Node, ...]:
    """The parts of a list; anything else is a list of one."""
    return node.args if node.op == "list" else (node,)


def expanded(node: Node, independent: bool) -> Node | None:
    """The list of what it stands for; None beyond the bound. independent: each ± of a tuple has its own sign."""
    items: list[Node] = []
    for item in items_of(node):
        signs = [here for here in walk(item) if here.op in ("pm", "mp")]
        if not signs:
            items.append(item)
            continue
        free = independent and item.op in ("tuple", "set", "list", "bracket") and not any(s.op == "mp" for s in signs)
        choices: Iterable[tuple[int, ...]]
        if free:
            if 2 ** len(signs) > MAX_ALTERNATIVES:
                return None
            choices = product((1, -1), repeat=len(signs))
        else:
            choices = ((1,) * len(signs), (-1,) * len(signs))
        if item.op == "set":
            inner = expanded(Node("list", item.args), False)
            assert inner is not None
            items.append(Node("set", items_of(inner)))
            continue
        items.extend(_chosen(item, list(choice)) for choice in choices)
    return items[0] if len(items) == 1 else Node("list", tuple(items))


def _chosen(node: Node, signs: list[int]) -> Node:
    if node.op in ("pm", "mp"):
        sign = signs.pop(0) * (1 if node.op == "pm" else -1)
        left, right = _chosen(node.args[0], signs), _chosen(node.args[1], signs)
        if sign < 0:
            right = neg(right)
        return right if left == num(0) else Node("add", (left, right))
    parts = tuple(
        _chosen(part, signs)
        if isinstance(part, Node)
        else tuple(_chosen(p, signs) if isinstance(p, Node) else p for p in part)
        if isinstance(part, tuple)
        else part
        for part in node.args
    )
    return Node(node.op, parts)
