"""The vote of an answer: a text that is the same for equal answers, which maj@k (the majority of k answers) counts.

Votes are needed because equality is not transitive: 50% equals both 50 and 0.5, which differ, so pairs of equal answers
do not form groups. Answers with the same vote have the same verdict:

    correct      the canonical form of the reference that the answer equals: one vote for all spellings of it
    wrong        the canonical form of the answer, with "but wrong" if a reference has the same form
    undecided    the canonical form of the answer, with "undecided"

The canonical form of a rational number is its exact value, and of any other number its value to twelve digits. A list
is sorted, a set has each element once, and named values keep their names. Units, percent and degree signs are left out.
An expression with letters becomes its residue in a finite field (`modular`). For anything else, the form is its text
without layout.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from reasoning_answers.boxed import without_boxes
from reasoning_answers.compare.equations import assignments, is_equation, statement
from reasoning_answers.compare.equivalence import option_of
from reasoning_answers.compare.exact import exact, written
from reasoning_answers.compare.modular import NotModular, Residues
from reasoning_answers.compare.numeric import number_of
from reasoning_answers.compare.plain_numbers import plain_number
from reasoning_answers.compare.point import NotNumeric
from reasoning_answers.compare.realsets import NotASet, real_set
from reasoning_answers.grammar.numerals import Unreadable, number_in_words
from reasoning_answers.grammar.parse import parse
from reasoning_answers.grammar.tree import Node, show, symbols
from reasoning_answers.grammar.units import is_counted, noun_of, unit_of
from reasoning_answers.letters import letter_of
from reasoning_answers.records import QuestionLike
from reasoning_answers.words import as_compared, counted_in_words, is_words, without_layout, words_of

_DIGITS = 30
"""Number of digits to which an irrational number is computed for its vote."""

_MAX_NUMBER = 10**12
"""An irrational number above this size votes by all its digits."""

_MAX_DENOMINATOR = 1_000_000
"""Largest denominator of a fraction that is recognized from its digits."""

_MAX_WORDS_CHARS = 200
"""Longest vote that is not a value, in characters."""

_MAX_CHARS = 2_000
"""Longest vote that is a value, in characters."""


def vote_of(answer: str, question: QuestionLike, *, right: str | None = None, undecided: bool = False) -> str | None:
    """Return the vote of an extracted answer; None if the answer is empty.

    right: the reference that it equals, if any. undecided: no rule could compare it.
    """
    if not answer.strip():
        return None
    if question.kind == "choice":
        # The text of an option is a vote for its letter.
        letter = letter_of(answer, any_case=True) or option_of(answer, question.choices, question.rules)
        return letter or words_of(answer)[:_MAX_WORDS_CHARS]
    listed = question.kind == "multiple"
    if right is not None:
        return canonical(without_boxes(right), listed=listed)
    vote = canonical(answer, listed=listed)
    if undecided:
        return f"{vote}, undecided"
    # A wrong answer that differs from the reference only in unit, order or form has the same canonical form.
    is_near = any(vote == canonical(without_boxes(reference), listed=listed) for reference in question.references)
    return f"{vote}, but wrong" if is_near else vote


@lru_cache(maxsize=1_024)
def canonical(text: str, *, listed: bool = False) -> str:
    """Return a form of an answer whose text is the same for equal answers.

    listed: a comma separates the parts of a list, never the thousands of a number.
    """
    if (plain := plain_number(text)) is not None:
        return str(Fraction(plain.top, plain.bottom))
    if is_words(text):
        words = as_compared(text)
        text = number_in_words(words) or counted_in_words(words) or ""
        if not text:
            return words[:_MAX_WORDS_CHARS]
    try:
        return _form_of(parse(text, list_commas=listed))[:_MAX_CHARS]
    except (Unreadable, RecursionError):
        return without_layout(text)[:_MAX_WORDS_CHARS]


def _form_of(node: Node) -> str:
    """Return the canonical form of a tree."""
    if (groups := assignments(node)) is not None:
        return "; ".join(sorted(", ".join(sorted(map(_named, group.names, group.values))) for group in groups))
    # x = 3 is its value.
    while is_equation(node) and (parts := statement(node)) is not None:
        node = parts.values[-1]
    op, args = node
    # A word that is neither a unit nor a counted thing specifies what is meant: 5 red and 5 blue are two votes.
    if op == "quantity" and unit_of(args[1]) is None and not is_counted(args[1]):
        return f"{_form_of(args[0])} {noun_of(args[1])}"
    if op in ("quantity", "pct", "deg"):
        return _form_of(args[0])
    if op == "set":
        return ", ".join(sorted(set(map(_form_of, args))))  # {1, 1, 2} has two elements
    if op == "list":
        return ", ".join(sorted(map(_form_of, args)))
    if op in ("tuple", "bracket"):
        inside = ", ".join(map(_form_of, args))
        return f"({inside})" if op == "tuple" else f"[{inside}]"
    if op == "matrix":
        return f"[{'; '.join(', '.join(map(_form_of, row)) for row in args)}]"
    if op == "text":
        return words_of(args[0])
    if op == "ratio" and len(args) == 2:
        return _form_of(Node("div", args))  # 3:2 and 6:4
    if op in ("interval", "union", "inter", "minus", "builder", "rel", "member"):
        return _form_of_set(node)
    if (value := exact(node)) is not None:
        return written(value)
    if not symbols(node) and (digits := _form_of_digits(node)) is not None:
        return digits
    try:
        return f"expression {Residues().value(node):x}"
    except NotModular:
        return show(node)


def _named(name: Node, value: Node) -> str:
    return f"{show(name)} = {_form_of(value)}"


def _form_of_set(node: Node) -> str:
    """Return the canonical form of a set of real numbers; of any other relation, the relation as written."""
    try:
        pieces = real_set(node)
    except NotASet:
        return show(node)
    return " ∪ ".join(
        f"{'[' if piece.closed_low else '('}{_form_of(piece.low)}, "
        f"{_form_of(piece.high)}{']' if piece.closed_high else ')'}"
        for piece in pieces
    )


def _form_of_digits(node: Node) -> str | None:
    """Return the text of a number from its digits; None if they cannot be computed.

    If a simple fraction has these digits, the text is that fraction, such as 1 for `(π + 1)/(π + 1)`.
    """
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
