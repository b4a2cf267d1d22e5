"""Every table of the five projects by its one command, on a server whose ability is the document's figure.

Beside it stand the document's own numbers, digit by digit.

For: harness.verbs.sweep.columns, harness.verbs.sweep.table, harness.reports.published.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

import pytest

from tests.verbs import five_suites
from tests.verbs.five_suites import MODELS, SHOWN, Shown, Stage, document, document_abilities

FILES = {
    "SeerAttention": "seerattention",
    "SGLang's benchmark": "sglang",
    "efficient-reasoning": "efficient-reasoning",
    "LLMEval": "llmeval",
    "LIMO": "limo",
}
N_QUESTIONS, N_SAMPLES = 2, 3
SMALL = ("--samples", str(N_SAMPLES))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with five_suites.stage(tmp_path_factory.mktemp("five"), N_QUESTIONS) as stage:
        # Two of the page's servers: a full one and one with a budget.
        stage.budgets(re.sub(r"budget: \[.*?\]", "budget: [2048]", five_suites.page_budgets()))
        yield stage


def model_of(shown: Shown) -> str:
    """The model of a row, as its document names it."""
    words = shown.words.split()
    return "Qwen3-4B" if len(words) == 1 else next(name for name, full in MODELS.items() if full == words[-1])


def printed_beside(shown: Shown, row: Mapping[str, str]) -> dict[tuple[str, str, int | None], str]:
    """(metric, field, budget) → the number that stands in the row for the document's."""
    if shown.document == "SeerAttention":
        budgets = {head: int(head[1:]) if head != "full" else None for head in list(row)[1:]}
        cells: dict[tuple[str, str, int | None], str] = {}
        for head, budget in budgets.items():
            beside = re.search(r"reported ([\d.]+)(?: \(([^)]*)\))?", row[head])
            assert beside is not None, row
            cells["pass@1", "percent", budget] = "" if "attention" in (beside[2] or "") else beside[1]
        return cells
    k = next((head for head in row if re.fullmatch(r"pass@\d+", head) and head != "pass@1"), "")
    fields = {
        ("pass@1", "percent"): "reported",
        ("pass@1", "quoted"): "by the model's authors",
        (k, "percent"): "reported 2",
        ("pass@1", "mean_tokens"): "reported tokens",
        ("pass@1", "standard_error"): "reported error",
        ("pass@1", "training_samples"): "training samples",
        ("pass@1", "previous"): "previous best",
        ("pass@1", "improvement"): "reported improvement",
    }
    printed = {(*field, None): row[head] for field, head in fields.items() if head in row}
    return {field: cell.partition(" (")[0].replace(",", "").replace("–", "") for field, cell in printed.items()}


def numbers_that_differ(shown: Shown, row: Mapping[str, str]) -> list[str]:
    """The document's numbers of this row that the row prints otherwise, or not at all."""
    file = "limo-aime25" if "AIME-Preview" in shown.name else FILES[shown.document]
    benchmark = shown.name.rpartition(", ")[2]
    differing = []
    for (metric, field, budget), cell in printed_beside(shown, row).items():
        theirs = document(file, model_of(shown), benchmark, metric, field, budget)
        quotes_others = field == "quoted" and not cell  # a number that is not of the model's authors
        if theirs and cell != theirs and not quotes_others:
            differing.append(f"{metric} {field} {budget}: {cell} here, {theirs} in the document")
    return differing


def share(model: str, benchmark: str, budget: int | None, n: int) -> str:
    """The accuracy that a server of the document's ability has after n replies, as a table prints it."""
    ability = document_abilities()[MODELS[model], benchmark, budget].share
    return f"{100 * math.floor(n * ability + 1e-9) / n:.1f}"


@pytest.mark.parametrize("words", five_suites.commands(), ids=lambda words: words.split("/")[0])
def test_each_command_prints_its_document_s_layout_with_its_numbers(played: Stage, words: str) -> None:
    small = () if words.startswith("efficient") else SMALL
    tables = five_suites.play(played, words, *small)
    for shown in SHOWN:
        if shown.words != words:
            continue
        row = tables.row(shown.title, shown.first)
        assert numbers_that_differ(shown, row) == [], shown
        benchmark, n = shown.name.rpartition(", ")[2], N_QUESTIONS * N_SAMPLES
        if shown.document == "SeerAttention":
            for head, budget in (("full", None), ("b2048", 2048)):
                assert row[head].startswith(share("Qwen3-4B", benchmark, budget, n)), (shown, head)
        elif not small:
            n = N_QUESTIONS * (10 if benchmark == "aime24" else 8)
            assert row["pass@1"].startswith(share(model_of(shown), benchmark, None, n)), shown
            assert row["mean tokens"] == row["reported tokens"], "the server's replies are as long as the document's"
        else:
            assert row["pass@1"].startswith(share(model_of(shown), benchmark, None, n)), shown
            assert "verdict" in row
