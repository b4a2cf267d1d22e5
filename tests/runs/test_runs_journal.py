"""The journal: what counts after a resume, what is missing, and what a disk that fails leaves.

Its life as a state machine plays appends, cuts, damage, kills, repeats and more samples in any order; the other tests
are of what that cannot see.

For: harness.runs, harness.runs.journal, harness.runs.line_file.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import tempfile
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.core.errors import StoreError
from harness.core.records import MAX_RECORD_BYTES, Key, Sample, Timing
from harness.runs import (
    BenchmarkFolder,
    Journal,
    JournalReport,
    Manifest,
    RunFolder,
    RunLog,
    grades,
    questions,
    read_samples,
    record,
)
from harness.runs.journal import read_state
from tests.budget import examples, share_of
from tests.patience import PATIENCE_SECONDS
from tests.runs.recorded import BENCHMARK, intact_lines, intact_texts, sample

BOM = b"\xef\xbb\xbf"


def store(folder: BenchmarkFolder, *samples: Sample) -> bytes:
    """Append and close; returns what the file then holds."""
    with Journal.open(folder) as journal:
        for entry in samples:
            journal.append(entry)
    return folder.samples.read_bytes()


def twenty() -> list[Sample]:
    """Twenty samples of five questions, with text that a careless reader splits."""
    return [sample(f"q{i % 5}", i // 5, f"\u2028{i}\x85\x00\ud800\f") for i in range(20)]


def fails(error: int) -> Callable[..., int]:
    """A system call that fails."""

    def fail(*_: object) -> int:
        raise OSError(error, os.strerror(error))

    return fail


# ---- what is stored


def test_a_sample_is_synced_within_a_second(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, however many samples came: those that follow a sync get another."""
    synced = threading.Event()
    n_synced: list[int] = []

    def noted(descriptor: int) -> None:
        n_synced.append(os.fstat(descriptor).st_size)
        synced.set()

    monkeypatch.setattr("harness.runs.journal.SYNC_SECONDS", 0.05)
    with Journal.open(folder) as journal:
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, noted)
        for size in (2, 3):
            for _ in range(2):
                journal.append(sample("q", size + 10 * len(n_synced) + _))
            assert synced.wait(PATIENCE_SECONDS)
            synced.clear()
        n_before = len(n_synced)
        monkeypatch.setattr("harness.runs.journal.SYNC_SECONDS", PATIENCE_SECONDS)
        journal.append(sample("last"))
    assert n_synced[n_before:] == [folder.samples.stat().st_size]


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
        assert len(opened.keys) == 800
    report = JournalReport()
    assert len([*read_samples(folder, report=report)]) == 800
    assert report.n_duplicates == 0


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (sample("big", 0, "x" * MAX_RECORD_BYTES), "a record can have at most"),
        (sample("endless", timing=Timing(started=math.inf, total=1.0)), "not a finite number"),
    ],
)
def test_a_failed_write_refuses_only_its_own_sample(folder: BenchmarkFolder, refused: Sample, words: str) -> None:
    with Journal.open(folder) as journal:
        with pytest.raises(record.RecordRefused, match=words):
            journal.append(refused)
        journal.append(sample("small"))
        assert journal.keys == {Key("small", 0)}
    assert folder.samples.stat().st_size < 1000


def test_a_file_is_on_disk_before_the_first_sample(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[int, int]] = []

    def noted(descriptor: int) -> None:
        state = os.fstat(descriptor)
        synced.append((state.st_dev, state.st_ino))

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, noted)
    with Journal.open(folder):
        for path in (folder.samples, folder.path, folder.path.parent):
            assert (path.stat().st_dev, path.stat().st_ino) in synced


# ---- what is read


@pytest.mark.timeout(1800)  # it syncs at every byte: minutes where the disk is busy
def test_a_cut_at_every_byte_costs_the_torn_record_only(run: RunFolder) -> None:
    """What kill -9 leaves of an append: at every length of the file."""
    folder = BenchmarkFolder(BENCHMARK, run.path / "cut")
    folder.create()
    data = store(run.benchmark(BENCHMARK), *twenty()[:4])
    late = sample("late", 0, "appended after the repair")
    for cut in share_of(range(len(data) + 1)):
        folder.samples.write_bytes(data[:cut])
        intact = data[: data.rfind(b"\n", 0, cut) + 1]
        if data[cut : cut + 1] == b"\n":
            intact = data[: cut + 1]  # a record that lacks only its newline is whole
        report = JournalReport()
        assert {entry.key for entry in read_samples(folder, report=report)} == set(intact_texts(intact)), cut
        with Journal.open(folder) as journal:
            assert journal.keys == set(intact_texts(intact)), cut
            assert journal.report.torn_tail == report.torn_tail == max(0, cut - len(intact))
            journal.append(late)
        assert folder.samples.read_bytes() == intact + record.encode(late)


