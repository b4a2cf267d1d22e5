"""A prepared run, sampled: all of it, as a pilot of two samples a question, or until its sampling error is small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.client.address.providers import suggestion
from harness.core.errors import ServerError
from harness.experiments.prepare import Prepared, in_a_line
from harness.experiments.stop_rules import Target, answer_finder
from harness.experiments.watching import Watcher
from harness.generation import lengths, runner
from harness.generation.forecast import Forecast, forecast
from harness.generation.outcome import Outcome
from harness.generation.settings import RunSettings
from harness.grading.processes import pool
from harness.runs import RunFolder, read_samples
from harness.scoring import score_benchmark

PILOT_SAMPLES = 2
"""Samples of a question in a pilot: the fewest that show a spread."""


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """What a session came to. reached: in a sentence, how the target was; then the run is complete as it stands.

    outcome: of the session that asked; with a target that was reached before, of the one that looked.
    """

    outcome: Outcome
    reached: str = ""

    @property
    def complete(self) -> bool:
        """Nothing is owed."""
        return self.outcome.complete or bool(self.reached)


def sample(prepared: Prepared, watcher: Watcher | None = None) -> Sampled:
    """Ask for every sample that is owed; to the target, where the options name one. Raises what `generate` raises."""
    error = prepared.options.target_error
    if error is not None:
        return until_error(prepared, error, watcher)
    return Sampled(outcome=_generate(prepared, prepared.settings, watcher))


def until_error(prepared: Prepared, error: float, watcher: Watcher | None = None) -> Sampled:
    """Whole rounds until the sampling error of every benchmark is at most `error`, a fraction."""
    settings = prepared.settings
    target = Target(prepared.folder, prepared.sets, error)
    if prepared.folder.manifest.exists():
        target.look()
    outcome = None
    if not target.reached():
        with target:
            outcome = _generate(prepared, settings, watcher, target)
        if outcome.complete or not target.reached():
            return Sampled(outcome=outcome)
    # The plan becomes what was needed: the same settings are checked, nothing is owed, and the score is of a whole run.
    rounds = target.complete_rounds()
    fewer = {name: replace(one, samples=max(1, rounds[name])) for name, one in settings.benchmarks.items()}
    checked = runner.generate(replace(settings, benchmarks=fewer), prepared.sets)
    return Sampled(outcome=outcome or checked, reached=target.reached())


def with_suggestion(message: str) -> str:
    """`message`, with the option to change where it is a server's refusal of one field."""
    hint = suggestion(message)
    return f"{message} ({hint})" if hint else message


def _generate(
    prepared: Prepared, settings: RunSettings, watcher: Watcher | None, target: Target | None = None
) -> Outcome:
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
            may_start_round=target.may_start_round if target is not None else None,
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
    now = score.sampling_error
    # The variance of a mean of n samples of each question falls with 1/n.
    then = None if now is None else now * (score.n_samples / score.n_questions / samples) ** 0.5
    return Expected(samples=samples, accuracy=score.accuracy, error_now=now, error_then=then)
