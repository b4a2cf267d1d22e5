"""The survey of a journal's file, by its numbers: lines, entries of the index, keys that came twice.

For: harness.runs.survey.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib

import pytest

from harness.core.errors import StoreError
from harness.core.records import Key
from harness.runs import BenchmarkFolder, Journal, read_samples, record
from harness.runs import survey as survey_module
from harness.runs.survey import Survey, count_entries, read_entries, survey
from tests.runs.recorded import sample

LINE = record.encode(sample("q", 0, "x" * 400)).line
BOM = b"\xef\xbb\xbf"


def surveyed(folder: BenchmarkFolder) -> Survey:
    descriptor = os.open(folder.samples, os.O_RDONLY)
    try:
        return survey(descriptor, folder)
    finally:
        os.close(descriptor)


def write(folder: BenchmarkFolder, data: bytes) -> None:
    """The file as another program leaves it, and its index as a resume makes it."""
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.samples.write_bytes(data)
    with Journal.open(folder):
        pass


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_key_that_comes_again_counts_once_with_either_line_end(folder: BenchmarkFolder, end: bytes) -> None:
    write(folder, 3 * LINE.replace(b"\n", end))
    for _ in ("by the index", "without it"):
        survey = surveyed(folder)
        assert (len(survey.keys), survey.report.n_records, survey.report.n_duplicates) == (1, 3, 2)
        folder.index.unlink(missing_ok=True)


def test_a_byte_order_mark_is_all_that_is_taken_from_its_line(folder: BenchmarkFolder) -> None:
    write(folder, BOM + LINE)
    reader = read_samples(folder)
    assert ([sample.text for sample in reader], reader.report.damaged) == (["x" * 400], [])


def test_every_line_of_an_index_that_agrees_is_taken_from_it(folder: BenchmarkFolder) -> None:
    """A blank line and one that an editor changed are read whole at each resume, by their entries."""
    write(folder, b"\n" + LINE.replace(b"\n", b"\r\n") + record.encode(sample("q", 1)).line)
    assert [entry[2] == 0 for entry in read_entries(folder)] == [True, True, False]
    assert (surveyed(folder).n_listed, surveyed(folder).unlisted) == (3, b"")


def test_an_entry_of_another_length_than_its_line_ends_the_trust(folder: BenchmarkFolder) -> None:
    write(folder, b"\n\n" + LINE)
    index = folder.index.read_bytes()
    header = len(index) - 3 * struct.calcsize("<QQII")
    both_lines_in_one = struct.pack("<QQII", 0, 2, 0, 0)
    folder.index.write_bytes(index[:header] + both_lines_in_one)
    assert (surveyed(folder).n_listed, len(surveyed(folder).keys)) == (0, 1)


def test_an_entry_holds_the_checksum_of_the_first_256_bytes(folder: BenchmarkFolder) -> None:
    """A longer or shorter head would make every index of a former version wrong."""
    write(folder, LINE)
    ((offset, length, _, head),) = read_entries(folder)
    assert (offset, length, head) == (0, len(LINE), zlib.crc32(LINE[:256]))


def test_entries_are_counted_by_the_size_of_the_index(folder: BenchmarkFolder) -> None:
    write(folder, LINE + record.encode(sample("q", 1)).line)
    assert count_entries(folder) == 2
    folder.index.write_bytes(b"")
    assert count_entries(folder) == 0
    folder.index.unlink()
    assert count_entries(folder) == 0


def test_a_line_whose_key_is_longer_than_its_head_is_listed_and_read_whole(folder: BenchmarkFolder) -> None:
    names = ["q", "long " * 100, "r", "longer " * 100]
    write(folder, b"".join(record.encode(sample(name, 0)).line for name in names))
    assert [entry[2] == 0 for entry in read_entries(folder)] == [False, True, False, True]
    found = surveyed(folder)
    assert (found.n_listed, len(found.keys), found.report.n_records) == (4, 4, 4)


@pytest.mark.parametrize("sizes", [(10,) * 900, (400,) * 900, (9_000,) * 40, (10, 9_000, 300, 20_000, 10, 10) * 20])
def test_an_index_that_agrees_is_followed_to_its_end_whatever_the_lengths(
    folder: BenchmarkFolder, sizes: tuple[int, ...]
) -> None:
    """Lines that are read together, each by itself, and now so, now so."""
    write(folder, b"".join(record.encode(sample("q", n, "x" * size)).line for n, size in enumerate(sizes)))
    found = surveyed(folder)
    assert (found.n_listed, found.unlisted, found.end) == (len(sizes), b"", folder.samples.stat().st_size)
    assert (len(found.keys), found.report.n_records, found.report.n_duplicates) == (len(sizes), len(sizes), 0)
    assert [end == 0 for _, _, end, _ in read_entries(folder)] == [False] * len(sizes)


def test_a_torn_entry_is_not_counted(folder: BenchmarkFolder) -> None:
    write(folder, LINE + record.encode(sample("q", 1)).line)
    whole = folder.index.read_bytes()
    for more in range(24):
        folder.index.write_bytes(whole + b"x" * more)
        assert count_entries(folder) == 2
        assert len([*read_entries(folder)]) == 2
        assert surveyed(folder).n_listed == 2
    folder.index.write_bytes(b"")
    assert count_entries(folder) == 0
    folder.index.unlink()
    assert count_entries(folder) == 0


@pytest.mark.parametrize("torn", [1, 7, len(LINE) - 1])
def test_a_torn_tail_is_measured_by_either_reader(folder: BenchmarkFolder, torn: int) -> None:
    write(folder, LINE)
    with folder.samples.open("ab") as file:
        file.write(record.encode(sample("q", 1, "x" * 400)).line[:torn])
    reader = read_samples(folder)
    assert [found.sample_index for found in reader] == [0]
    assert reader.report.torn_tail == torn == surveyed(folder).report.torn_tail
    assert surveyed(folder).end == len(LINE)


def test_a_file_that_cannot_be_read_is_named(folder: BenchmarkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, LINE)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(survey_module, "open_untrusted", fail)
    with pytest.raises(StoreError, match=r"cannot read .*samples\.jsonl: Input/output error\."):
        next(read_samples(folder))
    monkeypatch.setattr(survey_module, "_read_on", fail)
    with pytest.raises(StoreError, match=r"cannot read .*samples\.jsonl: Input/output error\."):
        surveyed(folder)


@pytest.mark.parametrize("n_lines", [1, 2, 5])
def test_spans_side_by_side_give_every_line_once(folder: BenchmarkFolder, n_lines: int) -> None:
    lines = [record.encode(sample("q", n, "x" * n)).line for n in range(n_lines)]
    write(folder, b"".join(lines))
    starts = [sum(map(len, lines[:n])) for n in range(n_lines + 1)]
    for cut in range(starts[-1] + 1):
        first = [found.sample_index for found in read_samples(folder, span=(0, cut))]
        second = [found.sample_index for found in read_samples(folder, span=(cut, starts[-1]))]
        assert first == [n for n in range(n_lines) if starts[n] < cut]
        assert [*first, *second] == [*range(n_lines)]


def test_a_key_whose_later_line_says_something_else_is_a_conflict(folder: BenchmarkFolder) -> None:
    texts = [("a", "1"), ("b", "2"), ("a", "1"), ("b", "3"), ("c", "4"), ("b", "2"), ("c", "4"), ("a", "1")]
    write(folder, b"".join(record.encode(sample(name, 0, text)).line for name, text in texts))
    reader = read_samples(folder)
    assert [(found.question_id, found.text) for found in reader] == [("a", "1"), ("b", "2"), ("c", "4")]
    assert (reader.report.n_records, reader.report.n_duplicates) == (8, 5)
    assert [key.question_id for key in reader.report.conflicts] == ["b"]
    only = read_samples(folder, keys={Key("c", 0)})
    assert [found.question_id for found in only] == ["c"]


def test_a_damaged_line_that_the_index_calls_intact_removes_the_index(folder: BenchmarkFolder) -> None:
    lines = [record.encode(sample("q", n, "x" * 400)).line for n in range(3)]
    for damaged in range(3):
        write(folder, b"".join(lines))
        broken = [line.replace(b"xxx", b"xyx", 1) if n == damaged else line for n, line in enumerate(lines)]
        folder.samples.write_bytes(b"".join(broken))
        reader = read_samples(folder)
        assert [found.sample_index for found in reader] == [n for n in range(3) if n != damaged]
        assert [(line.number, line.offset) for line in reader.report.damaged] == [
            (damaged + 1, damaged * len(lines[0]))
        ]
        assert not folder.index.exists()
        with Journal.open(folder):
            pass
        assert [entry[2] == 0 for entry in read_entries(folder)] == [n == damaged for n in range(3)]
        assert [*read_samples(folder)]
        assert folder.index.exists(), "its entry hides no damage"
        folder.index.unlink()
