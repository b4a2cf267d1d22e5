"""The file of samples that a person judges: JSON lines, or a table for a spreadsheet if its name ends in .csv.

A verdict holds for the reply and the answer that the person saw: a table has their checksum in a column, so the other
cells may come back as a spreadsheet leaves them, in UTF-8 or in the encoding of Chinese Windows. An apostrophe before
each text keeps a cell such as 1/2 from becoming a date.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.benchmarks.sources import tables
from harness.core import codec
from harness.core.codec import digest
from harness.core.errors import UsageError
from harness.core.files import read_named, write_atomically
from harness.core.inert import csv_file, quoted, visible
from harness.core.records import VerdictName
from harness.runs.line_file import make_folder, refuse_link, write_lines
from harness.viewer.auditing import AuditItem
from harness.viewer.printed import lines

MAX_FILE_BYTES = 1 << 30
"""Largest file of verdicts, in bytes; a larger file is refused."""

MAX_CELL_CHARS = 30_000
"""Number of characters of a text that a cell holds, counted from its end; Excel cuts a cell after 32,767."""

VERDICTS: dict[str, VerdictName] = {
    **{"correct": "correct", "对": "correct", "正确": "correct", "√": "correct"},
    **{"wrong": "wrong", "错": "wrong", "错误": "wrong", "×": "wrong"},
    "undecided": "undecided",
}
"""The words that a person may write into a table as a verdict."""

ENCODINGS = ("utf-8-sig", "gb18030")
"""The encodings in which a table is read, the first that fits."""


class VerdictLine(msgspec.Struct, frozen=True):
    """The fields of a line in a file of verdicts that are read here, with the meaning of `AuditItem`.

    checksum: of the reply and its answer; a line without it has both of them.
    """

    benchmark: str
    question_id: str
    sample_index: int
    text: str = ""
    answer: str | None = None
    checksum: str = ""
    verdict: VerdictName | None = None
    undecided: bool = False


class FileRow(NamedTuple):
    """A sample of a file. where: its file and line in words."""

    where: str
    line: VerdictLine


def write(path: Path, items: Iterable[AuditItem]) -> None:
    """Write the samples to judge. Raises `UsageError` for a name of a workbook, and for an id that no cell can hold;
    `StoreError` when the disk refuses."""
    tables.refuse_unread(path, visible(str(path)))
    if not _is_table(path):
        write_lines(path, items)
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS)
    writer.writeheader()
    for item in items:
        if lines(item.question_id) != item.question_id:
            raise UsageError(
                f"the question id {quoted(item.question_id)} holds characters that a table loses: name a file that "
                "ends in .jsonl",
                field="out",
            )
        writer.writerow(_cells(item))
    make_folder(path.parent)
    refuse_link(path)
    write_atomically(path, csv_file(text.getvalue()))


def read(path: Path) -> Iterator[FileRow]:
    """Yield the samples of a file of verdicts. Raises `UsageError` that names the line."""
    tables.refuse_unread(path, visible(str(path)))
    try:
        data = read_named(path, MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", field="verdicts") from error
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes: it is no file of verdicts", field="verdicts")
    return _table_rows(path, data) if _is_table(path) else _json_rows(path, data)


def check_unchanged(row: FileRow, stored: AuditItem, run: str) -> None:
    """Raise `UsageError` if the row is not of the sample `stored` as it is now, as when the file was written for
    another run of the same questions.
    """
    line = row.line
    if (line.checksum or _checksum(line)) != _checksum(stored):
        raise UsageError(
            f"{row.where}: the verdict on sample {line.sample_index} of question {quoted(line.question_id)} was given "
            f"on another reply, or on another answer from it, than the one in {visible(run, 200)}; no verdict was "
            "stored. Expected a file that `harness audit` wrote for this run as it is scored now: write one by "
            f"`out`",
            field="verdicts",
        )


def _checksum(sample: VerdictLine | AuditItem) -> str:
    """Checksum of the reply and its answer, which no spreadsheet takes for a number."""
    return f"x{digest([sample.text, sample.answer])[:16]}"


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _json_rows(path: Path, data: bytes) -> Iterator[FileRow]:
    """Yield the samples of a file of JSON lines. Raises `UsageError` that names the line."""
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            yield FileRow(where, codec.decode(line, VerdictLine))
        except codec.DecodeError as error:
            raise UsageError(
                f"{where}: {quoted(str(error))}. This must be a line that `harness audit` wrote; fill in its field "
                "`verdict` alone"
            ) from error


# ---- tables


def _cells(item: AuditItem) -> dict[str, str]:
    """A sample to judge as a row of a table: column → cell, without a verdict."""
    return {
        "verdict": "",
        "question": _cell(item.question),
        "references": _cell(" or ".join(item.references)),
        "answer": "" if item.answer is None else _cell(item.answer),
        "text": _cell(item.text),
        "benchmark": _cell(item.benchmark),
        "question_id": _cell(item.question_id),
        "sample_index": str(item.sample_index),
        "checksum": _checksum(item),
        "undecided": "yes" if item.undecided is True else "",
    }


_COLUMNS = (
    "verdict", "question", "references", "answer", "text", "benchmark", "question_id", "sample_index", "checksum",
    "undecided",
)  # fmt: skip


_READ = ("verdict", "benchmark", "question_id", "sample_index", "checksum", "undecided")
"""The columns that are read."""

_NUMBER = re.compile("[0-9]{1,18}")


def _cell(text: str) -> str:
    """A text as a cell that a spreadsheet neither runs as a formula nor turns into a number or a date."""
    left_out = len(text) - MAX_CELL_CHARS
    before = f"[{left_out:,} characters are left out here] " if left_out > 0 else ""
    return f"'{before}{lines(text[-MAX_CELL_CHARS:])}"


def _table_rows(path: Path, data: bytes) -> Iterator[FileRow]:
    """Yield the samples of a table. Raises `UsageError` that names the line."""
    for row in tables.csv_rows(_table_text(path, data), visible(str(path))):
        cells = row.value
        if missing := [column for column in _READ if column not in cells]:
            raise UsageError(
                f"{visible(str(path))} lacks the column `{missing[0]}`; expected those that `harness audit` wrote: "
                f"{', '.join(_READ)}",
                field="verdicts",
            )
        word, number, undecided = (cells[name].strip().lower() for name in ("verdict", "sample_index", "undecided"))
        verdict = VERDICTS.get(word)
        if word and verdict is None:
            raise _wrong_cell(row.where, "verdict", cells["verdict"], "correct (对), wrong (错) or undecided")
        if _NUMBER.fullmatch(number) is None:
            raise _wrong_cell(row.where, "sample_index", cells["sample_index"], "the number that was written there")
        if undecided not in ("", "yes"):
            raise _wrong_cell(row.where, "undecided", cells["undecided"], "yes")
        texts = {name: cells[name].removeprefix("'") for name in ("benchmark", "question_id", "checksum")}
        line = VerdictLine(**texts, sample_index=int(number), verdict=verdict, undecided=undecided == "yes")
        yield FileRow(row.where, line)


def _wrong_cell(where: str, column: str, cell: str, expected: str) -> UsageError:
    """The error of a cell with a word that this column cannot have."""
    return UsageError(
        f"{where}: the column `{column}` holds {quoted(cell)}; expected {expected}, or an empty cell", field="verdicts"
    )


def _table_text(path: Path, data: bytes) -> str:
    """The text of a table, in the first of `ENCODINGS` that fits. Raises `UsageError`."""
    for encoding in ENCODINGS:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise UsageError(f"{path} is neither UTF-8 nor GB 18030: save the table as CSV UTF-8", field="verdicts")
