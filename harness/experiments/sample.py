"""A prepared run, sampled: all of it, as a pilot of two samples a question, or until its sampling error is small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.client.address.providers import suggestion
from harness.core.errors import ServerError
from harness.core.inert import visible
from harness.core.wording import option
from harness.experiments.prepare import Prepared, in_a_line
from harness.experiments.stop_rules import Precision, Reached, answer_finder
from harness.experiments.watching import Watcher
from harness.generation import lengths, runner
from harness.generation.forecast import Forecast, forecast
from harness.generation.outcome import Outcome
from harness.generation.settings import RunSettings
from harness.grading.processes import pool
from harness.runs import RunFolder, read_samples
from harness.scoring import score_benchmark
from harness.scoring.distributions import Z_95
from harness.scoring.stop import LEAST_ROUNDS, next_rounds

PILOT_SAMPLES = 2
"""Samples of a question in a pilot: the fewest that show a spread."""


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """What a session came to. reached, missed: in a sentence, how the target was; empty where none was set, or where
    samples are owed. A run that reached it is complete as it stands.

    outcome: of the last session that asked.
    """

    outcome: Outcome
    reached: str = ""
    missed: str = ""

    @property
    def complete(self) -> bool:
        """Nothing is owed."""
        return self.outcome.complete


def sample(prepared: Prepared, watcher: Watcher | None = None) -> Sampled:
    """Ask for every sample that is owed; to the target, where the options name one. Raises what `generate` raises."""
    error = prepared.options.target_error
    if error is not None:
        return until_error(prepared, error, watcher)
    return Sampled(outcome=_generate(prepared, prepared.settings, watcher))


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
        sessions.append(_generate(prepared, replace(prepared.settings, benchmarks=stage), watcher))
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


def with_suggestion(message: str) -> str:
    """`message`, with the option to change where it is a server's refusal of one field."""
    hint = suggestion(message)
    return f"{message} ({hint})" if hint else message


def _generate(prepared: Prepared, settings: RunSettings, watcher: Watcher | None) -> Outcome:
    watcher = watcher or Watcher()
    former = prepared.options.lengths_from
    prior = lengths.mean_lengths(RunFolder.open(former)) if former is not None else None
    watcher.sampling(in_a_line(settings, prepared.sets))
    try:
        return runner.generate(
            settings,
            prepared.sets,
            context_of=prepared.looks.context_of,
            on_progress=watcher.progressed,
            answered=answer_finder(prepared.sets),
            prior_lengths=prior,
            endpoints_file=prepared.endpoints_file,
            environment=prepared.about,
            resume_command=watcher.resume_command,
            break_lock=prepared.options.break_lock,
        )
    except ServerError as error:
        raise ServerError(with_suggestion(error.sentence.marked)) from error


# ---- a pilot


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What one benchmark's score will be about.

    error_now, error_then: sampling errors, now and at `samples` a question.

    All but `samples` are fractions; None: no sample, or too few to tell.
    """

    samples: int
    accuracy: float | None
    error_now: float | None
    error_then: float | None


@dataclass(frozen=True, kw_only=True)
class Piloted:
    """A pilot's session, what the rest of the run will take, and what its scores will be about, by benchmark."""

    outcome: Outcome
    forecast: Forecast
    expected: Mapping[str, Expected]
    concurrency: int


def pilot(prepared: Prepared, watcher: Watcher | None = None) -> Piloted:
    """Two samples a question, which count towards the run, and a forecast of the rest. Raises as `sample` does."""
    settings = prepared.settings
    few = {n: replace(one, samples=min(PILOT_SAMPLES, one.samples)) for n, one in settings.benchmarks.items()}
    outcome = _generate(prepared, replace(settings, benchmarks=few), watcher)
    planned = {s.name: (len(s.questions), settings.benchmarks[s.name].samples) for s in prepared.sets}
    wanted = {(s.name, q.question_id) for s in prepared.sets for q in s.questions}
    stored = (
        one
        for name in planned
        for one in read_samples(prepared.folder.benchmark(name))
        if (one.benchmark, one.question_id) in wanted
    )
    return Piloted(
        outcome=outcome,
        forecast=forecast(stored, planned, settings.concurrency, settings.prices),
        expected={name: _expected(prepared, name, samples) for name, (_, samples) in planned.items()},
        concurrency=settings.concurrency,
    )


def _expected(prepared: Prepared, name: str, samples: int) -> Expected:
    (chosen,) = (one for one in prepared.sets if one.name == name)
    questions = {q.question_id: q for q in chosen.questions}
    stored = (s for s in read_samples(prepared.folder.benchmark(name)) if s.question_id in questions)
    score = score_benchmark(chosen.questions, pool.grade_all(questions, stored), None)
    interval = score.sampling_interval
    now = None if interval is None or score.sampling_error is None else interval.half_width / Z_95
    # The variance of a mean of n samples of each question falls with 1/n.
    then = None if now is None else now * (score.n_samples / score.n_questions / samples) ** 0.5
    return Expected(samples=samples, accuracy=score.accuracy, error_now=now, error_then=then)
