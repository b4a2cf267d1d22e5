"""Read rows from one data file: JSONL, JSON, CSV, TSV, Parquet or Arrow, plain or compressed with gzip or zstd.

The first bytes determine the format; the file name is used only if they do not (`_form_of`).

Guarantees: a row keeps its values and its location; any error is one sentence with file and line. JSON Lines are split
only at line feeds (a text may contain U+2028); a byte-order mark and carriage returns before line feeds are accepted.
Rejected: encodings other than UTF-8, NaN and infinities in questions, numbers with thousands of digits, deep nesting,
files and fields above the limits below. If an object repeats a key, the last value counts.

A row with a picture outside the card's image columns is rejected (`refuse_picture`), and a link is reported. A row has
a picture if any cell, or part of one, is a data URL, an image part of a message, or the `bytes` and `path` of the hub's
image columns; if a text contains a mark such as `<image 1>`; or if a column with a typical picture name is not empty. A
link in a text (`![](https://…)`) is kept, because programming tasks contain many.

Long: the formats share one set of limits and one style of error message.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import json
import math
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from harness.benchmarks.column_names import cell_at
from harness.core.errors import UsageError, near_names
from harness.core.files import open_named
from harness.core.number_text import count_noun
from harness.core.sanitize import quoted, visible

MAX_DATA_BYTES = 4 * 1024**3
"""Maximum size of a data file after decompression."""

MAX_UNPACKED_RATIO = 20
"""Maximum ratio of unpacked to packed size for a compressed file above `FREE_UNPACKED_BYTES`. Text has a ratio of about
8."""

FREE_UNPACKED_BYTES = 64 * 1024**2
"""Unpacked size that is always allowed for a compressed file, regardless of its ratio."""

MAX_FIELD_CHARS = 32_000_000
"""Maximum length of a text in a question row; the longest texts of LongBench v2 have about 16,000,000 characters."""

MAX_RESPONSE_CHARS = 64_000_000
"""Maximum length of a text in a row of model outputs."""

MAX_DEPTH = 200
"""Maximum nesting depth of lists and mappings in a row."""

MAX_ROWS = 5_000_000
"""Maximum number of rows in one data file."""


class Row(NamedTuple):
    """A row of the data. where: its file and line, for messages. value: column → cell.

    images: the checksums of the images in the card's image columns, in order; None for a number without an image.
    problem: why an image cannot be read, as a sentence.
    """

    where: str
    value: dict[str, Any]
    images: tuple[str | None, ...] = ()
    problem: str = ""

    def cell(self, column: str) -> Any:
        """The cell of a column, or the value at a path (`column_names.cell_at`). Raises `KeyError`."""
        return self.value[column] if column in self.value else cell_at(self.value, column)


@dataclass(frozen=True)
class Rows:
    """The rows of a source, in order; they can be iterated once.

    origin: the source's name and revision. notes: what a reader of the score should know about the data. remedy: what
    to do if the rows of a copied file are not the expected ones; empty for any other source.
    """

    rows: Iterable[Row]
    origin: str
    notes: tuple[str, ...] = ()
    remedy: str = ""


def merge_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, with rows of the same `id` merged into the first of them."""
    by_id: dict[str, Row] = {}
    for row in rows:
        earlier = by_id.setdefault(repr(row.value.get("id", row.where)), row)
        earlier.value.update(row.value)
    yield from by_id.values()


def stream(
    path: Path,
    split: str | None = None,
    shown: str | None = None,
    *,
    responses: bool = False,
    damaged_rows: int = 0,
    half_done: bool = False,
    images: Sequence[str] = (),
) -> Iterator[Row]:
    """The rows of a file, one at a time if the format allows. Raises `UsageError`.

    split: selects a list in a JSON file that is a mapping of lists, or a file in a folder with one file per split.
    shown: the file's name in messages; None: its path. responses: whether the file contains model replies. Their texts
    may be long and contain lone surrogates, and tools write NaN next to them; in questions all of this is rejected.
    damaged_rows: see `harness.benchmarks.card.UrlSource`. half_done: whether to skip an incomplete last line, whose
    writer was killed. images: columns of a Parquet or Arrow file whose bytes are stored as images.
    """
    if path.is_dir():
        for part in _split_files(path, split):
            yield from stream(part, responses=responses, images=images)
        return
    shown = visible(shown or str(path))
    refuse_unread(path, shown)
    with _opened(path, shown) as (file, form):
        if form != "json":
            _refuse_split(split, f"{shown} is a single file")
        if form in _COLUMNAR:
            rows = _columnar_rows(file, form, shown, images)
        elif form in ("csv", "tsv"):
            # Excel saves semicolons if a comma is the decimal mark, but still names the file .csv.
            rows = _csv_rows(_text(file, shown), shown, "\t,;" if form == "tsv" else ",\t;", damaged_rows)
        elif form == "json":
            rows = _json_rows(file, shown, split)
        else:
            rows = _json_lines(file, shown, half_done)
        yield from _check_rows(rows, shown, responses)


