"""The tables of five projects: each number that their authors print is shipped, digit by digit and with its settings.

`five_tables.csv` holds the 289 numbers as they are printed, but for the numbers of tries.

For: harness.scoring.published, harness.scoring.published.tables, harness.scoring.published.value.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from typing import NamedTuple

import pytest

from harness.scoring.published.loading import load_published, published_folder, short_name
from harness.scoring.published.value import PublishedScore
from tests.conftest import CHECKOUT

TABLE = CHECKOUT / "tests" / "scoring" / "five_tables.csv"

LONG_COT = "long_thought"
"""The prompt of the row that its table calls `+Long CoT Example`."""

MODELS = {"limo (ours)": "limo", "gair/limo (32b)": "limo", "qwq": "qwq-32b-preview", "s1": "s1-32b"}
"""Models whose names in the tables are not those of the hub."""


class Cell(NamedTuple):
    """One number of a table: the file of results/published that holds it, and what it is.

    field: percent, quoted, standard_error, mean_tokens, training_samples, previous, improvement.
    """

    file: str
    model: str
    benchmark: str
    metric: str
    field: str
    printed: str
    budget: int | None = None
    long_cot: bool = False


def cells() -> list[Cell]:
    """Every number of the five tables."""
    _, *rows = csv.reader(TABLE.read_text("utf-8").splitlines())
    return [
        Cell(*texts, budget=int(budget) if budget else None, long_cot=bool(long_cot))
        for *texts, budget, long_cot in rows
    ]


@cache
def of_file(name: str) -> list[PublishedScore]:
    """The scores of a file in results/published."""
    return load_published(published_folder() / f"{name}.yaml")


def shipped(cell: Cell) -> list[str]:
    """The number as each row prints it that may be the cell's."""
    rows, model = [], MODELS.get(cell.model.lower(), short_name(cell.model))
    for score in of_file(cell.file):
        if (short_name(score.model), score.benchmark, score.metric) != (model, cell.benchmark, cell.metric):
            continue
        budget, long_cot = score.settings.get("attention_budget"), score.settings.get("prompt") == LONG_COT
        quoted = cell.field == "quoted" or cell.model == "Previous SOTA"
        if (score.quoted, budget, long_cot) == (quoted, cell.budget, cell.long_cot):
            rows.append(as_printed(score, cell.field))
    return rows


def as_printed(score: PublishedScore, field: str) -> str:
    match field:
        case "percent" | "quoted":
            return score.printed
        case "standard_error":
            return "" if score.standard_error is None else f"{100 * score.standard_error:.1f}"
        case "mean_tokens":
            return "" if score.mean_tokens is None else f"{score.mean_tokens:.0f}"
        case "previous":
            return score.previous
        case "training_samples":
            return score.training_samples
    return score.improvement


def test_each_of_the_293_numbers_is_shipped_as_it_is_printed() -> None:
    read = cells()
    assert len(read) == 293
    wrong = [(cell, shipped(cell)) for cell in read if shipped(cell) != [cell.printed]]
    assert not wrong


@pytest.mark.parametrize("name", ["seerattention", "sglang", "efficient-reasoning", "llmeval", "limo", "limo-aime25"])
def test_each_address_names_the_page_that_holds_the_numbers(name: str) -> None:
    for score in of_file(name):
        assert re.search(r"/blob/(main|[0-9a-f]{7,})/.*README\.md(#|$)", score.source.url), score.source.url
