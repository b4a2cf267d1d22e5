"""The suites of five projects on servers of known ability: what each of their tables says, beside the documents', is
pinned (`HARNESS_WRITE_PINS=suites pytest tests/commands/test_five_suites.py`).
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from harness.benchmarks import catalog
from harness.testing import FakeServer, Request, Said, serving
from tests.conftest import CHECKOUT
from tests.deciding.test_deciding_comparison import Cell, cells
from tests.pins.held import hold
from tests.system.command import harness

CARD_FIELDS = ("name", "title", "aliases", "prompt", "samples", "sampling", "training")

MODELS = {
    "Qwen3-4B": "Qwen/Qwen3-4B",
    "DeepSeek-R1-Distill-Qwen-1.5B": "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
    "Qwen2.5-1.5B-Instruct": "Qwen/Qwen2.5-1.5B-Instruct",
    "DeepSeek-R1-Distill-Qwen-32B": "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "QwQ-32B": "Qwen/QwQ-32B",
    "LIMO": "GAIR/LIMO",
}
"""The model of each document that is played here, as the hub names it."""

DOCUMENT = [cell for cell in cells() if not cell.long_cot]
"""Every number of the documents' tables."""


class Ability(NamedTuple):
    """share: of the replies that are right; tokens: of every reply."""

    share: float
    tokens: int


