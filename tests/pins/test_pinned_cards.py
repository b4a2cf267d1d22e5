"""Pins of the questions that each shipped card makes of rows in its form: what a run's folder states of them.

`cards.json`: card → {"rows", "asked"}, "asked" null where a card needs a package beside the harness; `files`: file of the shared data → what its card makes of it, checked where that
folder is. `python -m tests.pins.test_pinned_cards` asks the stored rows anew, writes that, and prints what moved.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from tests.conftest import SHARED_DATA
from tests.faults.server import FaultServer, Request, Step, http, models
from tests.pins.meaning import differences
from tests.pins.stage import alone

CARDS = Path(__file__).with_name("cards.json")
SHIPPED = Path(__file__).resolve().parent.parent.parent / "datasets"


def refusing(request: Request) -> Iterator[Step]:
    """A server that answers no question: a run has stored its questions by then."""
    yield models("pinned") if request.method == "GET" else http(400, {"error": {"message": "no"}})


def asked(card: str, data: Path, run: Path, url: str) -> dict[str, Any]:
    """What a run of the card over these data stores of its questions."""
    with contextlib.suppress(harness.ServerError):
        harness.run([card], data=data, samples=1, base_url=url, out=run, model="pinned", attempts=1, fingerprint=False)
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


def all_asked(pinned: dict[str, Any], folder: Path, shared: Path | None) -> dict[str, Any]:
    """The pinned value with what is asked now. shared: the folder of real files; None: they keep what is pinned."""
    now: dict[str, Any] = {"cards": {}, "files": {}}
    with alone(folder), FaultServer(refusing) as server:
        for card, content in pinned["cards"].items():
            data = folder / f"{card}.jsonl"
            data.write_text("".join(json.dumps(row) + "\n" for row in content["rows"]), "utf-8")
            known = content["asked"] is None
            now["cards"][card] = (
                content if known else content | {"asked": asked(card, data, folder / card, server.base_url)}
            )
        for file, content in pinned["files"].items():
            run = folder / f"run of {file}"
            here = shared and asked(content["card"], shared / file, run, server.base_url)
            now["files"][file] = content | {"asked": here or content["asked"]}
    return now


def read() -> dict[str, Any]:
    """What is pinned."""
    return dict(json.loads(CARDS.read_text("utf-8")))


def test_every_shipped_card_is_pinned() -> None:
    assert sorted(read()["cards"]) == sorted(path.stem for path in SHIPPED.glob("*.yaml"))


@pytest.mark.slow
def test_every_card_asks_the_pinned_questions(tmp_path: Path) -> None:
    moved = differences(read(), all_asked(read(), tmp_path, None))
    assert not moved, "\n".join(moved)


@pytest.mark.slow
def test_every_card_asks_the_pinned_questions_of_its_real_file(tmp_path: Path, shared_data: Path) -> None:
    pinned = {"cards": {}, "files": read()["files"]}
    moved = differences(pinned, all_asked(pinned, tmp_path, shared_data))
    assert not moved, "\n".join(moved)


def main() -> None:
    """Pin what the stored rows and the real files give."""
    with tempfile.TemporaryDirectory() as folder:
        now = all_asked(read(), Path(folder).resolve(), SHARED_DATA if SHARED_DATA.is_dir() else None)
    sys.stdout.write("".join(f"{line}\n" for line in differences(read(), now)))
    CARDS.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
