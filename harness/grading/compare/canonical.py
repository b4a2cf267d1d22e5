"""The vote of an answer: a text that is the same for equal answers, by which maj@k (the majority of k answers) counts.

Votes are needed because equality is not transitive: 50% equals 50 and equals 0.5, which differ, so that pairs of equal
answers do not form groups. The vote of a rational number is its exact value, of any other number twelve digits. A list
is sorted, and a set has each element once. An expression with letters votes by its residue in a finite field
(`modular`). Anything else votes by its text without layout.

The unit of the reference says what a number without a unit means, so that beside 1.8升 these vote:

    1.8, 1.8升, 1800毫升    9/5            a unit of the same dimension is converted to the unit of the reference
    1.8米                  9/5 length^1   a unit of another dimension is part of the vote

A time of day beside another one votes by its minute: 16:10 for 下午4点10分.

Beside named values, named values vote with their names: `x = 7, y = 2`. Beside values in order, an answer keeps its
order.

Units, percent and degree signs vote by their number alone where the reference has none, and inside of lists, if that
number gets the same verdict (`vote_of`): 50 and 50% are one vote beside 50, and two beside 1/2. So no vote of rational
numbers joins answers of different verdicts. The text of an option votes for its letter.

Where a form is asked for, an answer that misses nothing but the form says so in its vote:

    2(x+3)(x-3), 2(x-3)(x+3)     expression 5e…                  the spelling of an answer never counts
    2(x²-9), 2x²-18              expression 5e…, not factored    right by value, and wrong
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from msgspec import structs

from harness.answers.boxed import without_boxes
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.numerals import number_in_words
from harness.answers.grammar.parse import connectives, parse
from harness.answers.grammar.shown import show
from harness.answers.grammar.tree import Node, num, symbols
from harness.answers.grammar.units import Unit, is_counted, noun_of, unit_of
from harness.answers.letters import letter_of
from harness.answers.words import as_compared, counted_in_words, is_words, numeral_as_digits, without_layout, words_of
from harness.core.records import Question, VerdictName
from harness.grading.compare.assignments import Assignment, assignments
from harness.grading.compare.conventions import allows
from harness.grading.compare.equations import is_equation, statement
from harness.grading.compare.equivalence import equal, option_of
from harness.grading.compare.exact import exact
from harness.grading.compare.modular import NotModular, Residues
from harness.grading.compare.plain_numbers import plain_number
from harness.grading.compare.ratios import minute_of_day, names_time
from harness.grading.compare.realsets import NotASet, RealInterval, real_set
from harness.grading.compare.relations import ordering
from harness.grading.compare.scalars import measures, with_unit_letters

_DIGITS = 30
"""Number of digits to which an irrational number is computed for its vote."""

_MAX_NUMBER = 10**12
"""An irrational number above this size votes by all its digits."""

_MAX_DENOMINATOR = 1_000_000
"""Largest denominator of a fraction that is recognised by its digits."""


def vote_of(answer: str, question: Question, outcome: VerdictName) -> str | None:
    """Return the vote of an extracted answer, which shares it only with answers of the same outcome; None if empty.

    outcome: the verdict on the answer. A vote that says less than the answer (without signs, names or braces) is an
    answer itself: where it gets another verdict, the answer votes by its own text.
    """
    form = question.rules.form
    if form is not None and question.kind not in ("choice", "text"):
        by_value = structs.replace(question, rules=structs.replace(question.rules, form=None))
        # A right answer has the form. Any other one is compared once more, as short answers are for their near misses.
        value = outcome if outcome == "correct" else _verdict_on(answer, by_value)
        vote = vote_of(answer, by_value, value)
        return vote if vote is None or value == outcome else f"{vote}, not {form}"
    vote = canonical(answer, question)
    if vote is None or question.kind == "choice":
        return vote
    if plain_number(answer) is not None and not _lists_values(question.references):
        return vote  # beside a list 3；4, 3/4 and 0.75 may get two verdicts
    if (point := _POINT.fullmatch(vote)) is not None and _lists_values(question.references):
        # Beside a list, a point is a list in brackets, as long as it gets the verdict of the list.
        items = point[1].split(", ")
        listed = ", ".join(items if _counts_order(question) else sorted(items))
        if _verdict_on(listed, question) == outcome:
            return listed
    if vote == answer or _READABLE.fullmatch(vote) is None:
        return vote
    # A longer vote would cost a second long comparison.
    if len(vote) <= _MAX_COMPARED_CHARS and _verdict_on(vote, question) == outcome:
        return vote
    return without_layout(answer)[:200]


@lru_cache(maxsize=1_024)
def _lists_values(references: tuple[str, ...]) -> bool:
    """Whether each reference is a list of values without brackets: 9；20."""
    try:
        return all(parse(without_boxes(reference)).op == "list" for reference in references)
    except (Unreadable, RecursionError):
        return False


def _verdict_on(vote: str, question: Question) -> VerdictName:
    """Return the outcome that a vote gets as an answer."""
    results = [equal(reference, vote, question.kind, question.rules).equal for reference in question.references]
    return "correct" if True in results else "undecided" if None in results else "wrong"


_MAX_COMPARED_CHARS = 200
"""Longest vote that is compared with the references, in characters; behind a longer one, the answer is the vote."""

_READABLE = re.compile(r"(?:[-\d/()\[\]∪, ]|inf)++")
"""A vote of rational numbers, alone or in lists, points and intervals."""

_POINT = re.compile(r"\(([-\d/, ]{1,200})\)")
"""A vote of several rational numbers in round brackets."""


def canonical(answer: str, question: Question) -> str | None:
    """Return the form of `answer` to `question`, an extracted answer, in which equal answers are the same text; None if
    the answer is empty.
    """
    if not answer.strip():
        return None
    if question.kind == "choice":
        # The text of an option is a vote for its letter.
        letter = letter_of(answer, any_case=True) or option_of(answer, question.choices, question.rules)
        return letter or words_of(answer)[:200]
    if (plain := plain_number(answer)) is not None:
        return str(Fraction(plain.top, plain.bottom))
    if (time := _vote_of_time(answer, question.references)) is not None:
        return time
    quantity = _quantity_of(question.references)
    if is_words(answer):
        words = as_compared(answer)
        answer = number_in_words(words) or counted_in_words(words) or ""
        if not answer:
            return words[:200]
    try:
        node = parse(answer, list_commas=question.kind == "multiple")
        # (x, y) = (7, 2) keeps its names beside a reference with names or in order.
        node = node if assignments(node) is not None else _value_of(node)
        vote = None if quantity is None else _vote_in_unit(node, quantity)
        vote = vote or _vote_of_names(node, answer, question)
        return (vote or _vote_of_tree(node, ordered=_counts_order(question)))[:2_000]
    except (Unreadable, RecursionError):
        return without_layout(answer)[:200]


def _counts_order(question: Question) -> bool:
    """Whether the order of values may decide, so that another order is another vote."""
    return bool(question.rules.ordered)


def _vote_of_time(answer: str, references: tuple[str, ...]) -> str | None:
    """Return the vote of a time of day beside a reference that is one: 16:10 for 下午4点10分, 16时10分 and 4:10 p.m."""
    for reference in references:
        sides = without_boxes(reference), answer
        if not all(map(_MAY_BE_TIME.search, sides)):
            continue
        try:
            left, right = map(parse, sides)
        except (Unreadable, RecursionError):
            continue
        if names_time(left) or names_time(right):
            return minute_of_day(left, right)
    return None


_MAY_BE_TIME = re.compile(r"\d\s*[:：]\s*\d|[点时]|[ap]\.?m\b", re.IGNORECASE)


def _value_of(node: Node) -> Node:
    """Return the last value of an equation that names it (`V = 1.8 L`); any other node unchanged."""
    while node.op == "rel" and is_equation(node) and (parts := statement(node)) is not None:
        node = parts.values[-1]
    return node


@lru_cache(maxsize=1_024)
def _quantity_of(references: tuple[str, ...]) -> Node | None:
    """Return the first reference that is a number with a known unit, a percent or a degree sign; None if none is."""
    for reference in references:
        try:
            node = _value_of(parse(numeral_as_digits(without_boxes(reference))))
        except (Unreadable, RecursionError):
            continue
        if node.op in _SIGNS or (node.op == "quantity" and unit_of(node.args[1]) is not None):
            return node
    return None


@lru_cache(maxsize=1_024)
def _ordered_reference(references: tuple[str, ...]) -> Node | None:
    """Return the first reference whose values have names or an order: `x = 7, y = 2`, (7, 2), 7 > 5 > 2; or None."""
    for reference in references:
        try:
            node = parse(without_boxes(reference))
        except (Unreadable, RecursionError):
            continue
        if assignments(node) is not None or node.op == "tuple" or ordering(node) is not None:
            return node
    return None


def _vote_of_names(node: Node, answer: str, question: Question) -> str | None:
    """Return the vote of several values beside a reference that gives them names or an order: `x = 7, y = 2`.

    None beside any other reference, and for any other answer.
    """
    reference = _ordered_reference(question.references)
    if reference is None and not _counts_order(question):
        return None
    if reference is not None and ordering(reference) is not None:
        return _vote_of_order(node, reference)
    named = assignments(node)
    if "or" in connectives(answer):
        # "7 or 2" leaves open which value has which name, so that it is another vote than 7, 2.
        items = node.args if node.op == "list" else ()
        return " or ".join(show(item) if is_equation(item) else _vote_of_tree(item) for item in items) or None
    if node.op in ("set", "bracket"):
        return show(Node(node.op, tuple(Node("text", (_vote_of_tree(item),)) for item in node.args)))
    reference_names = None if reference is None else assignments(reference)
    if reference_names is None:
        if named is None:
            return _vote_of_tree(node, ordered=True)
        # Beside values in order, names count by the order that they give.
        return ", ".join(sorted(_vote_of_tree(Node("tuple", assignment.in_order())) for assignment in named))
    names = reference_names[0].names
    # Values alone have the names of the reference if they are compared so.
    if (
        named is None
        and node.op in ("list", "tuple")
        and len(question.references) == 1
        and len(node.args) == len(names)
        and not any(map(is_equation, node.args))
        and allows(question.rules, "labels_dropped")
    ):
        named = [Assignment(Assignment(names, names).in_order(), node.args)]
    if named is None:
        return _vote_of_tree(node, ordered=True)
    return "; ".join(sorted(", ".join(sorted(_named_votes(assignment))) for assignment in named))


def _vote_of_order(node: Node, reference: Node) -> str:
    """Return the vote of an answer beside a chain, 7 > 5 > 2: its values in the direction of the reference's sign."""
    values = ordering(node)
    if values is None:
        return _vote_of_tree(node, ordered=True)
    return ", ".join(map(_vote_of_tree, values if node.args[1][0] == reference.args[1][0] else values[::-1]))


