"""Families of functions with an open constant, such as antiderivatives: `\\ln|x| + C` equals `\\ln|3x| + c`.

The constant is a letter that occurs once, as a term of the sum or as a factor of the product (`Ce^{2x}`). Two sums are
the same family if they differ by a number once their constants are taken away; two products if they are then equal.
"""

from __future__ import annotations

import re

from harness.answers.grammar.tree import Node, is_scalar, neg, num, substitute, sym, symbols

_TERM = re.compile(r"(?:[CcKkD]|const)(?:_\w+)?")
_FACTOR = re.compile(r"[CAKB](?:_\w+)?")

_POINTS = (2, 1, -1)
"""Values that all letters get to compute a difference, which is then compared with the difference everywhere."""


def same_with_constants(reference: Node, answer: Node) -> bool | None:
    """Whether two expressions differ only in the name of a free constant: x² + C and x² + K, Ceˣ and Aeˣ; None if C
    stands elsewhere, as in (x² + C)/2.
    """
    if not (is_scalar(reference) and is_scalar(answer)):
        return False
    left, right = _split_constant(reference, "add", _TERM), _split_constant(answer, "add", _TERM)
    if left is not None and right is not None:
        return _differ_by_number(left[1], right[1])
    left, right = _split_constant(reference, "mul", _FACTOR), _split_constant(answer, "mul", _FACTOR)
    # As a factor, A, K or B may be an amplitude that the question gives; a C in one of the two shows that it is free.
    if left is None or right is None or not (left[0] + right[0]).count("C"):
        return None if "C" in symbols(reference) & symbols(answer) else False
    from harness.grading.compare.identities import identical

    return identical(left[1], right[1]) is True


def _split_constant(node: Node, op: str, pattern: re.Pattern[str]) -> tuple[str, Node] | None:
    """Split a sum or product into (name of its constant, the rest).

    None unless it has one constant and other letters. op: "add" for a sum, "mul" for a product.
    """
    if node.op != op:
        return None
    names = [_letter(part) for part in node.args]
    constants = [name for name in names if name is not None and pattern.fullmatch(name)]
    if len(constants) != 1:
        return None
    rest = tuple(part for part, name in zip(node.args, names, strict=True) if name != constants[0])
    left = rest[0] if len(rest) == 1 else Node(op, rest)
    # A variable is a small letter: in the product CD both letters may be points, and no constant is free.
    has_variable = any(name[:1].islower() for name in symbols(left))
    return (constants[0], left) if has_variable and constants[0] not in symbols(left) else None


def _letter(node: Node) -> str | None:
    """Return the letter that a term is, also with a minus; None for any other term."""
    inner = node.args[0] if node.op == "neg" else node
    return str(inner.args[0]) if inner.op == "sym" else None


def _differ_by_number(left: Node, right: Node) -> bool:
    """Whether left − right is the same number for all values of the letters."""
    from harness.grading.compare.identities import identical

    difference = Node("add", (left, neg(right)))
    # More than one point: the difference may have no value at the first, as 1/(x − 2) at 2 or ln x at -1.
    for point in _POINTS:
        value = difference
        for name in symbols(difference):
            value = substitute(value, sym(name), num(point))
        if identical(difference, value) is True:
            return True
    return False
