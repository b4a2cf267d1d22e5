"""`harness sweep` and its function: the requests of their runs, and their numbers."""

from __future__ import annotations

import json
from typing import Any

from tests.conftest import CHECKOUT
from tests.pins import reading
from tests.pins.server import judging, solving
from tests.pins.stage import Scene, Stage, write_sums


def write_sweep(stage: Stage, name: str, **content: Any) -> str:
    """A sweep's file; JSON is YAML."""
    write_sums(stage.folder, 3)
    common = {"run": {"id_key": "id", "canary": False, "concurrency": 2}, "score": {"workers": 1}}
    (stage.folder / name).write_text(json.dumps(common | content), "utf-8")
    return name


def sweep(stage: Stage) -> None:
    """A server that runs, two samplings, by both doors."""
    server = stage.server("server", solving(60))
    file = write_sweep(
        stage,
        "s.yaml",
        models=["pinned"],
        table={"base": "cool"},
        benchmarks=[{"data": "sums.jsonl", "samples": 2}],
        sampling=[{"name": "cool", "temperature": 0.3}, {"name": "hot", "temperature": 1.0, "top_k": 20}],
        run={"id_key": "id", "canary": False, "concurrency": 2, "base_url": server.base_url},
    )
    stage.command("sweep", file, "--dry-run")
    stage.requests(server)
    stage.command("sweep", file, "--out", "by-command", "--json", read=reading.swept)
    stage.requests(server)
    stage.python("sweep", file, out="by-python")
    stage.requests(server)


def judged(stage: Stage) -> None:
    """A suite's file with options above it, and a judge."""
    server, judge = stage.server("server", solving(60, kinds=True)), stage.server("judge", judging())
    benchmarks = [{"data": "sums.jsonl", "samples": 1}]
    suite = {"title": "sums", "aggregate": "mean"}
    file = write_sweep(stage, "suite.yaml", suite=suite, models=["pinned"], benchmarks=benchmarks)
    words = ["--base-url", server.base_url, "--temperature", "0.2"]
    words += ["--judge", f"pinned@{judge.base_url}", "--out", "out", "--json"]
    stage.command("sweep", file, *words, read=reading.swept)
    stage.requests(server, judge)


def no_sweep(stage: Stage) -> None:
    """Files that are no sweep, by both doors; the suites that ship."""
    shipped = {path.stem for path in (CHECKOUT / "datasets" / "suites").glob("*.yaml")}
    stage.command("sweep", "--list", read=lambda text: {"every suite": shipped <= {*reading.first_words(text)}})
    for content in ({"modles": ["m"]}, {"models": []}, {"sampling": [{"temprature": 1}]}, {"run": {"temperature": -1}}):
        file = write_sweep(stage, "wrong.yaml", **({"models": ["m"], "benchmarks": ["demo"]} | content))
        stage.command("sweep", file, "--dry-run")
        stage.python("sweep", file)


SCENES: tuple[Scene, ...] = (sweep, judged, no_sweep)
