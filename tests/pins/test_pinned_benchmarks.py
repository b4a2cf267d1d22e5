"""Pins of `harness benchmarks`, `models`, `plugins`, `init`, `doctor` and `completion`: what they list and write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of


def cards(stage: Stage) -> None:
    """The cards as text, as JSON and one with its first prompts. Whether a card's data are here differs by machine."""
    printed = stage.command("benchmarks", "list", "--json", silent=True)
    rows = [{key: value for key, value in row.items() if key not in OF_THE_MACHINE} for row in printed.json]
    stage.note("cards", rows)
    stage.command("benchmarks", "show", "demo")
    stage.command("benchmarks", "show", "demmo", show_errors=True)
    stage.command("benchmarks", "fetch", "demo", show_errors=True)


OF_THE_MACHINE = ("data", "status", "here", "path", "file")
"""Keys of a card's row that say what is on this machine."""


def others(stage: Stage) -> None:
    """Commands that read no run of a server's."""
    stored.copy("first", stage.folder, scored=True)
    stage.command("models", "list")
    stage.command("models", "fetch", "nobody", show_errors=True)
    stage.command("plugins", "--json")
    stage.command("plugins")
    stage.command("doctor", "first")
    stage.command("doctor", "nowhere", show_errors=True)
    for shell in ("bash", "zsh", "fish"):
        stage.command("completion", shell)
    for kind in ("checkpoint", "hosted", "comparison", "suite"):
        stage.command("init", kind, "--for", kind)
        stage.file(f"{kind}/run.yaml")
    stage.command("view", "nowhere", show_errors=True)


SCENES: tuple[Scene, ...] = (cards, others)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
