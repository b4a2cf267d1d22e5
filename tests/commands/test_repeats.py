"""Repeats of a run, made by a sweep, and the two pictures of its error.

For: harness.reports.figures, harness.reports.plots.pictures, harness.sweeps.cells.
"""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from harness.testing import FakeServer
from tests.faults.able import able, sums
from tests.system.command import harness


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def test_a_sweep_repeats_each_cell_with_seeds_of_its_own_and_every_number_of_samples(tmp_path: Path) -> None:
    sums(tmp_path, 6)
    content = {
        "models": ["test-model"],
        "benchmarks": [{"data": "sums.jsonl"}],
        "repeat": 3,
        "samples": [2, 4],
        "run": {"id_key": "id", "canary": False},
    }
    (tmp_path / "s.yaml").write_text(json.dumps(content))
    with FakeServer(able(0.5)) as server:
        done = harness(tmp_path, "sweep", "s.yaml", "--base-url", server.base_url, "--no-fingerprint", "--out", "out")
        seeds = [request.json["seed"] for request in server.requests if request.method == "POST"]
    assert (done.code, "the points are not independent" in done.err) == (0, True), done.err
    assert len(seeds) == len(set(seeds)) + 3 * 6 * 2 == 3 * 6 * (2 + 4), "a seed's first two samples have its seeds"
    assert (tmp_path / "out" / "test-model+samples-4-seed-3+sums" / "manifest.json").exists()
    done = harness(tmp_path, "report", "out", "--plots", "figures")
    assert "sums-repeats: 3 repeats with 2 samples per question. Standard deviation" in done.out, done.err
    repeats, sizes = (rows_of(tmp_path / "figures" / f"sums-{name}.csv") for name in ("repeats", "samples"))
    assert [row["repeat"] for row in repeats] == [f"test-model+samples-2-seed-{seed}+sums" for seed in (1, 2, 3)]
    assert all(0 <= float(row["accuracy"]) <= 1 for row in repeats)
    assert [row["n"] for row in sizes] == ["2", "4"]
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    shown = [page.count(f'"title">{title}<') for title in ("Accuracy of repeated runs", "Error against samples")]
    assert shown == [1, 1]
    text = "".join(ET.parse(tmp_path / "figures" / "sums-repeats.svg").getroot().itertext())
    assert "predicted by the sampling error" in text
    assert (tmp_path / "figures" / "sums-samples.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        (
            {"samples": [2], "benchmarks": ["demo:4"]},
            (),
            "s.yaml:1: the file's `samples`, `repeat` and `concurrency` set this option for each run; omit samples",
        ),
        ({"repeat": 2}, ("--seed", "3"), "harness: --seed: the file sets this option for each repeat; omit it"),
        ({"samples": [2, 4]}, ("-n", "2"), "harness: --samples: the file sets this option for each repeat"),
        ({"repeat": 0}, (), "s.yaml:1: repeat: expected"),
        ({"repeat": 2, "benchmarks": [{"data": "sums.jsonl", "seed": 7}]}, (), "omit seed"),
        ({"samples": [2], "sampling": [{"temperature": 1.0, "samples": 4}]}, (), "omit samples"),
        ({"samples": [2, 2]}, (), "s.yaml:1: the same number is listed twice"),
        ({"concurrency": [1, 4, 1]}, (), "s.yaml:1: the same number is listed twice"),
        ({"concurrency": [1, 4]}, ("--concurrency", "2"), "harness: --concurrency: the file sets this option for each"),
        ({"concurrency": [1, 4], "benchmarks": [{"benchmark": "demo", "concurrency": 2}]}, (), "omit concurrency"),
    ],
)
def test_repeats_that_cannot_be_are_refused(
    tmp_path: Path, content: dict[str, object], words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "s.yaml").write_text(json.dumps({"models": ["m"], "benchmarks": ["demo"]} | content))
    done = harness(tmp_path, "sweep", "s.yaml", "--dry-run", *words)
    assert (done.code, said in done.err) == (2, True), done.err
