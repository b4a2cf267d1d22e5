"""Finds the questions on which two runs differ, and tests for each whether chance explains the difference. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.records import Question
from harness.scoring.stats_differences import fisher, holm
from harness.scoring.tally import QuestionTally


@dataclass(frozen=True, slots=True)
class Move:
    """One question in two runs: samples of each run, and how many of them are right.

    p: two-sided, from Fisher's exact test of the two fractions, corrected by Holm over all questions compared.
    """

    question: Question
    first_correct: int
    first_n: int
    second_correct: int
    second_n: int
    p: float

    @property
    def change(self) -> float:
        """Fraction correct of the second run minus that of the first."""
        return self.second_correct / self.second_n - self.first_correct / self.first_n


def pairs(first: Sequence[QuestionTally], second: Sequence[QuestionTally]) -> list[tuple[QuestionTally, QuestionTally]]:
    """The questions that both runs have samples of, in the order of the first run.

    Two files of a benchmark may use one id for different rows, so the digests of the rows must agree too.
    """
    others = {item.question.question_id: item for item in second if item.n}
    shared = []
    for item in first:
        twin = others.get(item.question.question_id)
        if item.n and twin is not None and item.question.row_digest == twin.question.row_digest:
            shared.append((item, twin))
    return shared


def moves(first: Sequence[QuestionTally], second: Sequence[QuestionTally]) -> list[Move]:
    """Every question whose fraction correct differs between the two runs, largest fall first."""
    shared = pairs(first, second)
    # Holm's correction counts the unchanged questions too; over the changed ones alone the p values would be too small.
    tested = holm([fisher(a.correct, a.n, b.correct, b.n) for a, b in shared])
    changed = [
        Move(a.question, a.correct, a.n, b.correct, b.n, p)
        for (a, b), p in zip(shared, tested, strict=True)
        # The fractions are compared crosswise as integers: as floats, two equal fractions may differ.
        if a.correct * b.n != b.correct * a.n
    ]
    return sorted(changed, key=lambda move: (move.change, move.p, move.question.question_id))


def largest(changed: Sequence[Move], most: int) -> tuple[list[Move], list[Move]]:
    """The questions that fell most and those that rose most, at most `most` of each, the largest change first.

    changed: as `moves` returns them.
    """
    fallen = [move for move in changed if move.change < 0]
    risen = [move for move in reversed(changed) if move.change > 0]
    return fallen[:most], risen[:most]
