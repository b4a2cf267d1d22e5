"""Pins of `harness published`, and of `harness.update_published` and `harness.published`, on one folder of records."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.pins.stage import Scene, Stage, name_of
from tests.verbs.test_public_scores import record

MODEL = "pinned/model-7b"


def a_folder_of_records(stage: Stage) -> None:
    """Two scores of a model and one of a near name are indexed and listed; of a third model nothing is published."""
    folder = stage.folder / "records"
    folder.mkdir()
    for name, content in (
        ("sums", record(MODEL, "sums", 81.5, "board", settings={"temperature": 0.6})),
        ("demo", record(MODEL, "demo", 40.0, "board", questions=7)),
        ("near", record("pinned/model-7b-fp8", "sums", 80.0, "board")),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")
    stage.command("published", "update", "--from", "records", "--json")
    stage.command("published", "update", "--from", "records")
    stage.python("update_published", source="records")
    printed = stage.command("published", "show", MODEL, "--json")
    scores = stage.python("published", MODEL)
    stage.alike(printed.json["scores"], scores.scores)
    stage.command("published", MODEL, "sums")
    stage.command("published", "show", "pinned/other")
    stage.command("published", "update", "--from", "nowhere")
    stage.python("published", "pinned/other")


SCENES: tuple[Scene, ...] = (a_folder_of_records,)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
