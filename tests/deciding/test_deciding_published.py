"""Files of published scores: how a folder of them is read, and where the shipped numbers come from.

The tables of five projects: each number that their authors print is shipped, digit by digit and with its settings.
`five_tables.csv` holds the 289 numbers as they are printed, but for the numbers of tries.

For: harness.deciding.published.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from harness.core.errors import UsageError
from harness.deciding.published import PublishedScore, load_published, published_folder, short_name
from tests.conftest import CHECKOUT


def test_a_folder_is_read_with_all_below_it_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (published_folder() / "limo.yaml").read_bytes()
    for folder in (tmp_path, tmp_path / "below"):
        folder.mkdir(exist_ok=True)
        (folder / "scores.yaml").write_bytes(content)
    assert len(load_published(tmp_path)) == 2 * len(of_file("limo"))
    monkeypatch.setattr("harness.deciding.published.MAX_FILES", 1)
    with pytest.raises(UsageError, match="contains more than 1 files"):
        load_published(tmp_path)


def test_the_page_counts_the_shipped_scores_and_those_that_were_held_against_their_sources() -> None:
    files = [path.read_text("utf-8") for path in sorted((CHECKOUT / "results/published").glob("*.yaml"))]
    scores = [text.count("\n  - {model: ") for text in files]
    assert all("\n  checked: " in text for text in files)
    quoted = sum(text.count(", quoted: true") for text in files)
    page = " ".join((CHECKOUT / "docs/deciding.md").read_text("utf-8").split())
    assert f"There are {sum(scores):,} scores in {len(files)} files. {quoted} of them are quoted" in page
    judged = sum(n for n, text in zip(scores, files, strict=True) if "\n  judge: " in text)
    assert f"all but {judged} scores of judged benchmarks were compared with stored copies of their sources" in page


OWN_MODELS = {
    "agentica-project": "agentica-org/",
    "ChenxinAn-fdu": "POLARIS-Project/",
    "GAIR-NLP": "GAIR/",
    "LG-AI-EXAONE": "LGAI-EXAONE/",
    "MiniMax-AI": "MiniMaxAI/",
    "mlfoundations-dev": "open-thoughts/",
    "openai": r"(o\d|gpt-)",
    "QwenLM": "Qwen/",
    "SkyworkAI": "Skywork/",
    "XiaomiMiMo": "(XiaomiMiMo/|MiMo-)",
}
"""How the names of the models of a source's owner begin, where that is not the owner's own name."""

QUOTES_AUTHORS = {
    *("makers-quoted", "qwen3-235b-quoted", "qwen3-30b-quoted", "qwen3-quoted-image", "gpt-oss-quoted"),
    *("llmeval", "efficient-reasoning", "sglang", "aime26-hub", "kimi-k2-thinking", "simpleqa-verified", "healthbench"),
}
"""Files of sources that say of numbers which they quote that the models' authors stated them, and papers by these."""


def test_a_shipped_number_is_its_authors_only_if_they_own_the_source_or_are_quoted() -> None:
    seen = 0
    for path in sorted((CHECKOUT / "results/published").glob("*.yaml")):
        for score in load_published(path):
            owner = urlsplit(score.source.url).path.strip("/").removeprefix("datasets/").partition("/")[0]
            own = re.match(OWN_MODELS.get(owner, owner + "/"), score.model, re.IGNORECASE)
            seen += score.by == "authors"
            if score.by == "authors":
                assert own or path.stem in QUOTES_AUTHORS, (path.name, score.model)
            elif not score.quoted:
                assert not own, (path.name, score.model)
    assert seen > 400


def test_shipped_accuracies_are_shares_of_the_samples_that_their_sources_state() -> None:
    """Of 14 no number of right samples gives what their source prints; a source may round or cut its last digit."""
    impossible = set()
    for score in load_published():
        if score.metric == "pass@1" and score.samples and score.n_questions:
            total = score.samples * score.n_questions
            if abs(round(score.value * total) / total - score.value) > score.unit + 1e-6:
                impossible.add((score.source.repository, score.model, score.benchmark))
    sources = Counter(source for source, _, _ in impossible)
    assert sources == {"LLMEval": 1, "POLARIS": 2, "SeerAttention": 2, "sober-reasoning": 9}


TABLE = CHECKOUT / "tests" / "deciding" / "five_tables.csv"

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
