"""Finds the card of the benchmark that a source of published scores means, from the names and data sets that it states.

A card is meant if one of the names is the card's name or alias, whatever its case, blanks and hyphens; else if one of
the data sets is the source of exactly one card, or has a card's name or alias. In that second case (`by_name` is false)
the source may mean the whole benchmark or a part of it, and the caller has to tell which.
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
    """The card that a source means.

    card: None where no card is meant. by_name: the source stated the card's own name, not only its data set.
    """

    card: Card | None
    by_name: bool


def is_overall(name: str) -> bool:
    """Whether the name marks a result as that of the whole benchmark: `MMLU-Pro (overall)`, `mmlu_pro/overall`."""
    return _OVERALL.search(name) is not None


def find_card(names: Iterable[str], datasets: Iterable[str] = ()) -> NamedBenchmark:
    """Find the shipped card that another tool's benchmark name or data set means.

    names: of the benchmark, the most exact first. datasets: names of its data, or `OWNER/NAME` of the hub.
    """
    by_name, by_dataset = _cards()
    for name in names:
        if "/" not in name and (card := by_name.get(catalogue.fold_name(_OVERALL.sub("", name)))):
            return NamedBenchmark(card, by_name=True)
    for dataset in datasets:
        cards = by_dataset.get(dataset.casefold(), [])
        if not cards and (card := by_name.get(catalogue.fold_name(dataset))):
            cards = [card]
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
            by_name.setdefault(catalogue.fold_name(name), card)
        if isinstance(card.source, HubSource):
            by_dataset[card.source.id.casefold()].append(card)
    return by_name, by_dataset
