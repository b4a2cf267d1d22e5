"""Rows of a Parquet file: bytes → footer → pages of columns (`columns`) → nested values.

    file      PAR1 │ row group │ row group │ … │ footer (schema, places of the columns) │ its length │ PAR1
    column    dictionary page? │ data page │ data page │ …           the same rows in every column of a row group

An entry of a column is a value, a null or an empty list, with two levels. The definition level counts the optional
and repeated fields of the entry's path that are there; the repetition level says at which repeated field of the path a
new item begins (0: a new row). `_Reader` rebuilds a row by walking the schema; the levels of the next entry
tell null, empty list and value apart. Invariant: each step takes at least one entry, so that hostile levels end.
Entries left over after the last row are damage.

Guarantees: reads only inside the file; counts bytes and entries as they are unpacked and stops at the caller's bound.
Read: all types and nestings; pages plain or packed by Snappy, gzip or Zstandard. Refused: encrypted files, columns in
other files, other compressions, levels that are not run-length encoded, two columns of one name. Source: the format's
specification (github.com/apache/parquet-format).
"""

from __future__ import annotations

import collections
import datetime
import decimal
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from harness.benchmarks.sources.parquet.columns import ColumnEntries, PhysicalType, UnpackedBytes, column_of
from harness.benchmarks.sources.parquet.thrift import MAX_METADATA_BYTES, ByteReader, DamagedError, Fields

_MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"

_REQUIRED, _OPTIONAL, _REPEATED = range(3)

MAX_COLUMNS = 100_000
"""Most fields of a schema."""

