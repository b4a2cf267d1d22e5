"""The sidecar `samples.index`: where each line of the journal stands, so that a resume need not read it all.

A header, then one entry a line: offset and length in bytes, the line's own checksum and that of its head (CRC-32), as
little-endian integers of 8, 8, 4 and 4 bytes. It holds no keys.

    an entry says                 the survey
    checksums                     reads the line's head and tail; believes the entry if both fit
    checksum 0                    reads the line whole
    something that does not fit   stops believing here, and reads everything from here on

Invariant: the index is never believed without a look at the data, so no index, an old one, a torn one or a forged one
costs time and nothing else. It is written after the data is on disk, is not synced, and may be deleted at any time. A
crash leaves it short, or with a torn entry at its end.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator

from harness.core.files import open_untrusted
from harness.core.records import SCHEMA_VERSION
from harness.runs import record
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import write_whole

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
    """The entry of a line that is to be read whole at every resume."""
    return _ENTRY.pack(offset, length, 0, 0)


def read_entries(folder: BenchmarkFolder) -> Iterator[tuple[int, int, int, int]]:
    """(offset, length, checksum, checksum of the head) of each entry in the index; none when it is missing, unreadable,
    or of another version."""
    try:
        with open_untrusted(folder.index) as file:
            data = file.read()
    except OSError:
        return iter(())
    if not data.startswith(_HEADER):
        return iter(())
    whole = (len(data) - len(_HEADER)) // _ENTRY.size * _ENTRY.size
    return _ENTRY.iter_unpack(memoryview(data)[len(_HEADER) : len(_HEADER) + whole])


def count_entries(folder: BenchmarkFolder) -> int:
    """How many entries the index holds, by its size."""
    try:
        return max(0, folder.index.stat().st_size - len(_HEADER)) // _ENTRY.size
    except OSError:
        return 0


def restart(descriptor: int, n_listed: int, entries: bytes | bytearray) -> None:
    """Leave the first `n_listed` entries of the index open at `descriptor`, then write `entries`. Raises `OSError`."""
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
    """Remove the index if it calls line `number` (from 1) at `offset` intact; the next resume then reads everything."""
    with contextlib.suppress(OSError), open_untrusted(folder.index) as file:
        file.seek(len(_HEADER) + (number - 1) * _ENTRY.size)
        data = file.read(_ENTRY.size)
        if len(data) == _ENTRY.size and _ENTRY.unpack(data)[:3:2] != (offset, 0):
            folder.index.unlink()
