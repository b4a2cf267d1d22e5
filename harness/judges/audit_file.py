"""The file of samples that a person judges: JSON lines, whose field `verdict` is filled in.

A verdict holds for the reply and the answer that the person saw; both stand in the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from harness.core import codec
from harness.core.errors import UsageError
from harness.core.files import read_named
from harness.core.inert import quoted, visible
from harness.core.records import VerdictName
from harness.runs.line_file import write_lines
from harness.viewer.auditing import AuditItem

Line = TypeVar("Line")
"""The type of a file's lines."""

MAX_FILE_BYTES = 1 << 30
"""Largest file of verdicts, in bytes; a larger file is refused."""

SUFFIXES = ("", ".jsonl", ".json", ".txt")
"""The ends of a name of a file of verdicts: another one, such as .csv, names a file of another kind."""


class VerdictLine(msgspec.Struct, frozen=True):
    """The fields of a line in a file of verdicts that are read here, with the meaning of `AuditItem`."""

    benchmark: str
    question_id: str
    sample_index: int
    text: str = ""
    answer: str | None = None
    verdict: VerdictName | None = None
    undecided: bool = False
    points: float | None = None


class FileRow(NamedTuple):
    """A sample of a file. where: its file and line in words."""

    where: str
    line: VerdictLine


def write(path: Path, items: Iterable[AuditItem]) -> None:
    """Write the samples to judge. Raises `UsageError` for a name of a table; `StoreError` when the disk refuses."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(
            "the samples are written as JSON lines: name a file that ends in .jsonl", field="out", value=path
        )
    write_lines(path, items)


def read(path: Path) -> Iterator[FileRow]:
    """Yield the samples of a file of verdicts. Raises `UsageError` that names the line."""
    expected = "This must be a line that `harness audit` wrote; fill in its field `verdict` alone"
    for where, line in read_lines(path, VerdictLine, "verdicts", expected):
        yield FileRow(where, line)


def read_lines(path: Path, line_type: type[Line], field: str, expected: str) -> Iterator[tuple[str, Line]]:
    """Yield the lines of a file, each behind its place in words. Raises `UsageError` that names the line.

    field: the option that names the file. expected: a sentence on what a line is.
    """
    try:
        data = read_named(path, MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", field=field) from error
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes: it is no file of {field}", field=field)
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            yield where, codec.decode(line, line_type)
        except codec.DecodeError as error:
            raise UsageError(f"{where}: {quoted(str(error))}. {expected}") from error


def check_unchanged(row: FileRow, stored: AuditItem, run: str) -> None:
    """Raise `UsageError` if the row is not of the sample `stored` as it is now, as when the file was written for
    another run of the same questions.
    """
    line = row.line
    if (line.text, line.answer) != (stored.text, stored.answer):
        raise UsageError(
            f"{row.where}: the verdict on sample {line.sample_index} of question {quoted(line.question_id)} was given "
            f"on another reply, or on another answer from it, than the one in {visible(run, 200)}; no verdict was "
            "stored. Expected a file that `harness audit` wrote for this run as it is scored now: write one by "
            f"`out`",
            field="verdicts",
        )
