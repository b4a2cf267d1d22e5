"""The tables of five projects: each number that their authors print is shipped, digit by digit and with its settings.

For: harness.scoring.published, harness.scoring.published.tables, harness.scoring.published.value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.scoring.published.loading import load_published, published_folder, short_name
from harness.scoring.published.value import PublishedScore
from tests.conftest import CHECKOUT

TABLES = CHECKOUT / "tests" / "scoring" / "five_tables.md"
"""The tables as their authors print them; the same text as the shared data's, so that a fresh clone is tested too."""

SHARED = CHECKOUT.parent / "shared" / "data" / "five_tables.md"

BENCHMARKS = {
    "aime24": "aime24",
    "aime2024": "aime24",
    "aime 2024": "aime24",
    "aime25": "aime25",
    "aime 2025 i": "aime25_i",
    "aime i 2025 (avg)": "aime25_i",
    "math500": "math500",
    "math-500": "math500",
    "gpqa-diamond": "gpqa_diamond",
    "gpqa": "gpqa_diamond",
    "gsm8k-eval": "gsm8k",
    "limo": "limo",
    "amc23": "amc23",
    "olympiadbench": "olympiadbench",
    "chmath": "chmath",
    "gaokao": "gaokao",
    "kaoyan": "kaoyan",
    "gradeschool": "gradeschool",
    "minerva": "minerva",
}
MODELS = {"limo (ours)": "limo", "gair/limo (32b)": "limo", "qwq": "qwq-32b-preview", "s1": "s1-32b"}
"""Models whose names in the tables are not those of the hub."""

LONG_COT = "long_thought"
"""The prompt of the row that its table calls `+Long CoT Example`."""


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


def tables(text: str) -> Iterator[tuple[str, str, list[list[str]]]]:
    """(project, heading, rows of a table with its head) of every table."""
    project = heading = ""
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        row = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if rows and (not row or row[0] in ("Model", "Models", "Benchmark", "Dataset", "Datasets")):
            yield project, heading, [row for row in rows if set("".join(row)) - set("-: ")]
            rows = []
        if row:
            rows.append(row)
        elif line.startswith("## "):
            project = line[3:]
        elif line.startswith("### "):
            heading = line[4:]


def number(cell: str) -> str:
    """The number of a cell without its unit; empty for a cell without a number."""
    return cell.rstrip("%") if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?%?", cell) else ""


def cells(text: str) -> list[Cell]:
    """Every number of the five tables, but the numbers of tries."""
    read: list[Cell] = []
    readers = {
        "SeerAttention evaluation (token budgets)": seer,
        "SGLang reasoning benchmark": sglang,
        "efficient-reasoning": efficient,
        "LLMEval": llmeval,
        "LIMO": limo,
    }
    for project, heading, rows in tables(text):
        read += [cell for cell in readers[project](heading, rows) if cell.printed]
    return read


def seer(heading: str, rows: list[list[str]]) -> Iterator[Cell]:
    for row in rows[1:]:
        for head, cell in zip(rows[0][1:], row[1:], strict=True):
            budget = None if head == "Full Attention" else 1024 * int(head[:-1])
            yield Cell("seerattention", row[0], BENCHMARKS[heading.lower()], "pass@1", "percent", number(cell), budget)


def sglang(_heading: str, rows: list[list[str]]) -> Iterator[Cell]:
    for name, _tries, *numbers in rows[1:]:
        for field, cell in zip(("percent", "quoted", "standard_error"), numbers, strict=True):
            model = "DeepSeek-R1-Distill-Qwen-1.5B"
            yield Cell("sglang", model, BENCHMARKS[name.lower()], "pass@1", field, number(cell))


def efficient(heading: str, rows: list[list[str]]) -> Iterator[Cell]:
    for row in rows[1:]:
        model, _, long_cot = row[0].partition("+")
        for head, cell in zip(rows[0][1:], row[1:], strict=False):
            field = {"pass@1 reported": "quoted", "Average CoT Length": "mean_tokens"}.get(head, "percent")
            metric = head if re.fullmatch(r"pass@\d+", head) else "pass@1"
            benchmark = BENCHMARKS[heading.lower()]
            yield Cell("efficient-reasoning", model, benchmark, metric, field, number(cell), long_cot=bool(long_cot))


