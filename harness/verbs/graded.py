"""Grades the stored samples of a growing run, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.core.errors import StoreError
from harness.core.records import Grade, Key
from harness.grading.verdict import JUDGE_RULE
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, grades
from harness.scoring.pipeline import grade_run, publish

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet


class GradedRounds:
    """Grades the complete rounds of a run while it goes on.

    Each call of `of` writes grades and scores as `harness score` does, so that the run's display and `harness status`
    show the accuracy. If a judge has decided any stored grade, the stored grades and scores stay as they are.
    """

    def __init__(self, folder: RunFolder, sets: Sequence[QuestionSet]) -> None:
        self._folder = folder
        self._questions = {s.name: [q.question_id for q in s.questions] for s in sets}

    def of(self, benchmark: str) -> NDArray[np.bool_]:
        """Whether each sample is right, shape (rounds, questions), for the first rounds that all questions have.

        Raises `StoreError`.
        """
        questions = self._questions[benchmark]
        correct = {grade.key: grade.verdict == "correct" for grade in self._grades(benchmark)}
        rounds: list[list[bool]] = []
        while all(Key(question_id, len(rounds)) in correct for question_id in questions):
            rounds.append([correct[Key(question_id, len(rounds))] for question_id in questions])
        return np.array(rounds, dtype=bool).reshape(len(rounds), len(questions))

    def _grades(self, benchmark: str) -> Sequence[Grade]:
        """The grades by the rules; empty without samples. A sample that is graded already is not graded again."""
        files = self._folder.benchmark(benchmark)
        if not files.has_samples():  # A start that was killed may leave an empty file and no manifest.
            return ()
        judged = _judged(self._folder, benchmark)
        # One worker is enough: each call finds few new samples, and starting processes takes longer than grading them.
        for graded in grade_run(self._folder, GradingOptions(workers=1), only=benchmark):
            if not judged:
                publish(graded)
            return graded.grades
        return ()


def _judged(folder: RunFolder, benchmark: str) -> bool:
    """Whether a judge has decided any of the stored grades."""
    files = folder.benchmark(benchmark)
    try:
        return files.grades.exists() and any(grade.rule == JUDGE_RULE for grade in grades.read(files))
    except StoreError:  # A damaged file of grades is no loss: the samples can be graded again.
        return False
