"""Why samples are missing. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from harness.client.protocol.failures import RequestFailed
from harness.generation.dispatch.retry import sign_of
from harness.runs.record import Task


@dataclass(frozen=True, slots=True)
class Cause:
    """Why samples are missing: a kind of failure, how many samples it cost, and an example that is safe to print.

    kind: a `FailureKind`, "internal" (a bug of the harness) or "not asked". attempts: the fewest and the most requests
    for one of these samples; 0 for one that was not given up.
    """

    kind: str
    count: int
    example: str
    attempts: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        fewest, most = self.attempts
        span = f"{fewest} to {most}" if fewest < most else most
        note = f" (given up after {span} attempts)" if fewest and most > 1 else ""
        return f"{self.count} × {self.kind}: {self.example}{note}"

    def plus(self, other: Cause) -> Cause:
        """Both as one, with the example of this one."""
        attempts = min(self.attempts[0], other.attempts[0]), max(self.attempts[1], other.attempts[1])
        return replace(self, count=self.count + other.count, attempts=attempts)


_PASSING = frozenset({"connect", "timeout", "cut", "malformed", "server", "rate_limited", "not asked"})
"""Kinds of causes that the same command may not meet again."""


def advice(causes: Sequence[Cause], down: Sequence[RequestFailed | None] | None) -> str:
    """What to do about the samples that are missing for these causes; empty: nothing is known that helps.

    down: if no endpoint answers at the end, the last failure of each, None for one without a failure; else None.
    """
    kinds = {cause.kind for cause in causes}
    refused = "the server answers others and refuses these, so the same command would be refused again"
    words = (
        (kinds & _PASSING, _again(down, slow="timeout" in kinds)),
        (kinds & {"rejected", "refused"} and down is None, refused),
        ("too_long" in kinds, "a longer context takes them, or a smaller max_tokens; accept_missing does without them"),
        ("internal" in kinds, "log.jsonl in the run folder has the error, for a report"),
    )
    return "; ".join(sentence for holds, sentence in words if holds)


def _again(down: Sequence[RequestFailed | None] | None, *, slow: bool) -> str:
    """When the same command may help. slow: whether some sample had no reply in time."""
    again = "give the same command again"
    if not down or None in down:
        return f"{again} to request them" + (", perhaps with a longer timeout" if slow else "")
    signs = {"slow" if failure.kind == "timeout" else sign_of(failure) for failure in down if failure}
    if signs & {"away", "busy"}:
        return f"{again} once the server takes requests"
    if "unsent" in signs:
        return f"{again} once the server answers"
    if "slow" in signs:
        return f"{again} with a longer timeout, or once replies come sooner"
    return f"the server fails every request (its own log may say why); {again} once that is mended"


class Causes:
    """Keeps the last failure of every sample that failed and is not on disk, one entry for each such sample."""

    def __init__(self) -> None:
        self._failures: dict[Task, tuple[Cause, int | None]] = {}
        self._given_up: set[Task] = set()

    def given_up(self) -> dict[Task, str]:
        """Return the samples that are not asked again, with the kind of their last failure."""
        return {task: self._failures[task][0].kind for task in self._given_up}

    def met(self, task: Task, failure: RequestFailed) -> None:
        """Note a failure of `task`, which will be asked again."""
        self._failures[task] = Cause(failure.kind, 1, failure.message), failure.status

    def gave_up(self, task: Task, kind: str, message: str, status: int | None = None, attempts: int = 0) -> None:
        """Note the failure after which `task` is not asked again and stays missing. attempts: its requests so far."""
        self._failures[task] = Cause(kind, 1, message, (attempts, attempts)), status
        self._given_up.add(task)

    def arrived(self, task: Task) -> None:
        """Forget the failures of `task`, which has succeeded."""
        self._failures.pop(task, None)

    def too_long(self) -> dict[str, dict[str, str]]:
        """Questions whose prompt exceeds the context: benchmark → question id → the server's words."""
        messages: dict[str, dict[str, str]] = {}
        for task in self._given_up:
            cause, _ = self._failures[task]
            if cause.kind == "too_long":
                messages.setdefault(task.benchmark, {})[task.question_id] = cause.example
        return messages

    def listed(self, n_owed: int, not_asked_because: str) -> list[Cause]:
        """Return why samples are missing, with how many for each cause; the most frequent cause first.

        n_owed: missing samples. not_asked_because: the cause of those that were never asked.
        """
        groups: dict[tuple[str, int | None], list[Cause]] = {}
        for cause, status in self._failures.values():
            groups.setdefault((cause.kind, status), []).append(cause)
        causes = [reduce(Cause.plus, each) for each in groups.values()]
        if n_owed > len(self._failures):
            causes.append(Cause("not asked", n_owed - len(self._failures), not_asked_because))
        return sorted(causes, key=lambda cause: -cause.count)
