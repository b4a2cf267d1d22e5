"""One writer a run, whoever dies and wherever it stands; where a run's files stand, whatever it is called.

For: harness.runs.layout.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import InUse, StoreError
from harness.core.files import replacing
from harness.runs import Journal, Manifest, RunFolder, RunLog, locked
from harness.runs.layout import holder_of
from harness.runs.lock import hold
from tests.runs.recorded import BENCHMARK

HOLD = """
import sys
from harness.runs import RunFolder, locked
from harness.core.errors import InUse, StoreError
try:
    with locked(RunFolder(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
except StoreError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@contextmanager
def holder(run: RunFolder) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the run."""
    command = [sys.executable, "-c", HOLD, str(run.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        try:
            yield child
        finally:
            child.kill()


def test_a_second_process_is_refused_at_once_and_told_who_holds_the_run(run: RunFolder) -> None:
    assert holder_of(run) is None
    with holder(run) as first:
        told = holder_of(run)
        assert told is not None
        assert (told.pid, told.host) == (first.pid, socket.gethostname())
        second = subprocess.run(
            [sys.executable, "-c", HOLD, str(run.path)], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert second.returncode == 3
        assert f"in use by process {first.pid} on {socket.gethostname()} since 20" in second.stdout
        first.kill()
        first.wait()
        assert holder_of(run) is None, "a killed one holds nothing"
    run.lock.write_text("no holder")
    with locked(run), run.lock.open("w"):
        assert holder_of(run) is not None, "it holds the run, and has not written its name yet"


def test_a_run_that_another_process_is_making_is_no_damaged_one(run: RunFolder) -> None:
    """Its manifest may come last, as that of a reading of another tool's outputs does."""
    samples = run.benchmark("b").samples
    with holder(run) as maker:
        for look in (RunFolder.open, Manifest.load):
            with pytest.raises(InUse, match=f"not a complete run yet: process {maker.pid} on .* is creating it"):
                look(run)
            samples.parent.mkdir(exist_ok=True)
            samples.write_bytes(b"{}\n")
    with pytest.raises(StoreError, match=r"contains samples but no manifest\.json"):
        RunFolder.open(run)


def test_who_asks_for_the_holder_keeps_nobody_from_the_run(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    run.create()
    run.lock.write_text("x" * 2000)
    with run.lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        monkeypatch.setattr("harness.runs.lock.time.sleep", lambda _seconds: file.close())
        with locked(run):
            assert json.loads(run.lock.read_text())["pid"] == os.getpid(), "nothing of a longer former text stays"


def descriptors_of(path: Path) -> list[int]:
    """The descriptors of this process that are open on the file."""
    state = path.stat()
    numbers = []
    for number in Path("/dev/fd").iterdir():
        try:
            status = os.fstat(int(number.name))
        except OSError:  # the descriptor that lists them
            continue
        if (status.st_dev, status.st_ino) == (state.st_dev, state.st_ino):
            numbers.append(int(number.name))
    return numbers


def test_a_copied_descriptor_does_not_hold_the_run_beyond_the_release(run: RunFolder) -> None:
    """As a forked process has it."""
    with locked(run):
        copy = os.dup(*descriptors_of(run.lock))
    with locked(run):
        assert holder_of(run) is not None
    os.close(copy)
    assert descriptors_of(run.lock) == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_an_unfinished_lock_is_returned(run: RunFolder, error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    kind = StoreError if isinstance(error, OSError) else KeyboardInterrupt
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        with pytest.raises(kind) as caught, locked(run):
            pass
    if kind is StoreError:
        assert str(caught.value).startswith(f"cannot write {run.lock}: No space left on device")
    assert descriptors_of(run.lock) == []
    with locked(run):
        pass


def test_another_lock_failure_is_not_a_missing_lock(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    number = errno.EIO
    with pytest.raises(StoreError, match=r"cannot write .*run\.lock: Input/output error"), locked(run):
        pass
    number = errno.ENOLCK  # a file system that has no locks, as some network ones
    with hold(run) as ours:
        assert "without working locks" in ours.warning
        assert holder_of(run) is None


def test_a_held_run_has_its_folder_and_another_purposes_folder_is_refused(run: RunFolder, quick_path: Path) -> None:
    with hold(run) as ours:
        assert (run.path.is_dir(), ours.manifest, ours.warning) == (True, None, "")
    other = RunFolder(quick_path / "photos")
    other.path.mkdir()
    (other.path / "cat.jpg").write_text("")
    with pytest.raises(StoreError, match=r"cat\.jpg"), hold(other):
        pass


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
    with pytest.raises(StoreError, match=r"has no manifest\.json"):
        RunFolder.open(run.path)
    Manifest(harness_version="1", created="now", model="m").save(run)
    assert RunFolder.open(str(run.path)).path == run.path
    with pytest.raises(StoreError, match=r"there is no run at .*/rnu\. Did you mean run\?"):
        RunFolder.open(run.path.with_name("rnu"))


def test_a_run_of_outputs_has_their_name_and_another_run_its_own(run: RunFolder) -> None:
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
        with locked(run):
            assert not any(path.exists() for path in left)
            assert all(path.exists() for path in files)
    assert folder.scores.read_bytes() == b"new", "a scorer was writing it, and no lock was its own"


def test_the_run_folder_itself_may_be_a_link_to_another_disk(quick_path: Path) -> None:
    (quick_path / "elsewhere").mkdir()
    (quick_path / "run").symlink_to(quick_path / "elsewhere")
    run = RunFolder(quick_path / "run")
    with locked(run), RunLog(run) as log, Journal.open(run.benchmark(BENCHMARK), log=log):
        Manifest(harness_version="1", created="now", model="m").save(run)
    assert Manifest.load(RunFolder.open(quick_path / "elsewhere")).benchmarks == {}


def test_nothing_is_removed_through_a_planted_link(run: RunFolder, tmp_path: Path) -> None:
    precious = tmp_path / f".manifest.json.{'a' * 16}.tmp"
    precious.write_text("x")
    run.create()
    (run.path / "link").symlink_to(tmp_path)
    with locked(run):
        assert precious.exists()