def llmeval(heading: str, rows: list[list[str]]) -> Iterator[Cell]:
    for name, *numbers in rows[1:]:
        for field, cell in zip(("percent", "quoted"), numbers, strict=True):
            yield Cell("llmeval", heading, BENCHMARKS[name.lower()], "pass@1", field, number(cell))


def limo(_heading: str, rows: list[list[str]]) -> Iterator[Cell]:
    if rows[0][0] == "Benchmark":
        for name, *numbers in rows[1:]:
            for field, cell in zip(("percent", "previous", "improvement"), numbers, strict=True):
                yield Cell("limo", "LIMO", BENCHMARKS[name.lower()], "pass@1", field, number(cell))
        return
    file = "limo-aime25" if "Samples" in rows[0] else "limo"
    for row in rows[1:]:
        for head, cell in zip(rows[0][1:], row[1:], strict=True):
            if head in ("Samples", "Training Samples"):
                others = [BENCHMARKS[name.lower()] for name in rows[0][1:] if name != head]
                own = others if row[0] != "Previous SOTA" else []
                yield from (Cell(file, row[0], name, "pass@1", "training_samples", cell) for name in own)
                continue
            field = "previous" if row[0] == "Previous SOTA" else "percent"
            model = "LIMO" if field == "previous" else row[0]
            yield Cell(file, model, BENCHMARKS[head.lower()], "pass@1", field, number(cell))


@cache
def of_file(name: str) -> list[PublishedScore]:
    """The scores of a file in results/published."""
    return load_published(published_folder() / f"{name}.yaml")


def shipped(cell: Cell) -> list[str]:
    """The number as each row prints it that may be the cell's."""
    rows = []
    for score in of_file(cell.file):
        model = MODELS.get(cell.model.lower(), short_name(cell.model))
        if (short_name(score.model), score.benchmark, score.metric) != (model, cell.benchmark, cell.metric):
            continue
        budget, long_cot = score.settings.get("attention_budget"), score.settings.get("prompt") == LONG_COT
        if (score.quoted, budget, long_cot) == (cell.field == "quoted", cell.budget, cell.long_cot):
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


def test_each_of_the_289_numbers_is_shipped_as_it_is_printed() -> None:
    read = cells(TABLES.read_text("utf-8"))
    assert len(read) == 289
    wrong = [(cell, shipped(cell)) for cell in read if shipped(cell) != [cell.printed]]
    assert not wrong


@pytest.mark.parametrize(
    "changed",
    [
        Cell("seerattention", "Qwen3-4B", "aime24", "pass@1", "percent", "72.6", 8192),  # a zero is lost
        Cell("seerattention", "Qwen3-4B", "aime24", "pass@1", "percent", "55.83"),  # the budget is lost
        Cell("efficient-reasoning", "Qwen2.5-1.5B-Instruct", "aime24", "pass@1", "mean_tokens", "4094"),  # the prompt
        Cell("llmeval", "QwQ-32B", "aime24", "pass@1", "percent", "79.5"),  # the vendor's
        Cell("limo", "LIMO", "gpqa_diamond", "pass@1", "improvement", "6.6"),  # the sign
    ],
)
def test_a_number_that_is_not_the_cell_s_would_be_seen(changed: Cell) -> None:
    assert shipped(changed) != [changed.printed]


@pytest.mark.skipif(not SHARED.is_file(), reason="no shared data beside this checkout")
def test_the_tables_in_the_tree_are_those_of_the_shared_data() -> None:
    assert TABLES.read_text("utf-8") == SHARED.read_text("utf-8")


@pytest.mark.parametrize("name", ["seerattention", "sglang", "efficient-reasoning", "llmeval", "limo", "limo-aime25"])
def test_each_address_names_the_page_that_holds_the_numbers(name: str) -> None:
    for score in of_file(name):
        assert re.search(r"/blob/(main|[0-9a-f]{7,})/.*README\.md(#|$)", score.source.url), score.source.url


@pytest.mark.parametrize("percent", ['"101.0"', '"5,5"', '"-1.0"', "101", '"NaN"'])
def test_a_percentage_that_is_none_is_refused(tmp_path: Path, percent: str) -> None:
    from harness.core.errors import UsageError

    head = 'schema: 1\nsource: {title: W, url: "https://example.org", by: others}\nquestions: {demo: 30}\nscores:\n'
    page = tmp_path / "page.yaml"
    page.write_text(head + f"  - {{model: m, benchmark: demo, metric: pass@1, percent: {percent}}}\n")
    with pytest.raises(UsageError, match="percent"):
        load_published(page)
