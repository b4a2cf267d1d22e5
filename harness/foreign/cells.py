"""What the tools' rows and files hold, as values that can be relied on: anything else is None, empty or a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.benchmarks.limits import MAX_DATA_BYTES
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError
from harness.core.files import read_named
from harness.core.inert import visible


def whole_text(path: Path) -> str:
    """A file that is no rows. Raises `UsageError`."""
    shown = visible(str(path))
    try:
        data = read_named(path, MAX_DATA_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {shown}: {error.strerror}") from error
    if len(data) > MAX_DATA_BYTES:
        raise UsageError(f"{shown} is longer than {MAX_DATA_BYTES} bytes")
    return data.decode("utf-8", "replace")


def need(row: Row, names: Iterable[str], tool: str) -> None:
    """Raises `UsageError` where the row lacks one of these columns."""
    missing = [name for name in names if name not in row.value]
    if missing:
        raise UsageError(f"{row.where} is no row of {tool}: it has no {missing[0]!r}")


def flat(value: Any) -> str | None:
    """A question as one text: chat messages are joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [parts(m.get("content"))[0] for m in value if isinstance(m, dict)]
        return "\n\n".join(text for text in texts if text) or None
    return None


def parts(content: Any) -> tuple[str | None, str | None]:
    """(text, reasoning) of a message's content: a text, or a list of typed parts."""
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        return None, None
    parts = [part for part in content if isinstance(part, dict)]
    text = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    reasoning = "".join(str(part.get("reasoning", "")) for part in parts if part.get("type") == "reasoning")
    return text, reasoning or None


def mapping(value: Any) -> dict[str, Any]:
    """A mapping; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def id_of(value: Any) -> str | None:
    """What names something: a text or a number."""
    return None if value is None or isinstance(value, bool | dict | list) else str(value)


def count(value: Any) -> int | None:
    """A number of something."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def text(value: Any) -> str | None:
    """A text."""
    return value if isinstance(value, str) else None
