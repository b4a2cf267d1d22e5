"""The journal on a disk that fills, lies, fails or goes away: it stops, says why, and keeps what it acknowledged."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import StoreError
from harness.core.records import Key
from harness.runs import (
    BenchmarkFolder,
    Journal,
    Manifest,
    RunFolder,
    RunLog,
    grades,
    journal,
    questions,
    read_samples,
    record,
)
from tests.patience import PATIENCE_SECONDS
from tests.runs.recorded import BENCHMARK, intact_lines, intact_texts, sample

Write = Callable[[int, bytes], int]


class Disk:
    """Stands in for os.write on one file: takes at most `step` bytes a call, and fails once `room` is used up."""

    def __init__(
        self, path: Path, *, room: int | None = None, step: int | None = None, error: int = errno.ENOSPC
    ) -> None:
        self.path, self.room, self.step, self.error = path, room, step, error
        self._write: Write = os.write

    def write(self, descriptor: int, data: bytes) -> int:
        if not os.path.samestat(os.fstat(descriptor), self.path.stat()):
            return self._write(descriptor, data)
        size = len(data) if self.step is None else min(self.step, len(data))
        if self.room is not None:
            size = min(size, self.room)
            if size == 0:
                raise OSError(self.error, os.strerror(self.error))
            self.room -= size
        return self._write(descriptor, bytes(data[:size]))


def test_short_writes_are_carried_on(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal.open(folder) as opened:
        monkeypatch.setattr(os, "write", Disk(folder.samples, step=7).write)
        for i in range(5):
            opened.append(sample(f"q{i}"))
    assert len(intact_lines(folder.samples.read_bytes())) == 5


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_disk_that_fills_at_any_byte_leaves_whole_records_only(
    folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    lines = [record.encode(sample(f"q{i}")) for i in range(3)]
    length = sum(map(len, lines))
    for room in range(1, length, 13):
        shutil.rmtree(folder.path, ignore_errors=True)
        opened = Journal.open(folder)
        disk = Disk(folder.samples, room=room, step=50, error=error)
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", disk.write)
            futures = []
            with contextlib.suppress(StoreError):  # the writer may have met the full disk before the last is queued
                for i in range(3):
                    futures.append(opened.append(sample(f"q{i}")))
            with pytest.raises(StoreError, match=r"cannot write .*samples\.jsonl: .* MB free") as stopped:
                opened.close()
        assert stopped.value.exit_code == 3
        acknowledged = {Key(f"q{i}", 0) for i, future in enumerate(futures) if future.exception(10) is None}
        data = folder.samples.read_bytes()
        assert data == b"".join(lines)[: len(data)]
        assert data.endswith(b"\n") or not data
        assert acknowledged <= set(intact_texts(data))
        with Journal.open(folder) as again:
            assert again.report.torn_tail == 0


def test_a_stopped_journal_says_so_and_refuses_more(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Journal.open(folder)
    opened.append(sample("a")).result(10)
    monkeypatch.setattr(os, "write", Disk(folder.samples, room=0).write)
    with pytest.raises(StoreError, match="No space left"):
        opened.append(sample("b")).result(10)
    monkeypatch.undo()
    for attempt in (lambda: opened.append(sample("c")), opened.flush, opened.close):
        with pytest.raises(StoreError, match="No space left"):
            attempt()
    opened.close()
    assert opened.keys == {Key("a", 0)}
    assert set(intact_texts(folder.samples.read_bytes())) == {Key("a", 0)}


def test_an_error_inside_a_with_block_is_not_hidden_by_the_journals(
    folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def use() -> None:
        with Journal.open(folder) as opened:
            monkeypatch.setattr(os, "write", Disk(folder.samples, room=0).write)
            opened.append(sample("a"))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use()


def test_a_failing_sync_is_final_and_nothing_of_it_is_acknowledged(
    folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []

    def fail(descriptor: int) -> None:
        syncs.append(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    opened = Journal.open(folder)
    opened.append(sample("safe")).result(10)
    monkeypatch.setattr(journal, "_sync_data", fail)
    with pytest.raises(StoreError, match="Input/output error"):
        opened.append(sample("lost")).result(10)
    with pytest.raises(StoreError):
        opened.close()
    assert len(syncs) == 1
    assert set(intact_texts(folder.samples.read_bytes())) == {Key("safe", 0)}, "memory is not disk: it is owed again"


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_sync_that_the_kernel_fails_is_final(tmp_path: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path; from tests.runs.recorded import *; from harness.runs import *\n"
        "journal = Journal.open(BenchmarkFolder(BENCHMARK, Path(sys.argv[1])))\n"
        "for i in range(3):\n"
        "    try: journal.append(sample(f'q{i}')).result()\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
    )
    traced = ["strace", "-f", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=fdatasync"]
    traced += ["-e", "inject=fdatasync:error=EIO:when=1", "-P", str(tmp_path / "b" / "samples.jsonl")]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "samples.jsonl").write_bytes(record.encode(sample("old")))
    command = [*traced, sys.executable, "-c", program, str(tmp_path / "b"), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "ptrace" in done.stderr:
        pytest.skip(f"this machine does not let strace trace: {done.stderr.splitlines()[0]}")
    assert "StoreError: cannot write" in done.stderr, "the very first sync, at the opening, failed"
    assert set(intact_texts((tmp_path / "b" / "samples.jsonl").read_bytes())) == {Key("old", 0)}


def test_a_full_disk_keeps_every_acknowledged_sample(mount_small_disk: Callable[[str], Path]) -> None:
    folder = RunFolder(mount_small_disk("size=64k") / "run").benchmark(BENCHMARK)
    opened = Journal.open(folder)
    futures = []
    with contextlib.suppress(StoreError):  # the writer may meet the full disk before the last sample is handed over
        for i in range(40):
            futures.append(opened.append(sample(f"q{i}", 0, "x" * 3000)))
    with pytest.raises(StoreError, match=r"No space left on device \(0 MB free at"):
        opened.close()
    acknowledged = {Key(f"q{i}", 0) for i, future in enumerate(futures) if future.exception(10) is None}
    data = folder.samples.read_bytes()
    assert data.endswith(b"\n")
    assert acknowledged <= set(intact_texts(data))
    assert len(intact_texts(data)) > 5


def test_a_read_only_place_fails_before_the_first_request(mount_small_disk: Callable[[str], Path]) -> None:
    disk = mount_small_disk("size=64k")
    folder = RunFolder(disk / "run").benchmark(BENCHMARK)
    Journal.open(folder).close()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(StoreError, match=r"Read-only file system"):
        Journal.open(folder)
    with pytest.raises(StoreError, match=r"Read-only file system"):
        Journal.open(RunFolder(disk / "another").benchmark(BENCHMARK))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_without_permission_fails_before_the_first_request(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match=r"Permission denied"):
        Journal.open(RunFolder(tmp_path / "run").benchmark(BENCHMARK))
    tmp_path.chmod(0o700)


def test_a_file_in_place_of_the_folder_fails_before_the_first_request(folder: BenchmarkFolder) -> None:
    folder.path.parent.mkdir()
    folder.path.write_text("a file")
    with pytest.raises(StoreError, match="cannot write"):
        Journal.open(folder)


@pytest.mark.parametrize("size", [0, 10, -1])
def test_a_file_cut_by_another_program_stops_the_run(folder: BenchmarkFolder, size: int) -> None:
    opened = Journal.open(folder)
    opened.append(sample("a")).result(10)
    before = folder.samples.stat().st_size
    os.truncate(folder.samples, size if size >= 0 else before + size)
    with pytest.raises(StoreError, match="changed by another program"):
        opened.append(sample("b")).result(10)
    with pytest.raises(StoreError):
        opened.close()


def test_a_file_lengthened_by_another_program_stops_the_run(folder: BenchmarkFolder) -> None:
    opened = Journal.open(folder)
    with folder.samples.open("ab") as file:
        file.write(b"half a line")
    with pytest.raises(StoreError, match="changed by another program"):
        opened.append(sample("b")).result(10)
    with pytest.raises(StoreError):
        opened.close()


@pytest.mark.parametrize("more", [True, False])
def test_a_file_renamed_by_another_program_stops_the_run(folder: BenchmarkFolder, more: bool) -> None:
    opened = Journal.open(folder)
    opened.append(sample("a")).result(10)
    folder.samples.rename(folder.path / "elsewhere")
    if more:
        with pytest.raises(StoreError, match="removed or renamed"):
            opened.append(sample("b")).result(10)
    with pytest.raises(StoreError, match="removed or renamed"):
        opened.close()


def test_a_folder_removed_during_a_run_stops_it(folder: BenchmarkFolder) -> None:
    opened = Journal.open(folder)
    shutil.rmtree(folder.path)
    with pytest.raises(StoreError, match="was removed"):
        opened.append(sample("a")).result(10)
    with pytest.raises(StoreError):
        opened.close()


@pytest.mark.parametrize("name", ["samples"])
def test_a_planted_link_is_not_written_through(folder: BenchmarkFolder, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder.create()
    folder.samples.write_bytes(b"torn")
    path: Path = getattr(folder, name)
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    with pytest.raises(StoreError, match="symbolic link"):
        Journal.open(folder)
    assert victim.read_bytes() == b"precious"


def test_a_planted_link_in_place_of_the_folder_is_refused(folder: BenchmarkFolder, tmp_path: Path) -> None:
    folder.path.parent.mkdir()
    folder.path.symlink_to(tmp_path)
    with pytest.raises(StoreError, match="symbolic link"):
        Journal.open(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_planted_pipe_is_refused_without_waiting(folder: BenchmarkFolder) -> None:
    folder.create()
    os.mkfifo(folder.samples)
    with pytest.raises(StoreError, match="not a regular file"):
        Journal.open(folder)


def test_threads_may_share_a_journal(folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as opened:

        def work(name: str) -> None:
            for i in range(200):
                opened.append(sample(name, i))

        threads = [threading.Thread(target=work, args=(f"q{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        opened.flush()
        assert len(opened.keys) == 800
    reader = read_samples(folder)
    assert len(list(reader)) == 800
    assert reader.report.n_duplicates == 0


def test_a_bug_in_the_writer_fails_its_samples_and_strands_nobody(folder: BenchmarkFolder) -> None:
    opened = Journal.open(folder)
    future = opened.append(sample("a", endpoint=object()))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="stopped"):
        future.result(10)
    with pytest.raises(StoreError, match="stopped"):
        opened.close()


def test_a_reader_beside_a_running_writer_sees_whole_samples_only(folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as opened:
        opened.append(sample("a")).result(10)
        with folder.samples.open("ab") as file:
            file.write(b'{"benchmark":"half')
        reader = read_samples(folder)
        assert [record.question_id for record in reader] == ["a"]
        assert reader.report.torn_tail == 18
        os.truncate(folder.samples, folder.samples.stat().st_size - 18)


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_neither_read_nor_waited_for(run: RunFolder, plant: Callable[[Path], None]) -> None:
    folder = run.benchmark(BENCHMARK)
    folder.create()
    for path in (folder.samples, folder.questions, folder.grades, run.manifest):
        plant(path)
    for attempt in (
        lambda: list(read_samples(folder)),
        lambda: questions.read(folder),
        lambda: grades.read(folder),
        lambda: Manifest.load(run),
        lambda: Journal.open(folder),
    ):
        with pytest.raises(StoreError, match=r"cannot read .*: not a regular file|is not a regular file|cannot write"):
            attempt()


def test_the_names_of_a_new_file_and_of_its_folder_are_on_disk_before_the_first_sample(
    folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, int]] = []

    def noted(descriptor: int) -> None:
        state = os.fstat(descriptor)
        if stat.S_ISDIR(state.st_mode):
            synced.append((state.st_dev, state.st_ino))

    monkeypatch.setattr(os, "fsync", noted)
    with Journal.open(folder):
        for path in (folder.path, folder.path.parent):
            assert (path.stat().st_dev, path.stat().st_ino) in synced


def test_a_journal_that_cannot_be_opened_leaves_no_file_open(folder: BenchmarkFolder, tmp_path: Path) -> None:
    folder.create()
    folder.samples.symlink_to(tmp_path / "elsewhere")
    before = len([*Path("/dev/fd").iterdir()])
    for _ in range(3):
        with pytest.raises(StoreError, match="symbolic link"):
            Journal.open(folder)
    assert len([*Path("/dev/fd").iterdir()]) == before


def test_a_journal_that_nobody_closes_does_not_keep_the_process(folder: BenchmarkFolder) -> None:
    with Journal.open(folder):
        threads = [thread for thread in threading.enumerate() if thread.name == f"journal {folder.path.name}"]
        assert [thread.daemon for thread in threads] == [True]


def test_a_damaged_line_is_named_in_the_log(run: RunFolder, folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as opened:
        for name in "abc":
            opened.append(sample(name))
    lines = folder.samples.read_bytes().splitlines(keepends=True)
    folder.samples.write_bytes(lines[0] + lines[1].replace(b"so 42", b"so 43") + lines[2])
    with RunLog(run) as log:
        Journal.open(folder, log=log).close()
    (event,) = [json.loads(line) for line in run.log.read_text().splitlines()]
    assert (event["event"], event["line"], event["offset"]) == ("damaged_line", 2, len(lines[0]))
    assert event["reason"]


def test_a_file_whose_state_cannot_be_asked_stops_the_run(
    folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Journal.open(folder)

    def fail(_: int) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", fail)
        error = opened.append(sample("a")).exception(PATIENCE_SECONDS)
    assert isinstance(error, StoreError)
    assert f"cannot write {folder.samples}: Input/output error" in str(error)
    with pytest.raises(StoreError, match="Input/output error"):
        opened.close()


def test_samples_that_wait_behind_a_failing_write_fail_too(
    folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Journal.open(folder)
    begun, queued, real = threading.Event(), threading.Event(), os.write

    def write(descriptor: int, data: bytes) -> int:
        if not os.path.samestat(os.fstat(descriptor), folder.samples.stat()):
            return real(descriptor, data)
        begun.set()
        queued.wait(PATIENCE_SECONDS)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    futures = [opened.append(sample("a"))]
    assert begun.wait(PATIENCE_SECONDS)
    futures += [opened.append(sample("b")), opened.append(sample("c"))]
    queued.set()
    for future in futures:
        assert isinstance(future.exception(PATIENCE_SECONDS), StoreError)
    with pytest.raises(StoreError, match="No space left"):
        opened.close()


def test_of_a_failing_write_the_lines_before_the_torn_one_stay_and_none_behind_it(
    folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal.open(folder) as opened:
        opened.append(sample("a")).result(PATIENCE_SECONDS)
    first = folder.samples.read_bytes()
    opened = Journal.open(folder)
    opened.append(sample("b")).result(PATIENCE_SECONDS)
    before = folder.samples.read_bytes()
    # The window of the sync before is still open, so that both lines are written together, the long one first.
    monkeypatch.setattr(os, "write", Disk(folder.samples, room=3 * len(first)).write)
    opened.append(sample("long", text="x" * 5 * len(first)))
    with contextlib.suppress(StoreError):
        opened.append(sample("c"))
    with pytest.raises(StoreError, match="No space left"):
        opened.close()
    assert folder.samples.read_bytes() == before


def test_the_disk_is_told_to_begin_with_each_megabyte_once(
    folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "posix_fadvise"):
        pytest.skip("this system has no posix_fadvise")
    told: list[tuple[int, int]] = []

    def noted(descriptor: int, offset: int, length: int, _advice: int) -> None:
        if length:  # readers advise on whole files, of length 0
            assert os.path.samestat(os.fstat(descriptor), folder.samples.stat())
            told.append((offset, length))

    monkeypatch.setattr(os, "posix_fadvise", noted)
    with Journal.open(folder) as opened:
        for n_bytes in (700_000, 700_000, 1_200_000, 700_000):
            opened.append(sample(f"q{n_bytes}", text="x" * n_bytes)).result(PATIENCE_SECONDS)
    (line,) = [length for length in map(len, folder.samples.read_bytes().splitlines(keepends=True)) if length > 10**6]
    smaller = (folder.samples.stat().st_size - line) // 3
    assert told == [(2 * smaller, line)]
