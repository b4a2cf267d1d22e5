"""The names of cards in other tools (`task_names.yaml`), with which their command lines are read and files written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from harness.core import yaml_file


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    return yaml_file.read_mapping(Path(__file__).with_suffix(".yaml"), "names of tasks")


def names_of(tool: str) -> Mapping[str, str]:
    """Card → the names of its task in a tool, separated by blanks; empty for an unknown tool."""
    return _table().get(tool, {})


def card_of(tool: str, task: str) -> str:
    """The name of the card with the questions of a tool's task; empty if the table has none."""
    cards = (card for card, names in names_of(tool).items() if task.lower() in names.lower().split())
    return next(cards, "")


def name_in(tool: str, card: str) -> str:
    """The first name of a card's task in a tool; the card's own if the table has none."""
    return next(iter(names_of(tool).get(card, "").split()), card)
