"""The file of samples that a person judges: JSON lines, or a table for a spreadsheet if its name ends in .csv.

A table must come back as it was written, but for the verdicts; every other cell is compared with the stored sample. So
it does not matter how the spreadsheet saved it: with commas or semicolons, as UTF-8 or in the encoding of Chinese
Windows. Spreadsheets turn a cell such as 1/2 into a date and 0.50 into 0.5. An apostrophe before each text prevents
this.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.benchmarks.sources import tables
from harness.core import codec
from harness.core.errors import UsageError, option
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
"""The encodings in which a table is read, the first that fits. A text that was read in a wrong one is not the stored
text, so its row is refused."""


class VerdictLine(msgspec.Struct, frozen=True):
    """The fields of a line in a file of verdicts that are read here, with the meaning of `AuditItem`."""

    benchmark: str
    question_id: str
    sample_index: int
    text: str
    answer: str | None
    verdict: VerdictName | None = None
    undecided: bool = False


class FileRow(NamedTuple):
    """A sample of a file. where: its file and line in words. cells: column → cell; None if the file is no table."""

    where: str
    line: VerdictLine
    cells: Mapping[str, str] | None


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
    another run of the same questions, or if a cell beside the verdict was changed."""
    if row.cells is None:
        if row.line.text != stored.text:
            what = "was given on another reply than the one"
        elif row.line.answer != stored.answer:
            what = "was given when the grader took another answer from the reply than now,"
        else:
            return
        raise _not_of(row, what, run, "and fill in its verdicts")
    for column, cell in _cells(stored).items():
        written, original = _bare(row.cells[column]), _bare(cell)
        if lost := sorted(set(filter(_is_lost_in_gbk, original))):
            written, original = _without_lost(written), _without_lost(original)
        if column == "question" and _is_one_question(written, original):
            continue
        if column not in ("verdict", "undecided") and written != original:
            lacks = f" (apart from {' '.join(lost[:10])}, which GBK lacks)" if lost else ""
            what = f"stands beside a cell `{column}` that is not the one{lacks}"
            raise _not_of(row, what, run, "fill in the column `verdict` alone, and save it as CSV UTF-8")


def _is_lost_in_gbk(character: str) -> bool:
    """Whether GBK, the encoding of Chinese Windows, lacks a character, such as ⁻; a spreadsheet writes ? for it."""
    try:
        character.encode("gbk")
    except UnicodeEncodeError:
        return True
    return False


def _without_lost(text: str) -> str:
    """A text without the characters that GBK lacks, and without the ? that may stand for one."""
    return "".join(character for character in text if character != "?" and not _is_lost_in_gbk(character))


def _is_one_question(written: str, stored: str) -> bool:
    """Whether two cells hold one question, perhaps with another prompt around it.

    The same replies may be scored with a card and without one; the verdict on a reply is the same in both.
    """
    return bool(written and stored) and (written in stored or stored in written)


def _not_of(row: FileRow, what: str, run: str, todo: str) -> UsageError:
    """The error of a verdict that was given on something else than what the run has."""
    line = row.line
    return UsageError(
        f"{row.where}: the verdict on sample {line.sample_index} of question {quoted(line.question_id)} {what} in "
        f"{visible(run, 200)}; no verdict was stored. Expected a file that `harness audit` wrote for this run as it is "
        f"scored now: write one by {option('out')}, {todo}",
        field="verdicts",
    )


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv"


def _json_rows(path: Path, data: bytes) -> Iterator[FileRow]:
    """Yield the samples of a file of JSON lines. Raises `UsageError` that names the line."""
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            yield FileRow(where, codec.decode(line, VerdictLine), None)
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
        "undecided": "yes" if item.undecided is True else "",
    }


_COLUMNS = (
    "verdict", "question", "references", "answer", "text", "benchmark", "question_id", "sample_index", "undecided",
)  # fmt: skip


_NUMBER = re.compile("[0-9]{1,18}")


def _cell(text: str) -> str:
    """A text as a cell that a spreadsheet neither runs as a formula nor turns into a number or a date."""
    left_out = len(text) - MAX_CELL_CHARS
    before = f"[{left_out:,} characters are left out here] " if left_out > 0 else ""
    return f"'{before}{lines(text[-MAX_CELL_CHARS:])}"


def _bare(cell: str) -> str:
    """A cell without what a spreadsheet may change in it: the apostrophe before a text, and the kind of line ends."""
    return cell.replace("\r\n", "\n").removeprefix("'")


def _table_rows(path: Path, data: bytes) -> Iterator[FileRow]:
    """Yield the samples of a table. Raises `UsageError` that names the line."""
    for row in tables.csv_rows(_table_text(path, data), visible(str(path))):
        cells = row.value
        if missing := [column for column in _COLUMNS if column not in cells]:
            raise UsageError(
                f"{visible(str(path))} lacks the column `{missing[0]}`; expected the columns that `harness audit` "
                f"wrote: {', '.join(_COLUMNS)}",
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
        texts = {name: _bare(cells[name]) for name in ("benchmark", "question_id", "text", "answer")}
        line = VerdictLine(**texts, sample_index=int(number), verdict=verdict, undecided=undecided == "yes")
        yield FileRow(row.where, line, cells)


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
