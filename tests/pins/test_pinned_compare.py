"""Pins of `harness compare`, `verify` and `diff`, and of `harness.compare` and `harness.verify`, on two stored runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of

PUBLISHED = """
schema: 1
source: {title: A wiki, url: "https://example.org", by: others}
settings: {temperature: 0.6, max_tokens: 64}
questions: {sums: 6}
scores:
  - {model: pinned, benchmark: sums, metric: pass@1, percent: 30, samples: 64}
  - {model: org/other, benchmark: sums, metric: pass@1, percent: 95, samples: 64}
"""


def two_runs(stage: Stage) -> None:
    """Which is better, how sure that is, and the exit codes of a gate."""
    for name in ("first", "second"):
        stored.copy(name, stage.folder, scored=True)
    printed = stage.command("compare", "first", "second", "--json")
    rows = stage.python("compare", ["first", "second"])
    stage.alike([row["paired"]["difference"] for row in printed.json], [row.decision.paired.difference for row in rows])
    stage.command("compare", "first", "second")
    stage.command("compare", "first", "second", "--baseline", "second", "--fail-if-worse", "1", "--json")
    stage.python("compare", ["first", "second"], baseline="second")
    stage.command("compare", "first")
    stage.command("compare", "first", "nowhere", show_errors=True)


def beside_what_is_published(stage: Stage) -> None:
    """A run agrees with one published score and not with the other; of a third model nothing is published."""
    stored.copy("first", stage.folder, scored=True)
    (stage.folder / "published.yaml").write_text(PUBLISHED, "utf-8")
    words = ["verify", "first", "--published", "published.yaml"]
    stage.command(*words, "--json")
    stage.command(*words)
    stage.command(*words, "--model", "org/other", "--json")
    stage.python("verify", "first", published="published.yaml")
    stage.python("verify", "first", published="published.yaml", model="org/other")
    stage.command("verify", "first", show_errors=True)
    stage.python("verify", "first")


def where_they_differ(stage: Stage) -> None:
    """`diff`: questions that moved, verdicts that flipped, settings that differ."""
    for name in ("first", "second"):
        stored.copy(name, stage.folder, scored=True)
    stage.command("diff", "first", "second")
    stage.command("diff", "first", "second", "--questions", "1", "--benchmark", "sums")
    stage.command("diff", "first", "second", "--benchmark", "demo", show_errors=True)


SCENES: tuple[Scene, ...] = (two_runs, beside_what_is_published, where_they_differ)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
