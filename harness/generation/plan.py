"""What a run owes: the expected keys that are not on disk; and what a session starts from. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

from harness.core.records import Key
from harness.runs.record import KeySet

Order = Literal["longest", "rounds"]
"""In which order samples are asked; see `harness.generation.dispatch.schedule`."""


class Owed(NamedTuple):
    """The samples of one question that are still to be asked, by rising index; never empty."""

    benchmark: str
    question_id: str
    indices: tuple[int, ...]


class Task(NamedTuple):
    """One sample to ask."""

    benchmark: str
    question_id: str
    sample_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """What one session starts from.

    owed: the samples to ask. done, total: samples by benchmark, on disk before the session and expected in the end.
    long_prompts: (benchmark, question_id) of questions whose prompt is worth finding in a server's cache.
    server_model: the name that the run's first reply came under, in any session; None if there was none. builds: what
    its servers named as their `system_fingerprint`.
    """

    owed: Sequence[Owed]
    done: Mapping[str, int]
    total: Mapping[str, int]
    long_prompts: Collection[tuple[str, str]] = field(default=())
    server_model: str | None = None
    builds: Collection[str] = ()

    def asks(self) -> Callable[[Task], bool]:
        """Whether a sample is owed. What this looks up is made when it is first asked: mostly nobody asks."""
        rows = cache(lambda: {(row.benchmark, row.question_id): row.indices for row in self.owed})
        return lambda task: task.sample_index in rows().get((task.benchmark, task.question_id), ())


def owed(benchmark: str, question_ids: Iterable[str], samples: int, on_disk: Set[Key]) -> list[Owed]:
    """Expected keys (every question, indices 0 … samples-1) minus `on_disk`, in the order of `question_ids`.

    `on_disk` may hold keys that are not expected (other questions, higher indices): they change nothing.
    """
    keys = on_disk if isinstance(on_disk, KeySet) else KeySet(on_disk)
    whole = tuple(range(samples))  # one for all that owe everything
    lacked = ((qid, indices) for qid in question_ids if (indices := keys.lacks(qid, samples)))
    return [Owed(benchmark, qid, whole if indices == whole else indices) for qid, indices in lacked]
