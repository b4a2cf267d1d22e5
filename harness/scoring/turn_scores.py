"""Scores of the turns of conversations, from the verdicts on each graded turn.

The turns of a conversation are not independent, so an interval counts each question once: taken as independent, 95%
intervals cover 73% at 100 conversations of eight turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.core.records import Question
from harness.grading.turns import NOT_REACHED
from harness.scoring.stats import Estimate
from harness.scoring.tally import QuestionTally
from harness.scoring.uncertainty import rate


class TurnScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one turn of the conversations."""

    accuracy: Estimate
    """Fraction correct, over the conversations with this graded turn; a turn that was not reached is wrong. Its
    intervals count each question once.
    """
    n: int
    """Number of samples with this graded turn."""
    n_reached: int
    """Number of them in which the turn got a reply."""
    parts: float | None
    """Share of all parts that are right; None if no grader reports parts of a turn."""


def turn_scores(
    questions: Sequence[Question], items: Sequence[QuestionTally]
) -> dict[int, TurnScore] | msgspec.UnsetType:
    """Number of a turn → its score; absent without conversations. items: the tallies of the questions."""
    if not any(question.turns for question in questions):
        return msgspec.UNSET
    turns = [[turn for grade in item.grades for turn in grade.turns or ()] for item in items]
    scores = {}
    for number in sorted({turn.turn for each in turns for turn in each}):
        asked = [(item, found) for item, each in zip(items, turns, strict=True)
                 if (found := [turn for turn in each if turn.turn == number])]  # fmt: skip
        hits = [sum(turn.verdict == "correct" for turn in found) for _, found in asked]
        every = [turn for _, found in asked for turn in found]
        parts = [turn.parts for turn in every if turn.parts]
        scores[number] = TurnScore(
            accuracy=rate([item for item, _ in asked], hits, [len(found) for _, found in asked], verdicts=True),
            n=len(every),
            n_reached=sum(turn.rule != NOT_REACHED for turn in every),
            parts=sum(right for right, _ in parts) / sum(of for _, of in parts) if parts else None,
        )
    return scores
