"""The location of each sample in a journal, so that any sample can be read alone; the file may still grow.

Guarantees: memory use is about 200 bytes per sample, plus one record at a time; every returned sample has passed its
checksum. Not covered: damage inside a record is noticed only when that record is read.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import msgspec

from harness.core.errors import StoreError
from harness.core.files import open_untrusted, read_at, read_errors
from harness.core.records import Key, Sample
from harness.core.reply_notes import ending
from harness.core.sanitize import visible
from harness.runs import record
from harness.runs.journal import HEAD_BYTES, JournalReport, parse
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import Line, lines

TAIL_BYTES = 1024
"""Number of bytes at the end of a record that are searched for its finish reason and token count."""

_FINISH = b',"finish_reason":"'
_ENDED = re.compile(
    rb',"finish_reason":"(?P<reason>[^"\\]{0,64})","usage":\{[^{}]{0,200}?"completion_tokens":(?P<tokens>\d{1,12}|null)'
)


class RecordLocation(msgspec.Struct, frozen=True, gc=False):
    """The location of a record in the journal, and how its reply ended.

    number: the record's line, from 1. offset, length: in bytes. truncated: whether max_tokens truncated the reply.
    tokens: completion tokens; None if the server did not report them. gc=False: there are tens of thousands of these
    objects, and none of them can be part of a cycle.
    """

    number: int
    offset: int
    length: int
    truncated: bool
    tokens: int | None


class SampleOffsets:
    """The location of each of a benchmark's samples in its journal. If two records have the same key, the first counts.
    Safe to use from several threads.
    """

    def __init__(self, folder: BenchmarkFolder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self.n_samples = self._end = self._n_lines = 0
        self._by_question: dict[str, dict[int, RecordLocation]] = {}
        self._inode: int | None = None

    def refresh(self) -> None:
        """Record the records that were appended since the last call. Raises `StoreError` if the file cannot be read."""
        path = self._folder.samples
        with self._lock, read_errors(path):
            try:
                with open_untrusted(path) as file:
                    self._refresh(file)
            except FileNotFoundError:
                self._forget()

    def locations(self, question_id: str) -> Mapping[int, RecordLocation]:
        """Return the locations of a question's samples in the journal: sample index → location."""
        return self._by_question.get(question_id, {})

    def questions(self) -> list[str]:
        """Ids of the questions that have samples."""
        return list(self._by_question)

    def line(self, key: Key) -> bytes:
        """Return the line of the record, unchanged, without its newline. Raises `StoreError`."""
        location = self.locations(key.question_id).get(key.sample_index)
        if location is None:
            question = visible(key.question_id, 100)
            raise StoreError(f"{self._folder.samples} has no sample {key.sample_index} of question {question!r}.")
        return next(self._lines([location]))

    def read(self, key: Key) -> Sample:
        """Return the sample of `key`, with its checksum verified. Raises `StoreError` if it is missing or damaged."""
        return self.parsed(key, self.line(key))

    def parsed(self, key: Key, data: bytes) -> Sample:
        """Return the sample in the line of `key`, with its checksum verified. Raises `StoreError` if it is damaged."""
        location = self.locations(key.question_id)[key.sample_index]
        report = JournalReport()
        line = Line(location.number, location.offset, location.length, data, True)
        sample = parse(line, self._folder, report)
        if sample is None or sample.key != key:
            reason = report.damaged[0].reason if report.damaged else "a different sample is stored there"
            raise StoreError(
                f"{self._folder.samples}, line {location.number}: {reason}. `harness doctor RUN` lists all damage."
            )
        return sample

    def in_file_order(self) -> Iterator[tuple[Key, bytes]]:
        """Yield (key, line of its record) for every sample, in file order. Raises `StoreError`."""
        with self._lock:
            places = [
                (location, Key(question_id, index))
                for question_id, samples in self._by_question.items()
                for index, location in samples.items()
            ]
        places.sort(key=lambda item: item[0].offset)
        return zip((key for _, key in places), self._lines([location for location, _ in places]), strict=True)

    def _lines(self, locations: Sequence[RecordLocation]) -> Iterator[bytes]:
        """Yield the lines at these locations, without their newlines; the file is opened once. Raises `StoreError`."""
        path = self._folder.samples
        with read_errors(path), open_untrusted(path) as file:
            for location in locations:
                yield read_at(file.fileno(), location.length, location.offset).removesuffix(b"\n")

    def _refresh(self, file: BinaryIO) -> None:
        """Record the records that were appended since the last call; all records if the file was replaced or
        truncated.
        """
        state = os.fstat(file.fileno())
        if state.st_ino != self._inode or state.st_size < self._end:
            self._forget()
            self._inode = state.st_ino
        if self._end >= state.st_size:
            return
        report = JournalReport()
        for line in lines(file, self._end, self._n_lines + 1):
            if not line.complete:
                return
            self._take(line, report)
            self._end += line.length
            self._n_lines = line.number

    def _take(self, line: Line, report: JournalReport) -> None:
        """Record the record in a line of the journal, if it has a key that was not noted earlier."""
        if line.raw is None:
            return
        key = record.head_key(line.raw[:HEAD_BYTES], self._folder.name)
        if key is None:  # The key is long, or the line was changed by an editor.
            sample = parse(line, self._folder, report)
            key = None if sample is None else sample.key
        if key is None or key[1] in self.locations(key[0]):
            return
        tail = line.raw[-TAIL_BYTES:]
        # `_FINISH` cannot occur inside a string of the record, because quotation marks are escaped there.
        ended = _ENDED.match(tail, max(tail.rfind(_FINISH), 0))
        self._by_question.setdefault(key[0], {})[key[1]] = RecordLocation(
            line.number,
            line.offset,
            line.length,
            truncated=ended is not None and ending(ended["reason"].decode("utf-8", "replace")) == "cut",
            tokens=None if ended is None or ended["tokens"] == b"null" else int(ended["tokens"]),
        )
        self.n_samples += 1


def sample_pairs(
    sides: tuple[SampleOffsets, SampleOffsets], ids: Sequence[str], most: int
) -> Iterator[list[tuple[Sample, Sample]]]:
    """For each of these questions, the pairs of samples with the same index in both runs, without damaged samples.

    If there are more than `most` pairs in total, about `most` of them are drawn at random, with at least two (if there
    are two) for each question drawn.
    """
    shared = {name: sorted(sides[0].locations(name).keys() & sides[1].locations(name).keys()) for name in ids}
    if sum(map(len, shared.values())) > most:
        chance = random.Random(0)  # noqa: S311 -- equal runs, equal warnings
        n_each = max(2, most // len(shared))
        names = chance.sample([*shared], min(len(shared), most // n_each))
        shared = {name: chance.sample(shared[name], min(n_each, len(shared[name]))) for name in names}
    for name, indices in shared.items():
        pairs = []
        for key in (Key(name, index) for index in indices):
            with contextlib.suppress(StoreError):  # a damaged record, which the score also omits
                pairs.append((sides[0].read(key), sides[1].read(key)))
        if pairs:
            yield pairs