def _named_votes(assignment: Assignment) -> list[str]:
    """Return `x = 7` and `y = 2`; names without case, unless that makes two of them one: A and a."""
    names = [show(name) for name in assignment.names]
    folded = [name.casefold() for name in names]
    names = folded if len(set(folded)) == len(names) else names
    return [f"{name} = {_vote_of_tree(value)}" for name, value in zip(names, assignment.values, strict=True)]


def _vote_in_unit(node: Node, reference: Node) -> str | None:
    """Return the vote of a number with a unit beside a reference with a unit; None if the number has none."""
    node = with_unit_letters(reference, node)[1]
    if node.op != "quantity" and node.op not in _SIGNS:
        return None
    if node.op == reference.op == "quantity":
        unit, answer_unit = measures(reference.args[1], node.args[1])
    else:
        unit, answer_unit = (_SIGNS.get(side.op) or unit_of(side.args[1]) for side in (reference, node))
    if unit is None or answer_unit is None:
        return None
    value, dimension = node.args[0], answer_unit.dimension
    if dimension == unit.dimension:
        return _vote_of_tree(_times(value, answer_unit.factor / unit.factor))
    names = {name for name, _ in (*unit.dimension, *dimension)}
    if "sided" in names or any(names <= kin for kin in _KIN):
        return None
    measured = " ".join(f"{name}^{power}" for name, power in dimension)
    return f"{_vote_of_tree(_times(value, answer_unit.factor))} {measured or 'times'}"


