"""Reads a `samples.jsonl`: its lines, its keys, its damage, where the intact part ends, and its samples.

It changes nothing in the file and needs no lock: a run may be writing.

    a line                               counts as
    intact: newline, checksum, decodes   a sample; of a key that came before, a repeat that is reported
    damaged, too long, foreign           nothing: its key is owed, its number is reported
    blank                                nothing
    of a newer schema                    a refusal of the whole file
    the last, without a newline          the torn tail, which the journal moves aside

First the index is followed, with one small read a line (`_follow_index`), to the first entry that the data does not
bear out; from there each line is read and verified whole (`_read_on`). Invariant: both ways find the same keys in an
undamaged file. Memory stays within one record, the keys, and 24 bytes for each line that is not listed.
Not covered: `survey` does not see damage in the middle of a listed record; `read_samples` does.

The index is the sidecar `samples.index`: where each line of the journal stands, so that a resume need not read it all.
A header, then one entry a line: offset and length in bytes, the line's own checksum and that of its head (CRC-32), as
little-endian integers of 8, 8, 4 and 4 bytes. It holds no keys.

    an entry says                 the survey
    checksums                     reads the line's head and tail; believes the entry if both fit
    checksum 0                    reads the line whole
    something that does not fit   stops believing here, and reads everything from here on

Invariant: the index is never believed without a look at the data, so a missing, old, torn or forged index costs time
and nothing else. The index is written after the data is on disk, is not synced, and may be deleted at any time. A crash
leaves it short, or with a torn entry at its end.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import BinaryIO, NamedTuple

from harness.core.errors import StoreError
from harness.core.files import READ_BUFFER_BYTES, open_untrusted, read_at
from harness.core.inert import visible
from harness.core.limits import MAX_RECORD_BYTES
from harness.core.records import SCHEMA_VERSION, Key, Sample
from harness.runs import record
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import BOM, MAX_LINE_BYTES, Line, lines, write_whole
from harness.runs.record import KeySet

# ---- the index


HEAD_BYTES = 256
"""Bytes of a line that hold its key; a line with a longer key is read whole at every resume."""

_ENTRY = struct.Struct("<QQII")
_HEADER = struct.pack("<16sI", b"samples.index 1\n", SCHEMA_VERSION)


def entry(offset: int, line: bytes, crc: int, benchmark: str) -> bytes:
    """The entry of an intact line (with its newline) at `offset` whose checksum is `crc`."""
    head = line[:HEAD_BYTES]
    if not record.holds_key(head, benchmark):
        return unproved(offset, len(line))
    return _ENTRY.pack(offset, len(line), crc, zlib.crc32(head))


def unproved(offset: int, length: int) -> bytes:
    """The entry of a line that every resume must read whole."""
    return _ENTRY.pack(offset, length, 0, 0)


def read_entries(folder: BenchmarkFolder) -> Iterator[tuple[int, int, int, int]]:
    """Read the index of a journal: (offset, length, checksum, checksum of the head) of each entry.

    Gives no entry if the index is missing, unreadable, or of another version.
    """
    try:
        with open_untrusted(folder.index) as file:
            data = file.read()
    except OSError:
        return iter(())
    if not data.startswith(_HEADER):
        return iter(())
    # A crash may leave a torn entry at the end.
    whole = (len(data) - len(_HEADER)) // _ENTRY.size * _ENTRY.size
    return _ENTRY.iter_unpack(memoryview(data)[len(_HEADER) : len(_HEADER) + whole])


def count_entries(folder: BenchmarkFolder) -> int:
    """The number of entries in the index, from its size; 0 if it is missing."""
    try:
        return max(0, folder.index.stat().st_size - len(_HEADER)) // _ENTRY.size
    except OSError:
        return 0


def restart(descriptor: int, n_listed: int, entries: bytes | bytearray) -> None:
    """Keep the first `n_listed` entries of the index open at `descriptor`, then write `entries`. Raises `OSError`."""
    if n_listed == 0:
        os.ftruncate(descriptor, 0)
        write_whole(descriptor, _HEADER)
    else:
        os.ftruncate(descriptor, len(_HEADER) + n_listed * _ENTRY.size)
    extend(descriptor, entries)


def extend(descriptor: int, entries: bytes | bytearray) -> None:
    """Append `entries`. Raises `OSError`; a torn entry may then stand at the end."""
    write_whole(descriptor, memoryview(entries))


def forget(folder: BenchmarkFolder, offset: int, number: int) -> None:
    """Remove the index if its entry for line `number` (from 1) does not mark the line at `offset` as `unproved`.

    The next resume then reads everything, and finds the damage in this line.
    """
    with contextlib.suppress(OSError), open_untrusted(folder.index) as file:
        file.seek(len(_HEADER) + (number - 1) * _ENTRY.size)
        data = file.read(_ENTRY.size)
        if len(data) < _ENTRY.size:
            return
        listed_offset, _, crc, _ = _ENTRY.unpack(data)
        # A line whose entry has the checksum 0 is read whole at every resume, so the entry hides no damage.
        if (listed_offset, crc) != (offset, 0):
            folder.index.unlink()


# ---- the survey


FAR_BYTES = 8 * 1024
"""Two ranges of a file that lie further apart than this, in bytes, are read separately; nearer ones in one read."""

WINDOW_BYTES = 128 * 1024
"""Largest read, in bytes, that covers several neighbouring ranges."""


class DamagedLine(NamedTuple):
    """A damaged line, which does not count. number: from 1; offset: in bytes; reason: safe to print."""

    number: int
    offset: int
    reason: str


@dataclass(slots=True)
class JournalReport:
    """What was found in a journal.

    n_records: intact lines. n_duplicates: intact lines whose key had come before. conflicts: keys whose later
    line holds another text (known to `read_samples` only). torn_tail: bytes after the last newline.
    """

    n_records: int = 0
    n_duplicates: int = 0
    conflicts: list[Key] = field(default_factory=list)
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
    if line.data is not None and (intact := record.plain(line.data + b"\n", folder.name)) is not None:
        report.n_records += 1
        return intact[0]
    try:
        if line.data is None:
            raise record.Damaged(f"{line.length} bytes long; the bound is {MAX_RECORD_BYTES}")
        data, oddities = _plain(line)
        if not data:
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


def _plain(line: Line) -> tuple[bytes, list[str]]:
    """The line without the byte order mark or carriage return that editors add, and the names of what was removed."""
    data, oddities = line.data or b"", []
    if line.offset == 0 and data.startswith(BOM):
        data, oddities = data[len(BOM) :], ["a byte order mark"]
    if data.endswith(b"\r"):
        data, oddities = data[:-1], [*oddities, "CRLF line ends"]
    return data, oddities


@dataclass(slots=True)
class Survey:
    """A journal's state.

    keys: of its samples. end: offset after the last newline. n_listed: index entries that proved right. unlisted:
    new entries for the lines after those.
    """

    keys: KeySet
    report: JournalReport
    end: int
    n_listed: int
    unlisted: bytearray


def stored_keys(folder: BenchmarkFolder) -> KeySet:
    """The keys of the stored samples; none without a journal. Raises `StoreError` as `survey` does."""
    try:
        with open_untrusted(folder.samples) as file:
            return survey(file.fileno(), folder).keys
    except FileNotFoundError:
        return KeySet()
    except OSError as error:
        raise StoreError(f"cannot read {folder.samples}: {error.strerror or error}.") from error


def survey(descriptor: int, folder: BenchmarkFolder) -> Survey:
    """The state of the journal open at `descriptor`. Raises `StoreError` on a newer schema or a failing read.

    The index only says where to look: keys come from the data, each listed record's head and tail are checked, and from
    the first mismatch on everything is read and verified whole.
    """
    result = Survey(KeySet(), JournalReport(), 0, 0, bytearray())
    try:
        # The journal goes on with this descriptor.
        with open(descriptor, "rb", buffering=READ_BUFFER_BYTES, closefd=False) as file:
            _follow_index(file, folder, result)
            # From here on everything is read in order, so the kernel's read-ahead pays.
            _advise(descriptor, "POSIX_FADV_SEQUENTIAL")
            _read_on(file, folder, result)
    except OSError as error:
        raise StoreError(f"cannot read {folder.samples}: {error.strerror or error}.") from error
    return result


def _read_on(file: BinaryIO, folder: BenchmarkFolder, result: Survey) -> None:
    """Read and count the lines that the index does not list, each verified whole, up to a torn tail."""
    name, number, end = folder.name, result.n_listed, result.end
    n_intact = n_again = 0
    file.seek(end)
    # Hundreds of thousands of lines pass here at each start without an index, so an intact one is taken without the
    # values that `lines` and `parse` make of it. Any other line is read again, by them.
    add, pack, unlisted = result.keys.add, _ENTRY.pack, result.unlisted
    while data := file.readline(MAX_LINE_BYTES):
        number += 1
        head = data[:HEAD_BYTES]
        head_crc = zlib.crc32(head)
        intact = record.plain(data, name, HEAD_BYTES, head_crc)
        if intact is not None:
            sample, crc = intact
            n_intact += 1
            n_again += not add((sample.question_id, sample.sample_index))
            unlisted += (
                pack(end, len(data), crc, head_crc) if record.holds_key(head, name) else unproved(end, len(data))
            )
            end += len(data)
            continue
        line = next(lines(file, end, number))
        if not line.complete:
            result.report.torn_tail = line.length
            break
        result.unlisted += _take(line, folder, result)
        end += line.length
    result.end = end
    result.report.n_records += n_intact
    result.report.n_duplicates += n_again


def _take(line: Line, folder: BenchmarkFolder, result: Survey) -> bytes:
    """Check one whole line of the journal, count its sample, and return the line's entry for the index."""
    sample = parse(line, folder, result.report)
    if sample is None:
        return unproved(line.offset, line.length)
    result.report.n_duplicates += not result.keys.add(sample.key)
    assert line.data is not None
    if _plain(line)[0] is not line.data:  # Its checksum is not where the index expects it.
        return unproved(line.offset, line.length)
    return entry(line.offset, line.data + b"\n", record.checksum(line.data), folder.name)


