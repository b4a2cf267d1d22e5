"""Pins of `harness merge` and `harness.merge`: the joined manifest, samples and questions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of


def shards(stage: Stage) -> None:
    """Two shards of one run, from both doors."""
    for name in ("shard-1", "shard-2"):
        stored.copy(name, stage.folder)
    stage.command("merge", "shard-1", "shard-2", "--out", "joined")
    manifest = stage.file("joined/manifest.json")
    samples = stage.file("joined/sums/samples.jsonl")
    stage.file("joined/sums/questions.jsonl")
    stage.tree("joined")
    stage.python("merge", ["shard-1", "shard-2"], out="by-python")
    stage.alike(manifest, stage.content("by-python/manifest.json"))
    stage.alike(samples, stage.content("by-python/sums/samples.jsonl"))


def refusals(stage: Stage) -> None:
    """A shard alone, and what is no part of the same run."""
    for name in ("first", "second", "shard-1"):
        stored.copy(name, stage.folder)
    stage.command("merge", "shard-1", "--out", "alone", show_errors=True)
    stage.command("merge", "first", "second", "--out", "joined", show_errors=True)
    stage.python("merge", ["first", "second"], out="joined")


SCENES: tuple[Scene, ...] = (shards, refusals)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
