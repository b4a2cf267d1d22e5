"""Rows out of one data file: JSONL, JSON, CSV, TSV, Parquet, plain or compressed by gzip or zstd.

Guarantees: a row keeps its values and says where it stands; whatever is wrong is one sentence with file and line. JSON
Lines are split at line feeds only (a text may hold U+2028), a byte-order mark and carriage returns before line feeds
are accepted. Refused: other encodings than UTF-8, repeated keys, NaN and infinities, numbers of thousands of digits,
deep nesting, files and fields over the bounds of `limits`.

Long: the formats share one set of bounds and one way of naming what is wrong.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import json
import math
import os
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from harness.benchmarks.limits import (
    FREE_UNPACKED_BYTES,
    MAX_DATA_BYTES,
    MAX_DEPTH,
    MAX_ELEMENT_BYTES,
    MAX_FIELD_CHARS,
    MAX_RESPONSE_CHARS,
    MAX_ROWS,
    MAX_UNPACKED_RATIO,
)
from harness.benchmarks.sources import json_array
from harness.core.errors import UsageError, near_names, option
from harness.core.files import open_named
from harness.core.inert import quoted, visible
from harness.core.nouns import count_noun


class Row(NamedTuple):
    """A row of the data. where: its file and line, for messages. value: column → cell."""

    where: str
    value: dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """The rows of a source, in its order; they can be iterated once.

    origin: the source's name and revision. notes: what a reader of the score should know about the data.
    """

    rows: Iterable[Row]
    origin: str
    notes: tuple[str, ...] = ()


@dataclass
class Checksum:
    """Number of bytes and CRC-32 of what was read of a file."""

    size: int = 0
    crc: int = 0

    def add(self, piece: bytes) -> None:
        """Add the next bytes."""
        self.size, self.crc = self.size + len(piece), zlib.crc32(piece, self.crc)


def read(
    path: Path,
    split: str | None = None,
    shown: str | None = None,
    *,
    responses: bool = False,
    damaged_rows: int = 0,
) -> list[Row]:
    """All rows of a file. Raises `UsageError`.

    split: chooses a list from a JSON file that is a mapping of lists, or a file from a folder with a file per split.
    shown: the file's name for messages. responses: whether the file holds replies of models. Their texts may be long
    and have lone surrogates, and tools write NaN beside them; in questions all of this is refused. damaged_rows: see
    `harness.benchmarks.card.UrlSource`.
    """
    shown = visible(shown or str(path))
    if path.is_dir():
        return [row for part in _split_files(path, split) for row in read(part, responses=responses)]
    refuse_unread(path, shown)
    suffix, compression = _suffixes(path)
    if suffix == ".parquet":
        rows = _parquet_rows(path, shown)
    else:
        data = _read_bytes(path, compression, shown)
        if suffix in (".csv", ".tsv"):
            text = _text(data, shown)
            rows = csv_rows(text, shown, "\t" if suffix == ".tsv" else None, damaged_rows)
        elif suffix == ".json":
            rows = _json_rows(data, shown, split, responses)
        else:
            begins = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
            if suffix not in (".jsonl", ".ndjson") and begins not in (b"{", b""):
                raise UsageError(
                    f"{shown} does not begin with a JSON object, and the end of its name decides how it is read: name "
                    "a table FILE.csv or FILE.tsv"
                )
            rows = _json_lines(data, shown, responses)
    if split is not None and suffix != ".json":
        raise UsageError(f"{shown} is one file and has no splits; leave out the split {visible(split)!r}")
    return list(_check_rows(rows, shown, responses))


def stream(
    path: Path,
    split: str | None = None,
    shown: str | None = None,
    *,
    responses: bool = False,
    again: bool = False,
    unread: Collection[str] = (),
    half_done: bool = False,
    checksum: Checksum | None = None,
) -> Iterator[Row]:
    """The rows of a file, as `read` returns them, but one at a time if the format allows. Raises `UsageError`.

    split: the split to read in a file with several. shown: the file's name in messages; None: its path. responses: as
    in `read`. again: whether this file was read before, so that repeated keys need not be searched again. unread:
    columns that the caller does not use; their texts are checked, and may be returned empty. half_done: whether to
    leave out an unfinished last line, whose writer was killed. checksum: counts the bytes of a JSONL file that is read
    line by line.
    """
    suffix, compression = ("", "") if path.is_dir() else _suffixes(path)
    if suffix in (".jsonl", ".ndjson") and not compression and path.is_file() and split is None:
        named = visible(shown or str(path))
        yield from _check_rows(
            _stream_lines(path, named, responses, again, frozenset(unread), half_done, checksum), named, responses
        )
    elif suffix == ".json" and not compression and path.is_file() and split is None and _is_array(path):
        named = visible(shown or str(path))
        yield from _check_rows(_stream_array(path, named, responses), named, responses)
    else:
        yield from read(path, split, shown, responses=responses)


def _is_array(path: Path) -> bool:
    try:
        with open_named(path) as file:
            return json_array.begins_array(file)
    except OSError:  # `read` says why
        return False


def _stream_array(path: Path, shown: str, responses: bool) -> Iterator[Row]:
    """The rows of a file that is one JSON list, read one by one. Raises `UsageError`.

    shown: the file's name in messages. responses: whether the rows hold replies of models, in which NaN is accepted.
    """
    try:
        with open_named(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_DATA_BYTES:
                raise UsageError(f"{shown} has more than {MAX_DATA_BYTES} bytes")
            for number, element in enumerate(json_array.elements(file, MAX_ELEMENT_BYTES), 1):
                where = f"row {number} of {shown}"
                try:
                    text = element.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise UsageError(f"{where} is not UTF-8; save the file as UTF-8") from error
                yield _row_of(parse_json(text, where, responses), where)
    except json_array.NoArrayError as error:
        raise UsageError(f"{shown} {error}") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror or error}") from error


def _stream_lines(
    path: Path,
    shown: str,
    responses: bool,
    again: bool,
    unread: frozenset[str],
    half_done: bool,
    checksum: Checksum | None,
) -> Iterator[Row]:
    """The rows of a JSONL file, line by line; the parameters are those of `stream`. Raises `UsageError`."""
    size = 0
    try:
        with open_named(path) as file:
            for number, line in enumerate(file, 1):
                size += len(line)
                if checksum is not None:
                    checksum.add(line)
                if size > MAX_DATA_BYTES:
                    raise UsageError(f"{shown} unpacks to more than {MAX_DATA_BYTES} bytes")
                if half_done and not line.endswith(b"\n") and _decode_fast(line) is None:
                    return
                if line.isspace():
                    continue
                where = f"{shown}:{number}"
                value = _decode_fast(line) if again else _decode_without_repeats(line, unread)
                if value is not None:
                    yield Row(where, value)
                    continue
                # The careful parser reads the other lines, or says what is wrong with them.
                try:
                    # A byte-order mark may begin the file; further on it is text.
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n")
                except UnicodeDecodeError as error:
                    offset = size - len(line) + error.start
                    raise UsageError(f"{where} is not UTF-8 (byte {offset}); save the file as UTF-8") from error
                yield _row_of(parse_json(text, where, responses), where)
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror or error}") from error


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _decode_without_repeats(line: bytes, unread: frozenset[str]) -> dict[str, Any] | None:
    """The fields of a line that is a JSON object without repeated keys, lists or objects in it; else None.

    None also if the line's layout leaves a doubt. In the result, the texts of the columns `unread` are replaced by "".

    The line's length shows a repeated key. `left` counts the bytes that neither the fields nor their punctuation
    explain: 0 in a compact line, 2n - 1 in a line of n fields by json.dumps, which puts a blank after each colon and
    comma. The decoder keeps only one of two fields with the same key, so the other one makes `left` larger.
    """
    try:
        fields = _FIELDS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    values = [memoryview(value) for value in fields.values()]
    if not values or any(value[0] in b"{[" for value in values):
        return None
    names = [len(name.encode()) for name in fields]
    # For each field two quotes, a colon and a comma, which the last field lacks; and two braces: 4n - 1 + 2.
    left = len(line.rstrip(b"\r\n")) - sum(map(len, values)) - sum(names) - (4 * len(names) + 1)
    # A dropped field may be just as long as these blanks. So the first colon must have its blank; any other layout is
    # left to the careful parser.
    if left and (left != 2 * len(names) - 1 or line.find(b'": ') != names[0] + 2):
        return None
    if unread.isdisjoint(fields) or not line.isascii():  # beyond ASCII, a text must be read to be checked
        return _decode_fast(line)
    try:
        return {
            name: "" if name in unread and value[0] == _QUOTE and len(value) <= MAX_RESPONSE_CHARS else _value(value)
            for name, value in zip(fields, values, strict=True)
        }
    except (msgspec.DecodeError, RecursionError):
        return None


_QUOTE = ord('"')
_value = msgspec.json.Decoder().decode


def _decode_fast(line: bytes) -> dict[str, Any] | None:
    """The object in a line of JSON, by the fast decoder, which keeps the last of two equal keys; None if it fails."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def rows_of_values(values: Iterable[Any], shown: str) -> Iterator[Row]:
    """Rows from values that a plug-in made, checked against the same bounds. shown: the source's name for messages.

    Raises `UsageError`.
    """
    shown = visible(shown)

    def rows() -> Iterator[Row]:
        for number, value in enumerate(values, 1):
            where = f"{shown}:{number}"
            if not isinstance(value, dict):
                raise UsageError(f"{where} is no row but {type(value).__name__}; expected a mapping of columns")
            yield Row(where, {str(name): cell for name, cell in value.items()})

    return _check_rows(rows(), shown, responses=False)


