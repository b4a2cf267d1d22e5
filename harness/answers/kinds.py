"""The kind of an answer when no card states it: the one place that tells it, for a card's `auto`, a file of outputs
and `harness grade` alike."""

from __future__ import annotations

import re

from harness.answers.boxed import bare
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.parse import parse
from harness.answers.letters import LAST_LETTER, letter_of
from harness.answers.words import is_words
from harness.core.records import AnswerKind

_INTEGER = re.compile(r"\s*[-+]?\d+\s*")
_CHOICE_CHARS = 12
"""A letter with a longer text behind it is an answer in words that happens to begin so."""


def kind_of(reference: str) -> AnswerKind:
    """What `reference` is compared as, told by its form."""
    reference = bare(reference)
    if _INTEGER.fullmatch(reference):
        return "integer"
    if len(reference) < _CHOICE_CHARS and letter_of(reference, LAST_LETTER) is not None:
        return "choice"
    try:
        node = parse(reference)
    except (Unreadable, RecursionError):
        return "text" if is_words(reference) else "expression"
    if node.op == "text" and is_words(reference):
        return "text"
    return "multiple" if node.op == "list" else "number" if node.op == "num" else "expression"
