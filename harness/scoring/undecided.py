"""What undecided answers of two runs leave open of the difference between them. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from harness.core.records import Key
from harness.runs.overrides import Override
from harness.scoring.moves import pairs
from harness.scoring.tally import QuestionTally


class UndecidedAnswers(NamedTuple):
    """What the undecided answers of one run leave open. n: its samples. undecided: those on which the grader could not
    decide. open: those of them on which no person's verdict in force says right or wrong. low, high: the accuracy in
    points if all open ones are wrong, or right, and the persons' verdicts on the others hold.
    """

    n: int
    undecided: int
    open: int
    low: float
    high: float

    @classmethod
    def of(cls, items: Sequence[QuestionTally], by_hand: Mapping[Key, Override]) -> UndecidedAnswers:
        """Count the undecided answers to questions. items: with the grader's verdicts. by_hand: a person's verdicts."""
        judged = {key.question_id for key in by_hand}
        low, high, n_open = [], [], 0
        for item in items:
            right, still_open = item.correct, item.undecided
            # Few questions have a verdict by hand: the grades of the others are not read.
            if still_open and item.question.question_id in judged:
                verdicts = Counter(
                    override.verdict
                    for grade in item.grades
                    if grade.verdict == "undecided" and (override := by_hand.get(grade.key)) is not None
                )
                right += verdicts["correct"]
                still_open -= verdicts.total() - verdicts["undecided"]
            n_open += still_open
            low.append(100 * right / item.n)
            high.append(100 * (right + still_open) / item.n)
        n_undecided = sum(item.undecided for item in items)
        return cls(sum(item.n for item in items), n_undecided, n_open, fmean(low), fmean(high))

    def words(self, run: str) -> str:
        """The counts in words, such as `3 of 480 of the run (2 decided by hand)`."""
        by_hand = f" ({self.undecided - self.open:,} decided by hand)" if self.open < self.undecided else ""
        return f"{self.undecided:,} of {self.n:,} of {run}{by_hand}"


class BothUndecided(NamedTuple):
    """What undecided answers to the shared questions leave open in a run and in its baseline."""

    run: UndecidedAnswers
    baseline: UndecidedAnswers

    @classmethod
    def of(
        cls, run: Sequence[QuestionTally], baseline: Sequence[QuestionTally], by_hand: Sequence[Mapping[Key, Override]]
    ) -> BothUndecided | None:
        """Count them in the questions of both, with the grader's verdicts; None if there are none.

        by_hand: a person's verdicts in the run and in the baseline.
        """
        shared = pairs(run, baseline)
        if not sum(item.undecided for pair in shared for item in pair):
            return None
        sides = zip(zip(*shared, strict=True), by_hand, strict=True)
        return cls(*(UndecidedAnswers.of(items, verdicts) for items, verdicts in sides))

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest difference in points that they allow; on answers that persons decided, their
        verdicts count."""
        return self.run.low - self.baseline.high, self.run.high - self.baseline.low

    def warning(self, run: str, baseline: str) -> str:
        """What they leave open, in a sentence. run, baseline: their names."""
        counts = f"undecided answers count as wrong: {self.run.words(run)}, {self.baseline.words(baseline)}"
        if not self.run.open + self.baseline.open:
            return f"{counts}; the difference with verdicts by hand counts each of them as a person judged it"
        low, high = self.range
        return (
            f"{counts}. By the open ones the difference may lie anywhere from {low:+z.1f} to {high:+z.1f} points, for "
            "which the intervals above do not allow: read them with `harness show`, decide them by hand with `harness "
            "audit` (each has an option for the undecided ones), or let a judge decide"
        )
