"""The sessions and failed requests of a run, read from its log; foreign text is made inert and bounded."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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

    sessions: number of starts. unfinished: sessions without an end (killed, or still running). retries: repeated
    requests. failures: the most frequent cause first. stopped: why the last session ended early. warnings: the
    different ones in the order in which they were first given. extended: a session added samples although none was
    missing when the session before it ended. Later stages of one command with a target error do not count, nor does a
    run that grew to the size that its pilot announced. raced: a race sampled the run. spent: numbers of tokens that the
    ended sessions were billed for, by the names in the log.
    """

    sessions: int = 0
    unfinished: int = 0
    retries: int = 0
    stopped: str = ""
    failures: list[Failures] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    extended: bool = False
    raced: bool = False
    spent: Counter[str] = field(default_factory=Counter)

    @property
    def sized_by_budget(self) -> bool:
        """Whether one session made the run until its budget ended it: nobody compared the run while it grew."""
        return self.sessions == 1 and not self.raced and self.stopped.startswith(STOPPED_BY_BUDGET)


_KINDS = (b'"session_', b'"request_failed"', b'"warning"')
"""Lines of the log without any of these are not parsed."""


class _Event(msgspec.Struct, frozen=True):
    """The fields of log lines that are used here. owed, done: samples, at the start or end of a session.

    stage: above 0 for a session that goes on with a command's target error, whose rounds no comparison decides.
    announced: samples of the whole run whose pilot the session takes; 0: it takes no pilot.
    """

    event: str
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


def read_history(folder: RunFolder) -> History:
    """The history of a run; empty where it has no log. Damaged lines are skipped."""
    history = History(raced=(folder.path.parent / RACE_PLAN).is_file())
    causes: dict[tuple[str, str, int | None], Failures] = {}
    n_ended = 0
    # Of the latest session: its samples, those of them that were stored at its start, and whether it was to extend a
    # complete run; then whether the run is complete. A size counts as announced before any samples were complete.
    planned, stored, extending, complete = 0, 0, False, False
    announced, was_complete = 0, False
    for event in _events(folder):
        match event.event:
            case "session_started":
                history.sessions += 1
                history.stopped = ""
                # A session without an end may have added samples.
                history.extended |= extending
                planned, stored = event.owed + event.done, event.done
                announced = announced if was_complete else event.announced
                extending = complete and event.owed > 0 and not event.stage and planned != announced
                complete = False
            case "session_ended":
                n_ended += 1
                added = event.done > stored
                history.extended |= extending and added
                # A session that was refused leaves a complete run complete.
                complete = event.done >= planned > 0 or (extending and not added)
                was_complete |= complete
                extending = False
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
    history.extended |= extending
    history.unfinished = max(0, history.sessions - n_ended)
    history.failures = sorted(causes.values(), key=lambda cause: (-cause.count, cause.endpoint, cause.kind))
    return history


def growth_warnings(histories: Mapping[str, History]) -> list[str]:
    """Warnings about runs that were extended after they had been complete: they may have been compared before.

    A race did that to its runs, and stopped because of their scores. histories: words such as "the run" → its history.
    """
    extended = {which: history.raced for which, history in histories.items() if history.extended}
    warnings = []
    for is_raced, why in (
        (
            True,
            "sampled by `harness race`, which stops when a difference appears: this difference is too large on "
            "average, and its p too small. Take the verdict and the interval that the race printed; the same `harness "
            "race` command prints them again",
        ),
        (
            False,
            "extended after all samples were complete. If these runs were compared before, too, the 5 % rate of false "
            "differences does not hold: it is the rate of one look. If none was compared, this does no harm. A "
            "pilot announces the size of its run beforehand. To look after every round, use `harness race`",
        ),
    ):
        if names := [which for which, raced in extended.items() if raced == is_raced]:
            warnings.append(f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} {why}")
    return warnings


def _events(folder: RunFolder) -> Iterator[_Event]:
    """The events of the run's logs that a report uses; lines that cannot be read are left out."""
    for path in folder.logs():
        with contextlib.suppress(OSError), open_untrusted(path) as log:
            for line in log:
                if any(kind in line for kind in _KINDS):
                    with contextlib.suppress(codec.DecodeError):
                        if len(line) <= MAX_LINE_BYTES:
                            yield codec.decode(line, _Event)
