"""Reads from a run's log what its ended sessions were billed for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harness.runs.layout import RunFolder
from harness.runs.log_events import log_events

STOPPED_BY_BUDGET = "stopped by the budget"
"""The reason for the end of a session begins so if its budget ended it."""


class _Ended(msgspec.Struct, frozen=True):
    event: str
    spent: dict[str, int] = {}


def spent_so_far(folder: RunFolder) -> Iterator[dict[str, int]]:
    """Yield the counts that each ended session logged as `spent`; a session that was killed logged none."""
    return (ended.spent for ended in log_events([folder.log], _Ended, "session_ended") if ended.spent)
