"""The stored samples of a run, graded round by round as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.core.errors import StoreError
from harness.core.records import Grade, Key
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, grades
from harness.scoring.pipeline import grade_run, publish

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet


class GradedRounds:
    """The complete rounds of a run that goes on. Each look writes grades and score as `harness score` does, so that
    the run's display and `harness status` tell the accuracy; where a judge has decided grades, they stay as they are.
    """

    def __init__(self, folder: RunFolder, sets: Sequence[QuestionSet]) -> None:
        self._folder = folder
        self._questions = {s.name: [q.question_id for q in s.questions] for s in sets}

    def of(self, benchmark: str) -> NDArray[np.bool_]:
        """(rounds, questions): whether each sample is right, of the rounds from the first on that every question has.

        Raises `StoreError`.
        """
        questions = self._questions[benchmark]
        correct = {grade.key: grade.verdict == "correct" for grade in self._grades(benchmark)}
        rounds: list[list[bool]] = []
        while all(Key(question_id, len(rounds)) in correct for question_id in questions):
            rounds.append([correct[Key(question_id, len(rounds))] for question_id in questions])
        return np.array(rounds, dtype=bool).reshape(len(rounds), len(questions))

    def _grades(self, benchmark: str) -> Sequence[Grade]:
        """The grades by the rules; each sample is graded once."""
        files = self._folder.benchmark(benchmark)
        if not files.has_samples():  # a start that was killed leaves the file empty, and perhaps no manifest
            return ()
        judged = _judged(self._folder, benchmark)
        for graded in grade_run(self._folder, GradingOptions(workers=1), only=benchmark):
            if not judged:
                publish(graded)
            return graded.grades
        return ()


def _judged(folder: RunFolder, benchmark: str) -> bool:
    """Has a judge decided any of the stored grades?"""
    files = folder.benchmark(benchmark)
    try:
        return files.grades.exists() and any(grade.rule == "judge" for grade in grades.read(files))
    except StoreError:  # it can be graded again
        return False
