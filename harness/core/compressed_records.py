"""Long sequences of records in little memory: compressed in blocks, and decoded when a record is read.

    records 0 … 31 │ 32 … 63 │ …          │ the last ones
    one block      │ a block │            │ plain objects
    Spilled: bytes in memory, beyond 2 MB in an unnamed file, which is deleted with the process

A sequence of at most 5,000 records and 32 MB is a list of plain objects. A larger one is split into blocks of 32
records, or of fewer that reach 1 MB, and only the records after the last whole block stay plain. Reading a record
unpacks its block. The last 64 unpacked blocks are kept, up to 32 MB, so that a pass in order unpacks each block once.

    class      contains
    Spilled    the compressed bytes of all blocks, one after another
    Packed     a sequence whose blocks are in a `Spilled`
    Picked     some records of another sequence, by their indices there

Invariant: block b is the bytes `_ends[b]` to `_ends[b + 1]` of the `Spilled`, and its first record has the index
`_starts[b]`.
"""

from __future__ import annotations

import tempfile
import weakref
import zlib
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, overload

import msgspec

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import disk_errors, read_at

R = TypeVar("R")

PLAIN_RECORDS = 5000
"""A sequence of at most this many records stays unpacked: it takes little memory."""

PLAIN_BYTES = 32 * 1024 * 1024
"""A sequence of at most this many bytes, as JSON, stays unpacked. A question about a long text has 2 MB."""

BLOCK_RECORDS = 32
"""Number of records that are compressed together. Reading a single record unpacks all of them, in 0.1 ms."""

BLOCK_BYTES = 1024 * 1024
"""A block ends with the record that brings it to this many bytes."""

OPEN_BLOCKS = 64
"""Number of unpacked blocks that are kept; the one that was unpacked first is dropped first. A pass in order finds its
block among them."""

OPEN_BYTES = 32 * 1024 * 1024
"""Largest total size of the unpacked blocks that are kept; the block read last is kept whatever its length."""

HELD_BYTES = 2 * 1024 * 1024
"""Largest number of bytes of a `Spilled` that stay in memory."""


class Spilled:
    """Bytes that can grow and be read at any offset; beyond `HELD_BYTES` they move to an unnamed file in `TMPDIR`."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._file: IO[bytes] | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, data: bytes) -> None:
        """Append `data`. Raises `StoreError` if the disk is full."""
        self._size += len(data)
        if self._file is None and self._size <= HELD_BYTES:
            self._held += data
            return
        with disk_errors(Path(tempfile.gettempdir())):
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as this object
                # Closed with this object, because Python warns about a file that is collected while open.
                weakref.finalize(self, self._file.close)
                _write_all(self._file, memoryview(self._held))
                self._held = bytearray()
            _write_all(self._file, data)

    def read(self, begin: int, size: int) -> bytes:
        """Return `size` bytes from position `begin`, from memory or the temporary file. Raises `StoreError`."""
        if self._file is None:
            return bytes(memoryview(self._held)[begin : begin + size])
        try:
            return read_at(self._file.fileno(), size, begin)
        except OSError as error:
            message = f"cannot read a temporary file ({error.strerror}); set TMPDIR to a folder on another disk"
            raise StoreError(message) from error


def _write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    """Write all of `data` at the end of the file. Raises `OSError`."""
    while data:  # an unbuffered file may write fewer bytes than it is given
        data = data[file.write(data) :]


class _Records(Sequence[R], Generic[R]):
    """A sequence that computes its records. It compares equal to any sequence of equal records."""

    __slots__ = ()

    def _at(self, index: int) -> R:
        """The record at a valid index, from 0."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...

    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        picked = range(len(self))[index]
        return self._at(picked) if isinstance(picked, int) else [self._at(each) for each in picked]

    def __eq__(self, value: Any) -> bool:
        if not isinstance(value, Sequence) or len(self) != len(value):
            return False
        return all(mine == theirs for mine, theirs in zip(self, value, strict=True))

    __hash__ = None  # type: ignore[assignment]