_SIGNS = {sign: Unit(((sign, 1),), Fraction(1)) for sign in ("pct", "deg")}
"""Signs behind a number that are a unit beside other units."""

_KIN = ({"deg", "radian", "celsius", "fahrenheit", "temperature"}, {"pct"})
"""Names of dimensions that do not exclude each other: `5 °C` and `5°`; 3倍, which has no dimension, and 300%."""


def _times(value: Node, factor: Fraction) -> Node:
    return value if factor == 1 else Node("mul", (value, num(factor)))


def _vote_of_tree(node: Node, *, ordered: bool = False) -> str:
    """Return the vote of an answer that is given as a tree. ordered: the items of a list keep their order."""
    node = _value_of(node)
    op, args = node
    # A word that is neither a unit nor a counted thing says what is meant: 5 red and 5 blue are two votes.
    if op == "quantity" and unit_of(args[1]) is None and not is_counted(args[1]):
        return f"{_vote_of_tree(args[0])} {noun_of(args[1])}"
    if op in ("quantity", "pct", "deg"):
        return _vote_of_tree(args[0], ordered=ordered)
    if op in ("list", "set", "bracket"):
        items = [_vote_of_tree(item) for item in args]
        if op == "set":
            items = list(dict.fromkeys(items))  # {1, 1, 2} has two elements
        if op == "bracket":
            return f"[{', '.join(items)}]"
        return ", ".join(items if ordered and op == "list" else sorted(items))
    if op == "tuple":
        return f"({', '.join(_vote_of_tree(item) for item in args)})"
    if op == "matrix":
        return f"[{'; '.join(', '.join(_vote_of_tree(cell) for cell in row) for row in args)}]"
    if op == "text":
        return words_of(args[0])
    if op == "ratio" and len(args) == 2:
        return _vote_of_tree(Node("div", args))  # 3:2 and 6:4
    if op in ("interval", "union", "inter", "minus", "builder", "rel", "member"):
        try:
            pieces = real_set(node)
        except NotASet:
            return show(node)
        return " ∪ ".join(_interval_vote(piece) for piece in pieces)
    if (value := exact(node)) is not None:
        return str(value)
    if not symbols(node) and (digits := _vote_of_digits(node)) is not None:
        return digits
    try:
        return _vote_of_residue(Residues().value(node))
    except NotModular:
        return show(node)


