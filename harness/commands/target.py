"""Carries out a run that ends when it is exact enough: it samples in stages and grades after each stage, until the
sampling error is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from harness.commands.graded import GradedRounds
from harness.commands.session import carry_out, end_if_signalled, stage_of
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.generation.outcome import Outcome
from harness.generation.run_progress import Tally
from harness.preparing.prepare import Prepared
from harness.progress.watching import Watcher
from harness.scoring.stop import MIN_ROUNDS, next_rounds, reached_error


def until_error(prepared: Prepared, error: float, watcher: Watcher | None = None) -> Outcome:
    """Sample whole rounds until the sampling error of every benchmark is at most `error`, a fraction, or all planned
    samples are stored.

    The first stage has `MIN_ROUNDS` rounds; the size of a later stage follows from the error so far. Everything is
    graded after each stage, and a benchmark that is exact enough is sampled no further. If a session ends with samples
    missing, this function ends, too.
    """
    graded = GradedRounds(prepared.folder, prepared.sets)
    planned = prepared.settings.benchmarks
    reached = {name: _measure(graded.of(name)) for name in planned}
    sessions: list[Outcome] = []
    while True:
        samples = {name: _next_samples(reached[name], error, benchmark.samples) for name, benchmark in planned.items()}
        sessions.append(carry_out(prepared, stage_of(prepared, samples, len(sessions)), watcher))
        outcome = _together(sessions)
        if not outcome.complete:
            return outcome
        reached = {name: _measure(graded.of(name)) for name in planned}
        if all(_next_samples(reached[name], error, of.samples) <= samples[name] for name, of in planned.items()):
            break
        end_if_signalled(sessions[-1], prepared, watcher)
    reached_words = ", ".join(_in_words(name, reached[name], len(planned) > 1) for name in planned)
    if all(benchmark.rounds >= MIN_ROUNDS and benchmark.error <= error for benchmark in reached.values()):
        met = f"the sampling error is {reached_words}, at or below the target of {100 * error:g}"
        return replace(outcome, reached=met)
    if few := [name for name, benchmark in reached.items() if benchmark.rounds < MIN_ROUNDS]:
        return replace(
            outcome,
            missed=f"every question of {visible(few[0], 80)} has only {count_noun(reached[few[0]].rounds, 'sample')}, "
            f"because samples are missing, and the sampling error is judged from {MIN_ROUNDS} on",
        )
    needed = max(_samples_needed(benchmark, error) for benchmark in reached.values())
    return replace(
        outcome,
        missed=f"the sampling error is {reached_words}; the target is {100 * error:g}, for which `samples` "
        f"would have to be about {needed}",
    )


def _together(sessions: Sequence[Outcome]) -> Outcome:
    """The outcome of the last session, with the counts and warnings of all sessions."""
    return replace(
        sessions[-1],
        elapsed_s=sum(session.elapsed_s for session in sessions),
        tally=reduce(Tally.plus, (session.tally for session in sessions)),
        spent_before=sessions[0].spent_before,
        warnings=list(dict.fromkeys(warning for session in sessions for warning in session.warnings)),
    )


def _next_samples(reached: Reached, error: float, most: float) -> float:
    """Number of samples that each question should have after the next stage; the present number if the target error is
    reached.

    error: the target, a fraction. most: largest number allowed.
    """
    if reached.rounds >= MIN_ROUNDS and reached.error <= error:
        return reached.rounds
    return max(reached.rounds, min(most, _samples_needed(reached, error)))


def _samples_needed(reached: Reached, error: float) -> int:
    """Number of samples of each question that is expected to reach the target error."""
    if reached.rounds < MIN_ROUNDS or reached.error <= error:
        return MIN_ROUNDS
    return next_rounds(reached.error, reached.rounds, error)


def _in_words(name: str, reached: Reached, named: bool) -> str:
    """The error in words: `0.81 points on gpqa after 24 samples a question`. named: whether to name the benchmark."""
    of = f" on {visible(name, 80)}" if named else ""
    return f"{100 * reached.error:.2f} points{of} after {count_noun(reached.rounds, 'sample')} a question"


@dataclass(frozen=True, slots=True)
class Reached:
    """How exact one benchmark's accuracy is. rounds: number of samples of every question that are stored and graded.

    error: half the width of the sampling interval divided by 1.96, a fraction; 1 before the first round.
    """

    rounds: int
    error: float


def _measure(rounds: NDArray[np.bool_]) -> Reached:
    """How exact an accuracy is. rounds: whether each sample is right, shape (rounds, questions)."""
    n = len(rounds)
    return Reached(n, reached_error(rounds.sum(axis=0).astype(float), n) if n else 1.0)
