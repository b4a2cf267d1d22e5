"""Long sequences of records in little memory: compressed in blocks, and decoded when a record is read.

    records 0 … 31 │ 32 … 63 │ …          │ the last ones
    one block      │ a block │            │ plain objects
    Spilled: bytes in memory, beyond 2 MB in a file without a name, which ends with the process

A sequence of at most 5,000 records is a list of plain objects. A longer one is cut into blocks of 32, and only the
records behind the last whole block stay plain. Reading a record unpacks its block. The last 64 unpacked blocks are
kept, so a pass in order unpacks each block once.

    class      holds
    Spilled    the compressed bytes of all blocks, one after the other
    Blocks     the sequence, without saying where a block's records come from
    Packed     a sequence whose blocks lie in a `Spilled`
    Picked     some records of another sequence, by their indices there

Invariant: block b is the bytes `_ends[b]` to `_ends[b + 1]` of the `Spilled`.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import weakref
import zlib
from abc import abstractmethod
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, overload

import msgspec

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import disk_error

R = TypeVar("R")

PLAIN_RECORDS = 5000
"""A sequence of at most this many records stays unpacked: it takes little memory."""

BLOCK_RECORDS = 32
"""Number of records that are compressed together. Reading a single record unpacks all of them, in 0.1 ms."""

OPEN_BLOCKS = 64
"""Number of unpacked blocks that are kept, the least recently read going first; a pass in order finds its block among
them."""

HELD_BYTES = 2 * 1024 * 1024
"""Bytes of one `Spilled` that stay in memory."""


class Spilled:
    """Growing bytes that can be read at any offset; beyond `HELD_BYTES` they move to an unnamed file in `TMPDIR`."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._file: IO[bytes] | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, data: bytes) -> None:
        """Put `data` at the end. Raises `StoreError` where the disk is full."""
        self._size += len(data)
        if self._file is None and self._size <= HELD_BYTES:
            self._held += data
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it lives as long as this object
                # Closed with this object: Python warns of a file that is collected while open.
                weakref.finalize(self, self._file.close)
                _write_all(self._file, memoryview(self._held))
                self._held = bytearray()
            _write_all(self._file, data)
        except OSError as error:
            raise disk_error(Path(tempfile.gettempdir()), error) from error

    def read(self, begin: int, size: int) -> bytes:
        """`size` bytes from `begin` on. Raises `StoreError`."""
        if self._file is None:
            return bytes(memoryview(self._held)[begin : begin + size])
        parts = []
        try:
            while size > 0 and (part := os.pread(self._file.fileno(), size, begin)):
                parts.append(part)
                begin, size = begin + len(part), size - len(part)
        except OSError as error:
            where = tempfile.gettempdir()
            raise StoreError(
                f"cannot read a temporary file in {where} again ({error.strerror or error}): set TMPDIR to a folder on "
                "another disk and give the command again"
            ) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _write_all(file: IO[bytes], data: bytes | memoryview) -> None:
    while data:  # an unbuffered file may write fewer bytes than it is given
        data = data[file.write(data) :]


class Blocks(Sequence[R], Generic[R]):
    """A sequence of records of one msgspec type, read block by block; a subclass says where a block comes from.

    It equals any sequence of equal records.
    """

    def __init__(self, type: type[R], *, open_blocks: int | None = None) -> None:
        self._type = type
        self._all_of = msgspec.json.Decoder(list[type])  # type: ignore[valid-type]
        self._open_blocks = open_blocks or OPEN_BLOCKS
        self._ends = array("Q", [0])  # offset where each block ends; the 0 is where block 0 begins
        self._opened: OrderedDict[int, list[bytes]] = OrderedDict()  # unpacked blocks, the latest last
        self._plain: list[R] = []  # the records behind the last block

    @abstractmethod
    def _lines(self, block: int) -> list[bytes]:
        """The encoded records of a block, in order."""

    def _record(self, _index: int, line: bytes, /) -> R:
        return codec.decode(line, self._type)

    def _records(self, begin: int, lines: list[bytes]) -> Iterable[R]:
        """The records in `lines`, of which the first has the index `begin`."""
        # Decoded all at once, in half the time; `_record` says what is wrong with a line that is not one record.
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            records = self._all_of.decode(b"[%b]" % b",".join(lines))
            if len(records) == len(lines):
                return records
        return (self._record(index, line) for index, line in enumerate(lines, begin))

    def __len__(self) -> int:
        return self._n_blocks * BLOCK_RECORDS + len(self._plain)

    @property
    def _n_blocks(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...

    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = index + len(self) if index < 0 else index
        if not 0 <= index < len(self):
            raise IndexError(index)
        block, offset = divmod(index, BLOCK_RECORDS)
        if block >= self._n_blocks:
            return self._plain[index - self._n_blocks * BLOCK_RECORDS]
        lines = self._opened.get(block)
        if lines is None:
            lines = self._opened[block] = self._lines(block)
            if len(self._opened) > self._open_blocks:
                self._opened.popitem(last=False)
        return self._record(index, lines[offset])

    def __iter__(self) -> Iterator[R]:
        # Past the cache of unpacked blocks, which a whole pass would only empty.
        for block in range(self._n_blocks):
            yield from self._records(block * BLOCK_RECORDS, self._lines(block))
        yield from self._plain

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class Packed(Blocks[R]):
    """A sequence of records whose blocks are compressed in a `Spilled`."""

    def __init__(self, type: type[R], records: Iterable[R] = (), *, open_blocks: int | None = None) -> None:
        super().__init__(type, open_blocks=open_blocks)
        self._blocks = Spilled()
        for record in records:
            self.append(record)

    def append(self, record: R) -> None:
        """Put `record` at the end. Raises `StoreError` if the disk is full."""
        self._plain.append(record)
        # The first packing waits for the 5,000 plain records; from then on each whole block is packed at once.
        if len(self._plain) >= (BLOCK_RECORDS if len(self._ends) > 1 else PLAIN_RECORDS + BLOCK_RECORDS):
            for begin in range(0, len(self._plain) - BLOCK_RECORDS + 1, BLOCK_RECORDS):
                lines = map(codec.encode, self._plain[begin : begin + BLOCK_RECORDS])
                self._blocks.append(zlib.compress(b"\n".join(lines), 1))
                self._ends.append(len(self._blocks))
            del self._plain[: begin + BLOCK_RECORDS]

    def _lines(self, block: int) -> list[bytes]:
        begin, end = self._ends[block], self._ends[block + 1]
        # JSON escapes newlines inside texts, so each line is one record.
        return zlib.decompress(self._blocks.read(begin, end - begin)).split(b"\n")


class Picked(Sequence[R], Generic[R]):
    """A view of some records of a sequence: those at the indices `places`, from index `begin` to `end` of these."""

    __slots__ = ("_begin", "_end", "_places", "_records")

    def __init__(self, records: Sequence[R], places: Sequence[int], begin: int = 0, end: int | None = None) -> None:
        self._records = records
        self._places = places
        self._begin = begin
        self._end = len(places) if end is None else end

    @property
    def places(self) -> Sequence[int]:
        """The indices of the records in the underlying sequence, in order."""
        return self._places[self._begin : self._end]

    def __len__(self) -> int:
        return self._end - self._begin

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...

    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._records[self._places[range(self._begin, self._end)[index]]]

    def __iter__(self) -> Iterator[R]:
        return (self._records[index] for index in self.places)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
