"""Parquet files are read as pyarrow reads them, by every encoding and nesting; damaged ones are refused in time.

For: harness.benchmarks.sources.parquet, harness.benchmarks.sources.zstandard.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import itertools
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from harness.benchmarks.sources import tables
from harness.benchmarks.sources.parquet import snappy
from harness.benchmarks.sources.parquet import thrift as thrift_module
from harness.benchmarks.sources.parquet.columns import TooLargeError
from harness.benchmarks.sources.parquet.nesting import rows
from harness.benchmarks.sources.parquet.thrift import MAX_METADATA_BYTES, ByteReader, DamagedError
from harness.core.errors import UsageError

DAY = datetime.datetime(1960, 2, 29, 23, 59, 58, 123456)  # noqa: DTZ001 - columns without a zone

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "a", None, "é中😀", "x" * 300]),
    "bytes": (pa.binary(), [b"", b"\x00\xff", None, b"a", b"b"]),
    "fixed": (pa.binary(3), [b"abc", None, b"def", b"abc", b"\x00\x00\x00"]),
    "whole": (pa.int64(), [-(2**63), 2**63 - 1, 0, None, -1]),
    "short": (pa.int32(), [-(2**31), 2**31 - 1, 0, None, 7]),
    "unsigned": (pa.uint64(), [2**64 - 1, 0, None, 1, 2]),
    "small": (pa.uint8(), [255, 0, None, 1, 2]),
    "half": (pa.float16(), [0.5, None, -2.0, 0.0, 1.0]),
    "single": (pa.float32(), [0.5, None, -2.0, 0.0, 1e30]),
    "double": (pa.float64(), [0.1, None, -2.0, 0.0, 1e300]),
    "truth": (pa.bool_(), [True, False, None, True, True]),
    "day": (pa.date32(), [DAY.date(), None, datetime.date(2026, 1, 1), DAY.date(), DAY.date()]),
    "local": (pa.timestamp("us"), [DAY, None, DAY, DAY, DAY]),
    "instant": (pa.timestamp("ms", tz="UTC"), [None, *[datetime.datetime(2026, 5, 1, tzinfo=datetime.UTC)] * 4]),
    "time": (pa.time64("us"), [DAY.time(), None, datetime.time(), DAY.time(), DAY.time()]),
    "exact": (pa.decimal128(20, 3), [decimal.Decimal("-12.345"), None, decimal.Decimal(0), None, decimal.Decimal(10)]),
    "list": (pa.list_(pa.int64()), [[1, None, 3], [], None, [4], [5, 6]]),
    "lists": (pa.list_(pa.list_(pa.string())), [[["a"], [], None, ["b", None]], [], None, [[]], [None]]),
    "group": (
        pa.struct({"a": pa.int32(), "b": pa.string()}),
        [{"a": 1, "b": None}, None, {"a": None, "b": "c"}, None, None],
    ),
    "groups": (
        pa.list_(pa.struct({"a": pa.list_(pa.int32()), "b": pa.struct({"c": pa.string()})})),
        [[{"a": [1, 2], "b": {"c": "d"}}, {"a": [], "b": None}], [], None, [None], [{"a": None, "b": {"c": None}}]],
    ),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], [], None, [("c", 3)], []]),
}  # fmt: skip


def written(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer, store_schema=False, **options)
    return buffer.getvalue()


def read(data: bytes, max_bytes: int = 10**8) -> list[dict[str, Any]]:
    return list(rows(io.BytesIO(data), len(data), max_bytes))


TABLE = pa.table({name: pa.array(values * 5, kind) for name, (kind, values) in COLUMNS.items()})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "gzip", "use_dictionary": False},
        {"compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
        {"row_group_size": 4, "data_page_size": 16},
        {"use_deprecated_int96_timestamps": True, "use_compliant_nested_type": False},
        {"version": "1.0"},
    ],
    ids=str,
)
def test_every_type_and_nesting_is_what_pyarrow_reads(options: dict[str, Any]) -> None:
    # Older files keep no time zone and no 64-bit sign, so pyarrow's own reading of the file is what counts.
    data = written(TABLE, **options)
    expected = pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()
    assert read(data) == expected


@pytest.mark.parametrize(
    ("column", "encoding"),
    [
        ("whole", "DELTA_BINARY_PACKED"),
        ("short", "DELTA_BINARY_PACKED"),
        ("text", "DELTA_LENGTH_BYTE_ARRAY"),
        ("text", "DELTA_BYTE_ARRAY"),
        ("truth", "RLE"),
        ("double", "BYTE_STREAM_SPLIT"),
        ("fixed", "BYTE_STREAM_SPLIT"),
    ],
)
def test_every_encoding_of_values_is_read(column: str, encoding: str) -> None:
    table = pa.table({column: pa.array(COLUMNS[column][1] * 100, COLUMNS[column][0])})
    assert read(written(table, use_dictionary=False, column_encoding={column: encoding})) == table.to_pylist()


def test_many_rows_over_several_pages_and_a_growing_dictionary() -> None:
    values = [f"{n % 1000}" for n in range(5000)]
    assert read(written(pa.table({"n": values}), data_page_size=1000)) == [{"n": value} for value in values]


def test_no_damaged_file_is_anything_but_refused() -> None:
    chance = random.Random(7)
    data = written(TABLE.slice(0, 5), compression="snappy")
    refused = 0
    for n in range(200):
        bad = bytearray(data)
        for _ in range(chance.choice([1, 3, 10])):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        with contextlib.suppress(DamagedError, TooLargeError):
            read(bytes(bad[: len(bad) - n % 3]), 10**6)
            refused -= 1
        refused += 1
    assert refused > 100


@pytest.mark.parametrize("cut", [0, 3, 11, 100])
def test_a_file_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(DamagedError):
        read(written(TABLE)[:cut])


def test_what_is_not_read_is_named() -> None:
    with pytest.raises(DamagedError, match="compressed by Brotli"):
        read(written(TABLE, compression="brotli"))
    with pytest.raises(DamagedError, match="encrypted"):
        read(b"PARE" + bytes(8) + b"PARE")


@pytest.mark.parametrize(
    "values", [["x" * 1000] * 3000, [None] * 10**6, [[None] * 1000] * 1000], ids=["equal texts", "nulls", "lists"]
)
def test_a_small_file_cannot_fill_the_memory(values: list[Any]) -> None:
    data = written(pa.table({"column": pa.array(values, None if values[0] else pa.string())}))
    assert len(data) < 10**5
    with pytest.raises(TooLargeError):
        read(data, 10**6)


INT32, INT64, INT96, BYTES = 1, 2, 3, 6
PLAIN, DELTAS, LENGTHS, BEGINNINGS = 0, 5, 6, 7


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def thrift(value: Any) -> bytes:
    """A value of Thrift's compact protocol: field number -> value becomes a struct, a list one of structs."""
    if isinstance(value, dict):
        fields = (bytes([KINDS[type(item)]]) + varint(n << 1) + thrift(item) for n, item in value.items())
        return b"".join(fields) + b"\0"
    if isinstance(value, list):
        return b"\xfc" + varint(len(value)) + b"".join(map(thrift, value))
    if isinstance(value, bytes):
        return varint(len(value)) + value
    return varint(value << 1)


