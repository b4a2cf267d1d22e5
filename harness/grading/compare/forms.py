"""The form that a question asks for: "as a fraction", "in simplest form", "factor completely", 用科学记数法表示.

Values are compared first, and forms only if the card has a rule `form`. The form is a property of the tree, that is, of
how the answer is written.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from math import gcd, prod

from harness.answers.grammar.tree import Node, neg, symbols, walk
from harness.core.records import Form
from harness.grading.bounds import MAX_TRIAL_DIVISOR
from harness.grading.compare.modular import NotModular, Residues

_ADDITIVE = ("add", "pm", "mp")
"""Kinds of nodes that represent a sum."""


def keeps_form(text: str, answer: Node | str, reference: Node | str, form: Form) -> bool:
    """Whether an answer, which equals the reference, is written in the form `form`; True if a side cannot be parsed.

    text: the answer. answer, reference: the trees, or the reasons why they cannot be parsed. The text is needed because
    the tree does not record ÷: a division such as 4÷5 is not yet a fraction.
    """
    if isinstance(answer, str) or isinstance(reference, str):
        return True
    if form in ("fraction", "simplest") and "÷" in text.rpartition("=")[2]:
        return False
    return _has_form(answer, reference, form)


def _has_form(answer: Node, reference: Node, form: Form) -> bool:
    """Whether `answer`, which equals `reference`, is written in the form `form`."""
    if form == "simplest" and _holds_fractions(reference):
        # 化成最简分数: in 0.375=3/8 and 3/8=0.375, only 3/8 has the form.
        chain = answer.args[0] if answer.op == "rel" else (answer,)  # the sides of an equation
        values = [value for value in chain if not symbols(value) and not any(map(_is_decimal, walk(value)))]
        if not values:
            return False
        answer = values[-1]
    last = answer.args[0][-1] if answer.op == "rel" else answer
    if form in ("fraction", "decimal") and _has_percent(last) and not _has_percent(reference):
        return False
    answer, reference = _value_of(answer), _value_of(reference)
    if form == "fraction":
        return _is_fraction(answer)
    if form == "decimal":
        number = _without_minus(answer)
        has_point = number.op == "num" and number.args[1] >= 0  # the number of digits after the point
        return has_point or _is_integer(number)
    if form == "expanded":
        return not any(_is_product_of_sums(here) for here in walk(answer))
    if form == "factored":
        return _same_factors(answer, reference)
    if form == "scientific":
        return all(_is_scientific(_value_of(part)) for part in (answer.args if answer.op == "list" else (answer,)))
    # The remaining case is the simplest form.
    if reference.op == "ratio" and answer.op == "div":
        answer = Node("ratio", answer.args)
    # 1.5 is the quotient of 3:2, not a ratio.
    if reference.op == "ratio" != answer.op:
        return False
    return all(_is_simplest(here) for here in walk(answer))


def _value_of(node: Node) -> Node:
    """Return the value of an answer, without its name, unit, percent and degree sign."""
    while node.op in ("quantity", "deg", "pct", "rel"):
        node = node.args[0][-1] if node.op == "rel" else node.args[0]
    return node


def _has_percent(node: Node) -> bool:
    """Whether `node` contains a percentage."""
    return any(here.op == "pct" for here in walk(node))


def _without_minus(node: Node) -> Node:
    """Return `node` without minus signs before it."""
    while node.op == "neg":
        node = node.args[0]
    return node


def _is_integer(node: Node) -> bool:
    """Whether `node` is an integer written without a point."""
    return node.op == "num" and node.args[0].denominator == 1 and node.args[1] < 0


def _is_fraction(node: Node) -> bool:
    """Whether `node` is one integer over another, or an integer."""
    node = _without_minus(node)
    parts = node.args if node.op == "div" else (node,)
    return all(_is_integer(_without_minus(part)) for part in parts)


def _is_scientific(node: Node) -> bool:
    """Whether `node` is 1.2×10^4: a decimal with one nonzero digit before the point, times a power of ten written as a
    power. Zeros may end the decimal: 1.20×10^4.
    """
    node = _without_minus(node)
    if node.op != "mul" or len(node.args) != 2 or node.args[1].op != "pow":
        return False
    digits, (base, exponent) = node.args[0], node.args[1].args
    return (
        digits.op == "num"
        and (digits.args[1] >= 0 or _is_integer(digits))  # not a mixed number
        and 1 <= digits.args[0] < 10
        and _is_integer(base)
        and base.args[0] == 10
        and _is_integer(_without_minus(exponent))
    )


def _is_product_of_sums(node: Node) -> bool:
    """Whether a factor or the base of a power is a sum, so that the node could be expanded."""
    if node.op == "mul":
        return any(_without_minus(part).op in _ADDITIVE for part in node.args)
    return node.op == "pow" and node.args[0].op in _ADDITIVE and node.args[1].op == "num"


# --- simplest form ---
def _holds_fractions(node: Node) -> bool:
    """Whether `node` is a fraction, or a list of fractions and integers; they may have names and units."""
    if any(map(_is_decimal, walk(node))):
        return False
    values = [_without_minus(_value_of(part)) for part in (node.args if node.op == "list" else (node,))]
    return all(map(_is_rational, values)) and not all(map(_is_integer, values))


def _is_decimal(node: Node) -> bool:
    """Whether `node` is a number with a decimal point or a percentage."""
    return node.op == "pct" or (node.op == "num" and node.args[1] >= 0)


def _is_simplest(node: Node) -> bool:
    """Whether the numbers of this node cannot be simplified further. They can be simplified in 6/8, 6:8, √8, 2·3, 1 +
    1, 1/√2 and 2^3.
    """
    op, args = node
    if op == "ratio":
        parts = [_without_minus(part) for part in args]
        if not all(map(_is_rational, parts)):
            return True
        return all(map(_is_integer, parts)) and gcd(*(part.args[0].numerator for part in parts)) == 1
    if op == "div":
        top, bottom = (_without_minus(part) for part in args)
        if _is_integer(top) and _is_integer(bottom):
            return bottom.value > 1 and gcd(top.value.numerator, bottom.value.numerator) == 1
        # √2/2 is in simplest form; 1/√2, (1/2)/x and 2x/4 are not.
        inner = [*walk(args[0]), *walk(args[1])]
        has_inner = any(here.op == "div" for here in inner) or any(here.op == "root" for here in walk(args[1]))
        return not has_inner and gcd(*map(_content, args)) == 1
    if op == "root":
        return _is_squarefree(args[0], _without_minus(args[1]))
    if op == "add":
        return sum(map(_is_rational, args)) < 2
    if op == "mul":
        return sum(_is_rational(factor) for factor in args) < 2
    return op != "pow" or not (_is_rational(args[0]) and _is_rational(args[1]))


def _content(node: Node) -> int:
    """Return the largest integer that divides all coefficients of a polynomial; 1 if it has none."""
    node = _without_minus(node)
    if _is_integer(node):
        return abs(int(node.args[0]))
    contents = [_content(part) for part in node.args] if node.op in ("add", "mul") else [1]
    return prod(contents) if node.op == "mul" else gcd(*contents)


def _is_rational(node: Node) -> bool:
    """Whether `node` is a number or a fraction of two numbers."""
    node = _without_minus(node)
    return node.op == "num" or (node.op == "div" and all(_without_minus(part).op == "num" for part in node.args))


def _is_squarefree(degree: Node, radicand: Node) -> bool:
    """Whether no factor below a limit can be taken out of a root; False for a decimal or fractional radicand."""
    if not (_is_integer(radicand) and degree.op == "num" and degree.args[0].denominator == 1):
        return radicand.op != "num" and not _is_rational(radicand)
    number = int(radicand.args[0])
    # 2 to a higher power exceeds the number anyway, and may have millions of digits.
    power = min(max(int(degree.args[0]), 0), number.bit_length())
    powers = takewhile(number.__ge__, (factor**power for factor in range(2, MAX_TRIAL_DIVISOR)))
    return number > 1 and all(number % each for each in powers)


# --- factored ---
def _same_factors(answer: Node, reference: Node) -> bool:
    """Whether answer and reference have the same factors with letters, up to signs, with the same multiplicities."""
    return _factors(answer) == _factors(reference)


def _factors(node: Node) -> Counter[int]:
    """Return the residue of each factor with letters → how often the factor occurs, however it is written."""
    count: Counter[int] = Counter()
    for factor, times in _flatten(node, 1):
        if symbols(factor):
            try:
                residue, opposite = Residues().value(factor), Residues().value(neg(factor))
            except NotModular:
                # Both sides are compared in one process, so that a hash that changes between processes does no harm.
                residue = opposite = hash(factor)
            # 1 − x may stand for x − 1; the smaller residue stands for both.
            count[min(residue, opposite)] += times
    return count


def _flatten(node: Node, times: int) -> list[tuple[Node, int]]:
    """Return (factor, exponent) pairs of `node` to the power `times`; signs are left out, as `_same_factors` ignores
    them.
    """
    op, args = node
    if op == "neg":
        return _flatten(args[0], times)
    if op == "mul":
        return [pair for part in args for pair in _flatten(part, times)]
    if op == "div":
        return [*_flatten(args[0], times), *_flatten(args[1], -times)]
    if op == "pow":
        base, exponent = args
        if exponent.op == "num" and exponent.value.denominator == 1:
            return _flatten(base, times * int(exponent.value))
    return [(node, times)]
