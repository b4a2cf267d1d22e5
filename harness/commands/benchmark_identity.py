"""Finds the benchmark whose questions a run asked. The run is compared only with published scores of this benchmark.

| source of the questions | published scores that are compared |
| --- | --- |
| a shipped card's own data | that card's, because the questions are the card's |
| another tool's outputs, scored as a shipped benchmark | that benchmark's: each row has one of its questions |
| the user's data or card, with the questions of a card | that card's, whatever the data are called |
| the user's data or card, with questions of no card, under the name of a shipped card | none |
| the user's data or card, with questions of no card, under any other name | those with that name in a user's file |

A run asked the questions of a card if its rows are those of an edition that the card lists, or its references have the
checksum in the card (numbers by their value). Without such proof, the questions count as different ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.benchmarks import catalog, seen_rows
from harness.benchmarks.card import Card
from harness.core.codec import digest_of_each
from harness.core.records import Question
from harness.runs.manifest import OUTPUTS, BenchmarkRecord
from harness.runs.questions import MADE


def card_name(name: str, record: BenchmarkRecord, questions: Sequence[Question]) -> str | None:
    """The name of the card that has these questions. If no card has them: `name`, or None if a shipped card has that
    name.

    name: the benchmark's name in the run. record: the run's record of the benchmark. questions: those the run plans.
    """
    shipped = catalog.shipped_card_named(catalog.base_name(name))
    if not _may_be_others(record, shipped):
        return name
    card = next(_holding(record, questions), None)
    if card is not None:
        return card.name
    return name if shipped is None else None


def _may_be_others(record: BenchmarkRecord, shipped: Card | None) -> bool:
    """Whether the run's questions may differ from those of the benchmark that it names.

    shipped: the shipped card of that name; None if there is none.
    """
    settings = record.settings
    if record.imported:
        read = settings[OUTPUTS].get("read") if isinstance(settings[OUTPUTS], Mapping) else None
        named = read.get("benchmark") if isinstance(read, Mapping) else None
        # Not a user's file, whatever it is called.
        return not isinstance(named, str) or catalog.shipped_card_named(catalog.base_name(named)) is None
    return shipped is None or catalog.CARD in settings or catalog.DATA in settings


def _holding(record: BenchmarkRecord, questions: Sequence[Question]) -> Iterator[Card]:
    """Yield the cards that have exactly these questions.

    record: the run's record of the benchmark. If the questions are from a local file, the record has the checksum of
    all rows of the file; the run may plan only some of them.
    """
    made_from = record.settings.get(MADE)
    of_file = made_from.get("rows_digest") if isinstance(made_from, Mapping) else None
    checksums = {of_file, digest_of_each(sorted(question.row_digest for question in questions))}
    references = ""
    shipped = {card.name: card for card in catalog.shipped_cards()}
    # If a user's card has the name of a shipped card, only the shipped card is compared.
    for card in [*shipped.values(), *(card for card in catalog.cards() if card.name not in shipped)]:
        if not checksums.isdisjoint({card.checksum or "", *(edition.rows for edition in card.editions)}):
            yield card
        if card.questions == len(questions) and card.answers_checksum is not None:
            references = references or seen_rows.answers_digest(question.references for question in questions)
            if references == card.answers_checksum:
                yield card
