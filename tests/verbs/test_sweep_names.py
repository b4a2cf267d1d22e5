"""Two benchmarks of one sweep from one card: `compare` and `report` know them by their names in the sweep.

For: harness.runs.sweep_cell, harness.reports.scored, harness.verbs.sweep.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness as reasoning_harness
from harness.asking.watching import Watcher
from harness.core.errors import UsageError
from harness.testing import FakeServer, Request, Step, completion, models
from harness.verbs.sweep import cells
from harness.verbs.sweep import whole as sweeps
from tests.reports.run_folders import write_run
from tests.system.command import harness

TOPICS = [
    {"name": "sums", "benchmark": "demo", "filter": ["topic=arithmetic"]},
    {"name": "facts", "benchmark": "demo", "filter": ["topic=fact"]},
]
LENGTHS = [
    {"name": "short", "benchmark": "demo", "max_tokens": 64},
    {"name": "long", "benchmark": "demo", "max_tokens": 512},
]
SWEEP = Path("results/s")


def answer(request: Request) -> Iterator[Step]:
    return iter([models("m50", "m80")]) if request.method == "GET" else completion(r"\boxed{3}", tokens=5)


def carry_out(benchmarks: list[dict[str, Any]]) -> list[Path]:
    """Run a sweep of two models on two benchmarks; returns the cells, both benchmarks of m50 before those of m80."""
    with FakeServer(answer) as server:
        run = {"base_url": server.base_url, "fingerprint": False, "canary": False, "limit": 3, "samples": 2}
        content = {"models": ["m50", "m80"], "benchmarks": benchmarks, "run": run, "score": {"workers": 1}}
        Path("s.yaml").write_text(json.dumps(content))
        sweeps.carry_out(cells.plan_of("s.yaml", {}, {}), Watcher())
    return [SWEEP / f"{model}+{entry['name']}" for model in ("m50", "m80") for entry in benchmarks]


def compared(*runs: Path, **options: Any) -> list[tuple[str, str, str]]:
    """(benchmark, run, baseline) of each comparison."""
    pairs = reasoning_harness.compare(runs, **options)
    return [(pair.decision.paired.benchmark, pair.decision.run, pair.decision.baseline) for pair in pairs]


@pytest.mark.parametrize("benchmarks", [TOPICS, LENGTHS], ids=["other questions", "other settings"])
def test_two_benchmarks_of_one_card_are_compared_each_with_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmarks: list[dict[str, Any]]
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = carry_out(benchmarks)
    names = [entry["name"] for entry in benchmarks]
    assert compared(*cells) == [(name, f"m80+{name}", f"m50+{name}") for name in names]
    report = reasoning_harness.report([SWEEP])
    (paired,) = (one for one in report.tables if "Paired" in one.title)
    assert [(row[0], row[1].partition(" [")[0]) for row in paired.rows] == [
        (f"m80+{name}", name) for name in sorted(names)
    ]
    assert not any("not compared" in note for note in paired.notes)
    assert {*names} <= {*report.tables[0].columns}
    # The same by the other door; the heading of each comparison is the name in the sweep.
    done = harness(tmp_path, "compare", *map(str, cells))
    assert [f"{name}: candidate m80+{name} " in done.out for name in names] == [True, True], done.out
    assert "differs: max_tokens" not in done.out
    # Wrong twin: two different benchmarks of the sweep are never compared, whatever questions they share.
    with pytest.raises(UsageError, match=f"shares no benchmark.*m50.{names[0]} holds {names[0]}"):
        compared(cells[0], cells[3])


def test_a_run_outside_the_sweep_is_compared_under_the_card_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = carry_out(TOPICS)
    with FakeServer(answer) as server:
        options = {"model": "m50", "base_url": server.base_url, "canary": False, "fingerprint": False, "samples": 2}
        alone = reasoning_harness.run(["demo"], out=tmp_path / "alone", **options).path
    reasoning_harness.score(alone, workers=1)
    assert compared(alone, cells[0], cells[1]) == [("demo", "m50+sums", "alone"), ("demo", "m50+facts", "alone")]
    assert compared(*cells[:2], alone) == [("sums", "alone", "m50+sums")], "the first benchmark that shares questions"
    # A sweep that names the same questions otherwise.
    elsewhere = Path("results/t/m80+arithmetic")
    shutil.copytree(cells[2], elsewhere)
    record = Path("results/t/cells/m80+arithmetic.json")
    record.parent.mkdir()
    shutil.copy(SWEEP / "cells/m80+sums.json", record)
    assert compared(cells[0], elsewhere) == [("sums", "m80+arithmetic", "m50+sums")]
    # Wrong twin: a run of another card has nothing to do with them.
    write_run(tmp_path / "other", benchmarks=[("aime24", 6, 4)])
    with pytest.raises(UsageError, match="shares no benchmark"):
        compared(cells[0], tmp_path / "other")
