"""The file `log.jsonl`: the events of a run, one per line, inert.

A line is plain ASCII without control characters: foreign text in it cannot begin a line, act on a terminal, or hide.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from harness.core.inert import visible
from harness.core.wording import Sentence
from harness.runs.layout import RunFolder
from harness.runs.line_file import LineFile

MAX_FIELD_CHARS = 2000
"""Longest string of an event, in characters; `…` marks a cut."""


def _now() -> datetime:
    return datetime.now(UTC)


class RunLog:
    """Append-only events of a run. Threads and processes may share the file."""

    def __init__(self, folder: RunFolder, *, now: Callable[[], datetime] = _now) -> None:
        """Raises `StoreError` when the file cannot be opened."""
        folder.create()
        self._now = now
        self._file = LineFile(folder.log, durable=False)

    def write(self, event: str, **fields: Any) -> None:
        """Add `event` with its fields and the time (UTC). Raises `StoreError` when the disk refuses."""
        entry = {"time": self._now().isoformat(timespec="milliseconds"), "event": event, **fields}
        line = json.dumps({_inert(k): _inert(v) for k, v in entry.items()}, separators=(",", ":"), ensure_ascii=True)
        self._file.append(line.encode("ascii") + b"\n")

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _inert(value: Any) -> Any:
    """`value` with every string in it made visible and bounded; values that JSON lacks become such strings."""
    if isinstance(value, dict):
        return {_inert(str(key)): _inert(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_inert(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return visible(Sentence(str(value)), MAX_FIELD_CHARS)
