"""What grading has to say while a run goes on: does a reply hold an answer, how exact is the accuracy by now.

Generation knows nothing of grading; it is handed these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.core.records import Key, Question
    from harness.generation.dispatch.canary import Answered
    from harness.generation.plan import Task
    from harness.runs import RunFolder


def answer_finder(sets: Sequence[QuestionSet]) -> Answered:
    """Whether the grader finds an answer in a reply; True where a verifier of the benchmark's own reads it."""
    questions = {(s.name, q.question_id): q for s in sets for q in s.questions}

    def answered(task: Task, text: str | None, _reasoning: str | None) -> bool:
        from harness.grading.verdict import find  # with the first reply, not before the first request

        question = questions[task.benchmark, task.question_id]
        if question.rules.grader != "rules":
            return True
        return find(question, text) is not None

    return answered


@dataclass(frozen=True, slots=True)
class Reached:
    """How exact one benchmark's accuracy is. rounds: samples of every question that are stored and graded.

    error: half the width of the sampling interval over 1.96, a fraction; 1 before the first round.
    """

    rounds: int
    error: float


class Precision:
    """How exact the benchmarks of a run are by now; grades only what it has not seen."""

    def __init__(self, folder: RunFolder, sets: Sequence[QuestionSet]) -> None:
        self._folder = folder
        self._questions = {s.name: {q.question_id: q for q in s.questions} for s in sets}
        self._correct: dict[str, dict[Key, bool]] = {name: {} for name in self._questions}

    def look(self) -> dict[str, Reached]:
        """By benchmark. Raises `StoreError`."""
        from harness.grading.processes import pool
        from harness.runs import read_samples

        found = {}
        for name, questions in self._questions.items():
            known = self._correct[name]
            place = self._folder.benchmark(name)
            stored = read_samples(place) if place.samples.exists() else ()
            fresh = (s for s in stored if s.question_id in questions and s.key not in known)
            for grade in pool.grade_all(questions, fresh):
                known[grade.key] = grade.verdict == "correct"
            found[name] = _reached(questions, known)
        return found


def _reached(questions: Mapping[str, Question], correct: Mapping[Key, bool]) -> Reached:
    import numpy as np

    from harness.core.records import Key
    from harness.scoring.stop import reached_error

    n = 0
    while all(Key(question_id, n) in correct for question_id in questions):
        n += 1
    if n == 0:
        return Reached(0, 1.0)
    right = np.array([float(sum(correct[Key(question_id, i)] for i in range(n))) for question_id in questions])
    return Reached(n, reached_error(right, n))