KINDS = {int: 6, bytes: 8, list: 9, dict: 12}


def hand_made(
    values: bytes,
    n_values: int = 1,
    *,
    physical: int = INT64,
    encoding: int = PLAIN,
    annotation: dict[int, Any] | None = None,
    n_groups: int = 1,
    optional: int = 0,
    codec: int = 0,
    page: dict[int, Any] | None = None,
    footer: bytes = b"",
) -> bytes:
    """A Parquet file of one column and one page. n_groups: how often it describes the same row group. optional: 1 if
    the column may be null. page, footer: instead of the right header and footer."""
    page = page or {1: 0, 2: len(values), 3: len(values), 5: {1: n_values, 2: encoding, 3: 3, 4: 3}}
    pages = thrift(page) + values
    column = {1: physical, 4: codec, 5: n_values, 7: len(pages), 9: 4}
    schema = [{4: b"root", 5: 1}, {1: physical, 3: optional, 4: b"column", **(annotation or {})}]
    footer = footer or thrift({2: schema, 4: [{1: [{3: column}], 3: n_values}] * n_groups})
    return b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def text_bytes(text: bytes) -> bytes:
    return len(text).to_bytes(4, "little") + text


def test_a_file_made_by_hand_is_read() -> None:
    assert read(hand_made(bytes(16), 2)) == [{"column": 0}, {"column": 0}]
    assert read(hand_made(text_bytes(b"a"), physical=BYTES, annotation={6: 0})) == [{"column": "a"}]