def _follow_index(file: BinaryIO, folder: BenchmarkFolder, result: Survey) -> None:
    """Count the lines that the index lists in `result`, up to the first entry that the data contradicts."""
    descriptor, name, report, keys = file.fileno(), folder.name, result.report, result.keys
    size = os.fstat(descriptor).st_size
    # Only heads and tails are read: the kernel's read-ahead would fetch the whole file.
    _advise(descriptor, "POSIX_FADV_RANDOM")
    head, window = read_at(descriptor, HEAD_BYTES, 0), _Window(descriptor)
    for offset, length, crc, head_crc in read_entries(folder):
        after = offset + length
        # A gap between two entries would hide the keys of the lines in it.
        if offset != result.end or length < (record.TAIL_BYTES if crc else 1) or after > size:
            return
        if crc == 0:
            line = next(lines(file, offset, result.n_listed + 1))
            if not line.complete or line.length != length:
                return
            _take(line, folder, result)
            head = read_at(descriptor, HEAD_BYTES, after)
        else:
            # One read covers this record's tail and the next record's head.
            joint = window.read(after - record.TAIL_BYTES, record.TAIL_BYTES + HEAD_BYTES, length)
            key = record.head_key(head, name)
            # The head of a short line is shorter than `HEAD_BYTES`, so the next line's beginning is cut off.
            proved = joint.startswith(b',"crc":"%08x"}\n' % crc) and zlib.crc32(head[:length]) == head_crc
            if key is None or not proved:
                return
            report.n_duplicates += not keys.add(key)
            report.n_records += 1
            head = joint[record.TAIL_BYTES :]
        result.end = after
        result.n_listed += 1


