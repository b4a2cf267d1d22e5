"""The sessions and failed requests of a run, read from its log; foreign text is made inert and bounded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.core.inert import visible
from harness.runs.layout import RACE_PLAN, RunFolder
from harness.runs.log_events import log_events

MAX_CAUSES = 200
"""Largest number of causes of failure that a report lists."""

MAX_MESSAGE_CHARS = 200
"""Longest message of a failed request, or reason to stop, that is kept; longer ones are cut."""

MAX_WARNINGS = 100
"""Largest number of different warnings that are kept, the first ones."""

MAX_WARNING_CHARS = 1_000
"""Longest warning that is kept; longer ones are cut."""


@dataclass(slots=True)
class Failures:
    """The failed requests with one endpoint, kind and status. message: of the latest of them."""

    endpoint: str
    kind: str
    status: int | None
    count: int = 0
    message: str = ""


@dataclass(slots=True)
class RunHistory:
    """What a run's log records.

    sessions: number of starts. unfinished: sessions without an end (killed, or still running). retries: repeated
    requests. failures: the most frequent cause first. stopped: why the last session ended early. warnings: the
    different ones in the order in which they were first given. raced: a race sampled the run. spent: numbers of tokens
    that the ended sessions were billed for, by the names in the log.
    """

    sessions: int = 0
    unfinished: int = 0
    retries: int = 0
    stopped: str = ""
    failures: list[Failures] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    raced: bool = False
    spent: Counter[str] = field(default_factory=Counter)


_NAMES = ("session_started", "session_ended", "request_failed", "warning")
"""The events of the log that a history is made of."""


class _Event(msgspec.Struct, frozen=True):
    """The fields of log lines that are used here."""

    event: str
    endpoint: str = ""
    kind: str = ""
    status: int | None = None
    message: str = ""
    retries: int = 0
    stopped: Any = ""
    spent: dict[str, int] = {}


def read_history(folder: RunFolder) -> RunHistory:
    """The history of a run; empty where it has no log. Damaged lines are skipped."""
    history = RunHistory(raced=(folder.path.parent / RACE_PLAN).is_file())
    causes: dict[tuple[str, str, int | None], Failures] = {}
    n_ended = 0
    for event in log_events(folder.logs(), _Event, *_NAMES):
        match event.event:
            case "session_started":
                history.sessions += 1
                history.stopped = ""
            case "session_ended":
                n_ended += 1
                history.retries += event.retries
                history.spent.update(event.spent)
                history.stopped = visible(str(event.stopped or ""), MAX_MESSAGE_CHARS)
            case "warning":
                warning = visible(event.message, MAX_WARNING_CHARS)
                if warning and warning not in history.warnings and len(history.warnings) < MAX_WARNINGS:
                    history.warnings.append(warning)
            case "request_failed":
                key = (event.endpoint, event.kind, event.status)
                # A known cause is still counted when the list is full.
                if key in causes or len(causes) < MAX_CAUSES:
                    cause = causes.setdefault(key, Failures(*key))
                    cause.count += 1
                    cause.message = visible(event.message, MAX_MESSAGE_CHARS)
    history.unfinished = max(0, history.sessions - n_ended)
    history.failures = sorted(causes.values(), key=lambda cause: (-cause.count, cause.endpoint, cause.kind))
    return history
