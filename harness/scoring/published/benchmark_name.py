"""The card that a source means by its benchmark, from the names and the data sets that the source states.

A card is meant where one of the names is the card's name or alias, whatever its case, blanks and hyphens; else where
one of the data sets of the hub is the source of exactly one card. GPQA's repository holds three sets, each with a card
of its own: the repository alone then names none.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from harness.benchmarks import catalogue
from harness.benchmarks.card import Card, HubSource

_OVERALL = re.compile(r"\s*\((?:overall|average)\)\s*$|[/.: ]overall$", re.IGNORECASE)


class NamedBenchmark(NamedTuple):
    """card: None where no card is meant. by_name: the card's own name was stated, not only its data set."""

    card: Card | None
    by_name: bool


def is_overall(name: str) -> bool:
    """Whether the name marks a result as that of the whole benchmark: `MMLU-Pro (overall)`, `mmlu_pro/overall`."""
    return _OVERALL.search(name) is not None


def find_card(names: Iterable[str], datasets: Iterable[str] = ()) -> NamedBenchmark:
    """The shipped card that is meant. names: of the benchmark, the most exact first. datasets: `OWNER/NAME` of the
    hub."""
    by_name, by_dataset = _cards()
    for name in names:
        if card := by_name.get(catalogue.folded(_OVERALL.sub("", name))):
            return NamedBenchmark(card, by_name=True)
    for dataset in datasets:
        cards = by_dataset.get(dataset.casefold(), [])
        if len(cards) == 1:
            return NamedBenchmark(cards[0], by_name=False)
    return NamedBenchmark(None, by_name=False)


@cache
def _cards() -> tuple[dict[str, Card], dict[str, list[Card]]]:
    """Shipped cards by folded name and alias, and by data set."""
    by_name: dict[str, Card] = {}
    by_dataset: dict[str, list[Card]] = defaultdict(list)
    for card in catalogue.shipped_cards():
        for name in (card.name, *card.aliases):
            by_name.setdefault(catalogue.folded(name), card)
        if isinstance(card.source, HubSource):
            by_dataset[card.source.id.casefold()].append(card)
    return by_name, by_dataset