FOOTER_RATIO = 16
"""Bytes that the budget counts for a byte of the footer, which stays in memory as objects."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_JULIAN_EPOCH = 2_440_588
"""The Julian day of 1970-01-01, from which timestamps of 96 bits count."""


@dataclass
class _Node:
    """A field of the file's schema.

    definition: the lowest definition level of an entry in which the field is present. repetition: number of repeated
    fields on the path to the field, itself included; an entry of this repetition level is a further item of its list.
    convert: a function from the stored value to the cell's; None if they are the same. column: the leaf's number among
    all leaves; None for a group. width: bytes of a value of `FIXED_BYTES`.
    """

    name: str
    repeats: int
    definition: int
    repetition: int
    kind: str = ""
    children: list[_Node] = field(default_factory=list)
    column: int | None = None
    physical: PhysicalType = PhysicalType.BOOLEAN
    width: int = 0
    convert: Callable[[Any], Any] | None = None

    def leaves(self) -> list[_Node]:
        return [self] if self.column is not None else [leaf for child in self.children for leaf in child.leaves()]


def rows(file: BinaryIO, n_file_bytes: int, max_bytes: int) -> Iterator[dict[str, Any]]:
    """The rows of an open Parquet file of `n_file_bytes`, each column name -> cell.

    max_bytes: largest unpacked size. Dates and times are values of `datetime`, decimals `Decimal`; bytes without a type
    stay bytes. Raises `DamagedError`, and `TooLargeError` at the bound.
    """
    budget = UnpackedBytes(max_bytes)
    footer = _footer(file, n_file_bytes, budget)
    schema = _schema(footer.structs(2))
    leaves = schema.leaves()
    if not leaves:
        raise DamagedError("its schema has no column")
    groups = footer.structs(4)
    # Descriptions of columns that overlap could make us read the whole file again for each of them, so their sizes are
    # summed first; `abs`, because a negative size must not make room for another.
    if sum(abs(chunk.fields(3).integer(7)) for group in groups for chunk in group.structs(1)) > n_file_bytes:
        raise DamagedError("its columns are longer than the file")
    for group in groups:
        chunks = group.structs(1)
        if len(chunks) != len(leaves):
            raise DamagedError(f"a row group has {len(chunks)} columns, but the schema has {len(leaves)}")
        columns = [
            column_of(file, n_file_bytes, chunk, leaf.physical, leaf.width, (leaf.definition, leaf.repetition), budget)
            for chunk, leaf in zip(chunks, leaves, strict=True)
        ]
        yield from _Reader(schema, columns).rows(group.integer(3))


def _footer(file: BinaryIO, n_file_bytes: int, budget: UnpackedBytes) -> Fields:
    """Read the footer, the metadata at the end of the file: schema, and where each column begins.

    n_file_bytes: size of the file. Raises `DamagedError`, `TooLargeError`.
    """
    tail = _read_at(file, max(0, n_file_bytes - 8), 8)
    if n_file_bytes < 12 or tail[4:] not in (_MAGIC, _ENCRYPTED):
        raise DamagedError("its last four bytes are not PAR1, as those of Parquet files are")
    if tail[4:] == _ENCRYPTED:
        raise DamagedError("it is encrypted, which is not read; save it without encryption")
    (n_footer,) = struct.unpack("<I", tail[:4])
    if n_footer > n_file_bytes - 12:
        raise DamagedError("its footer is longer than the file")
    if n_footer > MAX_METADATA_BYTES:
        raise DamagedError(f"its footer is longer than {MAX_METADATA_BYTES} bytes")
    budget.spend(FOOTER_RATIO * n_footer)
    return ByteReader(_read_at(file, n_file_bytes - 8 - n_footer, n_footer)).metadata()


def _read_at(file: BinaryIO, offset: int, n_bytes: int) -> bytes:
    file.seek(offset)
    return file.read(n_bytes)


def _schema(elements: list[Fields]) -> _Node:
    """The root of the schema.

    elements: the schema in the file, a list of Thrift structs in which each group stands before its children. Raises
    `DamagedError`.
    """
    # Numbers of fields in parquet.thrift, SchemaElement: 1 type, 2 type_length, 3 repetition_type, 4 name,
    # 5 num_children.
    if not elements or len(elements) > MAX_COLUMNS:
        raise DamagedError("its schema is empty or too large")
    position = n_leaves = 0

    def node(parent: _Node | None, depth: int) -> _Node:
        """Make the node of the schema's element at `position` and of its children, which follow it in the list."""
        nonlocal position, n_leaves
        if position >= len(elements) or depth > 100:
            raise DamagedError("its schema is cut off or nested too deeply")
        element = elements[position]
        position += 1
        repeats = element.integer(3) if parent else _REQUIRED
        field_node = _Node(
            name=element.text(4),
            repeats=repeats,
            definition=(parent.definition if parent else 0) + (repeats != _REQUIRED),
            repetition=(parent.repetition if parent else 0) + (repeats == _REPEATED),
            kind=_group_kind(element),
        )
        if parent is None or element.integer(5):
            field_node.children = [node(field_node, depth + 1) for _ in range(element.integer(5))]
            _refuse_repeated([child.name for child in field_node.children])
            return field_node
        try:
            field_node.physical = PhysicalType(element.integer(1, -1))
        except ValueError as error:
            kind = element.integer(1, -1)
            raise DamagedError(f"the column {field_node.name} has the type {kind}; Parquet has types 0 to 7") from error
        field_node.width = element.integer(2)
        field_node.convert = _conversion(element, field_node.physical)
        field_node.column = n_leaves
        n_leaves += 1
        return field_node

    root = node(None, 0)
    if position != len(elements):
        raise DamagedError("its schema lists columns that belong to no group")
    return root


def _refuse_repeated(names: list[str]) -> None:
    if len(set(names)) < len(names):
        (twice, _), *_ = collections.Counter(names).most_common(1)
        raise DamagedError(f"it has the column {twice} twice")


def _group_kind(element: Fields) -> str:
    """Return `list` or `map` if a group of the schema is annotated as one, in the older or newer way; else ""."""
    newer = element.fields(10)
    older = {3: "list", 1: "map", 2: "map"}.get(element.integer(6, -1), "")
    if older:
        return older
    if 3 in newer:
        return "list"
    return "map" if 2 in newer else ""


def _text(value: bytes) -> str:
    return value.decode("utf-8")


_TICKS = {1: 1_000, 2: 1_000_000, 3: 1_000_000_000}
"""Unit of a time, as its annotation names it -> ticks a second."""

_OLDER_UNITS = {7: 1, 8: 2, 9: 1, 10: 2}
"""Older annotation of a time -> its unit."""

