"""A column of a Parquet row group: its pages unpacked into levels and values.

    page      header │ repetition levels │ definition levels │ values              unpacked as a whole in version 1,
                                                                                   values alone in version 2

    encoding of values         what the bytes are
    PLAIN                      the values one after the other; a text after its length
    RLE_DICTIONARY             numbers of values of the dictionary page
    RLE                        runs of equal values and groups of 8 packed by bits: levels, numbers, booleans
    DELTA_BINARY_PACKED        integers as differences, in blocks
    DELTA_LENGTH_BYTE_ARRAY    the texts' lengths as DELTA_BINARY_PACKED, then all texts
    DELTA_BYTE_ARRAY           lengths of the beginnings that texts share with the text before, then the rest of each
    BYTE_STREAM_SPLIT          the first bytes of all numbers, then the second bytes …

Every page's sizes are checked against the budget before they are allocated: a file of a few bytes may claim any size.

Long: each encoding has its decoder, and all of them read pages under the same bounds.
"""

from __future__ import annotations

import enum
import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from harness.benchmarks.sources import zstandard
from harness.benchmarks.sources.parquet import snappy
from harness.benchmarks.sources.parquet.thrift import ByteReader, DamagedError, Fields

ENTRY_BYTES = 16
"""Bytes that the budget counts for an entry: its two levels and its number. A text is counted in addition."""