@contextlib.contextmanager
def _opened(path: Path, shown: str) -> Iterator[tuple[BinaryIO, str]]:
    """Context manager with the unpacked file and its format. Raises `UsageError`. shown: its name in messages."""
    suffix = _suffixes(path)[0]
    try:
        with contextlib.ExitStack() as stack:
            file: BinaryIO = stack.enter_context(open_named(path))
            form = _form_of(file, suffix, shown)
            if form in ("gzip", "zstd"):
                data, file = _unpack(file, form, shown), stack.enter_context(tempfile.TemporaryFile())
                file.write(data)
                file.seek(0)
                form = _form_of(file, suffix, shown)
            yield file, form
    except FileNotFoundError as error:
        raise UsageError(f"file {shown} does not exist") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror or error}") from error


_SIGNS = re.compile(
    rb"(?P<parquet>PAR1)|(?P<arrow>ARROW1)|(?P<arrow_stream>\xff{4})|(?P<gzip>\x1f\x8b)"
    # A zstd frame, or the skippable frame with which parallel compressors begin.
    rb"|(?P<zstd>\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)"
)
"""Signatures of the file formats that the first bytes identify; the groups are the formats."""
_COLUMNAR = ("parquet", "arrow", "arrow_stream")
_BY_NAME = {".parquet": "parquet", ".feather": "arrow", ".arrow": "arrow_stream", ".csv": "csv", ".tsv": "tsv"}
"""Suffix → the format of a file that its first bytes do not identify."""
_WHOLE_JSON = re.compile(rb"\[\s*\{|\{\s*\n")
"""The beginning of a list of rows, or of an object that spans several lines."""
_LINES = re.compile(rb"\{[^\n]*\}\s*\n\s*\S")
"""An object on one line, followed by more text."""
_HEADER = re.compile(rb"[^\n{}:\[\]]*[,\t;][^\n{}:\[\]]*(?:\n|\Z)")
"""A first line that names columns and contains no punctuation of JSON objects or lists."""
_HEAD_BYTES, _BINARY_BYTES = 65_536, 512
"""Number of bytes used to detect the format, and number of bytes in which a zero byte shows that a file is not text."""


def _form_of(file: BinaryIO, suffix: str, shown: str) -> str:
    """The format of an open file: a group of `_SIGNS`, csv, tsv, json, or jsonl. Raises `UsageError` for other binary
    files.

    suffix: the name's suffix, without the compression suffix. shown: its name in messages.
    """
    head = file.read(_HEAD_BYTES)
    sign = _SIGNS.match(head)
    if not sign and b"\n" not in head.strip():  # the first line to its end, and what follows
        head += file.readline(MAX_RESPONSE_CHARS) + file.read(_HEAD_BYTES)
    file.seek(0)
    if sign:
        return str(sign.lastgroup)
    text, named = head.removeprefix(codecs.BOM_UTF8).lstrip(), _BY_NAME.get(suffix, "")
    header, lines = _HEADER.match(text), _LINES.match(text)
    if _WHOLE_JSON.match(text) or (suffix == ".json" and not header and not lines):
        return "json"
    if text.startswith(b"{"):
        return "jsonl"
    if b"\0" in head[:_BINARY_BYTES] and named not in _COLUMNAR:
        raise UsageError(f"{shown} is not UTF-8 text, Parquet, Arrow, gzip or zstd; convert it to one of these formats")
    return named or ("tsv" if header and b"\t" in header[0] else "csv" if header else "jsonl")


