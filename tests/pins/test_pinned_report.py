"""Pins of `harness report` and `harness.report`: the tables as text, Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of


def two_runs(stage: Stage) -> None:
    """Two stored runs, from both doors."""
    for name in ("first", "second"):
        stored.copy(name, stage.folder, scored=True)
    stage.command("report", "first", "second", "--out", "by-command", "--k", "3")
    report = stage.python("report", ["first", "second"], out="by-python", k=3)
    for suffix in ("md", "csv", "tex", "html"):
        by_command, by_python = stage.file(f"by-command/report.{suffix}"), stage.content(f"by-python/report.{suffix}")
        stage.alike(unrepeated(by_command), unrepeated(by_python))
    assert report.markdown() == (stage.folder / "by-python" / "report.md").read_text("utf-8")
    stage.tree("by-command")
    stage.command("report", "nowhere", show_errors=True)


def unrepeated(lines: list[str]) -> list[str]:
    """The lines without those that say how to have the run again, which each door says in its own words."""
    verbs = ("harness run ", "harness.run(", "harness score ", "harness.score(")
    return [line for line in lines if not any(verb in line for verb in verbs)]


SCENES: tuple[Scene, ...] = (two_runs,)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