class PhysicalType(enum.IntEnum):
    """How a column's values are stored."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    FIXED_BYTES = 7


class _Encoding(enum.IntEnum):
    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    DELTA_BINARY_PACKED = 5
    DELTA_LENGTH_BYTE_ARRAY = 6
    DELTA_BYTE_ARRAY = 7
    RLE_DICTIONARY = 8
    BYTE_STREAM_SPLIT = 9


_ENCODED_TYPES: dict[int, frozenset[PhysicalType]] = {
    _Encoding.PLAIN: frozenset(PhysicalType),
    _Encoding.PLAIN_DICTIONARY: frozenset(PhysicalType),
    _Encoding.RLE_DICTIONARY: frozenset(PhysicalType),
    _Encoding.RLE: frozenset({PhysicalType.BOOLEAN}),
    _Encoding.DELTA_BINARY_PACKED: frozenset({PhysicalType.INT32, PhysicalType.INT64}),
    _Encoding.DELTA_LENGTH_BYTE_ARRAY: frozenset({PhysicalType.BYTES}),
    _Encoding.DELTA_BYTE_ARRAY: frozenset({PhysicalType.BYTES, PhysicalType.FIXED_BYTES}),
    _Encoding.BYTE_STREAM_SPLIT: frozenset(
        {PhysicalType.INT32, PhysicalType.INT64, PhysicalType.FLOAT, PhysicalType.DOUBLE, PhysicalType.FIXED_BYTES}
    ),
}
"""Encoding → the types whose values may have it. Any other type is refused, because its column would get values of
another type.
"""

_NUMBERS = {PhysicalType.INT32: "<i4", PhysicalType.INT64: "<i8", PhysicalType.FLOAT: "<f4", PhysicalType.DOUBLE: "<f8"}

_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3

_SLICE_VALUES = 8 * 1024
"""Values that are unpacked from bits at once, a multiple of 8."""


class TooLargeError(Exception):
    """The file unpacks to more than the caller allows."""


@dataclass
class UnpackedBytes:
    """Counts the unpacked bytes of a file, and refuses the file at a bound. max_bytes: the bound."""

    max_bytes: int
    n_bytes: int = 0

    def spend(self, n_bytes: int) -> None:
        """Count bytes before they are allocated. Raises `TooLargeError` at the bound."""
        if n_bytes < 0:
            raise DamagedError("a size is negative")
        self.n_bytes += n_bytes
        if self.n_bytes > self.max_bytes:
            raise TooLargeError


@dataclass
class ColumnEntries:
    """The entries of a column: one for each value, null and empty list. values: None where there is no value."""

    definitions: list[int] = field(default_factory=list)
    repetitions: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


def column_of(
    file: BinaryIO,
    n_file_bytes: int,
    chunk: Fields,
    physical: PhysicalType,
    width: int,
    levels: tuple[int, int],
    budget: UnpackedBytes,
) -> ColumnEntries:
    """Read one column of a row group from the file: its values, with the levels that say which are absent or nested.

    chunk: the footer's description of this column (offset, size, number of entries, compression). n_file_bytes: size of
    the file, which bounds what a chunk may claim. width: bytes of a value of `FIXED_BYTES`. levels: largest definition
    and repetition level. Raises `DamagedError`, `TooLargeError`.
    """
    # Numbers of fields in parquet.thrift: ColumnChunk has 1 file_path, 3 meta_data; ColumnMetaData has 4 codec,
    # 5 num_values, 7 total_compressed_size, 9 data_page_offset, 11 dictionary_page_offset.
    facts = chunk.fields(3)
    if not facts or chunk.text(1):
        raise DamagedError("a column's data are in another file; only columns in the file itself are read")
    # Some writers leave a dictionary's offset at 0 where there is no dictionary.
    start = min((offset for offset in (facts.integer(9), facts.integer(11)) if offset), default=0)
    n_bytes, n_entries = facts.integer(7), facts.integer(5)
    if not n_entries:
        return ColumnEntries()
    if start < 4 or n_bytes < 0 or start + n_bytes > n_file_bytes:
        raise DamagedError("the footer gives a column an offset or a size outside the file")
    file.seek(start)
    reader = ByteReader(file.read(n_bytes))
    pages = _Pages(physical, width, levels, facts.integer(4), budget)
    while len(pages.column.definitions) < n_entries:
        pages.read(reader)
    if len(pages.column.definitions) != n_entries:
        raise DamagedError(
            f"a column has {len(pages.column.definitions)} values, but the footer states {n_entries} for it"
        )
    return pages.column


class _Pages:
    """Reads the pages of a column in order. column: the entries so far."""

    def __init__(
        self, physical: PhysicalType, width: int, levels: tuple[int, int], codec: int, budget: UnpackedBytes
    ) -> None:
        self.column = ColumnEntries()
        self._physical, self._width, self._codec, self._budget = physical, width, codec, budget
        self._max_definition, self._max_repetition = levels
        self._dictionary: list[Any] = []
        self._sizes: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def read(self, reader: ByteReader) -> None:
        """Read one page, dictionary or data, and add its values to the column."""
        # Numbers of fields in parquet.thrift: PageHeader has 1 type, 2 uncompressed size, 3 compressed size, and the
        # headers 5 of a data page, 7 of a dictionary page, 8 of a data page of version 2. Each of these has 1 number of
        # values. Header 5 has 2 encoding, 3 and 4 encoding of the definition and repetition levels. Header 8 has
        # 4 encoding, 5 and 6 bytes of the definition and repetition levels, 7 whether the values are compressed.
        header = reader.metadata()
        kind, n_unpacked, body = header.integer(1), header.integer(2), reader.take(header.integer(3))
        if kind == _DICTIONARY:
            n_values = self._count(header.fields(7).integer(1))
            page = ByteReader(self._unpack(body, n_unpacked))
            self._dictionary = self._values(_Encoding.PLAIN, page, n_values)
            self._sizes = np.array([_size(value) for value in self._dictionary], np.int64)
        elif kind == _DATA:
            described = header.fields(5)
            n_entries = self._count(described.integer(1))
            page = ByteReader(self._unpack(body, n_unpacked))
            repetitions = self._levels(page, self._max_repetition, n_entries, described.integer(4))
            definitions = self._levels(page, self._max_definition, n_entries, described.integer(3))
            self._add(repetitions, definitions, page, described.integer(2))
        elif kind == _DATA_2:
            described = header.fields(8)
            n_entries = self._count(described.integer(1))
            page = ByteReader(body)
            repetition_bytes, definition_bytes = page.take(described.integer(6)), page.take(described.integer(5))
            values = page.rest()
            n_values_bytes = n_unpacked - len(repetition_bytes) - len(definition_bytes)
            # Where all values are null, some writers compress nothing, not even to an empty frame.
            if described.get(7, True) and n_values_bytes:
                values = memoryview(self._unpack(values, n_values_bytes))
            repetitions = _runs_of_levels(repetition_bytes, self._max_repetition, n_entries)
            definitions = _runs_of_levels(definition_bytes, self._max_definition, n_entries)
            self._add(repetitions, definitions, ByteReader(values), described.integer(4))

    def _count(self, n_entries: int) -> int:
        """Count the memory of a page's entries against the file's bound; return their number, `n_entries`."""
        self._budget.spend(n_entries * ENTRY_BYTES)
        return n_entries

    def _unpack(self, body: memoryview, n_bytes: int) -> bytes | memoryview:
        """Decompress the bytes of a page. n_bytes: the decompressed size that the page's header states."""
        unpack = _CODECS.get(self._codec)
        if unpack is None:
            method = _OTHER_CODECS.get(self._codec, "an unknown method")
            raise DamagedError(f"it is compressed by {method}; only Snappy, gzip and Zstandard are read")
        self._budget.spend(n_bytes)
        data = unpack(body, n_bytes)
        if len(data) != n_bytes:
            raise DamagedError(f"a page's header states {n_bytes} unpacked bytes, but the page unpacks to another size")
        return data

    def _levels(self, page: ByteReader, most: int, n_entries: int, encoding: int) -> npt.NDArray[np.int64]:
        """Read the level of each entry of a data page: how much of its nested path is there, or repeats.

        page: a page of version 1, at the position where these levels begin. most: the highest level that the schema
        allows. encoding: Parquet's number of the levels' encoding.
        """
        if not most:
            return np.zeros(n_entries, np.int64)
        if encoding != _Encoding.RLE:
            raise DamagedError(
                f"a page has its levels in the encoding {encoding}; only RLE ({_Encoding.RLE:d}) is read"
            )
        (n_bytes,) = struct.unpack("<I", page.take(4))
        return _runs_of_levels(page.take(n_bytes), most, n_entries)

    def _add(
        self,
        repetitions: npt.NDArray[np.int64],
        definitions: npt.NDArray[np.int64],
        page: ByteReader,
        encoding: int,
    ) -> None:
        """Add a page's values to the column; None stands where an entry has no value.

        definitions: for each entry its definition level; an entry has a value if the level is the column's highest.
        repetitions: for each entry its repetition level, the depth of the list to which it adds an item. encoding:
        Parquet's number of the values' encoding.
        """
        present = definitions == self._max_definition
        n_values = int(np.count_nonzero(present))
        values: Any = self._values(encoding, page, n_values)
        if n_values < len(present):
            following = iter(values)
            values = [next(following) if there else None for there in present.tolist()]
        self.column.repetitions += repetitions.tolist()
        self.column.definitions += definitions.tolist()
        self.column.values += values

    def _values(self, encoding: int, page: ByteReader, n_values: int) -> list[Any]:
        """Decode the values of a page. encoding: Parquet's number of their encoding (the table at the top)."""
        if encoding not in _ENCODED_TYPES:
            allowed = ", ".join(f"{number:d}" for number in _ENCODED_TYPES)
            raise DamagedError(f"a column has the encoding {encoding}; expected one of {allowed}")
        if self._physical not in _ENCODED_TYPES[encoding]:
            raise DamagedError(f"values of the type {self._physical.name} cannot have the encoding {encoding}")
        if not n_values:
            return []
        if encoding in (_Encoding.PLAIN_DICTIONARY, _Encoding.RLE_DICTIONARY):
            (width,) = page.take(1)
            numbers = _runs(page, width, n_values)
            if len(numbers) and int(numbers.max()) >= len(self._dictionary):
                raise DamagedError(
                    f"a value is number {int(numbers.max())} of a dictionary of {len(self._dictionary)} values"
                )
            self._budget.spend(int(self._sizes[numbers].sum()))
            return [self._dictionary[number] for number in numbers.tolist()]
        if encoding == _Encoding.PLAIN:
            return _plain(page, self._physical, self._width, n_values)
        if encoding == _Encoding.RLE:
            page.take(4)  # the length, which the page's end tells, too
            booleans: list[Any] = _runs(page, 1, n_values).astype(bool).tolist()
            return booleans
        if encoding == _Encoding.DELTA_BINARY_PACKED:
            return _deltas(page, n_values, 32 if self._physical is PhysicalType.INT32 else 64)
        if encoding == _Encoding.DELTA_LENGTH_BYTE_ARRAY:
            return [bytes(page.take(length)) for length in _deltas(page, n_values, 32)]
        if encoding == _Encoding.DELTA_BYTE_ARRAY:
            return self._with_shared_beginnings(page, n_values)
        return _split_streams(page, self._physical, self._width, n_values)

    def _with_shared_beginnings(self, page: ByteReader, n_values: int) -> list[bytes]:
        """Decode `n_values` texts that are stored as differences to the text before (DELTA_BYTE_ARRAY).

        Each text is stored as the number of bytes that it shares with the beginning of the text before it, and the
        rest.
        """
        shared, lengths = _deltas(page, n_values, 32), _deltas(page, n_values, 32)
        # Each text may be as long as all before it together: unlike other pages, this one grows as it is unpacked.
        values: list[bytes] = []
        text = b""
        for n_shared, length in zip(shared, lengths, strict=True):
            if not 0 <= n_shared <= len(text):
                raise DamagedError(
                    f"a text takes its first {n_shared} bytes from the text before it, which has {len(text)}"
                )
            self._budget.spend(n_shared)
            text = text[:n_shared] + bytes(page.take(length))
            values.append(text)
        return values


