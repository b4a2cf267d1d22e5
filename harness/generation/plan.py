"""Which samples a run still owes (expected and not on disk), and what a session starts from. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple

from harness.core.records import Key
from harness.runs.record import KeySet, Plan

Order = Literal["longest", "rounds"]
"""The order in which samples are asked; `harness.generation.dispatch.schedule` explains the two."""


class Owed(NamedTuple):
    """The samples of one question that are still to be asked. indices: ascending, at least one."""

    benchmark: str
    question_id: str
    indices: tuple[int, ...]


class Task(NamedTuple):
    """The key of one sample to ask for."""

    benchmark: str
    question_id: str
    sample_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """The state from which one session starts.

    owed: the samples to ask for. done, total: samples by benchmark, on disk before the session and expected in the end.
    long_prompts: (benchmark, question_id) of questions with prompts so long that a server's cache of them saves time.
    server_model: the model's name in the first reply of the run, in any session; None before that. builds: values of
    `system_fingerprint` in the run's replies so far.
    """

    owed: Sequence[Owed]
    done: Mapping[str, int]
    total: Mapping[str, int]
    long_prompts: Collection[tuple[str, str]] = field(default=())
    server_model: str | None = None
    builds: Collection[str] = ()

    def asks(self) -> Callable[[Task], bool]:
        """Return a function that says whether a sample is owed; its table is built at the first call."""
        rows = cache(lambda: {(row.benchmark, row.question_id): row.indices for row in self.owed})
        return lambda task: task.sample_index in rows().get((task.benchmark, task.question_id), ())


def owed(benchmark: str, question_ids: Iterable[str], plan: Plan | int, on_disk: Set[Key]) -> list[Owed]:
    """Return the samples that are expected and not in `on_disk`, by question, in the order of `question_ids`.

    plan: a number stands for as many samples of every question. Expected are the indices 0 … n-1 of each question,
    n = plan.of(question). Other keys in `on_disk` (of other questions, with higher indices) change nothing.
    """
    expected = Plan.every(plan)
    keys = on_disk if isinstance(on_disk, KeySet) else KeySet(on_disk)
    all_indices = tuple(range(expected.samples))  # One tuple for all questions without a stored sample, to save memory.
    rows = []
    for question_id in question_ids:
        indices = keys.lacks(question_id, expected.of(question_id))
        if indices:
            rows.append(Owed(benchmark, question_id, all_indices if indices == all_indices else indices))
    return rows
