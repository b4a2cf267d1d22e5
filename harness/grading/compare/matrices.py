"""Arithmetic of matrices: an answer that is left as a sum of multiples becomes one matrix."""

from __future__ import annotations

from collections.abc import Callable

from harness.answers.grammar.tree import Node, is_scalar, neg


class NotAMatrix(ValueError):
    """The tree is no matrix: its matrices have sizes that cannot be added or multiplied, or it holds something else."""


def compute_matrices(node: Node) -> Node:
    """Evaluate a sum of multiples of matrices (`k·A + B`, `A/k`) to one matrix.

    Any other node is returned unchanged.
    """
    if node.op not in ("add", "mul", "neg", "div") or is_scalar(node):
        return node
    try:
        return _value(node)
    except NotAMatrix:
        return node


def _value(node: Node) -> Node:
    """Return `node` as one matrix or scalar. Raises `NotAMatrix`."""
    op, args = node
    if op == "matrix" or is_scalar(node):
        return node
    if op == "neg":
        return _map(_value(args[0]), neg)
    if op == "div" and is_scalar(args[1]):
        return _map(_value(args[0]), lambda cell: Node("div", (cell, args[1])))
    if op == "add":
        total = _value(args[0])
        for term in args[1:]:
            total = _sum(total, _value(term))
        return total
    if op == "mul":
        product = _value(args[0])
        for factor in args[1:]:
            product = _product(product, _value(factor))
        return product
    raise NotAMatrix(op)


def _map(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the matrix with `change` applied to each entry."""
    if node.op == "matrix":
        return Node("matrix", tuple(tuple(change(cell) for cell in row) for row in node.args))
    raise NotAMatrix(node.op)


def _sum(left: Node, right: Node) -> Node:
    """Return the sum of two matrices of one size."""
    sizes = [(len(part.args), len(part.args[0])) for part in (left, right) if part.op == "matrix"]
    if len(sizes) < 2 or sizes[0] != sizes[1]:
        raise NotAMatrix("a sum")
    rows = (
        tuple(Node("add", pair) for pair in zip(left_row, right_row, strict=True))
        for left_row, right_row in zip(left.args, right.args, strict=True)
    )
    return Node("matrix", tuple(rows))


def _product(left: Node, right: Node) -> Node:
    """Return the product of two scalars, or of a scalar and a matrix."""
    if is_scalar(left) and is_scalar(right):
        return Node("mul", (left, right))
    if is_scalar(left):
        return _map(right, lambda cell: Node("mul", (left, cell)))
    raise NotAMatrix("a product")
