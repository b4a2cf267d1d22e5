"""Splits a table of replies by a column, such as the student's name: the rows of each value are read as a file.

The rows of all values are in memory at once, because a file that is read once for each student would take as many
readings as there are students.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path

from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError, near_names
from harness.core.inert import safe_name, visible
from harness.foreign import cells

MAX_PARTS = 200
"""Largest number of values of a column by which a file is split; each becomes a run with files of its own."""

MAX_PART_BYTES = 256 * 1024 * 1024
"""Largest size in bytes of a file that is split, since its rows are held in memory."""


def split(path: Path, column: str) -> dict[str, list[Row]]:
    """Value of the column, without blanks at its ends → the rows with this value, both in the order of the file.

    Raises `UsageError` for a row without a value, for more than `MAX_PARTS` values, and for a file that is larger than
    `MAX_PART_BYTES` or no table.
    """
    shown, named = visible(str(path)), visible(column, 80)
    # Tools that write a folder have a file for each sample, and no column to split by.
    if not path.is_file():
        raise UsageError(f"{shown} is no file, and only a file with columns can be split by {named!r}")
    if path.stat().st_size > MAX_PART_BYTES:
        raise UsageError(
            f"{shown} is larger than {MAX_PART_BYTES // 2**20} MiB, too large to be split by {named!r}: "
            "make a file for each value yourself"
        )
    parts: dict[str, list[Row]] = {}
    for row in tables.stream(path, responses=True):
        if column not in row.value:
            columns = ", ".join(visible(name, 40) for name in [*row.value][:20])
            raise UsageError(
                f"{row.where} has no column {named!r}; it has {columns}.{near_names(column, row.value)}", field="by"
            )
        # A blank behind a name, which nobody sees in a spreadsheet, makes no second student.
        value = (cells.id_of(row.value[column]) or "").strip()
        if not value:
            # A merged cell of a spreadsheet has its value in the first row only: the others must not be guessed.
            raise UsageError(
                f"{row.where} has no text or number in the column {named!r}: write into each row whose reply it is"
            )
        # Refused at the first value too many: a column of free texts would become as many lists as rows.
        if value not in parts and len(parts) == MAX_PARTS:
            raise UsageError(
                f"the column {named!r} of {shown} has more than {MAX_PARTS} values, and each would become a run: name "
                "a column with fewer, or split the file"
            )
        parts.setdefault(value, []).append(row)
    return parts


def folder_names(values: Collection[str]) -> dict[str, str]:
    """Value → name of the folder of its run: the value in small letters, with a hyphen for blanks.

    A value that is no plain name in this form, and values that differ only in blanks or capitals, get a digest.
    """
    # `safe_name` gives a digest to each name with a capital, as nearly all names of people have one.
    n_alike = Counter(map(plain_name, values))
    return {value: safe_name(plain_name(value) if n_alike[plain_name(value)] == 1 else value) for value in values}


def plain_name(value: str) -> str:
    """The value in small letters, with a hyphen for blanks: `safe_name` gives most of these no digest."""
    return "-".join(value.casefold().split())
