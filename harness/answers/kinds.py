"""The kind of a reference that no card states: one rule for `auto` of a card, a file of outputs and `harness grade`."""

from __future__ import annotations

import re

from harness.answers.boxed import bare
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.parse import parse
from harness.answers.letters import LAST_LETTER, letter_of
from harness.answers.words import is_words
from harness.core.records import AnswerKind

_INTEGER = re.compile(r"\s*[-+]?\d+\s*")
_MAX_CHOICE_CHARS = 12
"""A reference of this length or more is words, also when it begins like an option: "A) true B) false"."""


def kind_of(reference: str) -> AnswerKind:
    """The kind as which `reference` is compared, by its form: integer, choice, text, multiple, number or expression."""
    reference = bare(reference)
    if _INTEGER.fullmatch(reference):
        return "integer"
    if len(reference) < _MAX_CHOICE_CHARS and letter_of(reference, LAST_LETTER) is not None:
        return "choice"
    try:
        node = parse(reference)
    except (Unreadable, RecursionError):
        return "text" if is_words(reference) else "expression"
    if node.op == "text" and is_words(reference):
        return "text"
    return "multiple" if node.op == "list" else "number" if node.op == "num" else "expression"