@pytest.mark.parametrize(
    ("physical", "annotation"),
    [
        (BYTES, {6: 9}),  # a timestamp: ticks times a million would repeat the text so often
        (BYTES, {10: {7: {2: {1: {}}}}}),
        (BYTES, {6: 6}),
        (BYTES, {10: {10: {}}}),
        (INT32, {6: 0}),
        (INT64, {10: {12: {}}}),
        (INT64, {10: {15: {}}}),
        (INT96, {6: 5}),
    ],
)
def test_an_annotation_stands_on_its_own_types_only(physical: int, annotation: dict[int, Any]) -> None:
    with pytest.raises(DamagedError, match="but its values are stored as"):
        read(hand_made(text_bytes(bytes(20)), physical=physical, annotation=annotation))


@pytest.mark.parametrize(
    ("physical", "encoding"), [(INT64, LENGTHS), (INT64, BEGINNINGS), (BYTES, DELTAS), (INT64, 3), (BYTES, 9)]
)
def test_an_encoding_holds_values_of_its_own_types_only(physical: int, encoding: int) -> None:
    with pytest.raises(DamagedError, match="cannot have the encoding"):
        read(hand_made(bytes(30), physical=physical, encoding=encoding))


def test_a_decimal_is_as_wide_as_the_largest_of_any_writer() -> None:
    widest = b"\x7f" * 32
    assert read(hand_made(text_bytes(widest), physical=BYTES, annotation={6: 5})) == [
        {"column": decimal.Decimal(int.from_bytes(widest, "big"))}
    ]
    with pytest.raises(DamagedError, match="expected at most 32"):
        read(hand_made(text_bytes(widest + b"\0"), physical=BYTES, annotation={6: 5}))


def test_the_columns_are_no_longer_together_than_their_file() -> None:
    assert len(read(hand_made(bytes(8000), 1000))) == 1000
    with pytest.raises(DamagedError, match="are longer than the file"):
        read(hand_made(bytes(8000), 1000, n_groups=3))


def peak_bytes(data: bytes, max_bytes: int) -> int:
    """The most memory that reading takes, whether or not the file is refused."""
    tracemalloc.start()
    try:
        with contextlib.suppress(DamagedError, TooLargeError):
            read(data, max_bytes)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_footer_is_bounded_before_it_becomes_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = hand_made(b"", footer=thrift({9: [{}] * 200_000}))
    with pytest.raises(TooLargeError):
        read(empty, 10**6)
    assert peak_bytes(empty, 10**6) < 2 * 10**6
    with pytest.raises(DamagedError, match="its footer is longer than"):
        read(hand_made(b"", footer=bytes(MAX_METADATA_BYTES + 1)), 10**10)
    path = tmp_path / "rows.parquet"
    path.write_bytes(hand_made(bytes(8)))
    assert len(tables.read(path)) == 1
    monkeypatch.setattr(tables, "MAX_DATA_BYTES", 100)
    with pytest.raises(UsageError, match="has more than 100 bytes"):
        tables.read(path)


