"""What a run owes: the expected keys that are not on disk. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from harness.core.records import Key


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


def owed(benchmark: str, question_ids: Iterable[str], samples: int, on_disk: Collection[Key]) -> list[Owed]:
    """Expected keys (every question, indices 0 … samples-1) minus `on_disk`, in the order of `question_ids`.

    `on_disk` may hold keys that are not expected (other questions, higher indices): they change nothing.
    """
    rows = (
        Owed(benchmark, qid, tuple(i for i in range(samples) if Key(qid, i) not in on_disk)) for qid in question_ids
    )
    return [row for row in rows if row.indices]