_OLDER = {
    **dict.fromkeys((0, 4, 19), "text"),  # text, one of a list of texts, JSON
    5: "decimal",
    6: "date",
    **dict.fromkeys((7, 8), "time"),
    **dict.fromkeys((9, 10), "timestamp"),
    **dict.fromkeys(range(11, 15), "unsigned integer"),
}
_NEWER = {
    **dict.fromkeys((1, 4, 12), "text"),
    5: "decimal",
    6: "date",
    7: "time",
    8: "timestamp",
    10: "integer",
    15: "half float",
}

_ANNOTATED_TYPES = {
    "text": {PhysicalType.BYTES},
    "decimal": {PhysicalType.INT32, PhysicalType.INT64, PhysicalType.BYTES, PhysicalType.FIXED_BYTES},
    "date": {PhysicalType.INT32},
    "time": {PhysicalType.INT32, PhysicalType.INT64},
    "timestamp": {PhysicalType.INT64},
    "integer": {PhysicalType.INT32, PhysicalType.INT64},
    "unsigned integer": {PhysicalType.INT32, PhysicalType.INT64},
    "half float": {PhysicalType.FIXED_BYTES},
}
"""Annotation → the types of columns that may have it, as the format's LogicalTypes.md says."""

MAX_DECIMAL_BYTES = 32
"""Bytes of the largest decimal that writers produce (256 bits). The time of a conversion grows with the square of the
number of bytes.
"""


def _conversion(element: Fields, physical: PhysicalType) -> Callable[[Any], Any] | None:
    """Return the function that turns a column's stored value (days, ticks, bytes …) into the cell's value.

    None if both values are the same. element: the column's description in the schema. physical: the type of its stored
    values. Raises `DamagedError` for an annotation that is not allowed for that type.
    """
    # Numbers of fields in parquet.thrift, SchemaElement: 6 converted_type (the older annotation), 7 scale,
    # 10 logicalType (the newer one). Inside the newer one: of a decimal 1 scale, of a time 1 whether it is in UTC and
    # 2 unit, of an integer 2 whether it has a sign.
    older, newer = element.integer(6, -1), element.fields(10)
    annotation = next((_NEWER[number] for number in newer if number in _NEWER), "") or _OLDER.get(older, "")
    if annotation and physical not in _ANNOTATED_TYPES[annotation]:
        fitting = ", ".join(sorted(kind.name for kind in _ANNOTATED_TYPES[annotation]))
        raise DamagedError(
            f"the column {element.text(4)} is annotated as {annotation}, but its values are stored as "
            f"{physical.name}; expected {fitting}"
        )
    if annotation == "integer" and not newer.fields(10).get(2, True):
        annotation = "unsigned integer"
    match annotation:
        case "text":
            return _text
        case "decimal":
            scale = newer.fields(5).integer(1, element.integer(7))
            return lambda value: _decimal(value, scale)
        case "date":
            return lambda days: (_EPOCH + datetime.timedelta(days=days)).date()
        case "half float":
            return lambda value: float(struct.unpack("<e", value)[0])
        case "time" | "timestamp":
            number = 8 if annotation == "timestamp" else 7
            described = newer.fields(number)
            unit = next(iter(described.fields(2)), 0) or _OLDER_UNITS.get(older, 1)
            # By the older annotations a time is always in UTC.
            zone = datetime.UTC if described.get(1, number not in newer) else None
            return _time_of(_TICKS.get(unit, 1_000), annotation == "timestamp", zone)
        case "unsigned integer":
            mask = (1 << (32 if physical is PhysicalType.INT32 else 64)) - 1
            return lambda value: int(value) & mask
    return _old_timestamp if physical is PhysicalType.INT96 else None


def _decimal(value: int | bytes, scale: int) -> decimal.Decimal:
    """The decimal `value` · 10^-`scale`. value: an integer, or its bytes in big-endian order."""
    if isinstance(value, bytes) and len(value) > MAX_DECIMAL_BYTES:
        raise DamagedError(f"a decimal has {len(value)} bytes; expected at most {MAX_DECIMAL_BYTES}")
    number = int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else int(value)
    return decimal.Decimal(number).scaleb(-scale, decimal.Context(prec=decimal.MAX_PREC))