@pytest.mark.parametrize("n_chars", [10, 5_000, 300_000])
def test_a_torn_tail_that_is_cut_off_while_it_is_read_damages_no_line(folder: BenchmarkFolder, n_chars: int) -> None:
    """The reader holds it, or a part of it, when the next session cuts it off and writes on."""
    with Journal.open(folder) as journal:
        for index in range(3):
            journal.append(sample(sample_index=index))
    with folder.samples.open("ab") as file:
        file.write(record.encode(sample(sample_index=3, text="x" * n_chars))[:-9])
    report = JournalReport()
    reading = read_samples(folder, report=report)
    first = next(reading)
    with Journal.open(folder) as journal:
        for index in range(3, 9):
            journal.append(sample(sample_index=index, text="y" * n_chars))
    assert [each.sample_index for each in (first, *reading)] == [*range(9)]
    assert (report.damaged, report.torn_tail) == ([], 0)


def test_a_torn_tail_and_a_damaged_line_are_named_in_the_log(run: RunFolder, folder: BenchmarkFolder) -> None:
    lines = store(folder, *map(sample, "abc")).splitlines(keepends=True)
    folder.samples.write_bytes(lines[0] + lines[1].replace(b"so 42", b"so 43") + lines[2] + b'{"benchmark":"AIME')
    with RunLog(run) as log:
        Journal.open(folder, log=log).close()
        Journal.open(folder, log=log).close()
    torn, *damaged = [json.loads(line) for line in run.log.read_text().splitlines()]
    assert (torn["event"], torn["bytes"]) == ("torn_tail", 18)
    assert [(e["event"], e["line"], e["offset"]) for e in damaged] == [("damaged_line", 2, len(lines[0]))] * 2
    assert damaged[0]["reason"]


def test_foreign_lines_cost_nothing_but_themselves(folder: BenchmarkFolder) -> None:
    """Also a key longer than the head of a line in which it is searched."""
    foreign = [
        b'{"benchmark":"AIME 2024","question_id":"no checksum","sample_index":0}',
        b"\x00" * 4096,
        b"\xff\xfe",
        b"null",
        record.encode(sample("x", benchmark="other"))[:-1],
        BOM + record.encode(sample("a byte order mark amid the file"))[:-1],
    ]
    folder.create()
    good = [record.encode(sample("long " * 100 * i, i)) for i in range(len(foreign) + 1)]
    mixed = b"\n" + b"".join(line + bad + b"\n" for line, bad in zip(good, foreign, strict=False)) + good[-1]
    folder.samples.write_bytes(mixed)
    report = JournalReport()
    assert [entry.sample_index for entry in read_samples(folder, report=report)] == [*range(7)]
    assert [line.number for line in report.damaged] == [3, 5, 7, 9, 11, 13]
    for _ in range(2):
        with Journal.open(folder) as journal:
            assert len(journal.keys) == 7
            assert journal.report.damaged == report.damaged
    assert folder.samples.read_bytes() == mixed, "the file is never rewritten"


@pytest.mark.parametrize("n_lines", [1, 2, 5])
def test_spans_side_by_side_give_every_line_once(folder: BenchmarkFolder, n_lines: int) -> None:
    lines = [record.encode(sample("q", n, "x" * n)) for n in range(n_lines)]
    folder.create()
    folder.samples.write_bytes(b"".join(lines))
    starts = [sum(map(len, lines[:n])) for n in range(n_lines + 1)]
    for cut in range(starts[-1] + 1):
        first = [found.sample_index for found in read_samples(folder, span=(0, cut))]
        second = [found.sample_index for found in read_samples(folder, span=(cut, starts[-1]))]
        assert first == [n for n in range(n_lines) if starts[n] < cut]
        assert [*first, *second] == [*range(n_lines)]


