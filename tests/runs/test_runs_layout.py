"""Where a run's files stand, whatever it is called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import StoreError
from harness.core.files import replacing
from harness.runs import BenchmarkRecord, Journal, Manifest, Plan, RunFolder, RunLock, RunLog
from tests.runs.recorded import BENCHMARK

HOSTILE = ["../../x", "/etc/passwd", "-rf", "CON", "x" * 300, "a\0b", "..", ".", "", "a/b", "\n", "‮"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_below_its_folder(run: RunFolder, name: str) -> None:
    folder = run.benchmark(name)
    assert folder.path.parent == run.path
    assert folder.path.resolve().parent == run.path.resolve()
    assert RunFolder.default(name, Path("results")).path.parent == Path("results").absolute()
    with Journal.open(folder):
        assert folder.samples.is_file()
    assert [p.name for p in run.path.iterdir()] == [folder.path.name]


@given(st.text(st.characters(exclude_categories=())))
def test_any_name_stays_below_its_folder(name: str) -> None:
    run = RunFolder("/r")
    assert Path(os.path.normpath(run.benchmark(name).path)).parent == Path("/r")


def test_the_folder_of_a_benchmark_keeps_its_letters(run: RunFolder) -> None:
    assert run.benchmark("练习50").path == run.path / "练习50"
    assert RunFolder.default("模型", run.path).path == run.path / "模型"


def test_a_relative_folder_is_resolved_once(quick_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(quick_path)
    run = RunFolder("somewhere")
    monkeypatch.chdir("/")
    assert run.path == quick_path / "somewhere"


def test_a_run_is_opened_by_its_folder_and_what_is_none_is_said_to_be_none(run: RunFolder) -> None:
    run.create()
    with pytest.raises(StoreError, match=r"holds no manifest\.json"):
        RunFolder.open(run.path)
    Manifest(harness_version="1", created="now", model="m").save(run)
    assert RunFolder.open(str(run.path)).path == run.path
    with pytest.raises(StoreError, match=r"there is no run at .*/rnu\. Did you mean run\?"):
        RunFolder.open(run.path.with_name("rnu"))


def test_a_run_of_outputs_is_called_by_their_name_and_another_run_by_its_own(run: RunFolder) -> None:
    scored = RunFolder(run.path.with_name("rows.csv.scored"))
    assert scored.source == scored.path
    rows = run.path.with_name("rows.csv")
    rows.write_text("id,response")
    assert scored.source == rows
    rows.unlink()
    other = RunFolder(rows)
    other.create()
    Manifest(harness_version="1", created="now", model="m").save(other)
    assert scored.source == scored.path


def test_names_are_kept_in_the_manifest(run: RunFolder) -> None:
    manifest = Manifest(harness_version="1", created="now", model="m")
    for name in [BENCHMARK, "../x", "aime 2024"]:
        manifest = manifest.extend(name, BenchmarkRecord(identity={}, plan=Plan(samples=1)))
    manifest.save(run)
    assert list(Manifest.load(run).benchmarks) == [BENCHMARK, "../x", "aime 2024"]
    assert len({run.benchmark(name).path.name.lower() for name in Manifest.load(run).benchmarks}) == 3


def test_what_interrupted_writes_left_is_removed_at_the_next_start(run: RunFolder) -> None:
    folder = run.benchmark(BENCHMARK)
    folder.create()
    left = [run.path / f".manifest.json.{'a' * 16}.tmp", folder.path / f".grades.jsonl.{'b' * 16}.tmp"]
    for path in left:
        path.write_text("x")
    files = [folder.path / "grades.jsonl", folder.path / ".notes.tmp"]
    for path in files:
        path.write_text("x")
    with replacing(folder.scores) as scores:
        scores.write(b"new")
        with RunLock(run):
            assert not any(path.exists() for path in left)
            assert all(path.exists() for path in files)
    assert folder.scores.read_bytes() == b"new", "a scorer was writing it, and no lock was its own"


def test_the_run_folder_itself_may_be_a_link_to_another_disk(quick_path: Path) -> None:
    (quick_path / "elsewhere").mkdir()
    (quick_path / "run").symlink_to(quick_path / "elsewhere")
    run = RunFolder(quick_path / "run")
    with RunLock(run), RunLog(run) as log, Journal.open(run.benchmark(BENCHMARK), log=log):
        Manifest(harness_version="1", created="now", model="m").save(run)
    assert Manifest.load(RunFolder.open(quick_path / "elsewhere")).benchmarks == {}


def test_nothing_is_removed_through_a_planted_link(run: RunFolder, tmp_path: Path) -> None:
    precious = tmp_path / f".manifest.json.{'a' * 16}.tmp"
    precious.write_text("x")
    run.create()
    (run.path / "link").symlink_to(tmp_path)
    with RunLock(run):
        assert precious.exists()
