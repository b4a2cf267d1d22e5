"""Reads the samples of a journal, each key once, every checksum verified. Needs no lock: a run may be writing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import takewhile
from typing import BinaryIO

from harness.core.errors import StoreError
from harness.core.files import open_untrusted
from harness.core.records import Key, Sample
from harness.runs import survey
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import Line, lines
from harness.runs.record import KeySet
from harness.runs.survey import JournalReport, parse


class SampleReader(Iterator[Sample]):
    """Samples in file order. `.report` holds the findings so far; it is complete once the iteration has ended."""

    def __init__(self, folder: BenchmarkFolder, keys: Collection[Key] | None, span: tuple[int, int] | None) -> None:
        self.report = JournalReport()
        self._folder = folder
        self._keys = keys
        self._span = span
        self._samples = self._read()

    def __next__(self) -> Sample:
        return next(self._samples)

    def _read(self) -> Iterator[Sample]:
        path, report = self._folder.samples, self.report
        seen = KeySet()
        again: dict[Key, set[int]] = {}  # Hashes of the texts in later records of a key.
        try:
            with open_untrusted(path) as file:
                for line in lines(file) if self._span is None else _lines_within(file, *self._span):
                    if not line.complete:
                        report.torn_tail = line.length
                        break
                    n_damaged = len(report.damaged)
                    sample = parse(line, self._folder, report)
                    if len(report.damaged) > n_damaged:
                        survey.forget(self._folder, line.offset, line.number)
                    if sample is None:
                        continue
                    if not seen.add(sample.key):
                        report.n_duplicates += 1
                        again.setdefault(sample.key, set()).add(_said(sample))
                        continue
                    if self._keys is None or sample.key in self._keys:
                        yield sample
                report.conflicts += self._conflicts(file, again)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error

    def _conflicts(self, file: BinaryIO, again: dict[Key, set[int]]) -> list[Key]:
        """Keys whose later records hold another text than the first.

        Reads the file once more, if there are repeated keys.
        """
        differing: set[Key] = set()
        left = dict(again)
        for line in lines(file) if left else ():
            sample = parse(line, self._folder, JournalReport()) if line.complete else None
            later = left.pop(sample.key, None) if sample is not None else None
            if sample is not None and later is not None and later != {_said(sample)}:
                differing.add(sample.key)
            if not left:
                break
        return [key for key in again if key in differing]


def _lines_within(file: BinaryIO, start: int, stop: int) -> Iterator[Line]:
    """The lines that begin in [start, stop), in bytes; numbered from there."""
    following = lines(file, max(0, start - 1))
    if start > 0:
        next(following, None)  # The end of the previous line, or only its line feed.
    yield from takewhile(lambda line: line.offset < stop, following)


def _said(sample: Sample) -> int:
    return hash((sample.text, sample.reasoning))


def read_samples(
    folder: BenchmarkFolder, *, keys: Collection[Key] | None = None, span: tuple[int, int] | None = None
) -> SampleReader:
    """The samples on disk (of `keys`, if given): the first intact record of a key counts, later ones are reported.

    span: only of the lines that begin in [start, stop), in bytes; spans side by side give every line once.

    No file means no samples. A damaged line is skipped, and its key becomes owed: an index that calls it intact
    is removed, so that the next resume reads everything.
    Raises `StoreError`, while iterating, on a newer schema or a failing read.
    """
    return SampleReader(folder, keys, span)