class _Window:
    """Reads ranges of a file in ascending order: separately if they lie far apart, else several from one read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._data, self._begin = b"", 0

    def read(self, offset: int, length: int, step: int) -> bytes:
        """The `length` bytes at `offset`. step: bytes from the last range to this one; the next may be as far away."""
        begin = offset - self._begin
        if begin < 0 or begin + length > len(self._data):
            self._begin, begin = offset, 0
            self._data = read_at(self._descriptor, length if step > FAR_BYTES else WINDOW_BYTES, offset)
        return self._data[begin : begin + length]


def _advise(descriptor: int, advice: str) -> None:
    """Tell the kernel how the file will be read, where the system supports that."""
    if hasattr(os, advice):
        os.posix_fadvise(descriptor, 0, 0, getattr(os, advice))


# ---- the samples


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
        """Read the samples of the file or of a span of it, each key once; note in the report what is wrong."""
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
                        forget(self._folder, line.offset, line.number)
                    if sample is None:
                        continue
                    if not seen.add(sample.key):
                        report.n_duplicates += 1
                        # A hash, since the texts of many repeats would not fit in memory.
                        again.setdefault(sample.key, set()).add(text_hash(sample))
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

        Reads the file once more, if there are repeated keys. again: key → hashes of the texts of its later records.
        """
        differing: set[Key] = set()
        left = dict(again)
        for line in lines(file) if again else ():
            sample = parse(line, self._folder, JournalReport()) if line.complete else None
            if sample is None:
                continue
            later = left.pop(sample.key, None)
            if later is not None and later != {text_hash(sample)}:
                differing.add(sample.key)
            if not left:
                break
        return [key for key in again if key in differing]


def _lines_within(file: BinaryIO, start: int, stop: int) -> Iterator[Line]:
    """The lines that begin in [start, stop), in bytes; numbered from there."""
    # One byte earlier, where the newline before `start` is, so that a line beginning at `start` is not skipped.
    following = lines(file, max(0, start - 1))
    if start > 0:
        next(following, None)  # The end of the line before, or only its newline.
    yield from takewhile(lambda line: line.offset < stop, following)


def text_hash(sample: Sample) -> int:
    """A hash of a sample's texts, by which two records of one key are compared."""
    return hash((sample.text, sample.reasoning))


def read_samples(
    folder: BenchmarkFolder, *, keys: Collection[Key] | None = None, span: tuple[int, int] | None = None
) -> SampleReader:
    """The samples on disk (of `keys`, if given): the first intact record of a key counts, later ones are reported.

    span: read only the lines that begin at bytes [start, stop) of the file; adjoining spans together give every line
    once.

    No file means no samples. A damaged line is skipped, and its sample has to be asked for again. If the folder's index
    lists the line as intact, the index is removed, so that the next resume reads the whole file.
    Raises `StoreError`, while iterating, on a newer schema or a failing read.
    """
    return SampleReader(folder, keys, span)
