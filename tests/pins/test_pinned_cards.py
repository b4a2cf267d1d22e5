"""Pins of the questions that each shipped card makes of rows in its form: what a run's folder states of them.

`cards.jsonl`: card → {"rows", "asked"}, where "asked" is null if the card needs a package beside the harness.
`files.jsonl`: file of the shared data → what its card makes of it, held where that folder is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.testing import FakeServer, http, serving
from tests.pins.held import hold, read_pins
from tests.pins.stage import alone

CARDS, FILES = (Path(__file__).with_name(name) for name in ("cards.jsonl", "files.jsonl"))
SHIPPED = Path(__file__).resolve().parent.parent.parent / "datasets"


refusing = serving([http(400, {"error": {"message": "no"}})], "pinned")
"""A server that answers no question: a run has stored its questions by then."""


def asked(card: str, data: Path, run: Path, url: str) -> dict[str, Any]:
    """What a run of the card over these data stores of its questions."""
    with contextlib.suppress(harness.ServerError):
        harness.run([card], data=data, samples=1, base_url=url, out=run, model="pinned", attempts=1)
    ((_, record),) = json.loads((run / "manifest.json").read_text("utf-8"))["benchmarks"].items()
    (stored,) = run.glob("*/questions.jsonl")
    questions = [json.loads(line) for line in stored.read_text("utf-8").splitlines()]
    return {
        "dataset_digest": record["identity"]["dataset_digest"],
        "prompt": record["identity"]["prompt"],
        "prompt_digest": record["identity"]["prompt_digest"],
        "content_digest": hashlib.sha256(
            json.dumps([content(question) for question in questions]).encode()
        ).hexdigest(),
        "questions": [f"{question['question_id']}: {question['kind']}" for question in questions[:10]],
        "n": len(questions),
    }


def content(question: dict[str, Any]) -> list[Any]:
    """What a stored question says to the model and to the grader, whatever else its record holds."""
    said = [[message["role"], message["content"]] for message in question["messages"]]
    return [question["question_id"], said, *(question[name] for name in ("references", "kind", "choices", "metadata"))]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a server that answers no question."""
    with alone(tmp_path), FakeServer(refusing) as server:
        yield server.base_url


def test_every_shipped_card_is_pinned() -> None:
    assert sorted(read_pins(CARDS)) == sorted(path.stem for path in SHIPPED.glob("*.yaml"))


@pytest.mark.slow
def test_every_card_asks_the_pinned_questions(tmp_path: Path, url: str) -> None:
    now = {}
    for card, pinned in read_pins(CARDS).items():
        data = tmp_path / f"{card}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in pinned["rows"]), "utf-8")
        now[card] = pinned if pinned["asked"] is None else pinned | {"asked": asked(card, data, tmp_path / card, url)}
    hold(CARDS, now)


@pytest.mark.wide
@pytest.mark.slow
def test_every_card_asks_the_pinned_questions_of_its_real_file(tmp_path: Path, shared_data: Path, url: str) -> None:
    now = {
        file: pinned | {"asked": asked(pinned["card"], shared_data / file, tmp_path / file, url)}
        for file, pinned in read_pins(FILES).items()
    }
    hold(FILES, now)
