"""Divide a run's questions into parts (shards), so that several clients can ask them.

The question ids of a benchmark are sorted by their digest and assigned to the parts in turn. So each question belongs
to exactly one part, part sizes differ by at most one, and the order of the rows does not matter. A digest of the
benchmark's name determines which part gets the first question, so that benchmarks with fewer questions than parts do
not all go to the first parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

from harness.benchmarks.questions import QuestionSet
from harness.core.codec import digest
from harness.core.errors import UsageError

MAX_SHARDS = 10_000
"""Maximum number of parts of a run; a larger number is a typo."""


class Shard(NamedTuple):
    """A part of a run. of: number of parts. number: which part, from 1 to `of`."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """The shard that a user specifies as `2/8`. Raises a `ValueError` that describes the expected form."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        if match is None:
            raise ValueError("expected I/N, such as 2/8 for the second of eight shards")
        number, of = int(match[1]), int(match[2])
        if not 1 <= of <= MAX_SHARDS:
            raise ValueError(f"expected 1 to {MAX_SHARDS} shards")
        if not 1 <= number <= of:
            raise ValueError(f"shards are numbered from 1: expected 1/{of} to {of}/{of}")
        return cls(number, of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def assign_parts(benchmark: str, question_ids: Iterable[str], of: int) -> dict[str, int]:
    """Question id → number of the part that asks it, from 1. of: number of parts."""
    # A digest, because Python's hash differs between processes and the parts must be the same on all machines.
    first = int(digest(benchmark)[:12], 16)
    ordered = sorted(question_ids, key=lambda question_id: (digest(question_id), question_id))
    return {question_id: (first + index) % of + 1 for index, question_id in enumerate(ordered)}


def part(whole: QuestionSet, shard: Shard) -> QuestionSet:
    """The questions of a benchmark that this part asks, in the order of the source; there may be none.

    The result also contains the selection of all parts, which is the plan of the run.
    """
    part_of = assign_parts(whole.name, (question.question_id for question in whole.questions), shard.of)
    questions = [question for question in whole.questions if part_of[question.question_id] == shard.number]
    return replace(whole, questions=questions, whole=whole.questions)


def divide(sets: Sequence[QuestionSet], shard: str, note: Callable[[str], None]) -> list[QuestionSet]:
    """The part `shard` ("2/8") of each benchmark; a benchmark without questions for this part is omitted.

    sets: the whole benchmarks. note: called with a sentence about each omitted benchmark. Raises `UsageError` if no
    benchmark is left.
    """
    parsed = Shard.parse(shard)
    parts = [part(whole, parsed) for whole in sets]
    for empty in (share for share in parts if not share.questions):
        note(f"{empty.name} has fewer questions ({len(empty.selection)}) than shards, so this shard has no questions")
    if asking := [share for share in parts if share.questions]:
        return asking
    raise UsageError("there are fewer questions than shards: use fewer shards", field="shard", value=shard)
