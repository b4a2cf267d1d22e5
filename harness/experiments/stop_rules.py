"""What grading has to say while a run goes on: does a reply hold an answer, is the sampling error small enough.

Generation knows nothing of grading; it is handed these.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from harness.core.errors import HarnessError, UsageError

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.core.records import Key, Question
    from harness.generation.dispatch.canary import Answered
    from harness.generation.plan import Task
    from harness.runs import RunFolder

LEAST_ROUNDS = 4
"""Samples a question before an error is believed: the spread of two or three says little."""

LOOK_S = 2.0
LEISURE = 20.0
"""Between two looks at what has been stored, and so many times as long as the last look took."""


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


class Target:
    """Ends a run at a whole round when the sampling error of every benchmark is at most `error` (a fraction).

    Grading goes on in a thread with a process of its own, beside the run; the decision at a round's end uses the
    rounds that are complete and graded by then, so a run may go one round further than it need. Only whole rounds are
    looked at, and only their spread, never whether the answers please.
    """

    def __init__(self, folder: RunFolder, sets: Sequence[QuestionSet], error: float) -> None:
        if not 0 < error < 0.5:
            raise UsageError("expected a fraction such as 0.01, which is one point.", field="target_error", value=error)
        self.error = error
        self._reached = ""
        self._folder = folder
        self._questions = {s.name: {q.question_id: q for q in s.questions} for s in sets}
        self._correct: dict[str, dict[Key, bool]] = {name: {} for name in self._questions}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="target", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def reached(self) -> str:
        """In a sentence, how; empty while it is not."""
        return self._reached

    def complete_rounds(self) -> dict[str, int]:
        """Samples of every question that are stored, by benchmark. Raises `StoreError`."""
        self._ended.clear()
        self.look()
        return {name: _error(questions, self._correct[name])[0] for name, questions in self._questions.items()}

    def may_start_round(self, number: int) -> bool:  # noqa: ARG002 - the scheduler calls it with the round
        """Whether round `number` (from 0) is still wanted. Never waits."""
        return not self._reached

    def look(self) -> None:
        """Grade what has been stored since the last look. Raises `StoreError`."""
        from harness.grading.processes import pool
        from harness.runs import read_samples

        errors, rounds = [], []
        for name, questions in self._questions.items():
            known = self._correct[name]
            fresh = (
                s
                for s in read_samples(self._folder.benchmark(name))
                if s.question_id in questions and s.key not in known
            )
            for grade in pool.grade_all(questions, fresh):
                known[grade.key] = grade.verdict == "correct"
                if self._ended.is_set():
                    return
            n, error = _error(questions, known)
            rounds.append(n)
            errors.append(error)
        if min(rounds) >= LEAST_ROUNDS and max(errors) <= self.error:
            self._reached = (
                f"the sampling error is {100 * max(errors):.2f} points after {min(rounds)} samples a question, at or "
                f"below the target of {100 * self.error:g}"
            )

    def _watch(self) -> None:
        pause = LOOK_S
        while not self._ended.wait(pause) and not self._reached:
            before = time.monotonic()
            with contextlib.suppress(HarnessError):  # not stored yet; what is wrong is the run's to say
                self.look()
            pause = max(LOOK_S, LEISURE * (time.monotonic() - before))


def _error(questions: Mapping[str, Question], correct: Mapping[Key, bool]) -> tuple[int, float]:
    """(complete rounds, sampling error over them)."""
    from harness.core.records import Key
    from harness.scoring.estimators import sampling_error

    n = 0
    while all(Key(question_id, n) in correct for question_id in questions):
        n += 1
    if n == 0:
        return 0, 1.0
    rates = [sum(correct[Key(question_id, i)] for i in range(n)) / n for question_id in questions]
    found = sampling_error(rates, [n] * len(rates))
    return n, found.bound if found.error is None else found.error
