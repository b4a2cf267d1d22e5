"""A start that was killed at any system call goes on: every command that begins a run, from every state that it leaves.

A folder that was copied while its run went on opens and goes on, too, or says why not.

For: harness.runs.lock, harness.runs.journal.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.core.errors import StoreError
from harness.core.records import Key
from harness.runs import BenchmarkRecord, Journal, Manifest, Plan, RunFolder, locked, record
from harness.runs.lock import hold
from harness.runs.merging import merge
from harness.testing import FakeServer
from tests.budget import rounds, thinned
from tests.faults.able import able, sums
from tests.faults.snapshots import State, every_state, put, shape
from tests.runs.recorded import BENCHMARK, intact_lines, intact_texts, sample
from tests.system.command import harness

SAMPLED = ["--id-key", "id", "--no-canary", "--out", "out"]
ASKED = ["--data", "sums.jsonl", *SAMPLED, "--model", "test-model", "--no-fingerprint"]

Words = Callable[[Path, str], Sequence[str]]
"""The command line, of the folder where it runs and the server's address."""


def run(_folder: Path, url: str) -> list[str]:
    return ["run", *ASKED, "--samples", "2", "--base-url", url]


def shard(folder: Path, url: str) -> list[str]:
    return [*run(folder, url), "--shard", "1/2"]


def sweep(folder: Path, url: str) -> list[str]:
    common = {"id_key": "id", "canary": False, "fingerprint": False, "base_url": url}
    content = {
        "models": ["test-model"],
        "run": common,
        "score": {"workers": 1},
        "benchmarks": [{"data": "sums.jsonl", "samples": 2}],
        "sampling": [{"name": "cool", "temperature": 0.3}, {"name": "hot", "temperature": 1.0}],
    }
    (folder / "sweep.yaml").write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    return ["sweep", "sweep.yaml", "--out", "out"]


def texts(folder: Path) -> dict[str, dict[Key, str | None]]:
    """By journal, the text of each sample."""
    return {str(path.relative_to(folder)): intact_texts(path.read_bytes()) for path in folder.rglob("samples.jsonl")}


def before_the_manifest(state: State) -> bool:
    """A journal was made, and its run has no manifest yet, or no questions."""
    journals = [Path(name) for name in state if name.endswith("samples.jsonl")]
    return any(
        str(journal.parents[1] / "manifest.json") not in state or str(journal.parent / "questions.jsonl") not in state
        for journal in journals
    )


def telling(states: Sequence[State]) -> list[State]:
    """Some states of those within a start, and some others, each of another shape; drawn anew each time."""
    by_shape = {shape(state): state for state in reversed(states)}
    early = [state for state in by_shape.values() if before_the_manifest(state)]
    others = [state for state in by_shape.values() if not before_the_manifest(state)]
    assert early, "the window between the journal and the manifest was seen"
    return [*random.sample(early, min(len(early), rounds(2))), *random.sample(others, min(len(others), rounds(1)))]


@pytest.mark.slow
@pytest.mark.fuzz
@pytest.mark.parametrize("words", thinned([run, shard, sweep]), ids=lambda words: words.__name__)
def test_a_start_killed_at_any_call_goes_on(words: Words, tmp_path: Path) -> None:
    sums(tmp_path, 2)
    out = tmp_path / "out"
    with FakeServer(able(0.5)) as server:
        with every_state(out) as states:
            quiet = harness(tmp_path, *words(tmp_path, server.base_url))
        expected = texts(out)
        assert expected
        assert all(expected.values())
        for state in telling(states):
            put(state, out)
            again = harness(tmp_path, *words(tmp_path, server.base_url))
            assert again.code == quiet.code, (shape(state), again.err)
            assert texts(out) == expected, shape(state)
            assert not list(out.rglob(".*.tmp")), shape(state)


