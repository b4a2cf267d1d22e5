"""Pins of `harness status` and `harness ctl` on a run that has ended, and of `harness serve status`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of


def an_ended_run(stage: Stage) -> None:
    """What its files say."""
    stored.copy("first", stage.folder, scored=True)
    stage.command("status", "first", "--json")
    stage.command("status", "first")
    stage.command("status", "nowhere", show_errors=True)
    stage.command("status", "--json")
    stage.command("ctl", "first", "status", show_errors=True)
    stage.command("ctl", "first", "concurrency", show_errors=True)
    stage.command("serve", "status", "--json")
    stage.command("serve", "status")
    stage.command("serve", "stop", "nobody", show_errors=True)
    stage.command("serve", "logs", "nobody", show_errors=True)


SCENES: tuple[Scene, ...] = (an_ended_run,)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
