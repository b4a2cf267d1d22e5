"""Arithmetic of matrices and vectors: an answer that is left as a sum, product or multiple becomes one matrix."""

from __future__ import annotations

from collections.abc import Callable

from harness.answers.grammar.tree import Node, is_scalar, neg

_MAX_ENTRIES = 400
"""Largest number of products of entries in one product of matrices."""


class NotAMatrix(ValueError):
    """The tree is no matrix: its matrices have sizes that cannot be added or multiplied, or it holds something else."""


def compute_matrices(node: Node) -> Node:
    """Evaluate arithmetic of matrices (`k·A + B`, `A·B`, `-A`, `A/k`) to one matrix, and of coordinates to one tuple.

    Any other node is returned unchanged.
    """
    if node.op not in ("add", "mul", "neg", "div") or is_scalar(node):
        return node
    try:
        return _value(node)
    except NotAMatrix:
        return node


def _value(node: Node) -> Node:
    """Return `node` as one matrix, tuple or scalar. Raises `NotAMatrix`."""
    op, args = node
    if op in ("matrix", "tuple") or is_scalar(node):
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
    """Return the matrix or tuple with `change` applied to each entry."""
    if node.op == "matrix":
        return Node("matrix", tuple(tuple(change(cell) for cell in row) for row in node.args))
    if node.op == "tuple":
        return Node("tuple", tuple(change(cell) for cell in node.args))
    raise NotAMatrix(node.op)


def _sum(left: Node, right: Node) -> Node:
    """Return the sum of two matrices or tuples of one size."""
    if left.op != right.op or left.op not in ("matrix", "tuple") or len(left.args) != len(right.args):
        raise NotAMatrix("a sum")
    if left.op == "tuple":
        return Node("tuple", tuple(Node("add", pair) for pair in zip(left.args, right.args, strict=True)))
    if len(left.args[0]) != len(right.args[0]):
        raise NotAMatrix("a sum")
    rows = (
        tuple(Node("add", pair) for pair in zip(left_row, right_row, strict=True))
        for left_row, right_row in zip(left.args, right.args, strict=True)
    )
    return Node("matrix", tuple(rows))


def _product(left: Node, right: Node) -> Node:
    """Return the product of two scalars, of a scalar and a matrix or tuple, or of two matrices."""
    if is_scalar(left) and is_scalar(right):
        return Node("mul", (left, right))
    if is_scalar(left):
        return _map(right, lambda cell: Node("mul", (left, cell)))
    if is_scalar(right):
        return _map(left, lambda cell: Node("mul", (cell, right)))
    if left.op == right.op == "matrix" and len(left.args[0]) == len(right.args):
        columns = list(zip(*right.args, strict=True))
        if len(left.args) * len(columns) * len(right.args) > _MAX_ENTRIES:
            raise NotAMatrix("too large")
        return Node(
            "matrix",
            tuple(
                tuple(
                    Node("add", tuple(Node("mul", pair) for pair in zip(row, column, strict=True)))
                    for column in columns
                )
                for row in left.args
            ),
        )
    raise NotAMatrix("a product")
