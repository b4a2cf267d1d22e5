"""Parquet files are read as pyarrow reads them, by every encoding and nesting; damaged ones are refused in time.

For: harness.benchmarks.sources.parquet, harness.benchmarks.sources.zstandard.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from harness.benchmarks.sources.parquet import snappy
from harness.benchmarks.sources.parquet.columns import TooLargeError
from harness.benchmarks.sources.parquet.nesting import rows
from harness.benchmarks.sources.parquet.thrift import ByteReader, DamagedError

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