def _check_rows(rows: Iterator[Row], shown: str, responses: bool) -> Iterator[Row]:
    """Yield the rows, each checked against the bounds on size. Raises `UsageError`, also if there are no rows.

    shown: the file's name in messages. responses: the fields are a model's outputs, which may be longer.
    """
    number = 0
    for number, row in enumerate(rows, 1):
        if number > MAX_ROWS:
            raise UsageError(f"{shown} has more than {MAX_ROWS} rows")
        _check_fields(row, responses)
        yield row
    if not number:
        raise UsageError(f"{shown} holds no rows")


_COMPRESSED = (".gz", ".gzip", ".zst", ".zstd")
_KNOWN = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".ndjson", ".txt")


_WORKBOOK = b"PK\x03\x04"
"""First bytes of a zip archive, which an .xlsx or .ods file is."""

_CONVERTED = {
    ".xz": "unpack it: `xz -dk FILE`",
    ".bz2": "unpack it: `bzip2 -dk FILE`",
    ".zip": "unpack it: `unzip FILE`",
    ".7z": "unpack it: `7z x FILE`",
    ".xlsx": "save the sheet as CSV in UTF-8",
    ".xls": "save the sheet as CSV in UTF-8",
    ".ods": "save the sheet as CSV in UTF-8",
}
"""Suffix of a file that is not read → what to do with the file. Archives are not unpacked here, because they could have
any size.
"""


