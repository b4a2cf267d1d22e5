"""Pins of the tables of five projects: the numbers that `harness sweep SUITE` prints on servers of a known ability."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.pins.held import hold
from tests.verbs import five_suites

SUITES = Path(__file__).with_name("suites.jsonl")
"""Row of a document's table → head of a column → its numbers, or its words where it has none."""

SMALL = ("--samples", "4", "--concurrency", "1")
"""Options of every command; with one request in flight, replies come in one order."""
N_QUESTIONS = 3

NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?")


def meaning(cell: str) -> Any:
    """The numbers of a cell, or the cell."""
    found = [float(number.replace(",", "").replace("−", "-")) for number in NUMBER.findall(cell)]
    return found[0] if len(found) == 1 else found or cell


@pytest.mark.slow
def test_the_tables_of_five_projects_hold_the_pinned_numbers(tmp_path: Path) -> None:
    rows: dict[str, Any] = {}
    with five_suites.stage(tmp_path, N_QUESTIONS) as stage:
        stage.budgets(re.sub(r"  - \{name: b(?!2048).*\n", "", five_suites.page_budgets()))
        for words in five_suites.commands():
            tables = five_suites.play(stage, words, *SMALL)
            for shown in five_suites.SHOWN:
                if shown.words == words:
                    cells = tables.row(shown.title, shown.first)
                    rows[shown.head] = {head: meaning(cell) for head, cell in [*cells.items()][1:]}
    hold(SUITES, rows)
