"""Why samples are still owed, counted by cause, with one example in the server's own words each."""

from __future__ import annotations

from dataclasses import dataclass

from harness.client.protocol.reply import RequestFailed
from harness.generation.plan import Task


@dataclass(frozen=True, slots=True)
class Cause:
    """kind: a `FailureKind`, "internal" (our own mistake) or "not asked". example: safe to print."""

    kind: str
    count: int
    example: str

    def __str__(self) -> str:
        return f"{self.count} × {self.kind}: {self.example}"


class Causes:
    """Every sample that met trouble and is not on disk, with its last failure. Memory: one entry per such sample."""

    def __init__(self) -> None:
        self._failures: dict[Task, tuple[str, int | None, str]] = {}
        self._given_up: set[Task] = set()

    @property
    def n_given_up(self) -> int:
        """Samples that are not asked again in this session."""
        return len(self._given_up)

    def n_given_up_of(self, benchmark: str) -> int:
        """Those of one benchmark."""
        return sum(task.benchmark == benchmark for task in self._given_up)

    def given_up(self) -> dict[Task, str]:
        """Those samples, with the kind of their last failure."""
        return {task: self._failures[task][0] for task in self._given_up}

    def met(self, task: Task, failure: RequestFailed) -> None:
        """`task` failed and will be asked again."""
        self._failures[task] = (failure.kind, failure.status, failure.message)

    def gave_up(self, task: Task, kind: str, message: str, status: int | None = None) -> None:
        """`task` stays owed."""
        self._failures[task] = (kind, status, message)
        self._given_up.add(task)

    def last(self, task: Task) -> tuple[str, int | None, str]:
        """(kind, status, message) of the last failure of `task`, which must have met one."""
        return self._failures[task]

    def arrived(self, task: Task) -> None:
        """`task` came through after all."""
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
        """All causes, the commonest first; those of `n_owed` that met no failure were not asked at all."""
        groups: dict[tuple[str, int | None], list[str]] = {}
        for kind, status, message in self._failures.values():
            groups.setdefault((kind, status), []).append(message)
        causes = [Cause(kind, len(messages), messages[0]) for (kind, _), messages in groups.items()]
        if n_owed > len(self._failures):
            causes.append(Cause("not asked", n_owed - len(self._failures), not_asked_because))
        return sorted(causes, key=lambda cause: -cause.count)
