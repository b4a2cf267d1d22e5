r"""Where letters do not multiply as numbers do: matrices and vectors.

The methods that decide about expressions take each letter for a number, so that AB is BA and A⁻¹BA is B. For matrices
both are false, and a product of two vectors depends on its sign: a × b is not b × a, nor a · b. Two answers that are
equal for numbers only are therefore undecided as soon as one of them shows such letters:

    matrices    a capital letter, or a product of capitals, is inverted or transposed (A^{-1}, (AB)^T), and there is
                another capital; or two capitals are multiplied in both orders (AB - BA)
    vectors     × or · stands between two letters that are set as vectors (\vec a \times \vec b), or behind ∇

Letters that show nothing of the kind are numbers: V = RI is V = IR, and kT^{-1} is k/T.
"""

from __future__ import annotations

import re
from itertools import pairwise

from harness.answers.grammar.tree import Node, num, sym, walk

_TRANSPOSES = (sym("T"), sym("top"), sym("intercal"), sym("*"), sym("H"), sym("dagger"))
"""Exponents that make another matrix of a matrix: transposed, adjoint."""

_VECTOR = r"\\(?:vec|overrightarrow|mathbf|boldsymbol|bm)(?![a-zA-Z])[\s{]*+[A-Za-z]{1,2}(?![A-Za-z])[\s}]*+"
_BETWEEN_VECTORS = re.compile(
    rf"(?:{_VECTOR}(?:_(?:\w|\{{\w{{1,4}}\}})\s*+)?|\\nabla\s*+)\\(?:times|cdot)(?![a-zA-Z])[\s{{(]*+"
    rf"(?={_VECTOR}|\\nabla|[A-Za-z])"
)
r"""A product of vectors, `\vec{a}_1 \times \vec b` or `\nabla \cdot F`."""


def multiplies_vectors(source: str) -> bool:
    """Whether × or · stands between two vectors in the text of an answer, or behind ∇."""
    return "\\" in source and _BETWEEN_VECTORS.search(source) is not None


def multiplies_matrices(node: Node) -> bool:
    """Whether the capital letters of a tree may be matrices, whose order in a product counts."""
    nodes, orders = walk(node), set[tuple[Node, Node]]()
    has_several = sum(here.op == "sym" and _is_capital(here) for here in nodes) > 1
    for here in nodes:
        if here.op == "pow" and _makes_a_matrix(here.args[1]):
            base = here.args[0]
            if (_is_capital(base) and has_several) or (base.op == "mul" and all(map(_is_capital, base.args))):
                return True
        if here.op == "mul":
            orders.update(pair for pair in pairwise(here.args) if pair[0] != pair[1] and all(map(_is_capital, pair)))
    return any((second, first) in orders for first, second in orders)


def _is_capital(node: Node) -> bool:
    """Whether the node is a capital letter, perhaps with an index, or a power of one."""
    letter = node.args[0] if node.op == "pow" else node
    return letter.op == "sym" and len(letter.args[0].partition("_")[0]) == 1 and letter.args[0][0].isupper()


def _makes_a_matrix(exponent: Node) -> bool:
    """Whether an exponent inverts or transposes a matrix."""
    return exponent == num(-1) or exponent in _TRANSPOSES
