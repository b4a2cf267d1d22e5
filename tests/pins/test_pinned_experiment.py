"""Pins of `harness experiment` and of `harness.repeats` and `harness.sample_sizes`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pins import stored
from tests.pins.server import solving
from tests.pins.stage import Scene, Stage, name_of, write_sums


def drawn_from_a_run(stage: Stage) -> None:
    """Repeats and sizes, drawn from the samples of a stored run."""
    stored.copy("first", stage.folder, scored=True)
    printed = stage.command(
        "experiment", "repeats", "first", "--runs", "4", "--samples", "2", "--out", "figures", "--json"
    )
    repeats = stage.python("repeats", "first", 4, samples=2)
    stage.alike([row["predicted"] for row in printed.json], [one.predicted for one in repeats.found])
    stage.command("experiment", "samples", "first", "--n", "2,3", "--runs", "5", "--out", "figures", "--json")
    stage.python("sample_sizes", "first", [2, 3], runs=5)
    stage.file("figures/sums-repeats.csv")
    stage.file("figures/sums-samples.csv")
    stage.tree("figures")
    stage.command("experiment", "repeats", "first", "--samples", "9")
    stage.command("experiment", "samples", "first", "--n", "2")
    stage.command("experiment", "repeats", "first", "--temperature", "1")
    stage.python("repeats", "first", 4, temperature=1.0)


def really_sampled(stage: Stage) -> None:
    """Repeats with seeds of their own, asked of a server, from both doors."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(50))
    words = ["experiment", "repeats", "--real", "--data", "sums.jsonl", "--id-key", "id", "--no-canary", "--runs", "2"]
    stage.command(*words, "--samples", "2", "--base-url", server.base_url, "--out", "by-command", "--json")
    posted = stage.requests(server)
    stage.file("by-command/run-02/manifest.json")
    stage.tree("by-command")
    since = len(server.requests)
    stage.python(
        "repeats", [], 2, real=True, data="sums.jsonl", id_key="id", canary=False, samples=2,
        base_url=server.base_url, out="by-python",
    )  # fmt: skip
    stage.alike(posted, stage.requests(server, since, record=False))


def sizes_really_sampled(stage: Stage) -> None:
    """A run of each size."""
    write_sums(stage.folder, 2)
    server = stage.server("server", solving(50))
    words = ["experiment", "samples", "--real", "--data", "sums.jsonl", "--id-key", "id", "--no-canary", "--n", "2,3"]
    stage.command(*words, "--base-url", server.base_url, "--out", "out", "--json")
    stage.requests(server)


SCENES: tuple[Scene, ...] = (drawn_from_a_run, really_sampled, sizes_really_sampled)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