class Packed(_Records[R]):
    """A sequence of records of one msgspec type, whose blocks are compressed in a `Spilled`."""

    def __init__(self, type: type[R], records: Iterable[R] = (), *, open_blocks: int | None = None) -> None:
        self._type = type
        self._all_of = msgspec.json.Decoder(list[type])  # type: ignore[valid-type]
        self._open_blocks = open_blocks or OPEN_BLOCKS
        self._ends = array("Q", [0])  # offset where each block ends; the 0 is where block 0 begins
        self._starts = array("Q", [0])  # index of each block's first record, and last that of the first plain record
        self._opened: OrderedDict[int, list[bytes]] = OrderedDict()  # unpacked blocks, the latest last
        self._opened_bytes = 0
        self._file = Spilled()
        self._plain: list[R] = []  # the records after the last block
        self._pending: list[bytes] = []  # once the sequence is packed, the plain records as encoded for a block
        self._plain_bytes = 0
        for record in records:
            self.append(record)

    def append(self, record: R) -> None:
        """Append `record`. Raises `StoreError` if the disk is full."""
        line = codec.encode(record)
        if self._n_blocks:
            self._add(record, line)
            return
        self._plain.append(record)
        self._plain_bytes += len(line)
        # Nothing is packed until the plain records exceed a limit in number or bytes; then all of them are.
        if len(self._plain) >= PLAIN_RECORDS + BLOCK_RECORDS or self._plain_bytes > PLAIN_BYTES:
            plain, self._plain, self._pending, self._plain_bytes = self._plain, [], [], 0
            for earlier in plain:
                self._add(earlier, codec.encode(earlier))

    def _add(self, record: R, line: bytes) -> None:
        """Append a record to those not yet in a block, and compress them into a block once they are many or large.

        line: the encoded record.
        """
        self._plain.append(record)
        self._pending.append(line)
        self._plain_bytes += len(line)
        if len(self._pending) >= BLOCK_RECORDS or self._plain_bytes >= BLOCK_BYTES:
            self._file.append(zlib.compress(b"\n".join(self._pending), 1))
            self._ends.append(len(self._file))  # the file's length in bytes
            self._starts.append(self._starts[-1] + len(self._pending))
            self._plain, self._pending, self._plain_bytes = [], [], 0

    def _lines(self, block: int) -> list[bytes]:
        """The encoded records of a block."""
        begin, end = self._ends[block], self._ends[block + 1]
        # JSON escapes newlines inside texts, so each line is one record.
        return zlib.decompress(self._file.read(begin, end - begin)).split(b"\n")

    def __len__(self) -> int:
        return self._starts[-1] + len(self._plain)

    @property
    def _n_blocks(self) -> int:
        """The number of compressed blocks."""
        return len(self._ends) - 1

    def _at(self, index: int) -> R:
        if index >= self._starts[-1]:
            return self._plain[index - self._starts[-1]]
        block = bisect_right(self._starts, index) - 1
        return codec.decode(self._open(block)[index - self._starts[block]], self._type)

    def _open(self, block: int) -> list[bytes]:
        """The encoded records of a block, which then stays unpacked in memory for a while."""
        lines = self._opened.get(block)
        if lines is None:
            lines = self._opened[block] = self._lines(block)
            self._opened_bytes += sum(map(len, lines))
            while len(self._opened) > 1 and (len(self._opened) > self._open_blocks or self._opened_bytes > OPEN_BYTES):
                _, closed = self._opened.popitem(last=False)
                self._opened_bytes -= sum(map(len, closed))
        return lines

    def __iter__(self) -> Iterator[R]:
        # Bypass the cache of unpacked blocks, whose contents a whole pass would only displace.
        for block in range(self._n_blocks):
            lines = self._lines(block)
            try:
                yield from self._all_of.decode(b"[%b]" % b",".join(lines))  # in half the time
            except (msgspec.DecodeError, UnicodeDecodeError):  # a lone surrogate
                yield from (codec.decode(line, self._type) for line in lines)
        yield from self._plain


class Picked(_Records[R]):
    """A view of some records of a sequence.

    records: the sequence. indices: of the records in it, in the view's order. begin, end: the view takes only
    `indices[begin:end]`.
    """

    __slots__ = ("_begin", "_end", "_indices", "_records")

    def __init__(self, records: Sequence[R], indices: Sequence[int], begin: int = 0, end: int | None = None) -> None:
        self._records = records
        self._indices = indices
        self._begin = begin
        self._end = len(indices) if end is None else end

    @property
    def indices(self) -> Sequence[int]:
        """The indices of the view's records in the underlying sequence, in order."""
        return self._indices[self._begin : self._end]

    def __len__(self) -> int:
        return self._end - self._begin

    def _at(self, index: int) -> R:
        return self._records[self._indices[self._begin + index]]

    def __iter__(self) -> Iterator[R]:
        return (self._records[index] for index in self.indices)
