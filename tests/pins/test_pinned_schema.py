"""Pins of `harness schema`: the shape of every `--json`. Descriptions are left out: they may be put better."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins.stage import Scene, Stage, name_of

COMMANDS = (
    "serve status", "run", "status", "ctl", "score", "compare", "plan", "sweep", "experiment repeats",
    "experiment samples", "race", "verify", "export", "benchmarks", "benchmarks list", "probe", "plugins",
)  # fmt: skip


def every_command(stage: Stage) -> None:
    """The schema of each command that has `--json`, and the list of these."""
    stage.command("schema", show_errors=True)
    for command in COMMANDS:
        stage.note(f"schema {command}", bare(stage.command("schema", *command.split(), silent=True).json))
    stage.note("sweep --schema", bare(stage.command("sweep", "--schema", silent=True).json))
    stage.note("benchmarks schema", bare(stage.command("benchmarks", "schema", silent=True).json))


def bare(value: object) -> object:
    """A schema without its descriptions."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if not (key == "description" and isinstance(item, str))}
    return [bare(item) for item in value] if isinstance(value, list) else value


SCENES: tuple[Scene, ...] = (every_command,)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
