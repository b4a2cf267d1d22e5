"""The sessions and failed requests of a run, read from its log; foreign text is made inert and bounded."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from harness.core import codec
from harness.core.files import open_untrusted
from harness.core.inert import visible
from harness.runs.layout import RACE_PLAN, RunFolder
from harness.runs.session_costs import STOPPED_BY_BUDGET

MAX_LINE_BYTES = 64 * 1024
"""Longest line of a log that is read, in bytes; the harness writes none that long."""

MAX_CAUSES = 200
"""Largest number of causes of failure that a report lists."""

MAX_MESSAGE_CHARS = 200

MAX_WARNINGS = 100
"""Largest number of different warnings that are kept, the first ones."""

MAX_WARNING_CHARS = 1_000


Growth = Literal["", "extended", "resumed"]
"""How a run grew after a time at which it may have been compared: after it was complete, or after a budget had ended a
session that had added samples; empty: it did not.
"""


@dataclass(slots=True)
class Failures:
    """The failed requests with one endpoint, kind and status. message: of the latest of them."""

    endpoint: str
    kind: str
    status: int | None
    count: int = 0
    message: str = ""


@dataclass(slots=True)
class History:
    """What a run's log records.

    sessions: number of starts. began: time of the first start. ended: of the last end; session_s: seconds from start to
    end of all sessions that ended; n_stored: samples at the last end. None or 0 where the log does not say. unfinished:
    sessions without an end (killed, or still running). retries: repeated requests. failures: the most frequent cause
    first. stopped: why the last session ended early. warnings: the different ones in the order in which they were first
    given. grew: how the run grew after a time at which it may have been compared. raced: a race sampled the run.
    sampling_sessions: number of sessions that added samples, or may have. spent: numbers of tokens that the ended
    sessions were billed for, by the names in the log.
    """

    sessions: int = 0
    began: datetime | None = None
    ended: datetime | None = None
    session_s: float = 0.0
    n_stored: int = 0
    unfinished: int = 0
    retries: int = 0
    stopped: str = ""
    failures: list[Failures] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    grew: Growth = ""
    raced: bool = False
    sampling_sessions: int = 0
    spent: Counter[str] = field(default_factory=Counter)

    @property
    def sized_by_budget(self) -> bool:
        """Whether one session made the run until its budget ended it: nobody compared the run while it grew."""
        return self.sampling_sessions == 1 and not self.raced and self.stopped.startswith(STOPPED_BY_BUDGET)


_KINDS = (b'"session_', b'"request_failed"', b'"warning"')
"""Lines of the log without any of these are not parsed."""


class _Event(msgspec.Struct, frozen=True):
    """The fields of log lines that are used here. owed, done: samples, at the start or end of a session. time: UTC.

    stage: above 0 for a session that goes on with a command's target error, whose rounds no comparison decides.
    announced: samples of the whole run whose pilot the session takes; 0: it takes no pilot.
    """

    event: str
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    endpoint: str = ""
    kind: str = ""
    status: int | None = None
    message: str = ""
    retries: int = 0
    stopped: Any = ""
    owed: int = 0
    done: int = 0
    stage: int = 0
    announced: int = 0
    spent: dict[str, int] = {}


@dataclass(slots=True)
class _Growing:
    """Follows the sessions of a log to find how the run grew.

    pause: how a session that adds samples now makes the run grow. planned, stored, owed: samples at the start of the
    latest session. growing: how this session makes the run grow if it adds samples. announced: samples of the run whose
    pilot was taken before any samples were complete; growth to that size does not count, nor do the later stages of one
    command with a target error. under_way: the latest session has no end yet.
    """

    grew: Growth = ""
    sampling_sessions: int = 0
    pause: Growth = ""
    growing: Growth = ""
    planned: int = 0
    stored: int = 0
    owed: int = 0
    announced: int = 0
    was_complete: bool = False
    under_way: bool = False

    def start(self, event: _Event) -> None:
        """A session begins."""
        # The session before was killed, and may have added samples.
        self.close(added=self.owed > 0)
        self.planned, self.stored, self.owed = event.owed + event.done, event.done, event.owed
        self.announced = self.announced if self.was_complete else event.announced
        is_announced = self.pause == "extended" and self.planned == self.announced
        # A session without stored samples begins another benchmark, or another shard of a merged run.
        grows = event.owed > 0 and event.done > 0 and not event.stage and not is_announced
        self.growing, self.pause, self.under_way = self.pause if grows else "", "", True

    def end(self, event: _Event) -> None:
        """A session ends, and the run may be compared."""
        added = event.done > self.stored
        self.close(added=added)
        if event.done >= self.planned > 0:
            self.pause, self.was_complete = "extended", True
        # A budget ends a run where somebody may compare it; after an interruption nobody does.
        elif added:
            self.pause = "resumed" if str(event.stopped).startswith(STOPPED_BY_BUDGET) else ""
        else:  # A session that was refused leaves the run as it was.
            self.pause = self.growing

    def close(self, *, added: bool) -> None:
        """Count the latest session, if it is under way."""
        if self.under_way and added:
            self.sampling_sessions += 1
            # To have grown after it was complete says more than to have been resumed.
            self.grew = self.growing if self.grew != "extended" and self.growing else self.grew
        self.under_way = False


def read_history(folder: RunFolder) -> History:
    """The history of a run; empty where it has no log. Damaged lines are skipped."""
    history = History(raced=(folder.path.parent / RACE_PLAN).is_file())
    causes: dict[tuple[str, str, int | None], Failures] = {}
    n_ended, begun = 0, None
    growing = _Growing()
    for event in _events(folder):
        match event.event:
            case "session_started":
                history.sessions += 1
                history.stopped = ""
                begun = event.time
                history.began = history.began or begun
                growing.start(event)
            case "session_ended":
                n_ended += 1
                growing.end(event)
                # The time of a session that was killed is unknown: its end is not in the log.
                if begun is not None and event.time is not None:
                    history.session_s += max(0.0, (event.time - begun).total_seconds())
                history.ended, history.n_stored, begun = event.time, event.done, None
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
    growing.close(added=growing.owed > 0)
    history.grew, history.sampling_sessions = growing.grew, growing.sampling_sessions
    history.unfinished = max(0, history.sessions - n_ended)
    history.failures = sorted(causes.values(), key=lambda cause: (-cause.count, cause.endpoint, cause.kind))
    return history


def _events(folder: RunFolder) -> Iterator[_Event]:
    """The events of the run's logs that a report uses; lines that cannot be read are left out."""
    for path in folder.logs():
        with contextlib.suppress(OSError), open_untrusted(path) as log:
            for line in log:
                if any(kind in line for kind in _KINDS):
                    with contextlib.suppress(codec.DecodeError):
                        if len(line) <= MAX_LINE_BYTES:
                            yield codec.decode(line, _Event)
