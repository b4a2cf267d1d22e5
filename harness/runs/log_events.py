"""Reads events with given names from the logs of a run, and the billed tokens of its finished sessions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.core import codec
from harness.core.files import open_untrusted
from harness.runs.layout import RunFolder

MAX_EVENT_BYTES = 1024 * 1024
"""Longest line read from a log; a longer one is skipped."""

STOPPED_BY_BUDGET = "stopped by the budget"
"""The beginning of the reason for a session's end if the budget ended the session."""


class LogEvent(msgspec.Struct, frozen=True):
    """The fields of a log line that are read: its event's name, and those that a subclass adds."""

    event: str


E = TypeVar("E", bound=LogEvent)


def log_events(
    logs: Iterable[Path], fields: type[E], *names: str, unread: Callable[[Path, OSError], object] = lambda *_: None
) -> Iterator[E]:
    """The events with these names in the logs; unreadable lines are left out.

    unread: called with each log that cannot be opened, such as a link.
    """
    marks = [f'"{name}"'.encode() for name in names]
    for path in logs:
        try:
            with open_untrusted(path) as log:
                for line in iter(partial(log.readline, MAX_EVENT_BYTES), b""):
                    if any(mark in line for mark in marks):  # the cheap test first, since a log has many other events
                        with contextlib.suppress(codec.DecodeError):
                            if (event := codec.decode(line, fields)).event in names:
                                yield event
        except OSError as error:
            unread(path, error)


class _Ended(LogEvent, frozen=True):
    spent: dict[str, int] = {}


def spent_so_far(folder: RunFolder) -> Iterator[dict[str, int]]:
    """Yield the counts that each finished session logged as `spent`; a killed session logged none."""
    return (ended.spent for ended in log_events([folder.log], _Ended, "session_ended") if ended.spent)
