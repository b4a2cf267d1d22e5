"""A sweep over the requests in flight: its load curve, and what is kept off its frontier.

For: harness.sweeps.load_curve, harness.sweeps.plan, harness.sweeps.table, harness.scoring.load.
"""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.sweeps.cells import plan_of
from harness.testing import END, HEAD, FakeServer, Pause, Request, Said, Step, chunk, serving
from tests.faults.able import sums
from tests.system.command import harness


class Overloaded:
    """A model that is always right; with so many requests in flight its answers are empty, and faster."""

    def __init__(self, limit: int) -> None:
        self.limit, self.in_flight, self.lock = limit, 0, threading.Lock()

    def answer(self, request: Request) -> Iterator[Step]:
        number = int(request.json["messages"][-1]["content"].split()[2])
        with self.lock:
            self.in_flight += 1
            n = self.in_flight
        text = "so" if n >= self.limit else rf"\boxed{{{number + 1}}}"
        yield HEAD
        yield Pause(0.01)
        for event in Said(text, 12).events():
            yield chunk(event)
            yield Pause(0.0005 if n >= self.limit else 0.002)
        with self.lock:
            self.in_flight -= 1
        yield END


def swept(folder: Path, limit: int, *more: str, **content: Any) -> tuple[Any, list[dict[str, str]]]:
    """The end of a sweep at 1, 2 and 6 in flight, and the rows of its table.csv."""
    sums(folder, 12)
    run = {"id_key": "id", "canary": False, "fingerprint": False}
    file = {"benchmarks": [{"data": "sums.jsonl", "samples": 2}], "concurrency": [6, 1, 2], "run": run, **content}
    (folder / "s.yaml").write_text(json.dumps(file))
    with FakeServer(serving(Overloaded(limit).answer)) as server:
        done = harness(folder, "sweep", "s.yaml", "--base-url", server.base_url, "--out", "out", *more)
    return done, list(csv.DictReader((folder / "out/table.csv").read_text("utf-8").splitlines()))


def test_a_load_that_drops_answers_is_less_accurate_and_not_on_the_frontier(tmp_path: Path) -> None:
    done, rows = swept(tmp_path, 4, gpus=2)
    assert done.code == 0, done.err
    assert [row["load_concurrency"] for row in rows] == ["6", "1", "2"]
    for row in rows:
        assert float(row["load_tokens_per_s_value"]) > 0
        assert float(row["load_first_token_p50"]) <= float(row["load_first_token_p99"]) < float(row["load_total_p99"])
    shown = [line.split(" | ") for line in (tmp_path / "out/table.md").read_text("utf-8").splitlines() if " | " in line]
    assert shown[0][:5] == ["| in flight", "accuracy %", "tokens in / out", "tokens/s", "tokens/s/GPU"]
    assert {line[2] for line in shown[2:]} == {"9 / 12"}
    assert shown[2][-1] == "less accurate |"
    assert "yes |" in {line[-1] for line in shown[3:]} <= {"yes |", " |"}, "which of them depends on this machine"
    assert "*" in shown[2][1]
    drawn = list(csv.DictReader((tmp_path / "out/plots/load-curve.csv").read_text("utf-8").splitlines()))
    assert [(row["concurrency"], row["less_accurate"]) for row in drawn] == [
        ("6", "True"),
        ("1", "False"),
        ("2", "False"),
    ]
    assert [row["frontier"] == "True" for row in drawn] == [line[-1] == "yes |" for line in shown[2:]]
    per_gpu = [float(row["load_tokens_per_s_value"]) / 2 for row in rows]
    assert [float(row["tokens_per_s"]) for row in drawn] == pytest.approx(per_gpu)
    assert "6 is less accurate than the base" in (tmp_path / "out/table.html").read_text("utf-8")
    # Wrong twin: a server that keeps its answers.
    (tmp_path / "b").mkdir()
    swept(tmp_path / "b", 99)
    drawn = list(csv.DictReader((tmp_path / "b/out/plots/load-curve.csv").read_text("utf-8").splitlines()))
    assert {row["less_accurate"] for row in drawn} == {"False"}


def test_a_load_that_is_never_reached_has_no_speed_and_says_why(tmp_path: Path) -> None:
    done, rows = swept(tmp_path, 99, "--json", concurrency=[2, 40])
    assert done.code == 0, done.err
    assert [row["load_requests"] != "" for row in rows] == [True, False]
    small, large = json.loads(done.out)["cells"]
    assert small["load"]["total"].keys() == {"p50", "p90", "p99"}
    assert "load" not in large
    assert "too few requests in flight" in (tmp_path / "out/table.md").read_text("utf-8")


def test_each_load_is_compared_with_the_first_configuration_at_its_lowest_load(tmp_path: Path) -> None:
    content = {
        "models": ["a", "b"],
        "sampling": [{"name": "cool", "temperature": 0.6}, {"name": "hot", "temperature": 1.0}],
        "concurrency": [4, 1],
        "repeat": 2,
        "benchmarks": ["demo", "aime24"],
    }
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    plan = plan_of(str(tmp_path / "s.yaml"), {"base_url": "http://127.0.0.1:1/v1"}, {})
    assert len(plan.cells) == 2 * 2 * 2 * 2 * 2
    firsts = {f"a+cool-seed-1-concurrency-1+{name}" for name in ("demo", "aime24")}
    assert set(plan.base_cells.values()) == firsts
    assert len(plan.base_cells) == len(plan.cells) - 2
    assert all(base.endswith(cell.rpartition("+")[2]) for cell, base in plan.base_cells.items())
    configurations = [plan.configuration(cell) for cell in plan.cells]
    assert configurations[0] == "a cool seed 1 demo"
    assert len(set(configurations)) == len(plan.cells) / 2
    (tmp_path / "s.yaml").write_text(json.dumps(content | {"table": {"base": "b"}}))
    plan = plan_of(str(tmp_path / "s.yaml"), {"base_url": "http://127.0.0.1:1/v1"}, {})
    assert plan.base_cells["a+cool-seed-1-concurrency-4+demo"] == "b+cool-seed-1-concurrency-4+demo"
