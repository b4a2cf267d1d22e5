"""Parquet and Arrow are read as pyarrow reads them; damaged files, and those that would fill the memory, are refused.

For: harness.benchmarks.sources.columnar, harness.benchmarks.sources.tables.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from harness.benchmarks.sources import tables
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
}


TABLE = pa.table({name: pa.array(values * 5, kind) for name, (kind, values) in COLUMNS.items()})


def written(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer, store_schema=False, **options)
    return buffer.getvalue()


def read(folder: Path, data: bytes) -> list[dict[str, Any]]:
    path = folder / "rows.parquet"
    path.write_bytes(data)
    return [row.value for row in tables.stream(path)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "brotli", "use_dictionary": False},
        {"row_group_size": 4, "data_page_size": 16, "compression": "none"},
        {"use_deprecated_int96_timestamps": True, "use_compliant_nested_type": False, "version": "1.0"},
    ],
    ids=str,
)
def test_every_type_and_nesting_is_what_pyarrow_reads(tmp_path: Path, options: dict[str, Any]) -> None:
    # Older files keep no time zone and no 64-bit sign, so pyarrow's own reading of the file is what counts.
    data = written(TABLE, **options)
    expected = pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()
    as_text = json.dumps(
        expected, default=lambda value: f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
    )
    assert read(tmp_path, data) == json.loads(as_text)


def test_many_rows_come_in_their_order(tmp_path: Path) -> None:
    values = [f"{n % 1000}" for n in range(5000)]
    assert read(tmp_path, written(pa.table({"n": values}), data_page_size=1000)) == [{"n": value} for value in values]


def test_no_damaged_file_is_anything_but_refused(tmp_path: Path) -> None:
    chance = random.Random(7)
    data = written(TABLE.slice(0, 5), compression="snappy")
    refused = [data[:cut] for cut in (0, 3, 11, 100)]
    for n_bytes in (10, 30, 100) * 4:
        bad = bytearray(data)
        for _ in range(n_bytes):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        refused.append(bytes(bad))
    # With this claim of a length, the library asks the system for more memory than there is, and is ended by it.
    refused.append(bytes(data[:-8]) + b"\xff\xff\xff\x7fPAR1")
    for bad_data in refused:
        with pytest.raises(UsageError, match=r"rows\.parquet cannot be read as Parquet"):
            read(tmp_path, bad_data)


@pytest.mark.parametrize("writer", [pyarrow.ipc.new_file, pyarrow.ipc.new_stream], ids=["file", "stream"])
def test_an_arrow_file_is_what_pyarrow_reads_and_a_damaged_one_is_a_sentence(tmp_path: Path, writer: Any) -> None:
    buffer, chance = io.BytesIO(), random.Random(7)
    with writer(buffer, TABLE.schema, options=pyarrow.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(TABLE, max_chunksize=7)
    data = buffer.getvalue()
    as_text = json.dumps(
        TABLE.to_pylist(), default=lambda value: f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)
    )
    assert read(tmp_path, data) == json.loads(as_text)
    for cut in (9, 100, len(data) // 2, len(data) - 200):
        with pytest.raises(UsageError, match=r"rows\.parquet cannot be read as Arrow"):
            read(tmp_path, data[:cut])
    for _ in range(8):
        bad = bytearray(data)
        for _ in range(30):
            bad[chance.randrange(8, len(bad))] = chance.randrange(256)
        with contextlib.suppress(UsageError):
            assert len(read(tmp_path, bytes(bad))) <= TABLE.num_rows


@pytest.mark.parametrize(
    "values", [["x" * 1000] * 3000, [None] * 10**6, [[None] * 1000] * 1000], ids=["equal texts", "nulls", "lists"]
)
def test_a_small_file_cannot_fill_the_memory(
    values: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FREE_UNPACKED_BYTES", 10**6)
    data = written(pa.table({"column": pa.array(values, None if values[0] else pa.string())}))
    assert len(data) < 10**5
    with pytest.raises(UsageError, match="unpacks to more than"):
        read(tmp_path, data)


def test_a_row_that_fills_the_memory_and_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    row = pa.array([["x" * 1000] * 3_000_000], pa.list_(pa.dictionary(pa.int32(), pa.string())))
    for arrays, message in (
        ([row], "cannot be read|unpacks to more"),
        ([pa.array([1])] * 2, "the column n appears twice"),
    ):
        with pytest.raises(UsageError, match=message):
            read(tmp_path, written(pa.Table.from_arrays(arrays, ["n"] * len(arrays))))