def _unpack(raw: BinaryIO, packer: str, shown: str) -> bytes:
    """The unpacked content of a gzip or zstd file (`packer`), within the limits. Raises `UsageError`."""
    most = _max_unpacked_bytes(raw)
    # The standard library's module or its backport. It reads several frames, as from parallel compressors, as one.
    of_zstd = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    library = import_module("gzip" if packer == "gzip" else of_zstd)
    try:
        with library.open(raw) as file:
            # One byte over the limit reveals a file that is too large without unpacking the rest.
            data: bytes = file.read(most + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile, getattr(library, "ZstdError", EOFError)) as error:
        raise UsageError(f"{shown} is a damaged {packer} file: {quoted(str(error))}") from error
    if len(data) > most:
        raise UsageError(f"{shown} unpacks to more than {most} bytes")
    return data


def _json_lines(lines: Iterable[bytes], shown: str, half_done: bool = False) -> Iterator[Row]:
    """The rows of JSON Lines; the parameters are those of `stream`. Raises `UsageError`."""
    size = 0
    for number, line in enumerate(lines, 1):
        size += len(line)
        if size > MAX_DATA_BYTES:
            raise UsageError(f"{shown} unpacks to more than {MAX_DATA_BYTES} bytes")
        if line.isspace():
            continue
        where, value = f"{shown}:{number}", _decode_fast(line)
        if value is not None:
            yield Row(where, value)
            continue
        if half_done and not line.endswith(b"\n"):
            return
        # The careful parser reads the other lines, or reports what is wrong with them.
        try:
            # A byte-order mark may begin the file; anywhere else it is text.
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            offset = size - len(line) + error.start
            raise UsageError(f"{where} is not UTF-8 (byte {offset}); save the file as UTF-8") from error
        if text:
            yield _row_of(parse_json(text, where), where)


def _decode_fast(line: bytes) -> dict[str, Any] | None:
    """The object in a line of JSON, from the fast decoder; None if it fails, as for NaN or a byte-order mark."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def rows_of_values(values: Iterable[Any], shown: str) -> Iterator[Row]:
    """Rows from values that a plug-in created, checked against the same limits. shown: the source's name for messages.

    Raises `UsageError`.
    """
    shown = visible(shown)

    def rows() -> Iterator[Row]:
        for number, value in enumerate(values, 1):
            where = f"{shown}:{number}"
            if not isinstance(value, dict):
                raise UsageError(f"{where}: expected a mapping of column names to values, found {type(value).__name__}")
            yield Row(where, {str(name): cell for name, cell in value.items()})

    return _check_rows(rows(), shown, responses=False)


def _check_rows(rows: Iterator[Row], shown: str, responses: bool) -> Iterator[Row]:
    """Yield the rows, each checked against the size limits. Raises `UsageError`, also if there are no rows.

    shown: the file's name in messages. responses: the fields are a model's outputs, which may be longer.
    """
    number, longest = 0, MAX_RESPONSE_CHARS if responses else MAX_FIELD_CHARS
    for number, row in enumerate(rows, 1):
        if number > MAX_ROWS:
            raise UsageError(f"{shown} has more than {MAX_ROWS} rows")
        for column, value in row.value.items():
            if problem := _problem_of(value, 0, longest, responses):
                raise UsageError(f"{row.where}: the column {visible(column, 100)!r} {problem}")
        yield row
    if not number:
        raise UsageError(f"{shown} has no rows")


_COMPRESSED = (".gz", ".gzip", ".zst", ".zstd")
"""Supported compression suffixes, which follow the format's suffix."""
_KNOWN = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".ndjson", ".txt")
"""Suffixes of supported data files."""
_CONVERTED = (".xz", ".bz2", ".zip", ".7z", ".xlsx", ".xls", ".ods")
"""Suffixes of unsupported files. Archives are not unpacked here, because they could be of any size."""


def refuse_unread(path: Path, shown: str) -> None:
    """Raise `UsageError` for a file in a format that another program must convert first."""
    if path.suffix.lower() in _CONVERTED:
        raise UsageError(f"{shown}: {path.suffix} is not supported: extract the archive, or save the sheet as CSV")


def is_named_as_data(path: Path) -> bool:
    """Whether a file has a data suffix, supported or not: .csv, .jsonl.gz, .xlsx."""
    suffix, compression = _suffixes(path)
    return bool(compression) or suffix in _KNOWN or suffix in _CONVERTED


