"""Equality of ratios, numbers in a base and residue classes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reasoning_answers.compare.conventions import allows
from reasoning_answers.compare.exact import digits_in_base, exact
from reasoning_answers.compare.families import integer_letter
from reasoning_answers.compare.scalars import Comparison, same_scalar
from reasoning_answers.grammar.tree import Node, is_scalar, neg, num, substitute, symbols, walk
from reasoning_answers.records import GradeRules


def same_ratios(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two answers, at least one of them a ratio; times of day only as written (3:30 p.m.)."""
    parts = [reference, answer, *(part for side in (reference, answer) if side.op == "ratio" for part in side.args)]
    if any(part.op == "quantity" or (part.op == "mul" and part.args[0].op == "text") for part in parts):
        return Comparison(None, "ratio")
    if reference.op == answer.op == "ratio":
        if len(reference.args) != len(answer.args):
            return Comparison(False, "ratio")
        if len(reference.args) == 2:
            quotients = same_scalar(Node("div", reference.args), Node("div", answer.args), rules)
            may_be_times = _is_clock(reference) and _is_clock(answer)
            if quotients.equal and may_be_times and not _same_parts(reference.args, answer.args, rules):
                return Comparison(None, "ratio")  # 3:10 and 6:20
            return quotients
        # Both are multiplied so that their first parts agree, which avoids a division by a part that is 0.
        first = [Node("mul", (part, answer.args[0])) for part in reference.args]
        second = [Node("mul", (part, reference.args[0])) for part in answer.args]
        return Comparison(_same_parts(first, second, rules), "ratio")
    ratio, value = (reference, answer) if reference.op == "ratio" else (answer, reference)
    if len(ratio.args) == 2 and is_scalar(value) and allows(rules, "ratio_as_quotient"):
        label, named = ratio.args
        is_label = label.op == "sym" and re.fullmatch("[a-z]", label.args[0])
        # `n: 17` names a value; any other ratio is a quotient.
        names_value = is_label and not symbols(value) and not symbols(named)
        ratio_value = named if names_value else Node("div", ratio.args)
        return same_scalar(ratio_value, value, rules) if ratio is reference else same_scalar(value, ratio_value, rules)
    return Comparison(None, "ratio")


def _is_clock(node: Node) -> bool:
    """Whether a ratio may be a time of day: at most 24 hours, and minutes from 10 to 55 in steps of five."""
    hours, minutes = (exact(part) for part in node.args)
    return hours in range(25) and minutes in range(10, 60, 5)


def _same_parts(left: Sequence[Node], right: Sequence[Node], rules: GradeRules) -> bool:
    """Whether two equally long lists of parts are equal, pair by pair."""
    return all(same_scalar(mine, theirs, rules).equal for mine, theirs in zip(left, right, strict=True))


def same_classes(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two answers, at least one of them a residue class.

    `5 (mod 7)` equals `12 (mod 7)`, and also the number 5, its remainder, but not the number 12.
    """
    if reference.op != answer.op:
        return _same_class_and_value(reference, answer, rules)
    (left, left_modulus), (right, right_modulus) = reference.args, answer.args
    if not (is_scalar(left) and is_scalar(right)) or not same_scalar(left_modulus, right_modulus, rules).equal:
        return Comparison(False, "modulus")
    apart, step = exact(Node("add", (left, neg(right)))), exact(left_modulus)
    if apart is None or step is None:
        result = same_scalar(left, right, rules)
        return result if result.equal else Comparison(None, "modulus")  # x + 7 is x (mod 7)
    return Comparison(step != 0 and (apart / step).denominator == 1, "modulus")


def _same_class_and_value(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two answers, one of which is a residue class: the other may be its remainder or all of its members."""
    if (agreed := _same_class_of_line(reference, answer)) is not None:
        return Comparison(agreed, "modulus")
    residue_class, value = (reference, answer) if reference.op == "congruence" else (answer, reference)
    left, right = (node.args[0] if node.op == "congruence" else node for node in (reference, answer))
    if not (is_scalar(left) and is_scalar(right)):
        in_words = any(here.op in ("text", "quantity") for here in walk(value))  # n is odd
        return Comparison(None if in_words else False, "modulus")
    result = same_scalar(left, right, rules)
    # x + 7 may be the remainder of the class x (mod 7): with letters, this cannot be decided.
    undecided = result.equal is False and (symbols(residue_class.args[0]) or symbols(value))
    return Comparison(None, "modulus") if undecided else result


def _same_class_of_line(reference: Node, answer: Node) -> bool | None:
    """Whether `7k + 3`, with one letter for any integer, is the class `3 (mod 7)`; None for any other pair."""
    residue_class, line = (reference, answer) if reference.op == "congruence" else (answer, reference)
    if line.op == "rel" and line.args[1] == ("=",) and line.args[0][0].op == "sym":
        line = line.args[0][1]  # n = 7k + 3
    letter = integer_letter(line)
    # A letter next to the class itself would be another unknown, not any integer.
    if letter is None or symbols(residue_class):
        return None
    points = [substitute(line, letter, num(point)) for point in (0, 1, 2)]
    values = [value for value in map(exact, (*points, *residue_class.args)) if value is not None]
    if len(values) < 5:
        return None
    start, after, last, residue, modulus = values
    # Three points with equal steps: the line is linear, and its step is the modulus.
    if not modulus or last - after != after - start:
        return None
    return abs(after - start) == abs(modulus) and ((start - residue) / modulus).denominator == 1


def with_modulus(node: Node) -> Node:
    """Return `n ≡ 1, 5 (mod 6)` as `n ≡ 1 (mod 6), n ≡ 5 (mod 6)`; any other node unchanged."""
    if node.op != "list" or node.args[-1].op != "congruence":
        return node
    modulus, first = node.args[-1].args[1], node.args[0]
    named = first.op == "rel" and first.args[1] == ("≡",)
    residues = [first.args[0][1] if named else first, *node.args[1:-1], node.args[-1].args[0]]
    classes = [Node("congruence", (residue, modulus)) for residue in residues]
    return Node("list", tuple(Node("rel", ((first.args[0][0], item), ("≡",))) if named else item for item in classes))


def same_base(reference: Node, answer: Node, rules: GradeRules) -> Comparison:
    """Compare two answers, at least one of them a number in a stated base: by value, or by digits if one lacks it."""
    if reference.op == answer.op == "base":
        left_value, right_value = digits_in_base(*reference.args), digits_in_base(*answer.args)
        if left_value is None or right_value is None:
            return Comparison(reference.args == answer.args or None, "base")
        return Comparison(left_value == right_value, "base")
    based, plain = (reference, answer) if reference.op == "base" else (answer, reference)
    value = digits_in_base(*based.args)
    if plain.op == "num" and allows(rules, "base_dropped") and str(plain.args[0]) == based.args[0]:
        return Comparison(True, "base")
    if plain.op != "num" or value is None:
        return Comparison(None, "base")
    # 31 cannot be the digits of 1F₁₆, so it is that number in base ten. Against 204₅, a 54 is undecided: the
    # question may ask for the digits in base 5.
    by_letters = not based.args[0].isdigit()
    if value != plain.args[0]:
        return Comparison(False, "base")
    return Comparison(True if by_letters else None, "base")
