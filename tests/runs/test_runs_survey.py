"""The survey of a journal's file, by its numbers: lines, and keys that came twice.

For: harness.runs.survey.
"""

from __future__ import annotations

import errno
import os

import pytest

from harness.core.errors import StoreError
from harness.core.records import Key
from harness.runs import BenchmarkFolder, Journal, read_samples, record
from harness.runs import survey as survey_module
from harness.runs.survey import Survey, survey
from tests.runs.recorded import sample

LINE = record.encode(sample("q", 0, "x" * 400))
BOM = b"\xef\xbb\xbf"


def surveyed(folder: BenchmarkFolder) -> Survey:
    descriptor = os.open(folder.samples, os.O_RDONLY)
    try:
        return survey(descriptor, folder)
    finally:
        os.close(descriptor)


def write(folder: BenchmarkFolder, data: bytes) -> None:
    """The file as another program leaves it."""
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.samples.write_bytes(data)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_key_that_comes_again_counts_once_with_either_line_end(folder: BenchmarkFolder, end: bytes) -> None:
    write(folder, 3 * LINE.replace(b"\n", end))
    survey = surveyed(folder)
    assert (len(survey.keys), survey.report.n_records, survey.report.n_duplicates) == (1, 3, 2)


def test_a_byte_order_mark_is_all_that_is_taken_from_its_line(folder: BenchmarkFolder) -> None:
    write(folder, BOM + LINE)
    reader = read_samples(folder)
    assert ([sample.text for sample in reader], reader.report.damaged) == (["x" * 400], [])


def test_a_key_longer_than_its_head_and_what_an_editor_changed_are_read_whole(folder: BenchmarkFolder) -> None:
    lines = [record.encode(sample(name, 0)) for name in ("q", "long " * 100, "r", "longer " * 100)]
    write(folder, lines[0] + b"\n" + lines[1] + lines[2].replace(b"\n", b"\r\n") + b"no record\n" + lines[3])
    found = surveyed(folder)
    assert (len(found.keys), found.report.n_records, found.end) == (4, 4, folder.samples.stat().st_size)
    assert [line.number for line in found.report.damaged] == [5]


def test_a_whole_record_without_its_newline_counts_for_either_reader_and_gets_one(folder: BenchmarkFolder) -> None:
    write(folder, LINE + record.encode(sample("q", 1))[:-1])
    assert (len(surveyed(folder).keys), len([*read_samples(folder)])) == (2, 2)
    with Journal.open(folder) as journal:
        assert journal.report.torn_tail == 0
        journal.append(sample("q", 2)).result(10)
    assert [found.sample_index for found in read_samples(folder)] == [0, 1, 2]


@pytest.mark.parametrize("torn", [1, 7, len(LINE) - 2])
def test_a_torn_tail_is_measured_by_either_reader(folder: BenchmarkFolder, torn: int) -> None:
    write(folder, LINE)
    with folder.samples.open("ab") as file:
        file.write(record.encode(sample("q", 1, "x" * 400))[:torn])
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
    monkeypatch.setattr(survey_module, "_survey", fail)
    with pytest.raises(StoreError, match=r"cannot read .*samples\.jsonl: Input/output error\."):
        surveyed(folder)


@pytest.mark.parametrize("n_lines", [1, 2, 5])
def test_spans_side_by_side_give_every_line_once(folder: BenchmarkFolder, n_lines: int) -> None:
    lines = [record.encode(sample("q", n, "x" * n)) for n in range(n_lines)]
    write(folder, b"".join(lines))
    starts = [sum(map(len, lines[:n])) for n in range(n_lines + 1)]
    for cut in range(starts[-1] + 1):
        first = [found.sample_index for found in read_samples(folder, span=(0, cut))]
        second = [found.sample_index for found in read_samples(folder, span=(cut, starts[-1]))]
        assert first == [n for n in range(n_lines) if starts[n] < cut]
        assert [*first, *second] == [*range(n_lines)]


def test_a_key_whose_later_line_says_something_else_is_a_conflict(folder: BenchmarkFolder) -> None:
    texts = [("a", "1"), ("b", "2"), ("a", "1"), ("b", "3"), ("c", "4"), ("b", "2"), ("c", "4"), ("a", "1")]
    write(folder, b"".join(record.encode(sample(name, 0, text)) for name, text in texts))
    reader = read_samples(folder)
    assert [(found.question_id, found.text) for found in reader] == [("a", "1"), ("b", "2"), ("c", "4")]
    assert (reader.report.n_records, reader.report.n_duplicates) == (8, 5)
    assert [key.question_id for key in reader.report.conflicts] == ["b"]
    only = read_samples(folder, keys={Key("c", 0)})
    assert [found.question_id for found in only] == ["c"]
