"""The file of samples that a person judges: JSON lines, whose field `verdict` is filled in.

A verdict holds for the reply and the answer that the person saw; both stand in the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.core import codec
from harness.core.errors import UsageError
from harness.core.files import read_named
from harness.core.inert import quoted
from harness.core.records import VerdictName

Line = TypeVar("Line")
"""The type of a file's lines."""

MAX_FILE_BYTES = 1 << 30
"""Largest file of verdicts, in bytes; a larger file is refused."""


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


def read(path: Path) -> Iterator[tuple[str, VerdictLine]]:
    """Yield the samples of a file of verdicts, each behind its place. Raises `UsageError` that names the line."""
    expected = "This must be a line that `harness audit` wrote; fill in its field `verdict` alone"
    return read_lines(path, VerdictLine, "verdicts", expected)


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
