"""The kind of an answer when no card states it."""

from __future__ import annotations

import re

from harness.answers.grammar.parse import parse
from harness.answers.grammar.tokens import Unreadable
from harness.core.records import AnswerKind
from harness.grading.compare.equivalence import bare
from harness.grading.compare.words import is_words
from harness.grading.find.choice import letter_of

_INTEGER = re.compile(r"\s*[-+]?\d+\s*")


def kind_of(reference: str) -> AnswerKind:
    """What `reference` is compared as, told by its form."""
    reference = bare(reference)
    if _INTEGER.fullmatch(reference):
        return "integer"
    if len(reference) < 12 and letter_of(reference) in tuple("ABCDEFGHIJ"):
        return "choice"
    if is_words(reference):
        return "expression"
    try:
        node = parse(reference)
    except (Unreadable, RecursionError):
        return "expression"
    return "multiple" if node.op == "list" else "number" if node.op == "num" else "expression"
