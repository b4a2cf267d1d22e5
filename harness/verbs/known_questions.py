"""Whether a user's file holds the questions of a benchmark that has a card.

A closed rule: all questions of the file are those of the card, and no other. Either the rows are those of an edition
that the card knows, by their checksum; or the card's data are on this machine, and each question has the text and the
references of one of theirs. Texts are compared without the instruction that a prompt puts at their end and without
differences in spaces, references that are integers as numbers (`025` is 25). Anything else is another set.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from harness.benchmarks import catalogue, data, prompts
from harness.benchmarks import questions as question_sets
from harness.core.codec import digest_of_each
from harness.core.errors import UsageError
from harness.core.records import Question

MAX_QUESTIONS = 20_000
"""Largest number of questions of a file that is compared with the cards: they are all held in memory for it."""

_INTEGER = re.compile(r"[+-]?\d{1,40}")


def known_as(name: str, questions: Sequence[Question]) -> str:
    """The name of the card whose questions these are; `name` itself where it is a card's, and where none has them."""
    if not 0 < len(questions) <= MAX_QUESTIONS or catalogue.knows(name):
        return name
    rows = digest_of_each(sorted(question.row_digest for question in questions))
    asked_here: Counter[tuple[str, ...]] | None = None
    for card in catalogue.cards():
        if card.questions != len(questions):
            continue
        if rows in {card.checksum, *(edition.rows for edition in card.editions)}:
            return card.name
        if data.status(card) != "here":
            continue
        try:
            theirs = question_sets.build(card).questions
        except UsageError:  # A damaged copy is not what this file is about.
            continue
        asked_here = asked_here or _forms(questions)
        if _forms(theirs) == asked_here:
            return card.name
    return name


def _forms(questions: Sequence[Question]) -> Counter[tuple[str, ...]]:
    """How often each pair of text and references occurs."""
    forms: Counter[tuple[str, ...]] = Counter()
    for question in questions:
        text = question.messages[-1].content if question.messages else question.prompt
        bare = " ".join(prompts.without_instruction(text)[0].split())
        forms[(bare, *map(_reference, question.references))] += 1
    return forms


def _reference(text: str) -> str:
    stripped = "".join(text.split())
    return str(int(stripped)) if _INTEGER.fullmatch(stripped) else stripped
