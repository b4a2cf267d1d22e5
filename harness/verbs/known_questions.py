"""Finds the benchmark whose questions a run asked. Only published scores of this benchmark are compared with the run.

| the questions came from | published scores that are compared |
| --- | --- |
| a shipped card's own data | that card's, because the questions are the card's |
| another tool's outputs, scored as a shipped benchmark | that benchmark's: each row has one of its questions |
| the user's data or card, with the questions of a card | that card's, whatever the data are called |
| the user's data or card, with questions of no card, under the name of a shipped card | none |
| the user's data or card, with questions of no card, under any other name | those under it in a file of the user |

A run asked the questions of a card if it asked all of them and no others. One of three facts must prove this; without
such a proof, the questions count as other ones. The facts: the rows are those of an edition that the card knows; the
references have the checksum that the card states; the card's data are on this machine, and the texts and references of
both sets are the same. Texts are compared without the instruction that a prompt puts at their end and without
differences in spaces; references that are integers are compared as numbers (`025` is 25).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.benchmarks import catalogue, data, prompts
from harness.benchmarks import questions as question_sets
from harness.benchmarks.card import Card, FileSource
from harness.core.codec import digest_of_each
from harness.core.errors import UsageError
from harness.core.records import Question
from harness.runs.manifest import OUTPUTS, BenchmarkRecord
from harness.runs.questions import MADE

MAX_QUESTIONS = 20_000
"""Largest number of questions that are compared with the cards: all of them are in memory during the comparison."""

_INTEGER = re.compile(r"[+-]?\d{1,40}")


def known_as(name: str, record: BenchmarkRecord, questions: Sequence[Question]) -> str | None:
    """The name of the card that has these questions. If no card has them: `name`, or None if a shipped card has that
    name.

    name: the benchmark's name in the run. record: the run's record of the benchmark. questions: that the run plans.
    """
    shipped = catalogue.shipped_card_named(catalogue.base_name(name))
    if not _may_be_others(record, shipped):
        return name
    card = next(_holding(record, questions), None)
    if card is not None:
        return card.name
    return name if shipped is None else None


def _may_be_others(record: BenchmarkRecord, shipped: Card | None) -> bool:
    """Whether the run may have asked other questions than those of the benchmark that it names.

    shipped: the shipped card of that name; None if there is none.
    """
    settings = record.settings
    if record.imported:
        read = settings[OUTPUTS].get("read") if isinstance(settings[OUTPUTS], Mapping) else None
        named = read.get("benchmark") if isinstance(read, Mapping) else None
        # Not a file of the user, whatever it is called.
        return not isinstance(named, str) or catalogue.shipped_card_named(catalogue.base_name(named)) is None
    if shipped is None or catalogue.CARD in settings or catalogue.DATA in settings:
        return True
    # Older runs do not name their data, but they note how the questions were made if these came from a file. Of the
    # shipped cards, only the demo reads a file.
    return MADE in settings and not isinstance(shipped.source, FileSource)


def _holding(record: BenchmarkRecord, questions: Sequence[Question]) -> Iterator[Card]:
    """Yield the cards that have exactly these questions; none for more than `MAX_QUESTIONS`."""
    note = record.settings.get(MADE)
    whole = note.get("rows_digest") if isinstance(note, Mapping) else None
    if not 0 < len(questions) <= MAX_QUESTIONS:
        return
    rows = {whole, digest_of_each(sorted(question.row_digest for question in questions))}
    references = ""
    forms: Counter[tuple[str, ...]] = Counter()
    shipped = {card.name: card for card in catalogue.shipped_cards()}
    # If a user's card has the name of a shipped card, only the shipped card is compared.
    for card in [*shipped.values(), *(card for card in catalogue.cards() if card.name not in shipped)]:
        if not rows.isdisjoint({card.checksum or "", *(edition.rows for edition in card.editions)}):
            yield card
        if card.questions != len(questions):
            continue
        if card.answers_checksum is not None:
            references = references or question_sets.answers_digest(question.references for question in questions)
            if references == card.answers_checksum:
                yield card
        if data.status(card) == "here" and (theirs := _questions_of(card)):
            forms = forms or _forms(questions)
            if _forms(theirs) == forms:
                yield card


def _questions_of(card: Card) -> Sequence[Question]:
    """The questions of a card's data on this machine; none if the copy is damaged, since the run is not at fault."""
    try:
        return question_sets.build(card).questions
    except UsageError:
        return ()


def _forms(questions: Sequence[Question]) -> Counter[tuple[str, ...]]:
    """(text, its references …) of each question, in the form in which they are compared → how often it occurs."""
    forms: Counter[tuple[str, ...]] = Counter()
    for question in questions:
        text = question.messages[-1].content if question.messages else question.prompt
        bare = " ".join(prompts.without_instruction(text)[0].split())
        forms[(bare, *map(_reference, question.references))] += 1
    return forms


def _reference(text: str) -> str:
    """A reference answer without spaces; an integer without leading zeros and plus sign."""
    stripped = "".join(text.split())
    return str(int(stripped)) if _INTEGER.fullmatch(stripped) else stripped
