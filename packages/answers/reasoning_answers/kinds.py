"""What kind of answer a reference is, inferred from its characters."""

from __future__ import annotations

import re
from typing import cast

from reasoning_answers.bounds import LAST_LETTER
from reasoning_answers.records import AnswerKind

_PLAIN = re.compile(
    r"(?P<integer>\s*[-+]?\d+\s*)|(?P<choice>[A-J])|(?P<number>[0-9]{1,9}\.[0-9]{1,9})"
    r"|(?P<expression>-?[0-9]{1,9}/[1-9][0-9]{0,8}|-?\\[dt]?frac\{[0-9]{1,9}\}\{[1-9][0-9]{0,8}\}"
    # Digits, signs and a letter x, y or z: not a list, number or words, whether or not the grammar can parse it.
    r"|(?=[^xyz]*+[xyz])(?=[^0-9+*/^]*+[0-9+*/^])(?>(?:[0-9]++|[xyz]++|[abmnt](?![a-zA-Z])|[-+*/^(){} ]++)+))"
)
"""References whose kind is the name of the matching group. Other references need the answer grammar, whose import takes
longer than reading a whole file of plain references.
"""


_MAX_CHOICE_CHARS = 12
"""A reference of at least this length is not a choice, even if it begins like an option: "A) true B) false"."""


def kind_of(reference: str) -> AnswerKind:
    """The kind of a reference answer, inferred from its characters: integer, choice, text, multiple, number or
    expression.

    A number in words has the same kind as the number in digits, so that replies are searched for the same forms.
    """
    if plain := _PLAIN.fullmatch(reference):
        return cast("AnswerKind", plain.lastgroup)
    from reasoning_answers.boxed import without_boxes
    from reasoning_answers.grammar.numerals import Unreadable
    from reasoning_answers.grammar.parse import parse
    from reasoning_answers.letters import letter_of
    from reasoning_answers.words import is_words, numeral_as_digits

    reference = numeral_as_digits(without_boxes(reference))
    if plain := _PLAIN.fullmatch(reference):
        return cast("AnswerKind", plain.lastgroup)
    if len(reference) < _MAX_CHOICE_CHARS and letter_of(reference, LAST_LETTER) is not None:
        return "choice"
    try:
        node = parse(reference)
    except (Unreadable, RecursionError):
        return "text" if is_words(reference) else "expression"
    if node.op == "text" and is_words(reference):
        return "text"
    if node.op == "list":
        return "multiple"
    return "number" if node.op == "num" else "expression"
