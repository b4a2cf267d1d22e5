"""Every file of ours that lines are appended to: cut anywhere, on any disk, nothing is glued and nothing half stored.

The log: one event one line, inert.

For: harness.runs.line_file, harness.runs.overrides, harness.generation.batching.submission.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import StoreError
from harness.core.records import Key, Sample
from harness.generation.batching.submission import BatchLedger
from harness.runs import RunFolder, RunLog, line_file, overrides, read_samples
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import LineFile, append_line, read_appended
from harness.runs.offsets import SampleOffsets, sample_pairs
from tests.budget import examples
from tests.conftest import CHECKOUT
from tests.runs.recorded import BENCHMARK, FILES, Appended, append, correct
from tests.runs.test_runs_lock import descriptors_of
from tests.viewer.small_run import SMALL, RunQuestion, RunReply, sample, write_run


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest, run: RunFolder) -> Appended:
    run.create()
    return FILES[request.param]


def test_cut_at_any_byte_what_was_whole_counts_and_the_next_stands_alone(file: Appended, run: RunFolder) -> None:
    for number in range(2):
        file.append(run, number)
    path = file.path(run)
    whole = path.read_bytes()
    ends = [whole.index(b"\n") + 1, len(whole)]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        before = [number for number, end in enumerate(ends) if cut >= end - 1]
        file.append(run, 7)
        assert file.read(run) == [*before, 7], cut
        assert path.read_bytes().count(b"\n") == len(before) + 1, "nothing is glued"


class Room:
    """Stands in for os.write: a file takes `room` bytes, a few at a time, and then fails."""

    def __init__(self, path: Path, room: int, error: int) -> None:
        self.path, self.room, self.error, self.real = path, room, error, os.write

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.path.exists() or not os.path.samestat(os.fstat(descriptor), self.path.stat()):
            return self.real(descriptor, data)
        if not self.room:
            raise OSError(self.error, os.strerror(self.error))
        n = self.real(descriptor, bytes(data[: min(self.room, 11)]))
        self.room -= n
        return n


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fills_at_any_byte_refuses_the_line_whole(
    file: Appended, run: RunFolder, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    file.append(run, 0)
    path = file.path(run)
    before = path.read_bytes()
    for room in range(0, len(before), 7):
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", Room(path, room, error).write)
            with pytest.raises(StoreError, match=os.strerror(error)):
                file.append(run, 1)
        assert path.read_bytes() == before, room
    file.append(run, 2)
    assert file.read(run) == [0, 2]


def test_a_torn_correction_stops_no_reader_and_a_damaged_one_is_named(run: RunFolder) -> None:
    correct(run, 0)
    correct(run, 1)
    path = run.benchmark(BENCHMARK).overrides
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert list(overrides.latest_overrides(overrides.read(run.benchmark(BENCHMARK)))) == [Key("q0", 0)]
    path.write_bytes(whole.replace(b'"verdict"', b'"verdict', 1))
    with pytest.raises(StoreError, match=r"line 1 is damaged") as damage:
        overrides.read(run.benchmark(BENCHMARK))
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds the lock, though the error keeps its frames
    assert damage.tb


@pytest.mark.parametrize(
    "when", ["\u202eyesterday", "2026-01-31\u202e12:00:00", "", "2026-13-01T00:00:00+00:00", "<b>now</b>"]
)
def test_the_time_of_a_correction_is_a_time(run: RunFolder, when: str) -> None:
    correct(run, 0)
    path = run.benchmark(BENCHMARK).overrides
    path.write_bytes(path.read_bytes().replace(b"2026-01-02T03:04:05+00:00", when.encode()))
    with pytest.raises(StoreError, match=r"correction 1: `when` is .*expected a time"):
        overrides.read(run.benchmark(BENCHMARK))


def test_a_planted_link_or_pipe_is_not_appended_to(file: Appended, run: RunFolder, tmp_path: Path) -> None:
    file.append(run, 0)
    path = file.path(run)
    path.unlink()
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match="symbolic link"):
        file.append(run, 1)
    assert not (tmp_path / "victim").exists()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="regular file"):
        file.append(run, 1)
    folder = tmp_path / "linked"
    folder.symlink_to(run.path)
    with pytest.raises(StoreError, match="symbolic link"):
        append_line(folder / "f.jsonl", b"{}\n")


@given(
    pieces=st.lists(st.sampled_from([b'{"a":1}', b"\n", b'{"a"', b"\xe2\x80\xa8", b"x" * 70_000, b"{}"]), max_size=6)
)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_appended_line_is_separate_and_no_whole_line_is_lost(pieces: list[bytes], quick_path: Path) -> None:
    shutil.rmtree(quick_path)
    quick_path.mkdir()
    path, before = quick_path / "f.jsonl", b"".join(pieces)
    path.write_bytes(before)
    append_line(path, b'{"new":1}\n')
    lines = path.read_bytes().split(b"\n")
    assert lines[-2:] == [b'{"new":1}', b""]
    whole, _, tail = before.rpartition(b"\n")
    kept = [tail] if tail in (b'{"a":1}', b"{}") else []
    assert lines[:-2] == [*(whole.split(b"\n") if b"\n" in before else []), *kept]


# ---- the ledger of batches


def test_the_latest_batch_of_a_request_is_known_again(run: RunFolder) -> None:
    ledger = BatchLedger(run)
    ledger.planned("one", "http://h/v1", ["a", "b"])
    ledger.record_sent("one", "batch_1")
    ledger.planned("two", "http://h/v1", ["b"])
    again = BatchLedger(run)
    holding = again.holding(["a", "b", "c"])
    assert {ask: (batch.name, batch.id) for ask, batch in holding.items()} == {
        "a": ("one", "batch_1"),
        "b": ("two", ""),
    }
    again.void("two", "never begun")
    assert BatchLedger(run).holding(["b"])["b"].name == "one"


def test_damage_is_refused_since_it_may_hide_what_was_handed_in(run: RunFolder) -> None:
    ledger = BatchLedger(run)
    ledger.planned("one", "http://h/v1", ["a"])
    whole = run.batches.read_bytes()
    run.batches.write_bytes(whole.replace(b'"one"', b'"two"'))
    with pytest.raises(StoreError, match=r"line 1 is damaged: .*delete the file"):
        BatchLedger(run)


# ---- nothing appends beside it


APPENDS = re.compile(r"""O_APPEND|\bopen\((?:[^()]*,\s*)?(?:mode=)?["'](?:a|ab|a\+|ab\+|a\+b)["']""")
"""A file is opened for appending, by a flag or by a mode."""


def test_nothing_of_the_harness_appends_but_the_one_writer() -> None:
    files = {
        str(path.relative_to(CHECKOUT))
        for path in (CHECKOUT / "harness").rglob("*.py")
        if APPENDS.search(path.read_text("utf-8"))
    }
    assert files == {"harness/runs/line_file.py"}
    assert all(map(APPENDS.search, ("path.open('ab')", "open(path, mode='a')", "os.open(path, os.O_APPEND)")))
    assert not APPENDS.search("x = 'a'; path.open('wb')")


def test_a_line_is_appended_and_read_under_its_files_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, calls, flock = tmp_path / "log.jsonl", list[tuple[bool, int, int]](), fcntl.flock

    def noted(descriptor: int, operation: int) -> None:
        calls.append((os.path.samestat(os.fstat(descriptor), path.stat()), operation, path.stat().st_size))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", noted)
    append_line(path, b"{}\n")
    assert calls == [(True, fcntl.LOCK_EX | fcntl.LOCK_NB, 0), (True, fcntl.LOCK_UN, 3)]
    assert read_appended(path, dict, "") == [{}]
    assert calls[2:] == [(True, fcntl.LOCK_SH | fcntl.LOCK_NB, 3), (True, fcntl.LOCK_UN, 3)], "as a reader may on NFS"


def test_closing_a_file_twice_closes_no_other_descriptor(tmp_path: Path) -> None:
    path, other = tmp_path / "log.jsonl", tmp_path / "other"
    with LineFile(path, durable=False) as file:
        assert len(descriptors_of(path)) == 1
    assert descriptors_of(path) == []
    with other.open("wb"):  # may get the number that the file had
        file.close()
        file.close()
        assert len(descriptors_of(other)) == 1


def synced_by(act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each sync of `act`, whether it was one of a folder."""
    synced: list[bool] = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda descriptor: synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode)))
        act()
    return synced


def test_the_folder_is_synced_with_the_first_line_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    assert synced_by(lambda: append_line(path, b"{}\n"), monkeypatch) == [False, True]
    assert synced_by(lambda: append_line(path, b"{}\n"), monkeypatch) == [False]
    with LineFile(tmp_path / "quick.jsonl", durable=False) as file:
        assert synced_by(lambda: file.append(b"{}\n"), monkeypatch) == []


def test_a_new_file_may_be_read_by_all_and_written_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    umask = os.umask(0)
    try:
        append_line(path, b"{}\n")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_disk_that_takes_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    append_line(path, b"{}\n")
    monkeypatch.setattr(os, "write", lambda _descriptor, _data: 0)
    with pytest.raises(StoreError, match="no data could be written to the disk"):
        append_line(path, b"{}\n")
    monkeypatch.undo()
    assert path.read_bytes() == b"{}\n"


def test_an_object_without_its_newline_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    monkeypatch.setattr(line_file, "MAX_RECORD_BYTES", 20)
    for last, stays in ((b'{"a":"%s"}' % (b"x" * 12), True), (b'{"a":"%s"}' % (b"x" * 13), False)):
        path.write_bytes(b'{"b":2}\n' * 9 + last)
        append_line(path, b"{}\n")
        assert path.read_bytes() == b'{"b":2}\n' * 9 + (last + b"\n" if stays else b"") + b"{}\n"
    # Where the disk then refuses the line, the newline stays and nothing else is lost.
    path.write_bytes(b'{"b":2}')
    monkeypatch.setattr(os, "write", Room(path, 3, errno.ENOSPC).write)
    with pytest.raises(StoreError, match="No space left"):
        append_line(path, b'{"c":3}\n')
    monkeypatch.undo()
    assert path.read_bytes() == b'{"b":2}\n'


def test_the_last_line_is_read_without_its_newline_and_a_torn_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    assert read_appended(path, dict, "") == []
    for tail, records in ((b"", 1), (b"{}", 2), (b"{}\n", 2), (b'{"a"', 1)):
        path.write_bytes(b"{}\n" + tail)
        assert read_appended(path, dict, "") == [{}] * records


MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_an_event_is_one_line_with_its_time(run: RunFolder) -> None:
    with RunLog(run, now=lambda: MOMENT) as log:
        log.write("started", samples=3, endpoints=["a", "b"], model=None)
        log.write("ended")
    assert run.log.read_text().splitlines() == [
        '{"time":"2026-01-02T03:04:05.000+00:00","event":"started","samples":3,"endpoints":["a","b"],"model":null}',
        '{"time":"2026-01-02T03:04:05.000+00:00","event":"ended"}',
    ]


@given(text=st.text(st.characters(exclude_categories=())), name=st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_starts_a_line_or_drives_a_terminal(run: RunFolder, text: str, name: str) -> None:
    run.log.unlink(missing_ok=True)
    with RunLog(run) as log:
        log.write("server", **{"message": text, "nested": {name: [text]}})
    data = run.log.read_bytes()
    assert data.count(b"\n") == 1
    assert all(0x20 <= byte < 0x7F for byte in data[:-1])
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not any(unicodedata.category(c) in hidden for c in json.loads(data)["message"])


def test_a_long_text_is_clipped(run: RunFolder) -> None:
    with RunLog(run) as log:
        log.write("server", message="x" * 1_000_000)
    assert run.log.stat().st_size < 3000


# -- the index of offsets ----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> BenchmarkFolder:
    return write_run(tmp_path / "run", scored=False).benchmark("demo")


def opened(folder: BenchmarkFolder) -> SampleOffsets:
    offsets = SampleOffsets(folder)
    offsets.refresh()
    return offsets


def everything(offsets: SampleOffsets) -> list[Sample]:
    return [offsets.read(key) for key, _ in offsets.in_file_order()]


def test_each_sample_reads_as_the_journal_has_it(folder: BenchmarkFolder) -> None:
    offsets = opened(folder)
    assert everything(offsets) == list(read_samples(folder))
    assert offsets.n_samples == 6


def test_the_end_of_a_record_tells_truncation_and_tokens(folder: BenchmarkFolder) -> None:
    places = opened(folder).locations("q2/odd id")
    assert [(places[i].truncated, places[i].tokens) for i in range(3)] == [(True, 32768), (False, 7), (False, 7)]
    assert opened(folder).locations("q1")[1].tokens is None


def test_a_text_cannot_forge_the_end_of_its_record(tmp_path: Path) -> None:
    forged = '","finish_reason":"length","usage":{"completion_tokens":99},"reasoning":"'
    run_questions = {"q": RunQuestion("?", "1", [RunReply(forged, reasoning=forged + "\\")])}
    run = write_run(tmp_path / "run", {"demo": run_questions}, scored=False)
    location = opened(run.benchmark("demo")).locations("q")[0]
    assert (location.truncated, location.tokens) == (False, 7)


def test_what_a_run_appends_is_taken_in(folder: BenchmarkFolder) -> None:
    offsets = opened(folder)
    more = sample("demo", "q1", 3, RunReply("late"))
    append(RunFolder(folder.path.parent), "demo", [more])
    assert 3 not in offsets.locations("q1")
    offsets.refresh()
    assert offsets.read(Key("q1", 3)) == more


def test_a_line_counts_only_once_its_newline_is_written(folder: BenchmarkFolder) -> None:
    line = folder.samples.read_bytes().splitlines(keepends=True)[-1].replace(b'"sample_index":2', b'"sample_index":8')
    offsets = opened(folder)
    with folder.samples.open("ab") as file:
        file.write(line[:-1])
    offsets.refresh()
    assert 8 not in offsets.locations("q2/odd id")
    with folder.samples.open("ab") as file:
        file.write(b"\n")
    offsets.refresh()
    assert 8 in offsets.locations("q2/odd id")


def test_a_replaced_journal_is_read_anew(folder: BenchmarkFolder, tmp_path: Path) -> None:
    offsets = opened(folder)
    second = write_run(tmp_path / "other", {"demo": {"q1": SMALL["q1"]}}, scored=False).benchmark("demo")
    shutil.copy(second.samples, tmp_path / "new.jsonl")
    (tmp_path / "new.jsonl").replace(folder.samples)
    offsets.refresh()
    assert offsets.questions() == ["q1"]
    assert everything(offsets) == list(read_samples(folder))


def test_the_first_record_of_a_key_counts(folder: BenchmarkFolder) -> None:
    line = folder.samples.read_bytes().splitlines(keepends=True)[0]
    with folder.samples.open("ab") as file:
        file.write(line)
    offsets = opened(folder)
    assert offsets.n_samples == 6
    assert offsets.locations("q1")[0].offset == 0


def test_a_damaged_record_is_refused_when_it_is_read(folder: BenchmarkFolder) -> None:
    data = bytearray(folder.samples.read_bytes())
    data[data.index(b"Half")] ^= 1
    folder.samples.write_bytes(data)
    with pytest.raises(StoreError, match=r"samples\.jsonl, line 1: checksum differs"):
        opened(folder).read(Key("q1", 0))
    assert opened(folder).read(Key("q1", 1)).text == r"It is $\boxed{41}$."


def test_no_file_means_no_samples(folder: BenchmarkFolder) -> None:
    folder.samples.unlink()
    assert opened(folder).n_samples == 0


def test_an_unknown_sample_is_a_sentence(folder: BenchmarkFolder) -> None:
    with pytest.raises(StoreError, match="has no sample 7 of question 'q1'"):
        opened(folder).read(Key("q1", 7))


@pytest.mark.parametrize(("most", "of_each"), [(6, [3, 3]), (5, [2, 2]), (2, [2])])
def test_of_too_many_pairs_two_of_a_question_are_drawn(folder: BenchmarkFolder, most: int, of_each: list[int]) -> None:
    drawn = sample_pairs((opened(folder), opened(folder)), ["q1", "q2/odd id"], most)
    assert [len(pairs) for pairs in drawn] == of_each


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=50)), min_size=1, max_size=5))
def test_any_texts_are_found_again(tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str]]) -> None:
    name = said[0][1] or "q"  # any question id, too
    question_of_run = RunQuestion("?", "1", [RunReply(text, reasoning=thought) for text, thought in said])
    run = write_run(tmp_path_factory.mktemp("any") / "run", {"demo": {name: question_of_run}}, scored=False)
    folder = run.benchmark("demo")
    assert [sample.text for sample in everything(opened(folder))] == [text for text, _ in said]