def stand_ins(folder: Path, questions: int) -> None:
    """Cards under the shipped names, whose questions are sums that tell the benchmark's name; questions: at most."""
    folder.mkdir()
    for card in catalog.cards():
        if card.name == "demo":
            continue
        content = yaml.safe_load((CHECKOUT / "datasets" / f"{card.name}.yaml").read_text("utf-8"))
        n = min(questions, card.questions or questions)
        rows = [{"problem": f"{card.name}: what is {i} + 1?", "answer": str(i + 1)} for i in range(n)]
        (folder / f"{card.name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        fields = {key: content[key] for key in CARD_FIELDS if key in content}
        fields["source"] = {"kind": "file", "path": f"{card.name}.jsonl"}
        fields["columns"] = {"question": "problem", "answer": "answer"}
        (folder / f"{card.name}.yaml").write_text(yaml.safe_dump(fields))


class Able:
    """Answers sums as a model of the documents would: of each n replies, the share that its figure says is right.

    The budget of the attention is the first part of the address: `/b2048/v1/…`.
    """

    def __init__(self, abilities: Mapping[tuple[str, str, int | None], Ability]) -> None:
        self._abilities = abilities
        self._replies: Counter[tuple[str, str, int | None]] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Said:
        body = request.json
        sum_asked = re.search(r"(\w+): what is (\d+) \+ 1\?", body["messages"][-1]["content"])
        if sum_asked is None:
            return Said("no sum", model=body["model"])
        budget = re.search(r"/b(\d+)/", request.path)
        key = (body["model"], sum_asked[1], int(budget[1]) if budget else None)
        # A budget that the document does not have is played as the whole model.
        share, tokens = self._abilities.get(key) or self._abilities.get((*key[:2], None), Ability(0.5, 100))
        with self._lock:
            n = self._replies[key]
            self._replies[key] += 1
        # Exactly the share is right after any number of replies, in whatever order they come.
        right = math.floor((n + 1) * share + 1e-9) > math.floor(n * share + 1e-9)
        text = rf"Reply {n}: \boxed{{{int(sum_asked[2]) + (1 if right else 7)}}}"
        return Said(text, tokens, model=body["model"])


def document_abilities() -> dict[tuple[str, str, int | None], Ability]:
    """(model, benchmark, budget) → what the suite's own document prints of it."""
    abilities = {}
    for cell in sorted(DOCUMENT, key=lambda cell: cell.file == "limo-aime25"):
        if cell.metric == "pass@1" and cell.field == "percent" and cell.model in MODELS:
            tokens = document(cell.file, cell.model, cell.benchmark, "pass@1", "mean_tokens")
            key = (MODELS[cell.model], cell.benchmark, cell.budget)
            # The first document to print a number of a model decides: AIME-Preview comes last.
            abilities.setdefault(key, Ability(float(cell.printed) / 100, int(tokens or 100)))
    return abilities


def document(file: str, model: str, benchmark: str, metric: str, field: str, budget: int | None = None) -> str:
    """A number as the document prints it; empty where it prints none."""
    wanted = Cell(file, model, benchmark, metric, field, "", budget)
    return next((cell.printed for cell in DOCUMENT if cell._replace(printed="") == wanted), "")


def read_tables(text: str) -> dict[str, list[dict[str, str]]]:
    """Title → rows of each Markdown table; a head that stands twice gets a number, footnotes are left out."""
    by_title: dict[str, list[dict[str, str]]] = {}
    text = re.sub(r"\\([^a-zA-Z0-9\s])", r"\1", text)  # Markdown's escapes
    for block in re.split(r"^(?=\*\*)", text, flags=re.MULTILINE):
        lines = [line for line in block.splitlines() if line.startswith("| ")]
        if not lines:
            continue
        rows = [[re.sub(r" \[\d+\]", "", cell.strip()) for cell in line.strip("| ").split(" | ")] for line in lines]
        seen: Counter[str] = Counter()
        heads = []
        for head in rows[0]:
            seen[head] += 1
            heads.append(head if seen[head] == 1 else f"{head} {seen[head]}")
        by_title[block.splitlines()[0].strip("*")] = [dict(zip(heads, row, strict=True)) for row in rows[2:]]
    return by_title


def budgets(url: str) -> str:
    """The `budgets.yaml` of the page with one budget; where it starts a server, this test's answers under its name."""
    page = (CHECKOUT / "docs/moving.md").read_text("utf-8")
    found = re.search(r"```yaml\n(# budgets\.yaml\n.*?)```", page, re.DOTALL)
    content = yaml.safe_load(found[1])
    plain = content["servers"][0]["name"]
    servers = {plain: url, "b2048": f"{url}/b2048"}
    content["servers"] = [{"name": name, "run": {"base_url": address}} for name, address in servers.items()]
    return yaml.safe_dump(content)


LIMO10 = "aime24 amc23 chmath math500 olympiadbench gaokao kaoyan gradeschool minerva gpqa_diamond"
R1_32B = "DeepSeek-R1-Distill-Qwen-32B"

SHOWN: dict[tuple[str, str], tuple[str, str, str]] = {
    ("SeerAttention, {}", "budgets.yaml"): ("aime24 aime25 math500 gpqa_diamond", "{}", "Qwen3-4B"),
    ("SGLang's benchmark, {}", f"sglang --model {MODELS['DeepSeek-R1-Distill-Qwen-1.5B']}"): (
        "limo aime24 aime25_i",
        "DeepSeek-R1",
        "{}",
    ),
    ("efficient-reasoning, {}", f"efficient-reasoning --model {MODELS['Qwen2.5-1.5B-Instruct']}"): (
        "gsm8k aime24 math500 limo",
        "{}",
        "Qwen2.5-1.5B-Instruct",
    ),
    (f"LLMEval, {R1_32B}, {{}}", f"llmeval --model {MODELS[R1_32B]}"): ("aime24 aime25 math500", R1_32B, "{}"),
    ("LLMEval, QwQ-32B, {}", f"llmeval --model {MODELS['QwQ-32B']}"): ("aime24 aime25", "QwQ-32B", "{}"),
    ("LIMO, {}", f"limo10 --model {MODELS['LIMO']}"): (LIMO10, "LIMO", "{}"),
    ("LIMO, AIME-Preview, {}", f"aime-preview --model {MODELS['LIMO']}"): ("aime24 aime25_i", "{}", "LIMO"),
}
"""(name of a document's row, command without its server) → (benchmarks, beginning of the title of the table that it
prints, first cell of the row): every table of the documents, one model of each.
"""


SUITES = CHECKOUT / "tests" / "pins" / "suites.jsonl"
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
def test_the_tables_of_five_projects_hold_the_pinned_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins(tmp_path / "cards", N_QUESTIONS)
    (tmp_path / "cards" / "suites").symlink_to(CHECKOUT / "datasets" / "suites")
    # As the shipped cards: beside a card or a file of the user's own, none of their published scores stands.
    monkeypatch.setattr(catalog, "shipped_folder", lambda: tmp_path / "cards")
    rows: dict[str, Any] = {}
    with FakeServer(serving(Able(document_abilities()), *MODELS.values())) as server:
        (tmp_path / "budgets.yaml").write_text(budgets(server.base_url))
        for (head, words), (benchmarks, title, first) in SHOWN.items():
            address = () if words.startswith("budgets") else ("--base-url", server.base_url)
            done = harness(tmp_path, "sweep", *words.split(), *address, *SMALL, "--out", head)
            assert done.code == 0, done.err
            tables = read_tables((tmp_path / head / "table.md").read_text("utf-8"))
            for name in benchmarks.split():
                begins = "Mean of" if title == "{}" and name not in " ".join(tables) else title.format(name)
                table = next(table for table_title, table in tables.items() if table_title.startswith(begins))
                cells = next(row for row in table if next(iter(row.values())) == first.format(name))
                rows[head.format(name)] = {column: meaning(cell) for column, cell in [*cells.items()][1:]}
    hold(SUITES, rows)
