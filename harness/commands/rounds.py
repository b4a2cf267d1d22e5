"""The rounds of a growing run: grades the stored samples, and determines whether a target error is reached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.core.errors import StoreError, UsageError
from harness.core.number_text import count_noun
from harness.core.records import Grade
from harness.core.sanitize import visible
from harness.deciding.difference_stats import MIN_ROUNDS, next_rounds, reached_error
from harness.generation.outcome import Outcome
from harness.grading.verifier import JUDGE_RULE, TO_JUDGE
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, grades
from harness.scoring.pipeline import grade_run, publish

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet


def grade_new(folder: RunFolder, benchmark: str, limits: str | None = None) -> Sequence[Grade]:
    """The grades of a benchmark by the rules; empty without samples. limits: time limits for the score.

    They are stored as `harness score` does, so that the run's display and `harness status` show the accuracy, unless a
    judge decided any stored grade. A sample that is already graded is not graded again. Raises `StoreError`.
    """
    files = folder.benchmark(benchmark)
    if not files.has_samples():  # a killed start may leave an empty file and no manifest
        return ()
    judged = _judged(folder, benchmark)
    # One worker is enough: each call finds few new samples, and starting processes takes longer than grading them.
    for graded in grade_run(folder, GradingOptions(workers=1, limits=limits), only=benchmark):
        if not judged:
            publish(graded)
        return graded.grades
    return ()


def _judged(folder: RunFolder, benchmark: str) -> bool:
    """Whether a judge has decided any of the stored grades."""
    files = folder.benchmark(benchmark)
    try:
        return files.grades.exists() and any(g.rule == JUDGE_RULE for g in grades.read_file(files.grades, damaged=[]))
    except StoreError:  # unreadable grades can be recreated by grading the samples again
        return False


@dataclass(frozen=True, slots=True)
class Precision:
    """The precision of one benchmark's accuracy. rounds: number of stored and graded samples of every question.

    error: half the width of the sampling interval divided by 1.96, as a fraction; 1 before the first round.
    """

    rounds: int
    error: float

    @classmethod
    def of(cls, rounds: NDArray[np.bool_]) -> Precision:
        """The precision of an accuracy. rounds: whether each sample is correct, shape (rounds, questions)."""
        n = len(rounds)
        return cls(n, reached_error(rounds.sum(axis=0).astype(float), n) if n else 1.0)

    def meets(self, error: float) -> bool:
        """Whether the accuracy reaches the target error."""
        return self.rounds >= MIN_ROUNDS and self.error <= error

    def needed(self, error: float) -> int:
        """The number of samples per question that is expected to reach the target error."""
        return MIN_ROUNDS if self.rounds < MIN_ROUNDS else next_rounds(self.error, self.rounds, error)


class Target:
    """The stages of a run that ends when the sampling error of every benchmark is at most `error`, a fraction.

    planned: benchmark → largest number of samples per question. The first stage has `MIN_ROUNDS` rounds; the size of a
    later stage follows from the error so far.
    """

    def __init__(
        self, folder: RunFolder, sets: Sequence[QuestionSet], planned: Mapping[str, float], error: float
    ) -> None:
        """Raises `UsageError` for a benchmark that only a judge can grade, since judging starts after the run."""
        if alone := next((each.name for each in sets if each.questions[0].rules.grader == TO_JUDGE), None):
            raise UsageError(
                f"only a judge can grade {visible(alone, 80)}, but judges are not used during a run: sample "
                "with `harness run`, then use `harness score --judge` and `harness compare`"
            )
        self._folder, self._planned, self._error = folder, planned, error
        self._questions = {s.name: [q.question_id for q in s.questions] for s in sets}
        self._measure()

    def _measure(self) -> None:
        """Grade the stored samples and measure the precision."""
        self._precision = {name: Precision.of(self._rounds(name)) for name in self._planned}

    def _rounds(self, benchmark: str) -> NDArray[np.bool_]:
        """Whether each sample is correct, shape (rounds, questions), for the first rounds that all questions have.

        Raises `StoreError`.
        """
        graded: dict[str, dict[int, bool]] = defaultdict(dict)  # by question and sample
        for grade in grade_new(self._folder, benchmark):
            graded[grade.question_id][grade.sample_index] = grade.verdict == "correct"
        correct = [graded[question_id] for question_id in self._questions[benchmark]]
        n_rounds = next(n for n in count() if not correct or any(n not in of_question for of_question in correct))
        rounds = [[of_question[n] for of_question in correct] for n in range(n_rounds)]
        return np.array(rounds, dtype=bool).reshape(n_rounds, len(correct))

    def stage(self) -> dict[str, float]:
        """Benchmark → number of samples that each question should have after the next stage; the current number if the
        target error is reached.
        """
        return {
            name: now.rounds if now.meets(self._error) else max(now.rounds, min(most, now.needed(self._error)))
            for (name, now), most in zip(self._precision.items(), self._planned.values(), strict=True)
        }

    def ends_with(self, stage: Mapping[str, float]) -> bool:
        """Grade and measure what is stored; return whether this stage was the last, as no more samples are needed."""
        self._measure()
        return all(samples <= stage[name] for name, samples in self.stage().items())

    def final_outcome(self, outcome: Outcome) -> Outcome:
        """The outcome of the stages, with a sentence on whether the target was reached."""
        error, measured = self._error, self._precision
        of = {name: f" on {visible(name, 80)}" if len(measured) > 1 else "" for name in measured}
        reached = ", ".join(
            f"{100 * now.error:.2f} points{of[name]} after {count_noun(now.rounds, 'sample')} per question"
            for name, now in measured.items()
        )
        if all(now.meets(error) for now in measured.values()):
            met = f"the sampling error is {reached}, at or below the target of {100 * error:g}"
            return replace(outcome, reached=met)
        if few := [(name, now.rounds) for name, now in measured.items() if now.rounds < MIN_ROUNDS]:
            missed = (
                f"because samples are missing, every question of {visible(few[0][0], 80)} has only "
                f"{count_noun(few[0][1], 'sample')}, but estimating the sampling error requires at least {MIN_ROUNDS}"
            )
        else:
            needed = max(now.needed(error) for now in measured.values() if not now.meets(error))
            missed = (
                f"the sampling error is {reached}; the target is {100 * error:g}, which would require `samples` of "
                f"about {needed}"
            )
        return replace(outcome, missed=missed)