def test_what_an_editor_adds_is_read_with_a_warning(run: RunFolder, folder: BenchmarkFolder) -> None:
    edited = BOM + store(folder, *twenty(), twenty()[3]).replace(b"\n", b"\r\n") + b"\r\n"
    folder.samples.write_bytes(edited)
    report = JournalReport()
    assert [*read_samples(folder, report=report)] == twenty()
    assert (report.damaged, len(report.warnings), report.n_duplicates) == ([], 2, 1)
    for index in range(2):
        with RunLog(run) as log, Journal.open(folder, log=log) as journal:
            assert journal.keys >= {entry.key for entry in twenty()}
            assert journal.report.warnings == report.warnings
            journal.append(sample("after", index))
    assert folder.samples.read_bytes().startswith(edited)
    assert folder.samples.read_bytes().endswith(record.encode(sample("after", 1)))
    assert "CRLF" in run.log.read_text()


def test_a_newer_schema_is_refused_with_its_version(folder: BenchmarkFolder) -> None:
    store(folder, sample("a"), sample("b", schema=7))
    for attempt in (lambda: list(read_samples(folder)), lambda: Journal.open(folder)):
        with pytest.raises(
            StoreError,
            match=r"samples.jsonl, line 2: schema 7, but this version of the harness supports only schemas up to 1",
        ):
            attempt()


def test_a_line_over_the_bound_is_passed_over_without_being_held(folder: BenchmarkFolder) -> None:
    """A sparse line of 400 MiB."""
    store(folder, sample("a"))
    with folder.samples.open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) + 400 * 1024**2)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + record.encode(sample("b")))
    tracemalloc.start()
    report = JournalReport()
    assert [one.question_id for one in read_samples(folder, report=report)] == ["a", "b"]
    assert [line.number for line in report.damaged] == [2]
    with Journal.open(folder) as journal:
        assert journal.keys == {Key("a", 0), Key("b", 0)}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300 * 1024**2


# ---- disks and programs that misbehave