def _suffixes(path: Path) -> tuple[str, str]:
    """Return (format suffix, compression suffix) of a file name, in lower case; "" for none."""
    suffixes = [s.lower() for s in path.suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in _COMPRESSED else ""
    return (suffixes[-1] if suffixes else ""), compression


def _split_files(folder: Path, split: str | None) -> list[Path]:
    """The data files of a split in a folder: files whose name begins with the split's name, or whose folder has that
    name. Without a split, the files of the only split. Raises `UsageError`.
    """
    inside = sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    # Hidden files and folders belong to other programs (`.ipynb_checkpoints`, `.cache`).
    files = [p for p in inside if _suffixes(p)[0] in _KNOWN[:-1] and not any(part[0] == "." for part in p.parts)]
    if any(p.suffix == ".arrow" for p in files):  # the `datasets` library describes them in JSON files
        files = [p for p in files if p.suffix != ".json"]
    if not files:
        raise UsageError(f"the folder {folder} has no data files; expected one of {', '.join(_KNOWN[:-1])}")
    begins = {p: p.name.split(".")[0].split("-")[0] for p in files}
    if split is None and len({(p.parent, begin) for p, begin in begins.items()}) == 1:
        return [folder / p for p in files]
    of_split = [folder / p for p, begin in begins.items() if split in (begin, p.parent.name)]
    if not of_split or split is None:
        names = ", ".join(visible(str(p)) for p in files[:20])
        problem = f"no files for the split {visible(split)!r}" if split else "several data files"
        raise UsageError(
            f"{folder} has {problem}; it contains {names}. Specify one of these files, or choose a split with `split` "
            "(a subfolder name, or the part of a file name before the first - or .)"
        )
    return of_split


def _max_unpacked_bytes(file: BinaryIO) -> int:
    """Maximum unpacked size of a compressed file."""
    return min(MAX_DATA_BYTES, max(FREE_UNPACKED_BYTES, MAX_UNPACKED_RATIO * os.fstat(file.fileno()).st_size))


def _text(file: BinaryIO, shown: str) -> str:
    """The whole file as text. Raises `UsageError`. shown: its name in messages."""
    data = file.read(MAX_DATA_BYTES + 1)
    if len(data) > MAX_DATA_BYTES:
        raise UsageError(f"{shown} is larger than {MAX_DATA_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        how = "save the file as UTF-8 (in Excel: CSV UTF-8)"
        raise UsageError(f"{shown}:{line} is not UTF-8 (byte {error.start}); {how}") from error


def _json_rows(file: BinaryIO, shown: str, split: str | None) -> Iterator[Row]:
    """The rows of a JSON file: a list of objects, or a mapping of splits to such lists. shown: the file's name."""
    value = parse_json(_text(file, shown), shown)
    if isinstance(value, list):
        _refuse_split(split, f"{shown} is a list")
    for number, item in enumerate(value if isinstance(value, list) else _list_in(value, split, shown), 1):
        yield _row_of(item, f"row {number} of {shown}")


def _refuse_split(split: str | None, what: str) -> None:
    """Raise `UsageError` if a split is named. what: the file that has no splits, as the beginning of a sentence."""
    if split is not None:
        raise UsageError(f"{what} and has no splits; remove the split {visible(split)!r}")


def _list_in(value: Any, split: str | None, shown: str) -> list[Any]:
    """The list of rows in a mapping: the only list, or the split's list. Raises `UsageError`."""
    if not isinstance(value, dict):
        raise UsageError(f"{shown} must contain a list of objects, found {quoted(repr(value))}")
    lists = {key: item for key, item in value.items() if isinstance(item, list)}
    if not lists:
        by_name = {key: _named_rows(item) for key, item in value.items()}
        lists = {key: rows for key, rows in by_name.items() if rows}
    if not lists:
        raise UsageError(f"{shown} is a mapping without a list of rows; expected a list of objects")
    name = next(iter(lists)) if split is None and len(lists) == 1 else split
    if name not in lists:
        near = near_names(split, lists) if split else ""
        names = ", ".join(map(visible, lists))
        raise UsageError(f"{shown} contains these lists of rows: {names}. Choose one of them with `split`.{near}")
    return lists[name]


def _named_rows(value: Any) -> list[dict[str, Any]]:
    """The rows of a mapping of names to objects, each with its name in the column `id`; empty for anything else."""
    if not (isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())):
        return []
    return [{"id": name} | item for name, item in value.items()]


def _csv_rows(text: str, shown: str, signs: str, damaged_rows: int) -> Iterator[Row]:
    """The rows of a CSV or TSV file. Raises `UsageError`.

    shown: the file's name in messages. signs: possible cell separators; the first one that occurs in the header is
    used. damaged_rows: number of rows with a wrong number of cells that the card expects; they are skipped.
    """
    # csv's own cell limit is 128 KiB; it can be set only for the whole process.
    csv.field_size_limit(MAX_RESPONSE_CHARS)
    first_line = text.lstrip("\r\n").partition("\n")[0]
    delimiter = next((sign for sign in signs if sign in first_line), signs[0])
    # newline="": csv itself has to see the line ends inside quoted cells.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=not damaged_rows)
    damaged, read_to = 0, 0  # read_to: last line of the most recent row, which may span several lines
    try:
        header = [name.strip() for name in next(reader, [])]
        repeated = {name for name in header if header.count(name) > 1}
        if repeated:
            raise UsageError(f"{shown}:1: the column {visible(min(repeated))!r} appears twice in the header")
        read_to = reader.line_num
        for cells in reader:
            where, read_to = f"{shown}:{read_to + 1}", reader.line_num
            if not any(cells):
                continue  # spreadsheets save empty rows after the last one
            if len(cells) != len(header) and damaged < damaged_rows:
                damaged += 1
                continue
            if len(cells) != len(header):
                names = count_noun(len(header), "column")
                raise UsageError(f"{where} has {count_noun(len(cells), 'cell')}, but the header has {names}")
            yield Row(where, dict(zip(header, cells, strict=True)))
        if damaged < damaged_rows:
            raise UsageError(f"{shown} has {damaged} damaged rows, but the card specifies {damaged_rows}")
    except csv.Error as error:
        raise UsageError(f"{shown}:{read_to + 1} is not valid CSV: {quoted(str(error))}") from error


def _columnar_rows(file: BinaryIO, form: str, shown: str, images: Sequence[str]) -> Iterator[Row]:
    """The rows of a Parquet or Arrow file, which a child process converts to lines of JSON. Raises `UsageError`.

    form: one of `_COLUMNAR`. shown: the file's name in messages. images: as for `stream`.
    """
    from harness.benchmarks.sources import columnar

    most, name = _max_unpacked_bytes(file), "Parquet" if form == "parquet" else "Arrow"
    try:
        for number, line in enumerate(columnar.lines(file, form, most, images), 1):
            where = f"row {number} of {shown}"
            # The careful parser reads what the fast one cannot, such as NaN, or reports what is wrong.
            yield Row(where, _decode_fast(line) or parse_json(line.decode(), where))
    except columnar.TooLargeError as error:
        raise UsageError(f"{shown} unpacks to more than {most} bytes") from error
    except columnar.DamagedError as error:
        raise UsageError(f"{shown} cannot be read as {name}: {quoted(str(error))}") from error


def parse_json(text: str, where: str, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The JSON value in `text`, which may contain NaN and infinities. Raises `UsageError` that begins with `where`.

    hook: builds an object from its members.
    """
    try:
        return json.loads(text, object_pairs_hook=hook)
    except json.JSONDecodeError as error:
        line = f" (line {error.lineno})" if error.lineno > 1 else ""
        raise UsageError(f"{where}{line} is not valid JSON: {error.msg} at column {error.colno}") from error
    except ValueError as error:  # an integer over Python's limit of 4,300 digits
        n_digits = sys.get_int_max_str_digits()
        raise UsageError(f"{where} contains an integer of more than {n_digits:,} digits; put it in quotes") from error
    except RecursionError as error:
        raise UsageError(f"{where} is nested too deeply") from error


def whole_json(path: Path, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The JSON value of a whole file. hook: builds an object from its members. Raises `UsageError`."""
    shown = visible(str(path))
    with _opened(path, shown) as (file, _):
        return parse_json(_text(file, shown), shown, hook)


def _row_of(value: Any, where: str) -> Row:
    """The row with this JSON value. Raises `UsageError` for anything but an object."""
    if not isinstance(value, dict):
        raise UsageError(f"{where} must be an object with named columns, found {quoted(repr(value))}")
    return Row(where, value)


def _problem_of(value: Any, depth: int, longest: int, responses: bool) -> str:
    """The end of a sentence that names the limit that the value exceeds; empty if it exceeds none.

    depth: levels of lists and objects around the value. longest: maximum number of characters in a text. responses:
    whether the value is from a model's reply, which may contain odd characters and NaN.
    """
    # This recursive function is defined outside `_check_rows`, because a recursive closure keeps its row in memory
    # until the next garbage collection.
    if depth > MAX_DEPTH:
        return "is nested too deeply"
    if isinstance(value, str):
        if len(value) > longest:
            return f"has {len(value)} characters; the limit is {longest}"
        if not responses and not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            return "contains an unpaired surrogate"
    elif isinstance(value, float):
        return "" if responses or math.isfinite(value) else "contains a number that is not finite"
    elif isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return next(filter(None, (_problem_of(item, depth + 1, longest, responses) for item in items)), "")
    return ""


# ---- pictures


_PICTURE_MARK = re.compile(r"<\|?image(?:[ _-]?\d{1,3}|_pad)?\|?>", re.I)
_PICTURE_IN_TEXT = re.compile(
    rf"data:(?:image|video|audio)/[\w.+-]{{1,40}};base64,|{_PICTURE_MARK.pattern}|<\|vision_start\|>", re.I
)
_PICTURE_LINK = re.compile(r"!\[[^\]\n]{0,300}\]\([^)\s]{0,500}[./]|<img\s[^<>]{0,300}src=", re.I)
_PICTURE_COLUMN = re.compile(
    r"(?:image|img|picture|figure|photo|diagram|video|audio)s?\d{0,3}(?:path|url|file|name)?s?", re.I
)
_PICTURE_PART = re.compile(r"(?:input_)?(?:image|video|audio)(?:_url)?")


_NO_MARK = re.compile(r"(?!)")


def refuse_picture(row: Row, shown: Container[str] = (), mark: re.Pattern[str] = _NO_MARK) -> None:
    """Raise `UsageError` for a row that contains a picture, or a mark for one, other than those that its question
    shows.

    shown: the columns of the shown pictures. mark: the mark for these pictures in a text.
    """
    for column, cell in row.value.items():
        if column in shown:
            continue
        named = _PICTURE_COLUMN.fullmatch(re.sub(r"[\s_-]", "", column)) is not None
        if (sign := _picture_sign(cell, mark)) or (named and _holds_anything(cell)):
            what = f" ({sign})" if sign else ""
            if row.images and _PICTURE_MARK.fullmatch(sign):
                raise UsageError(
                    f"{row.where}: the column {visible(column, 100)!r} contains the marker {sign}; write markers "
                    "as <image 1>, or define their form with `image_mark` in a card"
                )
            raise UsageError(
                f"{row.where}: the column {visible(column, 100)!r} contains an image{what}, but images are read only "
                "from a card's `images` columns: add this column there, or remove it or these rows"
            )


def links_picture(text: str) -> bool:
    """Whether a question's text links to a picture."""
    return _PICTURE_LINK.search(text) is not None


def _picture_sign(cell: Any, mark: re.Pattern[str]) -> str:
    """The evidence that a cell, or part of it, is a picture or has a mark for one; empty if there is none."""
    if isinstance(cell, str):
        match = _PICTURE_IN_TEXT.search(mark.sub("", cell))
        return visible(match[0], 60) if match else ""
    if isinstance(cell, list):
        return next(filter(None, (_picture_sign(each, mark) for each in cell)), "")
    if not isinstance(cell, dict):
        return ""
    if cell.keys() == {"bytes", "path"} and _holds_anything([*cell.values()]):
        return "`bytes` and `path`"
    kind = cell.get("type")
    if isinstance(kind, str) and _PICTURE_PART.fullmatch(kind) and len(cell) > 1:
        return f"a part of type {kind}"
    return _picture_sign([*cell.values()], mark)


def _holds_anything(cell: Any) -> bool:
    """Whether a cell is anything other than null, an empty text, or a list or mapping of these."""
    if isinstance(cell, dict | list):
        return any(map(_holds_anything, cell.values() if isinstance(cell, dict) else cell))
    return cell not in (None, False) and bool(str(cell).strip())
