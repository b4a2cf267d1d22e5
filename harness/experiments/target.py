"""A run that ends when it is exact enough: asked in stages, graded after each, until the sampling error is small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from harness.core.inert import visible
from harness.core.records import Key
from harness.core.wording import option
from harness.experiments.prepare import Prepared
from harness.experiments.sample import Sampled, generate
from harness.experiments.watching import Watcher
from harness.generation.outcome import Outcome
from harness.grading.processes import pool
from harness.runs import RunFolder, read_samples
from harness.scoring.stop import LEAST_ROUNDS, next_rounds, reached_error

if TYPE_CHECKING:
    from harness.benchmarks.questions import QuestionSet
    from harness.core.records import Question


def until_error(prepared: Prepared, error: float, watcher: Watcher | None = None) -> Sampled:
    """Whole rounds until the sampling error of every benchmark is at most `error`, a fraction, or its samples are used.

    Asked in stages: eight rounds first, then as many as their spread says. After each stage all is graded, and a
    benchmark that is exact enough asks no more; so no sample is asked that a look could have spared.
    """
    precision = Precision(prepared.folder, prepared.sets)
    planned = prepared.settings.benchmarks
    reached = precision.look()
    sessions: list[Outcome] = []
    while True:
        stage = {n: replace(one, samples=_wanted(reached[n], error, one.samples)) for n, one in planned.items()}
        sessions.append(generate(prepared, replace(prepared.settings, benchmarks=stage), watcher))
        outcome = _together(sessions)
        if not outcome.complete:
            return Sampled(outcome=outcome)
        reached = precision.look()
        if all(_wanted(reached[n], error, one.samples) <= stage[n].samples for n, one in planned.items()):
            break
    said = ", ".join(_said(name, reached[name], len(planned) > 1) for name in planned)
    if all(one.rounds >= LEAST_ROUNDS and one.error <= error for one in reached.values()):
        met = f"the sampling error is {said}, at or below the target of {100 * error:g}"
        return Sampled(outcome=outcome, reached=met)
    needed = max(_needed(one, error) for one in reached.values())
    return Sampled(
        outcome=outcome,
        missed=f"the sampling error is {said}; the target is {100 * error:g}, for which {option('samples')} would have "
        f"to be about {needed}",
    )


def _together(sessions: Sequence[Outcome]) -> Outcome:
    """The last session, with what all of them brought."""
    return replace(
        sessions[-1],
        elapsed_s=sum(one.elapsed_s for one in sessions),
        n_session=sum(one.n_session for one in sessions),
        n_truncated=sum(one.n_truncated for one in sessions),
        n_duplicates=sum(one.n_duplicates for one in sessions),
        n_loops=sum(one.n_loops for one in sessions),
        tokens=sum(one.tokens for one in sessions),
        warnings=list(dict.fromkeys(warning for one in sessions for warning in one.warnings)),
    )


def _wanted(reached: Reached, error: float, most: int) -> int:
    """Samples a question that the next stage asks for; those that are there where no more are wanted."""
    if reached.rounds >= LEAST_ROUNDS and reached.error <= error:
        return reached.rounds
    return max(reached.rounds, min(most, _needed(reached, error)))


def _needed(reached: Reached, error: float) -> int:
    """Samples a question that are expected to do."""
    if reached.rounds < LEAST_ROUNDS or reached.error <= error:
        return LEAST_ROUNDS
    return next_rounds(reached.error, reached.rounds, error)


def _said(name: str, reached: Reached, several: bool) -> str:
    of = f" on {visible(name, 80)}" if several else ""
    return f"{100 * reached.error:.2f} points{of} after {reached.rounds} samples a question"


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
    n = 0
    while all(Key(question_id, n) in correct for question_id in questions):
        n += 1
    if n == 0:
        return Reached(0, 1.0)
    right = np.array([float(sum(correct[Key(question_id, i)] for i in range(n))) for question_id in questions])
    return Reached(n, reached_error(right, n))
