"""Reads a `samples.jsonl`: its lines, its keys, its damage, where the intact part ends, and its samples.

It changes nothing in the file and needs no lock: a run may be writing.

    a line                               counts as
    intact: checksum, decodes            a sample; of a key that came before, a repeat that is reported
    damaged, too long, foreign           nothing: its key is owed, its number is reported
    blank                                nothing
    of a newer schema                    a refusal of the whole file
    the last, neither newline nor intact the torn tail, which the journal cuts off

`read_state` verifies each line's checksum and takes the key from its head, which costs little more than reading the
file. Memory stays within one record and the keys. Not covered: `read_state` takes a line whose checksum fits for a
sample without decoding it; `read_samples` finds out whether it is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import BinaryIO, NamedTuple

from harness.core.errors import StoreError
from harness.core.files import READ_BUFFER_BYTES, open_untrusted
from harness.core.inert import visible
from harness.core.limits import MAX_RECORD_BYTES
from harness.core.records import Key, Sample
from harness.runs import record
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import BOM, Line, lines
from harness.runs.record import KeySet

# ---- the state


HEAD_BYTES = 256
"""Bytes of a line that hold its key; a line with a longer key is decoded at every resume."""


class DamagedLine(NamedTuple):
    """A damaged line, which does not count. number: from 1; offset: in bytes; reason: safe to print."""

    number: int
    offset: int
    reason: str


@dataclass(slots=True)
class JournalReport:
    """What was found in a journal.

    n_records: intact lines. n_duplicates: intact lines whose key had come before. torn_tail: bytes after the last
    newline.
    """

    n_records: int = 0
    n_duplicates: int = 0
    damaged: list[DamagedLine] = field(default_factory=list)
    torn_tail: int = 0
    warnings: list[str] = field(default_factory=list)

    def warn(self, warning: str) -> None:
        """Record `warning`, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)


def parse(line: Line, folder: BenchmarkFolder, report: JournalReport) -> Sample | None:
    """The sample in a complete line, or None; oddities go to `report`. A blank line gives None.

    Raises `StoreError` for an intact line of a newer schema.
    """
    try:
        if (data := line.raw) is None:
            raise record.Damaged(f"{line.length} bytes long; the bound is {MAX_RECORD_BYTES}")
        oddities = []
        if line.offset == 0 and data.startswith(BOM):
            data, oddities = data[len(BOM) :], ["a byte order mark"]
        if data.endswith((b"\r\n", b"\r")):
            data, oddities = data.removesuffix(b"\n").removesuffix(b"\r"), [*oddities, "CRLF line ends"]
        if data in (b"", b"\n"):
            return None
        sample = record.decode(data, folder.name)
    except record.NewerSchema as newer:
        raise StoreError(f"{folder.samples}, line {line.number}: {newer}. Use a newer harness.") from newer
    except record.Damaged as damage:
        report.damaged.append(DamagedLine(line.number, line.offset, visible(str(damage), 200)))
        return None
    for oddity in oddities:
        report.warn(f"{folder.samples} has {oddity}, as an editor adds them; the samples are read all the same")
    report.n_records += 1
    return sample


class JournalState(NamedTuple):
    """A journal's state. keys: of its samples."""

    keys: KeySet
    report: JournalReport


def stored_keys(folder: BenchmarkFolder) -> KeySet:
    """The keys of the stored samples; none without a journal. Raises `StoreError` as `read_state` does."""
    return stored_state(folder).keys


def stored_state(folder: BenchmarkFolder) -> JournalState:
    """The state of the stored journal, an empty one if there is none. Raises `StoreError` as `read_state` does."""
    try:
        with open_untrusted(folder.samples) as file:
            return read_state(file.fileno(), folder)
    except FileNotFoundError:
        return JournalState(KeySet(), JournalReport())
    except OSError as error:
        raise StoreError(f"cannot read {folder.samples}: {error.strerror or error}.") from error


def read_state(descriptor: int, folder: BenchmarkFolder) -> JournalState:
    """The state of the journal open at `descriptor`. Raises `StoreError` on a newer schema or a failing read."""
    keys, report = KeySet(), JournalReport()
    try:
        # The journal goes on with this descriptor.
        with open(descriptor, "rb", READ_BUFFER_BYTES, closefd=False) as file:
            for line in lines(file):
                if is_torn(line):
                    report.torn_tail = line.length
                    break
                key = None if line.raw is None else record.intact_key(line.raw, HEAD_BYTES, folder.name)
                if key is not None:
                    report.n_records += 1
                elif (sample := parse(line, folder, report)) is not None:
                    key = sample.key
                if key is not None:
                    report.n_duplicates += not keys.add(key)
    except OSError as error:
        raise StoreError(f"cannot read {folder.samples}: {error.strerror or error}.") from error
    return JournalState(keys, report)


def is_torn(line: Line) -> bool:
    """Whether the line, the last of its file, was cut: it has no newline, and is no whole record without one."""
    return not line.complete and (line.raw is None or not record.is_whole(line.raw))


# ---- the samples


def read_samples(
    folder: BenchmarkFolder,
    *,
    keys: Collection[Key] | None = None,
    span: tuple[int, int] | None = None,
    report: JournalReport | None = None,
) -> Iterator[Sample]:
    """The samples on disk (of `keys`, if given), in file order: the first intact record of a key counts.

    No file means no samples. A damaged line is skipped, and its sample has to be asked for again. span: read only the
    lines that begin at bytes [start, stop) of the file; adjoining spans together give every line once. report: gets
    what was found; it is complete once the iteration has ended. Raises `StoreError`, while iterating, on a newer schema
    or a failing read.
    """
    path, seen = folder.samples, KeySet()
    report = JournalReport() if report is None else report
    try:
        with open_untrusted(path) as file:
            for line in lines(file) if span is None else _lines_within(file, *span):
                if is_torn(line):
                    report.torn_tail = line.length
                    return
                sample = parse(line, folder, report)
                if sample is None:
                    continue
                if not seen.add(sample.key):
                    report.n_duplicates += 1
                elif keys is None or sample.key in keys:
                    yield sample
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error


def _lines_within(file: BinaryIO, start: int, stop: int) -> Iterator[Line]:
    """The lines that begin in [start, stop), in bytes; numbered from there."""
    # One byte earlier, where the newline before `start` is, so that a line beginning at `start` is not skipped.
    following = lines(file, max(0, start - 1))
    if start > 0:
        next(following, None)  # The end of the line before, or only its newline.
    yield from takewhile(lambda line: line.offset < stop, following)
