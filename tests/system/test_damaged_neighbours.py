"""A damaged run beside others is left out with a warning that names its file; named itself, it is an error."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import harness as reasoning_harness
from tests.reports.run_folders import write_run
from tests.system.command import harness

DAMAGED = ("manifest.json", "demo/scores.json", "demo/questions.jsonl", "demo/grades.jsonl")
HARMLESS = ("demo/scores.json", "demo/grades.jsonl")
"""`status` needs none for the counts of samples, and shows no score that cannot be read: nothing to warn of."""

COMMANDS = ("report results", "status", "status results")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three runs of one benchmark."""
    folder = tmp_path_factory.mktemp("runs")
    for number, name in enumerate("abc"):
        write_run(folder / "results" / name, benchmarks=[("demo", 6, 4)], seed=number)
    return folder


def damaged(results: Path, to: Path, file: str) -> Path:
    """A copy of the results in which one file of the run `b`, the latest, is damaged."""
    shutil.copytree(results, to, dirs_exist_ok=True)
    path = to / "results" / "b" / file
    path.write_text("{\n")
    for part in (to / "results" / "b").rglob("*"):
        os.utime(part)
    return to


@pytest.mark.parametrize("file", DAMAGED)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_neighbor_is_left_out_with_a_warning(results: Path, tmp_path: Path, name: str, file: str) -> None:
    folder = damaged(results, tmp_path, file)
    told = harness(folder, *name.split())
    assert told.code == 0, told.err
    if name.startswith("report") or file not in HARMLESS:
        (warning,) = [line for line in told.err.splitlines() if f"results/b/{file}" in line]
        assert warning.startswith("harness: warning: ")
        assert "is skipped" in warning
        assert "results/b" not in told.out


def test_where_all_are_damaged_the_error_names_one(results: Path, tmp_path: Path) -> None:
    folder = damaged(results, tmp_path, "manifest.json")
    for run in "ac":
        shutil.rmtree(folder / "results" / run)
    for words in COMMANDS:
        told = harness(folder, *words.split()).err
        assert ["results/b/manifest.json" in told, "Traceback" in told] == [True, False]


def test_python_warns_too(results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = damaged(results, tmp_path, "manifest.json")
    built = reasoning_harness.report(folder / "results")
    assert [run.label for run in built.runs] == ["a", "c"]
    (record,) = caplog.records
    assert "results/b/manifest.json" in record.getMessage()
