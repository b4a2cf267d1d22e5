"""Reads from a run's log what its ended sessions were billed for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec

from harness.core import codec
from harness.core.files import open_untrusted
from harness.runs.layout import RunFolder

STOPPED_BY_BUDGET = "stopped by the budget"
"""The reason for the end of a session begins so if its budget ended it."""


MAX_LINE_BYTES = 1 << 20
"""A longer line of the log is skipped."""


class _Ended(msgspec.Struct, frozen=True):
    event: str = ""
    spent: dict[str, int] = {}


def spent_so_far(folder: RunFolder) -> Iterator[dict[str, int]]:
    """Yield the counts that each ended session logged as `spent`; a session that was killed logged none."""
    with contextlib.suppress(OSError), open_untrusted(folder.log) as file:
        for line in iter(lambda: file.readline(MAX_LINE_BYTES), b""):
            if b'"session_ended"' in line:
                with contextlib.suppress(codec.DecodeError):
                    ended = codec.decode(line, _Ended)
                    if ended.event == "session_ended" and ended.spent:
                        yield ended.spent
