"""Pins of the run folders that older versions left behind: scored to the last digit, resumed with the same bodies.

The folders are those of tests/system/old_runs.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from tests.pins.stage import Scene, Stage, name_of
from tests.system.old_runs import COMMANDS, FOLDERS, QUESTIONS, answer, words


def resumed(stage: Stage, name: str) -> None:
    """Scored as it was left, read by another command, resumed, and refused under another temperature."""
    (stage.folder / "questions.jsonl").write_text(QUESTIONS, encoding="utf-8")
    for version in sorted(path.name for path in FOLDERS.iterdir()):
        run = f"run-{version}"
        shutil.copytree(FOLDERS / version / name, stage.folder / run)
        stage.command("score", run, "--workers", "1", "--json", show_errors=True)
        stage.command("status", run, "--json")
        server = stage.server(f"server-{version}", answer)
        stage.command(*words(name, server.base_url, run), "--json")
        stage.requests(server)
        stage.file(f"{run}/manifest.json")
        stage.command(*words(name, server.base_url, run), "--temperature", "0.123", show_errors=True)


def card(stage: Stage) -> None:
    """A shipped card."""
    resumed(stage, "card")


def every_field(stage: Stage) -> None:
    """Every field of sampling."""
    resumed(stage, "every-field")


def own_file(stage: Stage) -> None:
    """Questions of one's own, with a preset."""
    resumed(stage, "own-file")


def completions(stage: Stage) -> None:
    """The protocol of plain completions."""
    resumed(stage, "completions")


def whole_replies(stage: Stage) -> None:
    """Replies that are not streamed."""
    resumed(stage, "whole-replies")


SCENES: tuple[Scene, ...] = (card, every_field, own_file, completions, whole_replies)


def test_every_old_folder_has_a_scene() -> None:
    assert len(SCENES) == len(COMMANDS)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
