"""Why samples are missing. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.client.protocol.reply import RequestFailed
from harness.runs.record import Task


@dataclass(frozen=True, slots=True)
class Cause:
    """Why samples are missing: a kind of failure, how many samples it cost, and an example that is safe to print.

    kind: a `FailureKind`, "internal" (a bug of the harness) or "not asked".
    """

    kind: str
    count: int
    example: str

    def __str__(self) -> str:
        return f"{self.count} × {self.kind}: {self.example}"


_AGAIN = "give the same command again to request them"
_ONCE = "give the same command again once the server answers"
_REFUSED = "the server answers others and refuses these, so the same command would be refused again"
_TOO_LONG = "a longer context takes them, or a smaller max_tokens; accept_missing does without them"
_BUG = "log.jsonl in the run folder has the error, for a report"

ADVICE: Mapping[str, tuple[str, str]] = {
    "connect": (_ONCE, _AGAIN),
    "timeout": (f"{_ONCE}, perhaps with a longer timeout", f"{_AGAIN}, perhaps with a longer timeout"),
    "cut": (_ONCE, _AGAIN),
    "malformed": (_ONCE, _AGAIN),
    "server": (_ONCE, _AGAIN),
    "rate_limited": (_ONCE, _AGAIN),
    "too_long": (_TOO_LONG, _TOO_LONG),
    "rejected": ("", _REFUSED),
    "refused": ("", _REFUSED),
    "runaway": ("", ""),
    "internal": (_BUG, _BUG),
    "not asked": (_ONCE, _AGAIN),
}
"""Remedy for missing samples, by the kind of their cause: (if no endpoint answers at the end, if others are answered).

Empty: nothing is known that helps.
"""


def advice(causes: Sequence[Cause], *, answering: bool) -> str:
    """What to do about the samples that are missing for these causes. answering: whether other samples are answered."""
    return "; ".join(dict.fromkeys(filter(None, (ADVICE[cause.kind][answering] for cause in causes))))


class Causes:
    """Keeps the last failure of every sample that failed and is not on disk, one entry for each such sample."""

    def __init__(self) -> None:
        self._failures: dict[Task, tuple[str, int | None, str]] = {}
        self._given_up: set[Task] = set()

    def given_up(self) -> dict[Task, str]:
        """Return the samples that are not asked again, with the kind of their last failure."""
        return {task: self._failures[task][0] for task in self._given_up}

    def met(self, task: Task, failure: RequestFailed) -> None:
        """Note a failure of `task`, which will be asked again."""
        self._failures[task] = (failure.kind, failure.status, failure.message)

    def gave_up(self, task: Task, kind: str, message: str, status: int | None = None) -> None:
        """Note the failure after which `task` is not asked again and stays missing."""
        self._failures[task] = (kind, status, message)
        self._given_up.add(task)

    def arrived(self, task: Task) -> None:
        """Forget the failures of `task`, which has succeeded."""
        self._failures.pop(task, None)

    def too_long(self) -> dict[str, dict[str, str]]:
        """Questions whose prompt exceeds the context: benchmark → question id → the server's words."""
        messages: dict[str, dict[str, str]] = {}
        for task in self._given_up:
            kind, _, message = self._failures[task]
            if kind == "too_long":
                messages.setdefault(task.benchmark, {})[task.question_id] = message
        return messages

    def listed(self, n_owed: int, not_asked_because: str) -> list[Cause]:
        """Return why samples are missing, with how many for each cause; the most frequent cause first.

        n_owed: missing samples. not_asked_because: the cause of those that were never asked.
        """
        groups: dict[tuple[str, int | None], list[str]] = {}
        for kind, status, message in self._failures.values():
            groups.setdefault((kind, status), []).append(message)
        causes = [Cause(kind, len(each), each[0]) for (kind, _), each in groups.items()]
        if n_owed > len(self._failures):
            causes.append(Cause("not asked", n_owed - len(self._failures), not_asked_because))
        return sorted(causes, key=lambda cause: -cause.count)
