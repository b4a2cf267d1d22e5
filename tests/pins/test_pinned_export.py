"""Pins of `harness export` and `harness.export`: every format's files, of a stored run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of

TEXT_FORMATS = ("sharegpt", "alpaca", "trl", "llmeval", "inspect", "every-eval-ever")


def every_format(stage: Stage) -> None:
    """The files of each format, by the command."""
    stored.copy("first", stage.folder, scored=True)
    for to in TEXT_FORMATS:
        stage.command("export", "first", "--to", to, "--out", f"by-command/{to}", "--i-know", "--json")
        for file in sorted(path for path in (stage.folder / "by-command" / to).rglob("*") if path.is_file()):
            stage.file(str(file.relative_to(stage.folder)))


def options(stage: Stage) -> None:
    """What is taken, from both doors."""
    stored.copy("first", stage.folder, scored=True)
    words = [
        "--take",
        "all",
        "--shortest",
        "1",
        "--finish-reason",
        "any",
        "--no-distinct",
        "--no-reasoning",
        "--i-know",
    ]
    stage.command("export", "first", "--to", "sharegpt", "--out", "by-command", *words)
    stage.tree("by-command")
    stage.python(
        "export", "first", "sharegpt", out="by-python", take="all", shortest=1, finish_reasons=(), distinct=False,
        reasoning=False, i_know=True,
    )  # fmt: skip
    for file in sorted(path for path in (stage.folder / "by-command").rglob("*") if path.is_file()):
        name = file.relative_to(stage.folder / "by-command")
        stage.alike(stage.file(f"by-command/{name}"), stage.content(f"by-python/{name}"))
    stage.command("export", "first", "--to", "nothing")
    stage.python("export", "first", "nothing")


SCENES: tuple[Scene, ...] = (every_format, options)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