def _time_of(ticks_a_second: int, with_date: bool, zone: datetime.tzinfo | None) -> Callable[[int], Any]:
    """Return a function from ticks since 1970 to a date with time, or from ticks since midnight to a time of day."""

    def convert(ticks: int) -> datetime.datetime | datetime.time:
        instant = _EPOCH + datetime.timedelta(microseconds=ticks * 1_000_000 // ticks_a_second)
        return instant.replace(tzinfo=zone) if with_date else instant.time()

    return convert


def _old_timestamp(value: bytes) -> datetime.datetime:
    """The timestamp in 96 bits: nanoseconds of the day, then the Julian day."""
    nanoseconds, day = struct.unpack("<qi", value)
    return (_EPOCH + datetime.timedelta(days=day - _JULIAN_EPOCH, microseconds=nanoseconds // 1_000)).replace(
        tzinfo=None
    )


class _Reader:
    """Rebuilds the rows of one row group from the entries of its columns."""

    def __init__(self, schema: _Node, columns: list[ColumnEntries]) -> None:
        self._schema = schema
        self._columns = columns
        self._position = [0] * len(columns)
        """Number of the next entry of each column."""
        self._leaves = {id(node): [leaf.column or 0 for leaf in node.leaves()] for node in _nodes(schema)}
        """id of a node -> its leaves' numbers. Any leaf of a node tells whether the node is there."""

    def rows(self, n_rows: int) -> Iterator[dict[str, Any]]:
        """The rows. Raises `DamagedError` if levels or values do not fit the schema."""
        try:
            for _ in range(n_rows):
                yield {child.name: self._cell(child) for child in self._schema.children}
        except IndexError as error:
            raise DamagedError("a column ends before the last row") from error
        except (ValueError, OverflowError, ArithmeticError, struct.error) as error:
            raise DamagedError(f"a value does not fit its type: {error}") from error
        for column, position in zip(self._columns, self._position, strict=True):
            if position != len(column.definitions):
                raise DamagedError(f"a column has more rows than the {n_rows} that its row group states")

    def _cell(self, node: _Node) -> Any:
        """Read the value of a field in the current row.

        A list if the field repeats ([] without items); else a value, None if the field is absent.
        """
        leaves = self._leaves[id(node)]
        first = leaves[0]
        present = self._columns[first].definitions[self._position[first]] >= node.definition
        if not present:
            for leaf in leaves:
                self._position[leaf] += 1
            return [] if node.repeats == _REPEATED else None
        if node.repeats == _REPEATED:
            return self._items(node, first)
        return self._value(node)

    def _items(self, node: _Node, first: int) -> list[Any]:
        """Read the items of a repeated field in the current row. first: number of the first column below the field."""
        column, items = self._columns[first], [self._value(node)]
        # An entry belongs to the same list as the one before it if it has the level of this repeated field.
        while (
            self._position[first] < len(column.repetitions)
            and column.repetitions[self._position[first]] == node.repetition
        ):
            items.append(self._value(node))
        return items

    def _value(self, node: _Node) -> Any:
        """Read one value of a field: from its column, or as a list or mapping of the fields below it."""
        if node.column is not None:
            value = self._columns[node.column].values[self._position[node.column]]
            self._position[node.column] += 1
            return node.convert(value) if node.convert is not None and value is not None else value
        if node.kind and len(node.children) == 1 and node.children[0].repeats == _REPEATED:
            return self._listed(node.kind, node.children[0])
        return {child.name: self._cell(child) for child in node.children}

    def _listed(self, kind: str, entry: _Node) -> list[Any]:
        """Read the items of a list, or of a map as pairs (key, value).

        kind: "list" or "map". entry: the repeated field that holds the items.
        """
        items: list[Any] = self._cell(entry)
        if kind == "map":
            return [tuple(item.values()) if isinstance(item, dict) else item for item in items]
        # By the format, the repeated field wraps the item in a group of one child. Older writers repeat the item
        # itself; the format's rule recognises them by these names. A field that is a list or map is an item, too.
        by_older_writer = entry.name == "array" or entry.name.endswith("_tuple")
        if len(entry.children) != 1 or by_older_writer or entry.kind:
            return items
        return [item[entry.children[0].name] for item in items]


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for child in node.children:
        yield from _nodes(child)
