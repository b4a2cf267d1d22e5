"""Trying a command of a page without what it needs: an accelerator, a network, hours.

`run`, `sweep` and `serve` show what they would do (`--dry-run`), against a small server that lists the model and cards
of one question under the shipped names; other tools' files are scored as they are; other commands are parsed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest
import yaml

from harness.benchmarks import catalog
from harness.cli.main import LazyGroup, main
from harness.testing import FakeServer, Request, Step, http, models
from server_launchers.embedded import weights
from tests.docs.pages import ROOT, Typed

ROW = {**dict.fromkeys(("problem", "Problem", "question"), "What is 1 + 1?"), "answer": "2", "Answer": "2"}
DRY = ("run", "sweep", "serve")
SOURCES = (".jsonl", ".txt", ".eval")


def stand_ins(folder: Path) -> None:
    """Cards of the shipped names, each with one question of a file, so that nothing is fetched."""
    folder.mkdir()
    (folder / "one.jsonl").write_text(json.dumps(ROW) + "\n")
    for card in catalog.cards():
        if card.name == "demo":
            continue
        content = yaml.safe_load((ROOT / "datasets" / f"{card.name}.yaml").read_text("utf-8"))
        names = {"name", "title", "aliases", "prompt", "samples", "sampling"}
        kept = {key: value for key, value in content.items() if key in names}
        kept |= {
            "source": {"kind": "file", "path": "one.jsonl"},
            "columns": {"question": "problem", "answer": "answer"},
        }
        (folder / f"{card.name}.yaml").write_text(yaml.safe_dump(kept))


@dataclass
class Bench:
    """A folder, a server that lists `model`, and the cards. context: what the server states, in tokens."""

    folder: Path
    url: str
    patch: pytest.MonkeyPatch
    model: list[str] = field(default_factory=lambda: ["m"])
    context: int | None = None

    def try_(self, typed: Typed) -> int:
        """The exit code of the command, dry where it would work; -1 where it was only parsed."""
        words = list(typed.words)
        if "--on" in words or words[:2] in (["serve", "status"], ["serve", "stop"], ["serve", "logs"]):
            return self.parse(words)  # a cluster is not here, nor a server
        if words[0] in DRY:
            self.model[0] = words[words.index("--model") + 1] if "--model" in words else "m"
            here = re.compile(r"http://127\.0\.0\.1:(?!.*:?8001$)")
            own = [self.url if here.match(word) else word for word in words]
            own.insert(own.index("--") if "--" in own else len(own), "--dry-run")
            return self.call(own)
        if words[0] == "score" and words[1].endswith(SOURCES):
            return self.call(words)
        return self.parse(words)

    def call(self, words: list[str]) -> int:
        self.patch.setattr(sys, "argv", ["harness", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    def parse(self, words: list[str]) -> int:
        """Raises `click.UsageError` for a flag or a value that the command does not take."""
        command: click.Command | None = LazyGroup("harness")
        rest, context = words, None
        while isinstance(command, click.Group):
            context = click.Context(command, parent=context, info_name=rest[0])
            command, rest = command.get_command(context, rest[0]), rest[1:]
        assert command is not None, words
        command.make_context(words[0], rest, parent=context)
        return -1


@pytest.fixture(scope="session")
def cards_of_one_question(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `stand_ins`, written once: seventy cards as YAML take longer than the tests that read them."""
    folder = tmp_path_factory.mktemp("pages") / "cards"
    stand_ins(folder)
    return folder


@pytest.fixture
def bench(cards_of_one_question: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """What `trying` needs; the working folder is the test's own."""
    benches: list[Bench] = []

    def answer(request: Request) -> Iterator[Step]:
        (one,) = benches
        stated = {} if one.context is None else {"max_model_len": one.context}
        yield models(one.model[0], **stated) if request.path.partition("?")[0].endswith("/models") else http(404, {})

    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for name in ("OPENAI_API_KEY", "HARNESS_SERVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HARNESS_DATASETS", str(cards_of_one_question))
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    # An empty file is the model of a dry run: nothing is downloaded, and the machine's own cache is not needed.
    (tmp_path / "model.gguf").touch()
    monkeypatch.setattr(weights, "fetch", lambda name, _progress=None: weights.KNOWN[name] and tmp_path / "model.gguf")
    with FakeServer(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        benches.append(Bench(work, server.base_url, monkeypatch))
        yield benches[0]
