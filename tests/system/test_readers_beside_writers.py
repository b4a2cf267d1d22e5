"""What a reader makes of a file that another writes, exchanges, cuts or removes at that moment: the old state or the
new, or one sentence that somebody writes.

Writer and reader are two threads that may change places at every call of `os`, so each meets the other between any two
of its steps.

For: harness.runs.layout, harness.runs.line_file, harness.runs.lock, harness.runs.questions,
server_launchers.lifecycle.servers, server_launchers.lifecycle.guard.
"""

from __future__ import annotations

import contextlib
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

from harness.core.errors import InUse
from harness.runs import BenchmarkRecord, Manifest, Plan, RunFolder, questions
from harness.runs.line_file import append_line, read_appended
from harness.runs.lock import hold
from server_launchers.lifecycle import guard, servers
from tests.budget import examples
from tests.runs.recorded import IDENTITY, NAME, asked
from tests.server_launchers.test_state_folder import gone

CALLS = ("open", "replace", "unlink", "stat", "lstat", "fstat", "mkdir", "rmdir", "scandir", "ftruncate", "pwrite")
"""Calls of `os` around which the two may change places."""

Meeting = tuple[Callable[[int], object], Callable[[], str]]
"""The writer, by the number of its turn, and the reader, which says what it saw that never was; empty: all is well."""


def exchanged_state(folder: Path, _: ExitStack) -> Meeting:
    path, state = folder / "forged.json", gone()
    servers.write(path, state)
    return lambda _: servers.write(path, state), lambda: "" if servers.read(path) else "no server"


def turned_log(folder: Path, closing: ExitStack) -> Meeting:
    log = guard.LogFile(folder / "s.log", [])
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
    monkeypatch.setattr(guard, "LOG_BYTES", 2000)


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
