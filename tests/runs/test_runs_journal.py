"""The journal as a resume sees it: what counts, what is owed, what is kept.

For: harness.runs, harness.runs.survey, harness.runs.survey, harness.runs.line_file.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from harness.core.errors import StoreError
from harness.core.limits import MAX_RECORD_BYTES
from harness.core.records import Key, Sample, Timing
from harness.runs import BenchmarkFolder, Journal, RunFolder, RunLog, journal, read_samples, record
from tests.budget import share_of
from tests.patience import PATIENCE_SECONDS
from tests.runs.recorded import BENCHMARK, intact_lines, intact_texts, sample

pytestmark = pytest.mark.slow


def store(folder: BenchmarkFolder, *samples: Sample) -> None:
    """Append and close."""
    with Journal.open(folder) as journal:
        for entry in samples:
            journal.append(entry)


def twenty() -> list[Sample]:
    """Twenty samples of five questions, with text that a careless reader splits."""
    return [sample(f"q{i % 5}", i // 5, f"\u2028{i}\x85\x00\ud800\f") for i in range(20)]


def test_a_new_journal_is_empty(folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as journal:
        assert journal.keys == set()
    assert list(read_samples(folder)) == []


def test_no_file_means_no_samples(folder: BenchmarkFolder) -> None:
    assert list(read_samples(folder)) == []
    assert not folder.path.exists()


def test_an_acknowledged_sample_is_on_disk_and_its_key_known(folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as journal:
        journal.append(sample("a", 1, "yes")).result(timeout=PATIENCE_SECONDS)
        assert intact_texts(folder.samples.read_bytes()) == {Key("a", 1): "yes"}
        assert journal.keys == {Key("a", 1)}


def test_flush_returns_when_everything_is_on_disk(folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as journal:
        futures = [journal.append(entry) for entry in twenty()]
        journal.flush()
        assert all(future.done() for future in futures)
        assert len(intact_lines(folder.samples.read_bytes())) == 20


class HeldSync:
    """Stands in for the sync of the data: counts, tells when it has begun, and ends when it is let go."""

    def __init__(self) -> None:
        self.count = 0
        self.begun, self.let_go = threading.Event(), threading.Event()

    def __call__(self, descriptor: int) -> None:
        self.count += 1
        self.begun.set()
        assert self.let_go.wait(30)


def test_nothing_is_acknowledged_before_its_sync(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal.open(folder) as opened:
        sync = HeldSync()
        monkeypatch.setattr(journal, "_sync_data", sync)
        future = opened.append(sample("a"))
        assert sync.begun.wait(30)
        assert not future.done()
        assert opened.keys == set()
        sync.let_go.set()
        future.result(30)
        assert opened.keys == {Key("a", 0)}


def test_one_sync_serves_all_that_arrived_during_the_last_one(
    folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal.open(folder) as opened:
        sync = HeldSync()
        monkeypatch.setattr(journal, "_sync_data", sync)
        opened.append(sample("first"))
        assert sync.begun.wait(30)
        futures = [opened.append(sample("more", i)) for i in range(500)]
        sync.let_go.set()
        for future in futures:
            future.result(30)
        assert sync.count == 2


def test_a_sync_waits_for_its_window_or_for_much_text(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "WINDOW_SECONDS", 10 * PATIENCE_SECONDS)
    monkeypatch.setattr(journal, "SYNC_BYTES", 1000)
    with Journal.open(folder) as opened:
        opened.append(sample("first")).result(PATIENCE_SECONDS)
        for number in range(2):
            little = opened.append(sample("little", number))
            with pytest.raises(TimeoutError):
                little.result(0.05)
            opened.append(sample("much", number, "x" * 1000)).result(PATIENCE_SECONDS)
            little.result(PATIENCE_SECONDS)


def test_a_disk_that_takes_no_bytes_is_named(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Journal.open(folder)
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda descriptor, data: 0)
        with pytest.raises(StoreError, match=r": the disk took no bytes \("):
            opened.append(sample()).result(PATIENCE_SECONDS)
    with pytest.raises(StoreError):
        opened.close()


def test_close_stores_what_was_appended(folder: BenchmarkFolder) -> None:
    store(folder, *twenty())
    assert list(read_samples(folder)) == twenty()


def test_a_closed_journal_takes_no_more_and_closes_twice(folder: BenchmarkFolder) -> None:
    journal = Journal.open(folder)
    journal.close()
    journal.close()
    with pytest.raises(StoreError, match="closed"):
        journal.append(sample())


def test_a_waiter_that_gives_up_does_not_stop_the_journal(folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as journal:
        assert not journal.append(sample("a")).cancel()
        journal.append(sample("b")).result(timeout=PATIENCE_SECONDS)
    assert len(intact_lines(folder.samples.read_bytes())) == 2


def test_a_resume_knows_the_keys_on_disk_and_appends_behind_them(folder: BenchmarkFolder) -> None:
    first, second = twenty()[:12], twenty()[12:]
    store(folder, *first)
    before = folder.samples.read_bytes()
    with Journal.open(folder) as journal:
        assert journal.keys == {entry.key for entry in first}
        assert journal.report.n_records == 12
        for entry in second:
            journal.append(entry)
    assert folder.samples.read_bytes().startswith(before)
    assert list(read_samples(folder)) == twenty()


def test_only_the_wanted_keys_are_read(folder: BenchmarkFolder) -> None:
    store(folder, *twenty())
    assert [entry.key for entry in read_samples(folder, keys={Key("q3", 0), Key("none", 0)})] == [Key("q3", 0)]


@pytest.mark.timeout(1800)  # it syncs at every byte: minutes where the disk is busy
def test_a_cut_at_every_byte_costs_the_torn_record_only(run: RunFolder) -> None:
    """What kill -9 leaves of an append: at every length of the file."""
    whole, folder = run.benchmark(BENCHMARK), BenchmarkFolder(BENCHMARK, run.path / "cut")
    folder.create()
    store(whole, *twenty()[:4])
    data = whole.samples.read_bytes()
    late = sample("late", 0, "appended after the repair")
    for cut in share_of(range(len(data) + 1)):
        folder.samples.write_bytes(data[:cut])
        intact = data[: data.rfind(b"\n", 0, cut) + 1]
        if data[cut : cut + 1] == b"\n":
            intact = data[: cut + 1]  # a record that lacks only its newline is whole
        with Journal.open(folder) as journal:
            assert journal.keys == set(intact_texts(intact)), cut
            assert journal.report.torn_tail == max(0, cut - len(intact))
            journal.append(late)
        assert folder.samples.read_bytes() == intact + record.encode(late)


def test_a_torn_tail_is_cut_off_and_named_in_the_log(run: RunFolder, folder: BenchmarkFolder) -> None:
    store(folder, sample("a"))
    with folder.samples.open("ab") as file:
        file.write(b'{"benchmark":"AIME')
    with RunLog(run) as log:
        Journal.open(folder, log=log).close()
        Journal.open(folder, log=log).close()
    events = [json.loads(line) for line in run.log.read_text().splitlines()]
    assert [(e["event"], e["bytes"]) for e in events] == [("torn_tail", 18)]


def test_damage_of_any_byte_costs_that_record_only(folder: BenchmarkFolder) -> None:
    store(folder, *[sample(f"q{i}", 0, "t") for i in range(3)])
    data = folder.samples.read_bytes()
    second = range(data.index(b"\n") + 1, data.index(b"\n", data.index(b"\n") + 1))
    for offset in second:
        folder.samples.write_bytes(data[:offset] + bytes([data[offset] ^ 4]) + data[offset + 1 :])
        reader = read_samples(folder)
        assert [entry.question_id for entry in reader] == ["q0", "q2"]
        assert [line.number for line in reader.report.damaged] == [2]
        assert reader.report.damaged[0].offset == second.start
        with Journal.open(folder) as journal:
            assert journal.keys == {Key("q0", 0), Key("q2", 0)}, "the damaged key is owed"


def test_a_resume_sees_damage_anywhere(folder: BenchmarkFolder) -> None:
    store(folder, *[sample(f"q{i}", 0, "t" * 500) for i in range(3)])
    data = folder.samples.read_bytes()
    offset = data.index(b"tttt", data.index(b'"q1"')) + 300
    folder.samples.write_bytes(data[:offset] + b"u" + data[offset + 1 :])
    with Journal.open(folder) as journal:
        assert journal.keys == {Key("q0", 0), Key("q2", 0)}


def test_a_long_question_id_is_found(folder: BenchmarkFolder) -> None:
    stored = [sample("q" * 3000, 0), sample("é" * 70_000, 1), sample("z", 2)]
    store(folder, *stored)
    with Journal.open(folder) as journal:
        assert journal.keys == {entry.key for entry in stored}


def test_the_first_record_of_a_key_counts_and_later_ones_are_reported(folder: BenchmarkFolder) -> None:
    lines = [
        record.encode(entry)
        for entry in [
            sample("a", 0, "first"),
            sample("b", 0, "same"),
            sample("a", 0, "second"),
            sample("b", 0, "same"),
        ]
    ]
    folder.create()
    folder.samples.write_bytes(b"".join(lines))
    reader = read_samples(folder)
    assert [entry.text for entry in reader] == ["first", "same"]
    assert reader.report.n_records == 4
    assert reader.report.n_duplicates == 2
    assert reader.report.conflicts == [Key("a", 0)]
    for _ in range(2):
        with Journal.open(folder) as journal:
            assert journal.report.n_duplicates == 2


def test_spans_side_by_side_give_every_line_once(folder: BenchmarkFolder) -> None:
    samples = [sample(f"q{i}", text="x" * i) for i in range(4)]
    folder.create()
    folder.samples.write_bytes(b"".join(record.encode(entry) for entry in samples))
    size = folder.samples.stat().st_size
    for border in range(size + 1):
        spans = [(0, border), (border, size)]
        assert [entry for span in spans for entry in read_samples(folder, span=span)] == samples, border


def test_foreign_lines_cost_nothing_but_themselves(folder: BenchmarkFolder) -> None:
    foreign = [
        b'{"benchmark":"AIME 2024","question_id":"no checksum","sample_index":0}',
        b"\x00" * 4096,
        b"\xff\xfe",
        b"null",
        record.encode(sample("x", benchmark="other"))[:-1],
        b"\xef\xbb\xbf" + record.encode(sample("a byte order mark amid the file"))[:-1],
    ]
    folder.create()
    good = [record.encode(sample(f"q{i}")) for i in range(len(foreign) + 1)]
    mixed = b"".join(line + bad + b"\n" for line, bad in zip(good, foreign, strict=False)) + good[-1]
    folder.samples.write_bytes(mixed)
    reader = read_samples(folder)
    assert [entry.question_id for entry in reader] == [f"q{i}" for i in range(7)]
    assert [line.number for line in reader.report.damaged] == [2, 4, 6, 8, 10, 12]
    for _ in range(2):
        with Journal.open(folder) as journal:
            assert len(journal.keys) == 7
            assert [line.number for line in journal.report.damaged] == [2, 4, 6, 8, 10, 12]
    assert folder.samples.read_bytes() == mixed, "the file is never rewritten"


def test_what_an_editor_adds_is_read_with_a_warning(run: RunFolder, folder: BenchmarkFolder) -> None:
    store(folder, *twenty())
    edited = b"\xef\xbb\xbf" + folder.samples.read_bytes().replace(b"\n", b"\r\n") + b"\r\n"
    folder.samples.write_bytes(edited)
    reader = read_samples(folder)
    assert list(reader) == twenty()
    assert reader.report.damaged == []
    assert len(reader.report.warnings) == 2
    for index in range(2):
        with RunLog(run) as log, Journal.open(folder, log=log) as journal:
            assert journal.keys >= {entry.key for entry in twenty()}
            assert journal.report.warnings == reader.report.warnings
            journal.append(sample("after", index))
    assert folder.samples.read_bytes().startswith(edited)
    assert folder.samples.read_bytes().endswith(record.encode(sample("after", 1)))
    assert "CRLF" in run.log.read_text()


def test_a_newer_schema_is_refused_with_its_version(folder: BenchmarkFolder) -> None:
    store(folder, sample("a"), sample("b", schema=7))
    for attempt in (lambda: list(read_samples(folder)), lambda: Journal.open(folder)):
        with pytest.raises(StoreError, match=r"samples.jsonl, line 2: schema 7; this harness reads schemas up to 1"):
            attempt()


def test_samples_that_nobody_waits_for_are_on_disk_after_a_flush(folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as opened:
        for i in range(3):
            opened.hand_over(sample("q", i))
        opened.flush()
        assert opened.keys == {Key("q", i) for i in range(3)}
        assert set(intact_texts(folder.samples.read_bytes())) == opened.keys


def test_one_that_nobody_waits_for_and_that_cannot_be_stored_stops_the_journal(folder: BenchmarkFolder) -> None:
    opened = Journal.open(folder)
    opened.hand_over(sample("q", 0, timing=Timing(started=math.inf, total=1.0)))
    with pytest.raises(StoreError, match="no finite number"):
        opened.flush()
    with pytest.raises(StoreError, match="no finite number"):
        opened.close()


def test_a_record_over_the_bound_is_refused_and_the_journal_goes_on(folder: BenchmarkFolder) -> None:
    with Journal.open(folder) as journal:
        refused = journal.append(sample("big", 0, "x" * MAX_RECORD_BYTES))
        accepted = journal.append(sample("small"))
        with pytest.raises(record.RecordRefused, match="longest record stored"):
            refused.result(timeout=PATIENCE_SECONDS)
        accepted.result(timeout=PATIENCE_SECONDS)
        assert journal.keys == {Key("small", 0)}
    assert folder.samples.stat().st_size < 1000


def test_a_line_over_the_bound_is_passed_over_without_being_held(folder: BenchmarkFolder) -> None:
    """A sparse line of 400 MiB, read by a process that may hold 300 MiB more than it starts with."""
    resource = pytest.importorskip("resource")
    assert resource
    store(folder, sample("a"))
    length = 400 * 1024 * 1024
    with folder.samples.open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) + length)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + record.encode(sample("b")))
    program = textwrap.dedent(
        """
        import resource, sys
        from pathlib import Path
        from harness.runs import BenchmarkFolder, Journal, read_samples
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 1024**2, used + 300 * 1024**2))
        folder = BenchmarkFolder("AIME 2024", Path(sys.argv[1]))
        reader = read_samples(folder)
        print([one.question_id for one in reader], [line.number for line in reader.report.damaged])
        with Journal.open(folder) as journal:
            print(sorted(key.question_id for key in journal.keys))
        """
    )
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc to set a memory limit")
    done = subprocess.run([sys.executable, "-c", program, folder.path], capture_output=True, text=True, check=True)
    assert done.stdout == "['a', 'b'] [2]\n['a', 'b']\n"
