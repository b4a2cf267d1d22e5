"""Pins of `harness sweep` and `harness.sweep`: the cells, their bodies, runs, tables and `--json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.pins.server import judging, solving
from tests.pins.stage import Scene, Stage, name_of, write_sums


def write_sweep(stage: Stage, name: str, **content: Any) -> str:
    """A sweep's file; JSON is YAML."""
    write_sums(stage.folder, 3)
    common = {"run": {"id_key": "id", "canary": False, "concurrency": 2}, "score": {"workers": 1}}
    path = stage.folder / name
    path.write_text(json.dumps(common | content), "utf-8")
    return name


def two_temperatures(stage: Stage) -> None:
    """A server that runs, two samplings, from both doors."""
    server = stage.server("server", solving(60))
    content: dict[str, Any] = {
        "sampling": [{"name": "cool", "temperature": 0.3}, {"name": "hot", "temperature": 1.0, "top_k": 20}],
        "benchmarks": [{"data": "sums.jsonl", "samples": 2}],
        "table": {"base": "cool"},
        "run": {"id_key": "id", "canary": False, "concurrency": 2, "base_url": server.base_url},
    }
    file = write_sweep(stage, "s.yaml", models=["pinned"], **content)
    stage.command("sweep", file, "--dry-run")
    printed = stage.command("sweep", file, "--out", "by-command", "--no-progress", "--json")
    assert printed.code == 0, printed.err
    posted = stage.requests(server)
    stage.tree("by-command")
    for path in sorted((stage.folder / "by-command").glob("*.[cm][sd]*")):
        stage.file(f"by-command/{path.name}")
    manifests = [stage.file(path) for path in manifest_paths(stage, "by-command")]
    since = len(server.requests)
    stage.python("sweep", file, out="by-python")
    stage.alike(posted, stage.requests(server, since, record=False))
    stage.alike(manifests, [stage.content(path) for path in manifest_paths(stage, "by-python")])


def manifest_paths(stage: Stage, out: str) -> list[str]:
    """Of the runs of a sweep, in order."""
    return sorted(str(path.relative_to(stage.folder)) for path in (stage.folder / out).glob("*/manifest.json"))


def judged(stage: Stage) -> None:
    """A suite's file with options above it, and a judge."""
    server, judge = stage.server("server", solving(60, kinds=True)), stage.server("judge", judging())
    file = write_sweep(
        stage, "suite.yaml", suite={"title": "sums", "aggregate": "mean"}, models=["pinned"],
        benchmarks=[{"data": "sums.jsonl", "samples": 1}],
    )  # fmt: skip
    words = [
        "--base-url",
        server.base_url,
        "--temperature",
        "0.2",
        "--judge",
        "pinned",
        "--judge-base-url",
        judge.base_url,
    ]
    stage.command("sweep", file, *words, "--out", "out", "--no-progress", "--json")
    stage.requests(server)
    stage.requests(judge)
    stage.tree("out")


def refusals(stage: Stage) -> None:
    """Files that are no sweep, by both doors; the suites that ship."""
    stage.command("sweep", "--list")
    for content in ({"modles": ["m"]}, {"models": []}, {"sampling": [{"temprature": 1}]}, {"run": {"temperature": -1}}):
        file = write_sweep(stage, "wrong.yaml", **({"models": ["m"], "benchmarks": ["demo"]} | content))
        stage.command("sweep", file, "--dry-run", show_errors=True)
        stage.python("sweep", file)


SCENES: tuple[Scene, ...] = (two_temperatures, judged, refusals)


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
