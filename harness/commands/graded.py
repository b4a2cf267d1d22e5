"""Grades the stored samples of a growing run, round by round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.core.errors import StoreError, UsageError
from harness.core.inert import visible
from harness.core.records import Grade
from harness.grading.verdict import JUDGE_RULE
from harness.grading.verifier import TO_JUDGE
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
        """Raises `UsageError` for a benchmark that only a judge can grade, who is asked once the run has ended."""
        if alone := next((each.name for each in sets if each.questions[0].rules.grader == TO_JUDGE), None):
            raise UsageError(
                f"only a judge grades {visible(alone, 80)}, and none is asked while a run goes on: take a number of "
                "samples with `harness run`, then `harness score --judge` and `harness compare`"
            )
        self._folder = folder
        self._questions = {s.name: [q.question_id for q in s.questions] for s in sets}

    def of(self, benchmark: str) -> NDArray[np.bool_]:
        """Whether each sample is right, shape (rounds, questions), for the first rounds that all questions have.

        Raises `StoreError`.
        """
        graded: dict[str, list[Grade]] = defaultdict(list)
        for grade in grade_new(self._folder, benchmark):
            graded[grade.question_id].append(grade)
        return complete_rounds([graded[question_id] for question_id in self._questions[benchmark]])


def complete_rounds(questions: Sequence[Iterable[Grade]]) -> NDArray[np.bool_]:
    """Whether each sample is right, shape (rounds, questions), for the first rounds that all questions have.

    questions: the grades of each.
    """
    correct = [{grade.sample_index: grade.verdict == "correct" for grade in question} for question in questions]
    n_rounds = next(n for n in count() if not correct or any(n not in question for question in correct))
    rounds = [[question[n] for question in correct] for n in range(n_rounds)]
    return np.array(rounds, dtype=bool).reshape(n_rounds, len(questions))


def grade_new(folder: RunFolder, benchmark: str) -> Sequence[Grade]:
    """The grades of a benchmark by the rules, stored as `harness score` does; empty without samples.

    A sample that is graded already is not graded again. Raises `StoreError`.
    """
    files = folder.benchmark(benchmark)
    if not files.has_samples():  # A start that was killed may leave an empty file and no manifest.
        return ()
    judged = _judged(folder, benchmark)
    # One worker is enough: each call finds few new samples, and starting processes takes longer than grading them.
    for graded in grade_run(folder, GradingOptions(workers=1), only=benchmark):
        if not judged:
            publish(graded)
        return graded.grades
    return ()


def _judged(folder: RunFolder, benchmark: str) -> bool:
    """Whether a judge has decided any of the stored grades."""
    files = folder.benchmark(benchmark)
    try:
        return files.grades.exists() and any(g.rule == JUDGE_RULE for g in grades.read_file(files.grades, damaged=[]))
    except StoreError:  # An unreadable file of grades is no loss: the samples can be graded again.
        return False