def _vote_of_residue(residue: int) -> str:
    """Return the text by which an expression with letters is counted for maj@k. residue: its value modulo a prime."""
    return f"expression {residue:x}"


def _vote_of_digits(node: Node) -> str | None:
    """Return the text by which a number is counted for maj@k, from its digits; None if they cannot be computed.

    If the digits are those of a simple fraction, the text is that fraction, as 1 for `(π + 1)/(π + 1)`.
    """
    from harness.grading.compare.numeric import number_of
    from harness.grading.compare.point import NotNumeric

    try:
        number = number_of(node, _DIGITS)
    except NotNumeric:
        return None
    shown = []
    for part in (number.real, number.imag):
        if abs(part) > _MAX_NUMBER:
            return str(number)
        scaled = Fraction(int(part * 10**_DIGITS), 10**_DIGITS)
        near = scaled.limit_denominator(_MAX_DENOMINATOR)
        # The last five of the 30 digits may be rounding errors.
        shown.append(str(near) if abs(near - scaled) < Fraction(1, 10 ** (_DIGITS - 5)) else f"{float(scaled):.12g}")
    return shown[0] if shown[1] == "0" else f"{shown[0]} + {shown[1]}i"


def _interval_vote(piece: RealInterval) -> str:
    """Return the text by which an interval is counted for maj@k."""
    opening, closing = "[" if piece.closed_low else "(", "]" if piece.closed_high else ")"
    return f"{opening}{_vote_of_tree(piece.low)}, {_vote_of_tree(piece.high)}{closing}"
