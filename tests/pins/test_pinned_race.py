"""Pins of `harness race` and `harness.race`: the bodies to each candidate, the standings, the runs that remain.

`--margin` is in points and Python's `margin` a fraction: the issue of these pins makes both points, and the golden
files are written anew then.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins.server import solving
from tests.pins.stage import Scene, Stage, name_of, write_sums


def two_candidates(stage: Stage) -> None:
    """Two servers, from both doors."""
    write_sums(stage.folder, 3)
    weak, strong = stage.server("weak", solving(20)), stage.server("strong", solving(90))
    words = ["race", "--data", "sums.jsonl", "--id-key", "id", "--no-canary", "--samples", "4", "--margin", "1"]
    words += ["--candidate", f"base base_url={weak.base_url} temperature=0.5"]
    words += ["--candidate", f"tuned base_url={strong.base_url} top_k=20"]
    printed = stage.command(*words, "--out", "by-command", "--json")
    bodies = [stage.requests(server) for server in (weak, strong)]
    stage.file("by-command/tuned/manifest.json")
    stage.tree("by-command")
    since = [len(server.requests) for server in (weak, strong)]
    raced = stage.python(
        "race", data="sums.jsonl", id_key="id", canary=False, samples=4, margin=1, out="by-python",
        candidates={
            "base": {"base_url": weak.base_url, "temperature": 0.5},
            "tuned": {"base_url": strong.base_url, "top_k": 20},
        },
    )  # fmt: skip
    stage.alike(
        bodies, [stage.requests(server, n, record=False) for server, n in zip((weak, strong), since, strict=True)]
    )
    stage.alike(printed.json["standings"]["tuned"]["difference"], raced.standings["tuned"].difference)


def refusals(stage: Stage) -> None:
    """What is no race."""
    write_sums(stage.folder, 3)
    for candidates in (["alone"], ["one", "one"], ["one temprature=1", "two"], ["one temperature=x", "two"]):
        words = [word for candidate in candidates for word in ("--candidate", candidate)]
        stage.command("race", "--data", "sums.jsonl", "--base-url", "http://127.0.0.1:9", *words)


SCENES: tuple[Scene, ...] = (two_candidates, refusals)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
