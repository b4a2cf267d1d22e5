"""What a reader makes of a file that another writes, exchanges, cuts or removes at that moment: the old state or the
new, or one sentence that somebody writes. A damaged run beside others is left out with a warning that names its file;
runs that an older version left behind, and that no pin resumes, are resumed and scored.

Writer and reader are two threads that may change places at every call of `os`, so each meets the other between any two
of its steps.

For: harness.runs.layout, harness.runs.line_file, harness.runs.lock, harness.runs.questions,
server_launchers.lifecycle.servers, server_launchers.lifecycle.log_file.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import harness as reasoning_harness
from harness.core.errors import InUse
from harness.runs import BenchmarkRecord, Manifest, Plan, RunFolder, questions
from harness.runs.line_file import append_line, read_appended
from harness.runs.lock import hold
from harness.testing import FakeServer
from server_launchers.lifecycle import log_file, servers
from tests.budget import examples
from tests.reports.run_folders import write_run
from tests.runs.recorded import IDENTITY, NAME, asked
from tests.server_launchers.test_state_folder import gone
from tests.system.command import harness
from tests.system.old_runs import FOLDERS, answer, words

CALLS = ("open", "replace", "unlink", "stat", "lstat", "fstat", "mkdir", "rmdir", "scandir", "ftruncate", "pwrite")
"""Calls of `os` around which the two may change places."""

Meeting = tuple[Callable[[int], object], Callable[[], str]]
"""The writer, by the number of its turn, and the reader, which says what it saw that never was; empty: all is well."""


def exchanged_state(folder: Path, _: ExitStack) -> Meeting:
    path, state = folder / "forged.json", gone()
    servers.write(path, state)
    return lambda _: servers.write(path, state), lambda: "" if servers.read(path) else "no server"


def turned_log(folder: Path, closing: ExitStack) -> Meeting:
    log = log_file.LogFile(folder / "s.log", [])
    closing.callback(log.close)
    for n in range(40):
        log.feed(b"before %d\n" % n)

    def read() -> str:
        return "" if len(servers.log_tail(folder / "s.log")) > 20 else "the end of the log is lost"

    return lambda n: log.feed(b"line %d\n" % n * 60), read


def removed_lines(folder: Path, _: ExitStack) -> Meeting:
    path = folder / "lines.jsonl"

    def write(n: int) -> None:
        append_line(path, b"{}\n")
        if n % 3 == 2:
            path.unlink()

    return write, lambda: "" if len(read_appended(path, dict, "")) <= 3 else "more lines than were there"


def removed_run(folder: Path, _: ExitStack) -> Meeting:
    samples = folder / "run" / "b" / "samples.jsonl"

    def write(_: int) -> None:
        samples.parent.mkdir(parents=True)
        samples.write_bytes(b"{}\n")
        shutil.rmtree(samples.parent)

    return write, lambda: str(RunFolder(folder / "run").has_samples() not in (True, False) or "")


def growing_run(folder: Path, _: ExitStack) -> Meeting:
    """Sessions that add questions, as `SamplingSession.adopt` does: the manifest first. Every fifth is a new run's."""
    current: list[RunFolder] = []

    def write(n: int) -> None:
        run, every = RunFolder(folder / str(n // 5)), asked(2 + n % 5)
        with hold(run) as held:
            current[:] = [run]
            manifest = held.manifest or Manifest(harness_version="0", created="", model="m")
            plan = Plan(samples=2, question_ids=[each.question_id for each in every])
            settings = {questions.DIGEST: questions.seal(every)}
            manifest.extend(NAME, BenchmarkRecord(identity=IDENTITY, plan=plan, settings=settings)).save(run)
            questions.write(run.benchmark(NAME), every)

    def read() -> str:
        with contextlib.suppress(InUse):
            for run in [*current]:
                record = Manifest.load(RunFolder.open(run.path)).benchmarks[NAME]
                planned = questions.read_planned(run.benchmark(NAME), record)
                return "" if [each.question_id for each in planned] == record.plan.question_ids else "other questions"
        return ""

    return write, read


@pytest.fixture
def changing_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the threads change places often, and count as processes."""

    def yielding(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **keywords: Any) -> Any:
            result = call(*args, **keywords)
            if random.random() < 0.3:
                time.sleep(random.random() * 0.001)
            return result

        return called

    for name in CALLS:
        monkeypatch.setattr(os, name, yielding(getattr(os, name)))
    monkeypatch.setattr(os, "getpid", threading.get_native_id)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.setattr(log_file, "LOG_BYTES", 2000)


@pytest.mark.usefixtures("changing_places")
@pytest.mark.parametrize(
    "meeting",
    [exchanged_state, turned_log, removed_lines, removed_run, growing_run],
)
def test_a_reader_sees_the_old_state_or_the_new(tmp_path: Path, meeting: Callable[[Path, ExitStack], Meeting]) -> None:
    with ExitStack() as closing, ThreadPoolExecutor(1) as other:
        write, read = meeting(tmp_path, closing)
        wrote = other.submit(lambda: [write(n) for n in range(examples(400))])
        seen = {read()}
        while not wrote.done():
            seen.add(read())
        wrote.result()
    assert seen == {""}


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
    for line in COMMANDS:
        told = harness(folder, *line.split()).err
        assert ["results/b/manifest.json" in told, "Traceback" in told] == [True, False]


def test_python_warns_too(results: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = damaged(results, tmp_path, "manifest.json")
    built = reasoning_harness.report(folder / "results")
    assert [run.label for run in built.runs] == ["a", "c"]
    (record,) = caplog.records
    assert "results/b/manifest.json" in record.getMessage()


PINNED = {"card", "own-file", "completions"}
"""By `tests/pins/scenes/score.py`."""


@pytest.mark.parametrize("old", [path for path in sorted(FOLDERS.glob("*/*")) if path.name not in PINNED], ids=str)
def test_an_old_run_is_resumed_by_the_command_that_began_it(tmp_path: Path, old: Path) -> None:
    shutil.copytree(old, tmp_path / "run")
    (samples,) = (tmp_path / "run").glob("*/samples.jsonl")
    before = samples.read_bytes()

    with FakeServer(answer) as server:
        done = harness(tmp_path, *words(old.name, server.base_url, "run"))
        n_asked = sum(request.method == "POST" for request in server.requests)

    assert done.code == 0, done.err
    after = samples.read_bytes()
    records = [json.loads(line) for line in after.splitlines()]
    assert after.startswith(before)
    assert n_asked == len(records) - len(before.splitlines()) > 0
    assert len({(record["question_id"], record["sample_index"]) for record in records}) == len(records)
    assert harness(tmp_path, "score", "run").code == 0
    assert harness(tmp_path, *words(old.name, server.base_url, "run"), "--temperature", "0.123").code == 3