def refuse_unread(path: Path, shown: str) -> None:
    """Raise `UsageError` for a file in a format that another program must convert first."""
    todo = _CONVERTED.get(path.suffix.lower())
    if todo is not None:
        raise UsageError(f"{shown}: files in {path.suffix} are not read; {todo.replace('FILE', shown)}")


def is_named_as_data(path: Path) -> bool:
    """Whether the end of a file's name is that of data, read here or not: .csv, .jsonl.gz, .xlsx."""
    suffix, compression = _suffixes(path)
    return bool(compression) or suffix in _KNOWN or suffix in _CONVERTED


def _suffixes(path: Path) -> tuple[str, str]:
    suffixes = [s.lower() for s in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in _COMPRESSED else ""
    return (suffixes[-1] if suffixes else ""), compression


def _split_files(folder: Path, split: str | None) -> list[Path]:
    """The data files of a split in a folder, found by the beginnings of their names. Raises `UsageError`."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file() and _suffixes(p)[0] in _KNOWN[:-1]]
    if not files:
        raise UsageError(f"the folder {folder} holds no data files; expected one of {', '.join(_KNOWN[:-1])} in it")
    if split is not None:
        matching = [p for p in files if p.name.split(".")[0].split("-")[0] == split]
    else:
        matching = files if len(files) == 1 else []
    if not matching:
        held = ", ".join(visible(str(p.relative_to(folder))) for p in files[:20])
        problem = f"no file for the split {visible(split)!r}" if split else "several data files"
        raise UsageError(
            f"{folder} has {problem}; it holds {held}. Name one of these files, or a split with {option('split')} (the "
            "beginning of a file's name, up to its first - or .)"
        )
    return matching


def _read_bytes(path: Path, compression: str, shown: str) -> bytes:
    """The file's content, unpacked, within the bounds. Raises `UsageError`.

    compression: a suffix such as ".gz" or ".zst"; empty for a plain file. shown: the file's name in messages.
    """
    most = MAX_DATA_BYTES
    try:
        # Checked before the file is opened, because opening a pipe waits for its other end.
        _refuse_special(path, shown)
        with open_named(path) as raw:
            if compression:
                most = _max_unpacked_bytes(os.fstat(raw.fileno()).st_size)
            if compression in (".gz", ".gzip"):
                # One byte over the bound shows a file that is too large without unpacking the rest.
                with gzip.open(raw) as file:
                    data = file.read(most + 1)
            elif compression:
                data = _zstd(raw, most)
            else:
                data = raw.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{shown} is damaged or no gzip file: {quoted(str(error))}") from error
    except FileNotFoundError as error:
        raise _no_file(path, shown) from error
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror or error}") from error
    if len(data) > most:
        raise UsageError(f"{shown} unpacks to more than {most} bytes")
    return data


def _max_unpacked_bytes(packed_bytes: int) -> int:
    """Largest unpacked size of a compressed file. packed_bytes: the file's own size."""
    return min(MAX_DATA_BYTES, max(FREE_UNPACKED_BYTES, MAX_UNPACKED_RATIO * packed_bytes))


def _no_file(path: Path, shown: str) -> UsageError:
    """The error for a file that is not there; a number of samples behind its name (`mine.csv:4`) is recognised."""
    name, _, number = str(path).rpartition(":")
    is_number = number.isdecimal() and Path(name).is_file()
    hint = f"; give the number of samples as {option('samples', int(number))}" if is_number else ""
    return UsageError(f"there is no file {shown}{hint}")


def _refuse_special(path: Path, shown: str) -> None:
    """Raise `UsageError` for a pipe or a device, reading from which might never end."""
    if path.exists() and not path.is_file():
        raise UsageError(f"{shown} is no regular file: a pipe or a device is not read")


def _zstd(raw: BinaryIO, most: int) -> bytes:
    """The content of a zstd file, at most `most` bytes and one more. Raises `UsageError`."""
    from harness.benchmarks.sources import zstandard

    try:
        return zstandard.unpack(raw, most + 1)
    except ValueError as error:
        raise UsageError(f"{visible(raw.name)} is damaged or no zstd file: {quoted(str(error))}") from error


def _text(data: bytes, shown: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if data.startswith(_WORKBOOK):
            raise UsageError(f"{shown} is a workbook, whatever its name says: {_CONVERTED['.xlsx']}") from error
        line = data.count(b"\n", 0, error.start) + 1
        how = "save the file as UTF-8 (in Excel: CSV UTF-8)"
        raise UsageError(f"{shown}:{line} is not UTF-8 (byte {error.start}); {how}") from error


def _json_lines(data: bytes, shown: str, responses: bool) -> Iterator[Row]:
    for number, line in enumerate(_text(data, shown).split("\n"), 1):
        if line.strip():
            yield _row_of(parse_json(line, f"{shown}:{number}", responses), f"{shown}:{number}")


def _json_rows(data: bytes, shown: str, split: str | None, responses: bool) -> Iterator[Row]:
    """The rows of a JSON file: a list of objects, a mapping with such lists by split, or one object a line.

    shown: the file's name in messages. responses: the fields are a model's outputs, which may be longer.
    """
    text = _text(data, shown)
    try:
        value = parse_json(text, shown, responses)
    except UsageError:
        # Many files called .json hold one object a line.
        first, _, rest = text.lstrip().partition("\n")
        if not (rest.strip() and first.rstrip().endswith("}")):
            raise
        if split is not None:
            raise UsageError(f"{shown} is one object a line and has no splits; leave out the split") from None
        yield from _json_lines(data, shown, responses)
        return
    if isinstance(value, dict):
        lists = {key: item for key, item in value.items() if isinstance(item, list)}
        if not lists:
            by_name = {key: _named_rows(item) for key, item in value.items()}
            lists = {key: rows for key, rows in by_name.items() if rows}
        if split is None and len(lists) == 1:
            value = next(iter(lists.values()))
        elif split in lists:
            value = lists[split]
        else:
            if not lists:
                raise UsageError(f"{shown} is a mapping without a list of rows; expected a list of objects")
            near = near_names(split, lists) if split else ""
            names = ", ".join(map(visible, lists))
            raise UsageError(
                f"{shown} is a mapping; its lists of rows are: {names}. Name one with {option('split')}.{near}"
            )
    elif split is not None:
        raise UsageError(f"{shown} is a list and has no splits; leave out the split {visible(split)!r}")
    if not isinstance(value, list):
        raise UsageError(f"{shown} must hold a list of objects, found {_json_type(value)}")
    for number, item in enumerate(value, 1):
        yield _row_of(item, f"row {number} of {shown}")


def _named_rows(value: Any) -> list[dict[str, Any]]:
    """The rows of a mapping of names to objects, each with its name in the column `id`; empty for anything else."""
    if not (isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())):
        return []
    return [{"id": name} | item for name, item in value.items()]


def _delimiter(text: str) -> str:
    """The character between the cells of a CSV file: a comma, unless the header has none and has tabs or semicolons.

    Excel saves semicolons where a comma is the decimal mark, and names the file .csv all the same.
    """
    header = text.lstrip("\r\n").partition("\n")[0]
    return "," if "," in header else next((sign for sign in "\t;" if sign in header), ",")


def csv_rows(text: str, shown: str, delimiter: str | None = None, damaged_rows: int = 0) -> Iterator[Row]:
    """The rows of a CSV or TSV file. Raises `UsageError`.

    shown: the file's name in messages. delimiter: the character between two cells; None: as the header has it.
    damaged_rows: number of rows with a
    wrong number of cells that the card expects; they are left out.
    """
    if text.lstrip().startswith("{"):
        raise UsageError(f"{shown} holds JSON and is named as a table; rename it to end in .jsonl")
    # csv's own limit of a cell is 128 KiB; it can be set only for the whole process.
    csv.field_size_limit(MAX_RESPONSE_CHARS)
    # newline="": csv itself has to see the line ends inside quoted cells.
    delimiter = delimiter or _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=not damaged_rows)
    damaged, read_to = 0, 0  # read_to: last line of the row that was read last; a row may have several
    try:
        header = [name.strip() for name in next(reader, [])]
        if len(header) == 1 and "，" in header[0]:
            raise UsageError(f"{shown}:1 parts its names by ，: the sign between two cells must be a comma (,)")
        repeated = {name for name in header if header.count(name) > 1}
        if "" in repeated:
            raise UsageError(f"{shown}:1 has several columns without a name: the first line must name each column")
        if repeated:
            raise UsageError(f"{shown}:1 names the column {visible(min(repeated))!r} twice")
        read_to = reader.line_num
        for cells in reader:
            where, read_to = f"{shown}:{read_to + 1}", reader.line_num
            if not any(cells):
                continue  # spreadsheets save empty rows behind the last one
            if len(cells) != len(header) and damaged < damaged_rows:
                damaged += 1
                continue
            if len(cells) != len(header):
                names = count_noun(len(header), "column")
                raise UsageError(f"{where} has {count_noun(len(cells), 'cell')}, but the first line names {names}")
            yield Row(where, dict(zip(header, cells, strict=True)))
        if damaged < damaged_rows:
            raise UsageError(f"{shown} has {damaged} damaged rows, but the card says {damaged_rows}")
    except csv.Error as error:
        raise UsageError(f"{shown}:{read_to + 1} is no valid CSV: {quoted(str(error))}") from error