def test_a_header_of_a_page_is_bounded_before_it_becomes_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    data = hand_made(bytes(8), page={1: 0, 2: 8, 3: 8, 5: {1: 1, 2: 0, 3: 3, 4: 3}, 9: [{}] * 1000})
    assert read(data) == [{"column": 0}]
    monkeypatch.setattr(thrift_module, "MAX_METADATA_BYTES", 500)
    with pytest.raises(DamagedError, match="a list is longer than the data"):
        read(data)


def test_bits_are_unpacked_in_little_memory() -> None:
    n_part, width = 160_000, 64
    # Of a block of differences as long as the page, two are needed.
    block = varint(n_part) + b"\1" + varint(3) + b"\0" + b"\0" + bytes([width]) + bytes(n_part * width // 8)
    data = hand_made(block, 3, encoding=DELTAS)
    assert read(data) == [{"column": 0}] * 3
    assert peak_bytes(data, 10**8) < 5 * len(data)


def test_differences_of_many_values_in_one_part_are_all_read() -> None:
    width, steps = 13, [n * 2654435761 % 2**13 for n in range(20_000)]
    packed = sum(step << width * n for n, step in enumerate(steps)).to_bytes(len(steps) * width // 8, "little")
    page = varint(len(steps)) + b"\1" + varint(len(steps) + 1) + b"\0" + b"\0" + bytes([width]) + packed
    expected = [{"column": value} for value in itertools.accumulate(steps, initial=0)]
    assert read(hand_made(page, len(expected), encoding=DELTAS)) == expected


@pytest.mark.parametrize("encoding", [PLAIN, DELTAS])
def test_a_page_of_nulls_alone_may_have_no_compressed_bytes(encoding: int) -> None:
    levels = b"\x06\x00"  # three times level 0
    header = {1: 3, 2: len(levels), 3: len(levels), 8: {1: 3, 2: 3, 3: 3, 4: encoding, 5: len(levels), 6: 0}}
    assert read(hand_made(levels, 3, page=header, optional=1, codec=1)) == [{"column": None}] * 3
    header[2] = len(levels) + 1
    with pytest.raises(DamagedError):
        read(hand_made(levels, 3, page=header, optional=1, codec=1))


def test_two_columns_of_one_name_are_refused() -> None:
    array = pa.array([1])
    for table in (
        pa.Table.from_arrays([array, array], ["n", "n"]),
        pa.table({"group": pa.StructArray.from_arrays([array, array], ["n", "n"])}),
    ):
        with pytest.raises(DamagedError, match="it has the column n twice"):
            read(written(table))


def test_levels_in_another_encoding_are_refused() -> None:
    levels = b"\x02\0\0\0\x02\x01"
    page: dict[int, Any] = {1: 0, 2: 14, 3: 14, 5: {1: 1, 2: 0, 3: 3, 4: 4}}
    # No level repeats, so how repetitions are encoded does not matter.
    assert read(hand_made(levels + bytes(8), page=page, optional=1)) == [{"column": 0}]
    page[5][3] = 4
    with pytest.raises(DamagedError, match="levels in the encoding 4"):
        read(hand_made(levels + bytes(8), page=page, optional=1))


def test_snappy_repeats_what_it_has_just_written() -> None:
    for text in (b"", b"abc", b"ab" * 500, bytes(range(256)) * 300):
        assert snappy.unpack(memoryview(pa.compress(text, "snappy", asbytes=True)), len(text)) == text


@pytest.mark.parametrize(
    "packed",
    [b"", b"\x05\x10abc", b"\x04\x01\x01", b"\x04\x0cabcd\x0cabcd", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"],
)
def test_snappy_refuses_what_is_no_snappy(packed: bytes) -> None:
    with pytest.raises(DamagedError):
        snappy.unpack(memoryview(packed), 4)


@pytest.mark.parametrize("data", [b"\x1c" * 40, b"\x19\xfc\xff\xff\xff\xff\x0f", b"\x15", b"\x1f\x00"])
def test_metadata_are_bounded(data: bytes) -> None:
    with pytest.raises(DamagedError):
        ByteReader(data).struct()
