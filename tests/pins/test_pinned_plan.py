"""Pins of `harness plan` and `harness.plan` on a stored run. Differences are points in both."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of


def a_stored_run(stage: Stage) -> None:
    """Samples, tokens, time and money that a difference takes."""
    stored.copy("first", stage.folder, scored=True)
    printed = stage.command("plan", "first", "--detect", "20", "--json")
    needed = stage.python("plan", "first", 20)
    stage.alike([row["samples"] for row in printed.json], [one.samples for one in needed])
    stage.command("plan", "first", "--detect", "5", "--versus", "64", "--price-in", "1", "--price-out", "10")
    stage.python("plan", "first", 5, other_samples=64, price_in=1.0, price_out=10.0)
    stage.command("plan", "math5000", "--detect", "5", show_errors=True)
    stage.command("plan", "first", "--detect", "0", show_errors=True)


SCENES: tuple[Scene, ...] = (a_stored_run,)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
