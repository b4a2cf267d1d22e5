"""Reads single values from other tools' rows. A value of the wrong type becomes None or empty, or is an error."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from harness.benchmarks import column_names
from harness.benchmarks.sources.tables import MAX_DATA_BYTES, Row
from harness.core.errors import UsageError, near_names
from harness.core.files import read_named
from harness.core.number_text import count_noun
from harness.core.records import UNSTATED_REASON
from harness.core.sanitize import visible

Paths = tuple[str, ...]
"""Paths in a row (`column_names.cell_at`), the first of which that has a value counts."""


def value_at(row: Row, paths: Paths) -> Any:
    """The value at the first of these paths that has one; None if none does."""
    for path in paths:
        with contextlib.suppress(KeyError):
            if (value := row.cell(path)) is not None:
                return value
    return None


def missing(row: Row, paths: Paths) -> str:
    """The first of these paths that the row does not have; empty if it has all."""
    for path in paths:
        try:
            row.cell(path)
        except KeyError:
            return path
    return ""


def missing_error(row: Row, column: str | None, role: str, field: str, perhaps: Paths = ()) -> UsageError:
    """The error for a row without the column that the user names, or without any usual one. role: the expected content.

    perhaps: the column that may have this content, if any.
    """
    columns = column_names.column_paths(row.value)
    have = ", ".join(visible(name, 60) for name in columns[:40]) + (", …" if len(columns) > 40 else "")
    if column is not None:
        near = near_names(column, columns)
        return UsageError(f"{row.where} has no column {visible(column)!r} for {role}; available columns: {have}.{near}")
    named = f"use `{field}` to specify the column for {role}"
    if perhaps:
        named += f" (`{field}={perhaps[0]}` if {visible(perhaps[0], 60)} contains the replies)"
    elif field == "response_key":
        named += ", or its verdict column with `verdict_key`"
    else:
        named += ", or specify the benchmark with `benchmark`"
    usual = {"response_key": "response, output, completion, gen …", "answer_key": "answer, reference, gold, target …"}
    return UsageError(
        f"{row.where} has no known column for {role}. Its columns are {have}; known columns are {usual[field]}: {named}"
    )


def decode_file(path: Path) -> str:
    """The text of a whole file. Raises `UsageError`."""
    shown = visible(str(path))
    try:
        data = read_named(path, MAX_DATA_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror}") from error
    if len(data) > MAX_DATA_BYTES:
        raise UsageError(f"{shown} is larger than {MAX_DATA_BYTES} bytes")
    # Damaged bytes are replaced, so that one of them does not make the whole file unreadable.
    return data.decode("utf-8", "replace")


def as_text(value: Any) -> str | None:
    """The text of a question given as a string or as chat messages, which are joined; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [split_content(m.get("content"))[0] for m in value if isinstance(m, dict)]
        return "\n\n".join(filter(None, texts)) or None
    return None


def split_content(content: Any) -> tuple[str | None, str | None]:
    """Split a message's content (a string or typed parts) into (text, reasoning); (None, None) for anything else."""
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        return None, None
    typed = [part for part in content if isinstance(part, dict)]
    text = "".join(str(part.get("text", "")) for part in typed if part.get("type") == "text")
    reasoning = "".join(str(part.get("reasoning", "")) for part in typed if part.get("type") == "reasoning")
    return text, reasoning or None


def mapping_or_empty(value: Any) -> dict[str, Any]:
    """`value` if it is a mapping, else {}."""
    return value if isinstance(value, dict) else {}


def id_of(value: Any) -> str | None:
    """`value` as an id if it is a string or a number, else None."""
    return None if value is None or isinstance(value, bool | dict | list) else str(value)


def count_or_none(value: Any) -> int | None:
    """`value` if it is a non-negative integer, else None."""
    # JSON's true is a `bool`, which Python counts as the integer 1.
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def text_or_none(value: Any) -> str | None:
    """`value` if it is a string, else None."""
    return value if isinstance(value, str) else None


def reasons_of(row: Row, column: str, n: int) -> list[str]:
    """The finish reason of each of the n responses; `column` has a word for one response, a list for several."""
    reasons = row.value.get("finish_reason")
    if not isinstance(reasons, list):
        reasons = [reasons if n == 1 else None] * n
    if len(reasons) != n:
        raise UsageError(
            f"{row.where}: the column 'finish_reason' has {count_noun(len(reasons), 'entry', 'entries')}, but the "
            f"column {column!r} has {count_noun(n, 'response')}; specify one reason per response"
        )
    return [reason if isinstance(reason, str) and reason else UNSTATED_REASON for reason in reasons]
