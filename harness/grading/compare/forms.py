"""The form in which an answer was asked for: "as a fraction", "in simplest form", "factor completely".

Values are compared first, and forms only where a card has a rule `form`. What is checked is how the answer is written.
"""

from __future__ import annotations

from collections import Counter
from math import gcd, isqrt
from typing import Any, get_args

from harness.answers.grammar.tree import Node, neg, symbols, walk
from harness.core.records import Form
from harness.grading.compare.radicals import NotExact, factors

FORMS: tuple[Form, ...] = get_args(Form)

_ADDITIVE = ("add", "pm", "mp")


def has_form(answer: Node, reference: Node, form: Form) -> bool:
    """Is the answer, which equals the reference, written in the form that was asked for?"""
    answer, reference = _bare(answer), _bare(reference)
    if form == "fraction":
        return _is_fraction(answer)
    if form == "decimal":
        return _unsigned(answer).op == "num" and (_unsigned(answer).args[1] >= 0 or _is_integer(_unsigned(answer)))
    if form == "expanded":
        return not any(_is_product_of_sums(here) for here in walk(answer))
    if form == "factored":
        return _same_factors(answer, reference)
    return all(_is_simplest(here) for here in walk(answer))


def _bare(node: Node) -> Node:
    """The value, without its name and unit."""
    while node.op in ("quantity", "deg", "pct", "rel"):
        node = node.args[0][-1] if node.op == "rel" else node.args[0]
    return node


def _unsigned(node: Node) -> Node:
    while node.op == "neg":
        node = node.args[0]
    return node


def _is_integer(node: Node) -> bool:
    return node.op == "num" and node.args[0].denominator == 1 and node.args[1] < 0


def _is_fraction(node: Node) -> bool:
    """One integer over another, or an integer."""
    node = _unsigned(node)
    parts = node.args if node.op == "div" else (node,)
    return all(_is_integer(_unsigned(part)) for part in parts)


def _is_product_of_sums(node: Node) -> bool:
    if node.op == "mul":
        return any(_unsigned(part).op in _ADDITIVE for part in node.args)
    return node.op == "pow" and node.args[0].op in _ADDITIVE and node.args[1].op == "num"


# --- simplest form ---
def _is_simplest(node: Node) -> bool:
    """Nothing is left to compute with the numbers of this node: 6/8, √8, 2·3, 1 + 1, 1/√2, 2^3."""
    op, args = node
    if op == "div":
        top, bottom = (_unsigned(part) for part in args)
        if _is_integer(top) and _is_integer(bottom):
            return bottom.args[0] > 1 and gcd(top.args[0].numerator, bottom.args[0].numerator) == 1
        return not any(here.op in ("root", "div") for part in args for here in _outer(part, args))
    if op == "root":
        return _is_squarefree(args[0], _unsigned(args[1]))
    if op == "add":
        return sum(not symbols(term) and _is_rational(term) for term in args) < 2
    if op == "mul":
        return sum(_is_rational(factor) for factor in args) < 2
    return op != "pow" or not (_is_rational(args[0]) and _is_rational(args[1]))


def _outer(part: Node, of: tuple[Any, ...]) -> list[Node]:
    """Roots below the line, and fractions on either side of it."""
    below = part is of[1]
    return [here for here in walk(part) if (here.op == "root" and below) or here.op == "div"]


def _is_rational(node: Node) -> bool:
    node = _unsigned(node)
    return node.op == "num" or (node.op == "div" and all(_unsigned(part).op == "num" for part in node.args))


def _is_squarefree(degree: Node, radicand: Node) -> bool:
    if not (_is_integer(radicand) and degree.op == "num" and degree.args[0].denominator == 1):
        return bool(radicand.op != "num")
    number = int(radicand.args[0])
    try:
        return all(count < int(degree.args[0]) for _, count in factors(number))
    except NotExact:
        return isqrt(number) ** 2 != number


# --- factored ---
def _same_factors(answer: Node, reference: Node) -> bool:
    """Each factor with letters stands in the reference as well, up to its sign, and as often."""
    return _factors(answer) == _factors(reference)


def _factors(node: Node) -> Counter[int]:
    """How often each factor with letters occurs, by its residue, which is the same however the factor is written."""
    from harness.grading.compare.modular import NotModular, Residues

    found: Counter[int] = Counter()
    for factor, times in _flat(node, 1):
        if symbols(factor):
            try:
                one, other = Residues().value(factor), Residues().value(neg(factor))
            except NotModular:
                one = other = hash(factor)
            found[min(one, other)] += times
    return found


def _flat(node: Node, times: int) -> list[tuple[Node, int]]:
    op, args = node
    if op == "neg":
        return _flat(args[0], times)
    if op == "mul":
        return [pair for part in args for pair in _flat(part, times)]
    if op == "div":
        return [*_flat(args[0], times), *_flat(args[1], -times)]
    if op == "pow" and args[1].op == "num" and args[1].args[0].denominator == 1:
        return _flat(args[0], times * int(args[1].args[0]))
    return [(node, times)]
