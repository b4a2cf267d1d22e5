"""Pins of `harness show`: a run's questions and samples as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of


def a_stored_run(stage: Stage) -> None:
    """All questions, one, one sample, and the filters."""
    for name in ("first", "second"):
        stored.copy(name, stage.folder, scored=True)
    stage.command("show", "first")
    stage.command("show", "first", "q1")
    stage.command("show", "first", "q1:3", "--reasoning")
    for words in (
        ["--wrong"],
        ["--no-answer"],
        ["--undecided"],
        ["--cut"],
        ["--near-miss"],
        ["--anomaly"],
        ["--disputed"],
    ):
        stage.command("show", "first", *words)
    stage.command("show", "first", "--disagree", "second", "--grep", "case")
    stage.command("show", "first", "--level", "2", show_errors=True)
    stage.command("show", "first", "q9", show_errors=True)


SCENES: tuple[Scene, ...] = (a_stored_run,)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