def _size(value: Any) -> int:
    return len(value) if isinstance(value, bytes) else 8


def _plain(page: ByteReader, physical: PhysicalType, width: int, n_values: int) -> list[Any]:
    """Decode `n_values` values in the encoding PLAIN: little-endian numbers, bits, or texts after their lengths.

    width: bytes of a value of `FIXED_BYTES`.
    """
    if physical in _NUMBERS:
        kind = np.dtype(_NUMBERS[physical])
        values: list[Any] = np.frombuffer(page.take(n_values * kind.itemsize), kind).tolist()
        return values
    if physical is PhysicalType.BOOLEAN:
        bits = np.unpackbits(np.frombuffer(page.take((n_values + 7) // 8), np.uint8), bitorder="little")
        values = bits[:n_values].astype(bool).tolist()
        return values
    if physical is PhysicalType.BYTES:
        data, position, texts = bytes(page.rest()), 0, []
        for _ in range(n_values):
            end = position + 4 + int.from_bytes(data[position : position + 4], "little")
            if end > len(data):
                raise DamagedError("a text ends beyond its page")
            texts.append(data[position + 4 : end])
            position = end
        return texts
    width = 12 if physical is PhysicalType.INT96 else width
    if width <= 0:
        raise DamagedError(f"a column of FIXED_LEN_BYTE_ARRAY states {width} bytes for a value; expected at least 1")
    data = bytes(page.take(n_values * width))
    return [data[start : start + width] for start in range(0, len(data), width)]


def _runs_of_levels(data: memoryview, most: int, n_entries: int) -> npt.NDArray[np.int64]:
    """Decode the level of each of `n_entries` entries from run-length encoding.

    most: the highest level that the schema allows.
    """
    if not most:
        return np.zeros(n_entries, np.int64)
    levels = _runs(ByteReader(data), most.bit_length(), n_entries)
    if len(levels) and int(levels.max()) > most:
        raise DamagedError(f"a value has the level {int(levels.max())}, but the schema allows at most {most}")
    return levels


def _runs(page: ByteReader, width: int, n_values: int) -> npt.NDArray[np.int64]:
    """Decode `n_values` integers of `width` bits each from runs.

    A run is one integer with the number of its repetitions, or groups of 8 integers packed by bits.
    """
    if width > 32:
        raise DamagedError(f"integers in run-length encoding have {width} bits; expected at most 32")
    pieces: list[npt.NDArray[np.int64]] = [np.zeros(0, np.int64)]
    missing = n_values
    while missing > 0:
        head = page.varint()
        # An odd head begins groups of packed integers, an even head a run of equal ones.
        if head & 1:
            n_packed = min((head >> 1) * 8, (missing + 7) // 8 * 8)
            # The last group may be cut where its values end.
            n_bytes = min(n_packed * width // 8, len(page.data) - page.position)
            piece = _unpack_integers(page.take(n_bytes), width, n_packed if width else missing)
        else:
            n_equal = min(head >> 1, missing)
            value = int.from_bytes(page.take((width + 7) // 8), "little")
            piece = np.full(n_equal, value, np.int64)
        if not len(piece):
            raise DamagedError("a run of equal values has the length 0")
        pieces.append(piece[:missing])
        missing -= len(pieces[-1])
    return np.concatenate(pieces)


def _unpack_integers(data: memoryview, width: int, n_values: int) -> npt.NDArray[np.int64]:
    """Unpack integers of `width` bits that follow each other, low bits first; fewer than `n_values` if `data` end."""
    if not width:
        return np.zeros(n_values, np.int64)
    packed = np.frombuffer(data, np.uint8)
    values = np.empty(min(n_values, 8 * len(packed) // width), np.int64)
    # Bit 63 weighs -2**63, as in two's complement, so that sums wrap around as the format demands.
    weights = (np.uint64(1) << np.arange(width, dtype=np.uint64)).astype(np.int64)
    # Unpacked, a bit takes 8 bytes: slices keep that small. Each begins at a whole byte.
    for start in range(0, len(values), _SLICE_VALUES):
        part = values[start : start + _SLICE_VALUES]
        bits = np.unpackbits(packed[start * width // 8 :], count=len(part) * width, bitorder="little")
        part[:] = bits.reshape(len(part), width).astype(np.int64) @ weights
    return values


def _deltas(page: ByteReader, n_values: int, n_bits: int) -> list[int]:
    """Decode integers that are stored as the differences between neighbours (DELTA_BINARY_PACKED).

    A block states its smallest difference; each of its parts then has the differences minus that one, packed by bits.
    n_values: number of integers that the page states. n_bits: 32 or 64, the width of an integer.
    """
    block, n_parts, total, first = page.varint(), page.varint(), page.varint(), page.zigzag()
    if total != n_values:
        raise DamagedError(f"a page has {n_values} values, but its list of differences states {total}")
    if not n_parts or block % n_parts or (block // n_parts) % 8 or not block:
        raise DamagedError(f"a block of {block} differences has {n_parts} parts; expected equal parts of 8, 16, 24 …")
    if not n_values:
        return []
    part = block // n_parts
    differences: list[int] = []
    while len(differences) < n_values - 1:
        smallest = page.zigzag()
        for width in bytes(page.take(n_parts)):
            if len(differences) >= n_values - 1:
                break
            if width > 64:
                raise DamagedError(f"delta-encoded numbers of {width} bits each; expected at most 64")
            above = _unpack_integers(page.take(part * width // 8), width, min(part, n_values - 1 - len(differences)))
            differences += [smallest + number for number in above.tolist()]
    half = 1 << (n_bits - 1)
    # Sums wrap around at the column's number of bits.
    return [((value + half) & (2 * half - 1)) - half for value in accumulate(differences, initial=first)]


def _split_streams(page: ByteReader, physical: PhysicalType, width: int, n_values: int) -> list[Any]:
    """Decode values whose first bytes are stored together, then their second bytes, and so on (BYTE_STREAM_SPLIT).

    width: bytes of a value of `FIXED_BYTES`.
    """
    size = np.dtype(_NUMBERS[physical]).itemsize if physical in _NUMBERS else width
    if size <= 0:
        raise DamagedError(f"a column of FIXED_LEN_BYTE_ARRAY states {size} bytes for a value; expected at least 1")
    streams = np.frombuffer(page.take(n_values * size), np.uint8).reshape(size, n_values)
    return _plain(ByteReader(streams.T.tobytes()), physical, width, n_values)


def _gunzip(data: memoryview, n_bytes: int) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(data, n_bytes + 1)
    except zlib.error as error:
        raise DamagedError(f"a page that should be gzip cannot be unpacked: {error}") from error


def _unzstd(data: memoryview, n_bytes: int) -> bytes:
    try:
        return zstandard.unpack(io.BytesIO(data), n_bytes + 1)
    except ValueError as error:
        raise DamagedError(f"a page that should be Zstandard cannot be unpacked: {error}") from error


_CODECS: dict[int, Callable[[memoryview, int], bytes | memoryview]] = {
    0: lambda data, _: data,
    1: snappy.unpack,
    2: _gunzip,
    6: _unzstd,
}
_OTHER_CODECS = {3: "LZO", 4: "Brotli", 5: "LZ4", 7: "LZ4"}