def _parquet_rows(path: Path, shown: str) -> Iterator[Row]:
    """The rows of a Parquet file. Raises `UsageError`."""
    # Imported late, because these modules load numpy, which few commands need.
    from harness.benchmarks.sources.parquet.columns import TooLargeError
    from harness.benchmarks.sources.parquet.nesting import rows
    from harness.benchmarks.sources.parquet.thrift import DamagedError

    _refuse_special(path, shown)
    try:
        with open_named(path) as file:
            n_bytes = os.fstat(file.fileno()).st_size
            if n_bytes > MAX_DATA_BYTES:
                raise UsageError(f"{shown} has more than {MAX_DATA_BYTES} bytes")
            most = _max_unpacked_bytes(n_bytes)
            for number, cells in enumerate(rows(file, n_bytes, most), 1):
                where = f"row {number} of {shown}"
                yield Row(where, {key: _json_value(cell, where) for key, cell in cells.items()})
    except FileNotFoundError as error:
        raise _no_file(path, shown) from error
    except TooLargeError as error:
        raise UsageError(f"{shown} unpacks to more than {most} bytes") from error
    except DamagedError as error:
        raise UsageError(
            f"{shown} cannot be read as Parquet, so write or fetch it again: {quoted(str(error))}"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror or error}") from error