def test_a_resume_that_dies_at_any_call_loses_and_doubles_nothing_and_can_be_resumed(quick_path: Path) -> None:
    """A torn record to repair, a manifest to extend, samples to append; at every call that changes the disk."""
    folder = RunFolder(quick_path / "run")
    of_first, of_second = (BenchmarkRecord(identity={"model": "m"}, plan=Plan(samples=n)) for n in (3, 1))
    Manifest.start(folder, model="m", harness_version="1").extend(BENCHMARK, of_first).save(folder)
    files = folder.benchmark(BENCHMARK)
    files.create()
    old = [record.encode(sample("old", index)) for index in range(3)]
    files.samples.write_bytes(b"".join(old)[:-9])
    acknowledged: list[tuple[int, Key]] = [(0, Key("old", 0)), (0, Key("old", 1))]  # from which state on, and which
    with every_state(folder.path) as states, locked(folder):
        Manifest.load(folder).extend("second", of_second).save(folder)
        with Journal.open(files) as journal:
            for index in range(3):
                journal.append(sample("new", index, "t" * 400_000 if index == 1 else "t"))
                acknowledged.append((len(states), Key("new", index)))
    assert len(states) >= 7
    for number, state in enumerate(states):
        put(state, folder.path)
        lines = intact_lines(files.samples.read_bytes())
        on_disk = [Key(line["question_id"], line["sample_index"]) for line in lines]
        assert len(on_disk) == len(set(on_disk)), number
        assert {key for since, key in acknowledged if since <= number} <= set(on_disk), number
        assert BENCHMARK in Manifest.load(folder).benchmarks, number
        with locked(folder), Journal.open(files) as again:
            assert again.keys == set(on_disk), number
            again.append(sample("late"))
        assert len(intact_lines(files.samples.read_bytes())) == len(on_disk) + 1, "nothing is glued"
        assert not list(folder.path.glob(".*.tmp")), number


def test_what_a_killed_start_leaves_is_no_run_yet_and_a_run_takes_it(quick_path: Path) -> None:
    folder = RunFolder(quick_path / "run")
    folder.benchmark("b").path.mkdir(parents=True)
    folder.benchmark("b").samples.touch()
    assert Manifest.find(folder) is None
    with hold(folder) as taken:
        assert taken.manifest is None
        assert taken.warning == ""
        with pytest.raises(StoreError, match="in use by"), hold(folder):
            pass
    with pytest.raises(StoreError, match="has no manifest"):
        RunFolder.open(folder.path)


def test_samples_without_a_manifest_are_refused_by_every_way_in(quick_path: Path) -> None:
    folder = RunFolder(quick_path / "run")
    folder.benchmark("b").path.mkdir(parents=True)
    folder.benchmark("b").samples.write_bytes(b"x")
    for way in (
        Manifest.find,
        Manifest.load,
        lambda run: hold(run).__enter__(),
        lambda run: merge([run], RunFolder("o")),
    ):
        with pytest.raises(StoreError, match=r"samples but no manifest\.json"):
            way(folder)


def copied(states: Sequence[State], chance: random.Random) -> State:
    """A copy that took its time: each file as it stood at some moment after that of the file before it."""
    names = sorted({name for state in states for name in state})
    chance.shuffle(names)
    moments = sorted(chance.randrange(len(states)) for _ in names)
    return {
        name: states[moment][name]
        for name, moment in zip(names, moments, strict=True)
        if name in states[moment] and not name.endswith(".tmp")
    }


@pytest.mark.slow
@pytest.mark.fuzz
def test_a_folder_copied_while_the_run_went_on_opens_or_says_why_not(tmp_path: Path) -> None:
    sums(tmp_path, 4)
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    with FakeServer(able(0.5)) as server:
        words = [*run(tmp_path, server.base_url), "--concurrency", "1"]
        with every_state(tmp_path / "out") as states:
            assert harness(tmp_path, *words).code == 0
        whole = texts(tmp_path / "out")
        for number in range(rounds(5)):
            put(copied(states, chance), tmp_path / "out")
            hint = f"seed {seed}, copy {number}"
            for reader in ("doctor", "status", "score", "report"):
                # 1: a copy without any grade has no score to report.
                assert harness(tmp_path, reader, "out").code in ((0, 1, 3) if reader == "report" else (0, 3)), hint
            done = harness(tmp_path, *words)
            if done.code == 3:
                assert "manifest" in done.err, hint
            else:
                assert done.code == 0, (hint, done.err)
                assert texts(tmp_path / "out") == whole, hint


def test_status_of_a_copied_run_does_not_name_the_process_that_holds_the_original(quick_path: Path) -> None:
    first = RunFolder(quick_path / "run")
    with locked(first):
        Manifest.start(first, model="m", harness_version="1").save(first)
        shutil.copytree(first.path, quick_path / "copy")
        assert f"process {os.getpid()}" in harness(quick_path, "status", "run").out
        of_copy = harness(quick_path, "status", "copy")
    assert of_copy.code == 0
    assert "process" not in of_copy.out
