"""A run's questions in n disjoint parts, so that several clients can ask them. Pure.

The ids of a benchmark are ordered by their digest and dealt out in turn, beginning where the benchmark's name decides.
So the parts of one selection are disjoint and complete, differ by one question at most, and depend on no order of
rows; and benchmarks with fewer questions than parts do not all fall to the first of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

from harness.benchmarks.questions import QuestionSet, ShardPart
from harness.core.codec import digest, digest_of_each
from harness.core.errors import UsageError
from harness.core.packed import Packed
from harness.core.records import Question

MAX_SHARDS = 10_000
"""Most parts of a run; a larger number is a typing mistake."""


class Shard(NamedTuple):
    """One part of a run. number: from 1 to of."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `2/8`. Raises `ValueError` with what was expected."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        if match is None:
            raise ValueError("expected I/N, such as 2/8 for the second of eight parts")
        number, of = int(match[1]), int(match[2])
        if not 1 <= of <= MAX_SHARDS:
            raise ValueError(f"expected 1 to {MAX_SHARDS} parts")
        if not 1 <= number <= of:
            raise ValueError(f"parts are counted from 1: expected 1/{of} to {of}/{of}")
        return cls(number, of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def holders(benchmark: str, question_ids: Iterable[str], of: int) -> dict[str, int]:
    """By question id, the number of the part that asks it, from 1."""
    first = int(digest(benchmark)[:12], 16)
    ordered = sorted(question_ids, key=lambda question_id: (digest(question_id), question_id))
    return {question_id: (first + index) % of + 1 for index, question_id in enumerate(ordered)}


def part(whole: QuestionSet, shard: Shard) -> QuestionSet:
    """What this part asks of a benchmark, in the order of the source; it may be nothing.

    The whole selection stays known with it, so that the parts can be joined as they belong.
    """
    held = holders(whole.name, (question.question_id for question in whole.questions), shard.of)
    mine = (question for question in whole.questions if held[question.question_id] == shard.number)
    return replace(
        whole,
        questions=Packed(Question, mine),
        part=ShardPart(str(shard), whole.questions, digest_of_each(sorted(held))),
    )


def divided(sets: Sequence[QuestionSet], shard: str, note: Callable[[str], None]) -> list[QuestionSet]:
    """The part `shard` ("2/8") of each set; one that leaves nothing for it is told to `note`.

    Raises `UsageError` where none leaves anything.
    """
    parsed = Shard.parse(shard)
    parts = [part(whole, parsed) for whole in sets]
    for empty in (share for share in parts if not share.questions):
        note(
            f"{empty.name}: its {len(empty.selection)} questions are fewer than the parts, and leave none for this one"
        )
    if asking := [share for share in parts if share.questions]:
        return asking
    raise UsageError("there are fewer questions than parts, and none is left for this one", field="shard", value=shard)
