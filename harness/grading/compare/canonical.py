"""The vote of an answer: a text that is the same for equal answers, by which maj@k (the majority of k answers) counts.

Votes are needed because equality is not transitive: 50% equals 50 and equals 0.5, which differ, so that pairs of equal
answers do not form groups. The vote of a rational number is its exact value, of any other number twelve digits, always
without unit, percent and degree sign. A list is sorted. An expression with letters votes by its residue in a finite
field (`modular`). Anything else votes by its text without layout.
"""

from __future__ import annotations

from fractions import Fraction

from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.numerals import number_in_words
from harness.answers.grammar.parse import parse
from harness.answers.grammar.shown import show
from harness.answers.grammar.spellings import is_own_spelling
from harness.answers.grammar.tree import Node, symbols
from harness.answers.grammar.units import is_counted, noun_of, unit_of
from harness.answers.letters import letter_of
from harness.answers.words import counted_in_words, is_words, without_layout, words_of
from harness.core.records import Question
from harness.grading.compare.equations import is_equation, statement
from harness.grading.compare.exact import exact
from harness.grading.compare.modular import NotModular, Residues
from harness.grading.compare.plain_numbers import plain_number
from harness.grading.compare.polynomials import polynomial
from harness.grading.compare.radicals import NotExact, freeze, rational
from harness.grading.compare.realsets import NotASet, RealInterval, real_set

_DIGITS = 30
"""Number of digits to which an irrational number is computed for its vote."""

_MAX_NUMBER = 10**12
"""An irrational number above this size votes by all its digits."""

_MAX_DENOMINATOR = 1_000_000
"""Largest denominator of a fraction that is recognised by its digits."""


def canonical(answer: str, question: Question) -> str | None:
    """Return the vote of `answer` to `question`, an extracted answer; None if the answer is empty."""
    if not answer.strip():
        return None
    if question.kind == "choice":
        letter = letter_of(answer, any_case=True)
        return letter or words_of(answer)[:200]
    if (plain := plain_number(answer)) is not None:
        return str(Fraction(plain.top, plain.bottom))
    if (expression := polynomial(answer)) is not None:
        return _vote_of_residue(expression.residue)
    if is_words(answer) and not is_own_spelling(answer):
        words = words_of(answer)
        answer = number_in_words(words) or counted_in_words(words) or ""
        if not answer:
            return words[:200]
    try:
        return _vote_of_tree(parse(answer, list_commas=question.kind == "multiple"), ordered=question.rules.ordered)[
            :2_000
        ]
    except (Unreadable, RecursionError):
        return without_layout(answer)[:200]


def _vote_of_tree(node: Node, *, ordered: bool = False) -> str:
    """Return the vote of an answer that is given as a tree. ordered: the items of a list keep their order."""
    op, args = node
    if op == "rel" and is_equation(node) and (parts := statement(node)) is not None:
        return _vote_of_tree(parts.values[-1], ordered=ordered)
    # A word that is neither a unit nor a counted thing says what is meant: 5 red and 5 blue are two votes.
    if op == "quantity" and unit_of(args[1]) is None and not is_counted(args[1]):
        return f"{_vote_of_tree(args[0])} {noun_of(args[1])}"
    if op in ("quantity", "pct", "deg"):
        return _vote_of_tree(args[0], ordered=ordered)
    if op in ("list", "set", "bracket"):
        items = [_vote_of_tree(item) for item in args]
        return ", ".join(items if ordered and op == "list" else sorted(items))
    if op == "tuple":
        return f"({', '.join(_vote_of_tree(item) for item in args)})"
    if op == "matrix":
        return f"[{'; '.join(', '.join(_vote_of_tree(cell) for cell in row) for row in args)}]"
    if op == "text":
        return words_of(args[0])
    if op in ("interval", "union", "inter", "minus", "builder", "rel", "member"):
        try:
            pieces = real_set(node)
        except NotASet:
            return show(node)
        return " ∪ ".join(_interval_vote(piece) for piece in pieces)
    try:
        value = exact(node)
        # Only rational values vote by their exact form: equal irrational values may be written in a way that has none.
        if rational(value) is not None:
            return freeze(value)
    except NotExact:
        pass
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
