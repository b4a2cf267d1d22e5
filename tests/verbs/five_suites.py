"""The suites of five projects on servers of known ability: what each of their tables says, beside the documents'."""

from __future__ import annotations

import contextlib
import json
import math
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from harness.benchmarks import catalogue
from harness.testing import FakeServer, Request, Step, event, event_stream, models
from tests.conftest import CHECKOUT
from tests.scoring.test_scoring_published import Cell, cells
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
    for card in catalogue.cards():
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

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.method == "GET":
            return iter([models(*MODELS.values())])
        body = request.json
        sum_asked = re.search(r"(\w+): what is (\d+) \+ 1\?", body["messages"][-1]["content"])
        if sum_asked is None:
            return self._reply(body["model"], "no sum", 3)
        budget = re.search(r"/b(\d+)/", request.path)
        key = (body["model"], sum_asked[1], int(budget[1]) if budget else None)
        # A budget that the document does not have is played as the whole model.
        share, tokens = self._abilities.get(key) or self._abilities.get((*key[:2], None), Ability(0.5, 100))
        with self._lock:
            n = self._replies[key]
            self._replies[key] += 1
        # Exactly the share is right after any number of replies, in whatever order they come.
        right = math.floor((n + 1) * share + 1e-9) > math.floor(n * share + 1e-9)
        return self._reply(body["model"], rf"Reply {n}: \boxed{{{int(sum_asked[2]) + (1 if right else 7)}}}", tokens)

    def _reply(self, model: str, text: str, tokens: int) -> Iterator[bytes]:
        choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": tokens}
        fields = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
        return event_stream(event({**fields, "choices": [choice], "usage": usage}))


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


class Tables(NamedTuple):
    """Tables of a sweep, as `table.md` has them: title → rows, each by its columns. printed: what the command wrote."""

    printed: str
    by_title: dict[str, list[dict[str, str]]]

    def row(self, title: str, first: str) -> dict[str, str]:
        """The row that begins with `first`, of the table whose title begins with `title`."""
        rows = next(rows for name, rows in self.by_title.items() if name.startswith(title))
        return next(row for row in rows if next(iter(row.values())) == first)


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


class Stage:
    """A folder, cards and a server, in which commands of the page are given."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url

    def sweep(self, *words: str, out: str) -> Tables:
        """`harness sweep WORDS`, on the server in place of one that it would start."""
        done = harness(self.folder, "sweep", *words, "--out", out)
        assert done.code == 0, done.err
        return Tables(done.out, read_tables((self.folder / out / "table.md").read_text("utf-8")))

    def budgets(self, page: str) -> None:
        """The page's `budgets.yaml`; where it starts a server, this stage's answers under the budget's address."""
        content = yaml.safe_load(page)
        plain, *sparse = (server["name"] for server in content["servers"])
        content["servers"] = [{"name": plain, "run": {"base_url": self.url}}]
        content["servers"] += [{"name": name, "run": {"base_url": f"{self.url}/{name}"}} for name in sparse]
        (self.folder / "budgets.yaml").write_text(yaml.safe_dump(content))


@contextlib.contextmanager
def stage(folder: Path, questions: int) -> Iterator[Stage]:
    """A stage whose server has the documents' abilities."""
    stand_ins(folder / "cards", questions)
    (folder / "cards" / "suites").symlink_to(CHECKOUT / "datasets" / "suites")
    patch = pytest.MonkeyPatch()
    with FakeServer(Able(document_abilities())) as server, patch.context() as patched:
        # As the shipped cards: beside a card or a file of the user's own, none of their published scores stands.
        patched.setattr(catalogue, "shipped_folder", lambda: folder / "cards")
        yield Stage(folder, server.base_url)


class Shown(NamedTuple):
    """One row of a document's table.

    words: the command, without its server. title, first: the table that it prints, by the beginning of its title, and
    the row of that table.
    """

    document: str
    name: str
    words: str
    title: str
    first: str

    @property
    def head(self) -> str:
        """The row's first cell."""
        return f"{self.document}, {self.name}"


SEER, LLMEVAL, EFFICIENT, SGLANG, LIMO = (
    "SeerAttention", "LLMEval", "efficient-reasoning", "SGLang's benchmark", "LIMO",
)  # fmt: skip

SHOWN = (
    *(Shown(SEER, name, "budgets.yaml", name, "Qwen3-4B") for name in ("aime24", "aime25", "math500", "gpqa_diamond")),
    *(
        Shown(SGLANG, name, f"sglang --model {MODELS['DeepSeek-R1-Distill-Qwen-1.5B']}", "DeepSeek-R1", name)
        for name in ("limo", "aime24", "aime25_i")
    ),
    *(
        Shown(
            EFFICIENT,
            name,
            f"efficient-reasoning --model {MODELS['Qwen2.5-1.5B-Instruct']}",
            name,
            "Qwen2.5-1.5B-Instruct",
        )
        for name in ("gsm8k", "aime24", "math500", "limo")
    ),
    *(
        Shown(LLMEVAL, f"{model}, {name}", f"llmeval --model {MODELS[model]}", model, name)
        for model, names in (
            ("DeepSeek-R1-Distill-Qwen-32B", ("aime24", "aime25", "math500")),
            ("QwQ-32B", ("aime24", "aime25")),
        )
        for name in names
    ),
    *(
        Shown(LIMO, name, f"limo10 --model {MODELS['LIMO']}", "LIMO", name)
        for name in (
            "aime24", "amc23", "chmath", "math500", "olympiadbench", "gaokao", "kaoyan", "gradeschool", "minerva",
            "gpqa_diamond",
        )
    ),
    *(
        Shown(LIMO, f"AIME-Preview, {name}", f"aime-preview --model {MODELS['LIMO']}", title, "LIMO")
        for name, title in (("aime24", "aime24"), ("aime25_i", "Mean of"))
    ),
)  # fmt: skip
"""Every table of the documents, one model of each."""


def page_budgets() -> str:
    """The `budgets.yaml` of the page."""
    found = re.search(
        r"```yaml\n(# budgets\.yaml\n.*?)```", (CHECKOUT / "docs/moving.md").read_text("utf-8"), re.DOTALL
    )
    assert found is not None
    return found[1]


def commands() -> list[str]:
    """The commands of `SHOWN`, each once."""
    return list(dict.fromkeys(shown.words for shown in SHOWN))


def play(played: Stage, words: str, *more: str) -> Tables:
    """The tables of one command of `SHOWN`; more: options that make it small."""
    if words.startswith("budgets"):
        return played.sweep(words, *more, out="budgets")
    return played.sweep(*words.split(), "--base-url", played.url, *more, out=words.replace("/", "-").replace(" ", "-"))
