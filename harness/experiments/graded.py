"""What the stored samples of a run come to, round by round, graded as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.core.records import Key
from harness.grading.processes import pool
from harness.runs import RunFolder, read_samples

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet


class GradedRounds:
    """The complete rounds of a run that goes on; each sample is graded once."""

    def __init__(self, folder: RunFolder, sets: Sequence[QuestionSet]) -> None:
        self._folder = folder
        self._questions = {s.name: {q.question_id: q for q in s.questions} for s in sets}
        self._correct: dict[str, dict[Key, bool]] = {name: {} for name in self._questions}

    def of(self, benchmark: str) -> NDArray[np.bool_]:
        """(rounds, questions): whether each sample is right, of the rounds from the first on that every question has.

        Raises `StoreError`.
        """
        questions, known = self._questions[benchmark], self._correct[benchmark]
        place = self._folder.benchmark(benchmark)
        stored = read_samples(place) if place.samples.exists() else ()
        fresh = (s for s in stored if s.question_id in questions and s.key not in known)
        for grade in pool.grade_all(questions, fresh):
            known[grade.key] = grade.verdict == "correct"
        rounds: list[list[bool]] = []
        while all(Key(question_id, len(rounds)) in known for question_id in questions):
            rounds.append([known[Key(question_id, len(rounds))] for question_id in questions])
        return np.array(rounds, dtype=bool).reshape(len(rounds), len(questions))
