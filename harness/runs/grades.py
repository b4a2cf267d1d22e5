"""Reading `grades.jsonl`: one verdict per sample; each grading replaces the whole file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.core.packed import Packed
from harness.core.records import Grade
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import iterate_lines

_REMEDY = "Run `harness score` to grade again."


def read(folder: BenchmarkFolder) -> Sequence[Grade]:
    """The grades in file order. Raises `StoreError` for a missing or damaged file."""
    return Packed(Grade, read_file(folder.grades))


def read_file(path: Path) -> Iterator[Grade]:
    """The grades in a file of the same form as `grades.jsonl`, one at a time.

    Raises `StoreError` for a missing or damaged file.
    """
    return iterate_lines(path, Grade, _REMEDY)