def _json_value(value: Any, where: str) -> Any:
    """A Parquet cell as a JSON value: dates and decimals become text."""
    if isinstance(value, dict):
        return {str(key): _json_value(item, where) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item, where) for item in value]
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{where} holds {value}; a number used as question or reference must be finite")
    return value


def parse_json(text: str, where: str, constants: bool = False) -> Any:
    """The JSON value in `text`; a repeated key is refused. constants: whether NaN and Infinity are accepted.

    Raises `UsageError` that begins with `where`.
    """

    def constant(name: str) -> float:
        if constants:
            return float(name)
        raise UsageError(f"{where} holds {name}, which JSON does not know")

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object of these pairs. Raises `UsageError` for a repeated key."""
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise UsageError(f"{where} has the key {visible(twice, 100)!r} twice")
        return value

    if len(text) > MAX_DATA_BYTES:
        raise UsageError(f"{where} is longer than {MAX_DATA_BYTES} characters")
    try:
        return json.loads(text, parse_constant=constant, object_pairs_hook=distinct)
    except json.JSONDecodeError as error:
        line = f" (line {error.lineno})" if error.lineno > 1 else ""
        raise UsageError(f"{where}{line} is broken JSON: {error.msg} at column {error.colno}") from error
    except ValueError as error:  # an integer over Python's limit of 4,300 digits
        raise UsageError(f"{where} holds a number that is too long: {quoted(str(error))}") from error
    except RecursionError as error:
        raise UsageError(f"{where} is nested too deeply") from error


def _row_of(value: Any, where: str) -> Row:
    if not isinstance(value, dict):
        raise UsageError(f"{where} must be an object with named columns, found {_json_type(value)}")
    return Row(where, value)


def _json_type(value: Any) -> str:
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "true/false", type(None): "null"}
    return names.get(type(value), "a number")


def _check_fields(row: Row, responses: bool) -> None:
    """Raise `UsageError` if a cell of the row breaks a bound.

    responses: whether the cells are replies of models, which may be longer.
    """
    longest = MAX_RESPONSE_CHARS if responses else MAX_FIELD_CHARS
    for column, value in row.value.items():
        problem = _problem_of(value, 0, longest, responses)
        if problem:
            raise UsageError(f"{row.where}: the column {visible(column, 100)!r} {problem}")


def _problem_of(value: Any, depth: int, longest: int, responses: bool) -> str:
    """The end of a sentence that says which bound the value breaks; empty if it breaks none.

    depth: levels of lists and objects around the value. longest: characters that a text may have. responses: whether
    the value is of a model's reply, which may have odd characters and NaN.
    """
    # This recursive function stands outside `_check_fields`, because a recursive closure keeps its row in memory until
    # the next garbage collection.
    if depth > MAX_DEPTH:
        return "is nested too deeply"
    if isinstance(value, str):
        if len(value) > longest:
            return f"has {len(value)} characters; at most {longest} are read"
        if not responses and not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            return "holds half a surrogate pair"
    elif isinstance(value, float):
        return "" if responses or math.isfinite(value) else "holds a number that is out of range"
    elif isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return next(filter(None, (_problem_of(item, depth + 1, longest, responses) for item in items)), "")
    return ""
