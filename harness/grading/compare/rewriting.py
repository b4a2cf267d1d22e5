"""Rewriting of trees before they are compared, so that two ways to write the same answer become one tree."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from harness.answers.grammar.tree import Node, num, sym, walk

_ELLIPSIS = sym("…")

_MAX_ITEMS = 256
"""A sequence is written out if it has at most this many items, for an answer may write 1, 2, …, 10^9."""


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
    n_steps = (after[0].args[0] - values[0]) / step
    if n_steps.denominator != 1 or not 0 < n_steps < _MAX_ITEMS:
        return node
    # The written items are read for the step alone: `1, 2, 3, …, 2` ends at its end, and becomes `1, 2`.
    return Node(node.op, tuple(num(values[0] + step * index) for index in range(int(n_steps) + 1)))


def without_degree_signs(node: Node) -> Node:
    """Return `180° - 2x` as `180 - 2x`: without the degree signs of its terms; those inside functions stay."""
    if not any(here.op == "deg" for here in walk(node)):
        return node
    if node.op == "deg":
        return without_degree_signs(node.args[0])
    if node.op in ("add", "mul", "neg", "div"):
        return Node(node.op, tuple(without_degree_signs(part) for part in node.args))
    return node
