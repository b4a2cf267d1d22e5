"""The survey of a journal's file, by its numbers: lines, entries of the index, keys that came twice.

For: harness.runs.survey.
"""

from __future__ import annotations

import os
import struct
import zlib

import pytest

from harness.runs import BenchmarkFolder, Journal, read_samples, record
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