def test_a_failing_sync_is_final(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def fail(_: int) -> None:
        failed.set()
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("harness.runs.journal.SYNC_SECONDS", 0.01)
    opened = Journal.open(folder)
    monkeypatch.setattr(os, "fdatasync", fail)
    opened.append(sample("safe"))
    assert failed.wait(PATIENCE_SECONDS)
    monkeypatch.undo()
    for attempt in (opened.sync, lambda: opened.append(sample("late")), opened.close):
        with pytest.raises(StoreError, match="Input/output error"):
            attempt()
    opened.close()
    assert set(intact_texts(folder.samples.read_bytes())) == {Key("safe", 0)}


def test_an_error_in_a_with_block_is_not_hidden(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def use() -> None:
        with Journal.open(folder):
            monkeypatch.setattr(os, "fdatasync", fails(errno.EIO))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use()
    monkeypatch.undo()
    opened = Journal.open(folder)
    monkeypatch.setattr(os, "fdatasync", fails(errno.EIO))
    with pytest.raises(StoreError, match="Input/output error"):
        opened.close()


CHANGES: dict[str, tuple[Callable[[BenchmarkFolder], object], str]] = {
    "cut": (lambda folder: os.truncate(folder.samples, 10), "changed by another program"),
    "lengthened": (lambda folder: os.truncate(folder.samples, 1000), "changed by another program"),
    "renamed": (lambda folder: folder.samples.rename(folder.path / "elsewhere"), "removed or renamed"),
    "removed": (lambda folder: shutil.rmtree(folder.path), "was removed"),
}


@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_changed_by_another_program_stops_the_run(folder: BenchmarkFolder, change: str, more: bool) -> None:
    act, words = CHANGES[change]
    opened = Journal.open(folder)
    opened.append(sample("a"))
    act(folder)
    if more:
        with pytest.raises(StoreError, match=words):
            opened.append(sample("b"))
    with pytest.raises(StoreError, match=words):
        opened.close()


def test_a_journal_that_cannot_be_read_is_no_empty_one(folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as opened:
        opened.append(sample("a"))
    with folder.samples.open("ab") as unreadable, pytest.raises(StoreError, match=r"cannot read .*Bad file descriptor"):
        read_state(unreadable.fileno(), folder)


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


MEMORY = Path("/dev/shm")


class JournalLife(RuleBasedStateMachine):
    """`self.safe`: what was acknowledged and has since not been destroyed by us; the journal may not lose it."""

    def __init__(self) -> None:
        super().__init__()
        parent = tempfile.mkdtemp(prefix="harness-state-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        self.folder = BenchmarkFolder(BENCHMARK, Path(parent) / "b")
        self.safe: dict[Key, str | None] = {}
        self.samples_a_question = 1
        self.journal: Journal | None = None
        self.serial = 0

    def teardown(self) -> None:
        if self.journal is not None:
            self.journal.close()
        shutil.rmtree(self.folder.path.parent)

    @property
    def data(self) -> bytes:
        return self.folder.samples.read_bytes()

    def missing(self) -> list[Key]:
        assert self.journal is not None
        expected = [Key(f"q{q}", i) for q in range(4) for i in range(self.samples_a_question)]
        return [key for key in expected if key not in self.journal.keys]

    @initialize()
    def begin(self) -> None:
        self.resume()

    @precondition(lambda self: self.journal is None)
    @rule()
    def resume(self) -> None:
        before = self.data if self.folder.samples.exists() else b""
        self.journal = Journal.open(self.folder)
        assert self.journal.keys == set(intact_texts(before))
        whole, tail = before[: before.rfind(b"\n") + 1], before[before.rfind(b"\n") + 1 :]
        kept = tail + b"\n" if intact_lines(tail) else b""
        assert self.data == whole + kept, "only a torn tail is taken away"

    @precondition(lambda self: self.journal is not None)
    @rule(n=st.integers(1, 5), text=st.text(st.characters(exclude_categories=()), max_size=20))
    def append_what_is_missing(self, n: int, text: str) -> None:
        assert self.journal is not None
        for key in self.missing()[:n]:
            self.serial += 1
            record = sample(
                *key, text=f"{self.serial} {text}".encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            )
            self.journal.append(record)
            self.safe[key] = record.text

    @rule()
    def raise_n(self) -> None:
        self.samples_a_question += 1

    @precondition(lambda self: self.journal is not None)
    @rule()
    def close(self) -> None:
        assert self.journal is not None
        self.journal.close()
        self.journal = None

    @precondition(lambda self: self.journal is not None and self.missing())
    @rule(data=st.data())
    def lose_power_with_unsynced_records(self, data: st.DataObject) -> None:
        """Records that were not synced reach the disk in part."""
        assert self.journal is not None
        durable = len(self.data)
        for key in self.missing()[:3]:
            self.journal.append(sample(*key, text="not synced"))
        self.close()
        os.truncate(self.folder.samples, data.draw(st.integers(durable, len(self.data))))

    @precondition(lambda self: self.journal is None)
    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        """The end of the file is lost, acknowledged records with it."""
        os.truncate(self.folder.samples, data.draw(st.integers(0, len(self.data))))
        self.safe = {key: text for key, text in self.safe.items() if key in intact_texts(self.data)}

    @precondition(lambda self: self.journal is None and intact_lines(self.data))
    @rule(data=st.data())
    def duplicate_a_line(self, data: st.DataObject) -> None:
        line = data.draw(st.sampled_from(self.data.splitlines(keepends=True)))
        with self.folder.samples.open("ab") as file:
            file.write(line if self.data.endswith(b"\n") else b"\n" + line)

    @precondition(lambda self: self.journal is None and self.data)
    @rule(data=st.data())
    def damage_a_byte(self, data: st.DataObject) -> None:
        """What the disk did behind our back is found by reading everything, as `score` does; then it is missing."""
        content = bytearray(self.data)
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.sampled_from([1, 2, 4, 64, 128]))
        self.folder.samples.write_bytes(content)
        list(read_samples(self.folder))
        left = intact_texts(self.data)
        self.safe = {key: text for key, text in self.safe.items() if left.get(key) == text}

    @invariant()
    def everything_acknowledged_is_read_back_once(self) -> None:
        if not self.folder.samples.exists():
            return
        report = JournalReport()
        read = {record.key: record.text for record in read_samples(self.folder, report=report)}
        assert read == intact_texts(self.data)
        assert self.safe.items() <= read.items()
        assert report.n_duplicates == len(intact_lines(self.data)) - len(read)


JournalLife.TestCase.settings = settings(
    max_examples=examples(25),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
test_a_journal_keeps_its_promises_whatever_happens = pytest.mark.fuzz(JournalLife.TestCase)
