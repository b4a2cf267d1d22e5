"""Antiderivatives and general solutions, whose free constant has any name and value: x² + C is x² + 3 + K."""

from __future__ import annotations

import re

from harness.answers.grammar.tree import Node, is_scalar, names, neg, num, substitute, sym, symbols
from harness.core.records import GradeRules
from harness.grading.compare.alternatives import has_signs
from harness.grading.compare.numeric import number_of
from harness.grading.compare.point import NotNumeric
from harness.grading.compare.scalars import Comparison, same_scalar

_CONSTANT = re.compile(r"[CcKkD](?:_\w+)?")
"""Letters that may be the free constant of an antiderivative."""

_CERTAIN = re.compile(r"C(?:_\w+)?")
"""The constants that no one takes for a quantity of the question."""

_VARIABLES = names("x y z t u v w s r theta phi")


def same_with_constant(reference: Node, answer: Node, rules: GradeRules) -> Comparison | None:
    """Compare two expressions in one variable that each add a free constant to it; None for all others.

    Equal if the reference's constant is a capital C: under another name of the constant, or with two capital C, where
    the rest differs by a real number. Undecided otherwise, for c and k may be quantities of the question.
    """
    label, value = _labelled(reference)
    answer_label, answer_value = _labelled(answer)
    constant, answer_constant = _constant_of(value), _constant_of(answer_value)
    if constant is None or answer_constant is None or (label and answer_label and label != answer_label):
        return None
    value, answer_value = substitute(value, constant, sym("C")), substitute(answer_value, answer_constant, sym("C"))
    if symbols(value) != symbols(answer_value):
        return None
    is_equal: bool | None = False
    if _CERTAIN.fullmatch(constant.args[0]):
        is_equal = same_scalar(value, answer_value, rules).equal
        if not is_equal and _CERTAIN.fullmatch(answer_constant.args[0]):
            is_equal = _differ_by_real_number(value, answer_value, rules)
    return Comparison(is_equal or None, "constant")


def _labelled(node: Node) -> tuple[Node | None, Node]:
    """Return the name and the value of `y = value` and `f(x) = value`; of any other node, None and the node."""
    if node.op == "rel" and node.args[1] == ("=",) and node.args[0][0].op in ("sym", "apply"):
        return node.args[0][0], node.args[0][1]
    return None, node


def _constant_of(node: Node) -> Node | None:
    """Return the letter that is the free constant of an expression in one variable, such as C of x² + C; else None."""
    terms = node.args if node.op == "add" and is_scalar(node) and not has_signs(node) else ()
    constants = [term for term in terms if term.op == "sym" and _CONSTANT.fullmatch(term.args[0])]
    if len(constants) != 1:
        return None
    others = {name for term in terms if term is not constants[0] for name in symbols(term)}
    return constants[0] if len(others) == 1 and others <= _VARIABLES else None


def _differ_by_real_number(left: Node, right: Node, rules: GradeRules) -> bool:
    """Whether left − right is one real number for all values of the letters: ln|x| + C and ln|3x| + C."""
    difference = Node("add", (left, neg(right)))
    # More than one point: the difference may have no value at the first, as 1/(x − 2) at 2 or ln x at -1.
    for point in (2, 1, -1):
        value = difference
        for name in symbols(difference):
            value = substitute(value, sym(name), num(point))
        try:
            if number_of(value).imag == 0 and same_scalar(difference, value, rules).equal:
                return True
        except NotNumeric:
            continue
    return False
