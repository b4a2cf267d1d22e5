"""A pilot: two samples of each question, which count towards the run, and a forecast of the rest of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.asking.options import RunOptions
from harness.asking.prepare import Prepared, prepare
from harness.asking.session import generate
from harness.asking.watching import Watcher
from harness.core.errors import UsageError
from harness.core.money import Prices
from harness.core.nouns import count_noun
from harness.generation.forecast import Forecast, forecast
from harness.generation.outcome import Outcome
from harness.grading.processes import pool
from harness.runs import Manifest, read_samples
from harness.scoring import score_benchmark
from harness.scoring.stats import Z_95

PILOT_SAMPLES = 2
"""Number of samples of each question in a pilot: with a single sample, no spread can be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedScore:
    """The expected score of one benchmark.

    samples: of each question in the complete run. accuracy: of the pilot. error_now: its sampling error. error_then:
    the sampling error to expect with `samples` of each question. All three are fractions; None if there are no samples,
    too few to tell, or undecided ones among them, which a judge or a mended function may decide either way.

    low, high: the accuracy of the pilot if all undecided samples are wrong, or right; None without samples. n_samples,
    n_undecided: samples of the pilot. verifier_errors: as in `Score`.
    """

    samples: int
    accuracy: float | None
    error_now: float | None
    error_then: float | None
    low: float | None = None
    high: float | None = None
    n_samples: int = 0
    n_undecided: int = 0
    verifier_errors: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Piloted:
    """A pilot's session, the forecast of the rest of the run, and the expected scores by benchmark.

    prices: of tokens; None if unknown. concurrency: requests in flight that the forecast assumes.
    """

    folder: Path
    model: str
    prices: Prices | None
    outcome: Outcome
    forecast: Forecast
    expected: Mapping[str, ExpectedScore]
    concurrency: int


def pilot(options: RunOptions, watcher: Watcher) -> Piloted:
    """Ask for two samples of each question, which count towards the run, and forecast the rest.

    Raises what `run` raises, and `UsageError` if the run already plans more samples: the pilot's smaller plan would
    leave those samples unscored.
    """
    with prepare(options, watcher) as prepared:
        return _pilot(prepared, watcher)


def _pilot(prepared: Prepared, watcher: Watcher) -> Piloted:
    """Sample and score the pilot of a prepared run, then forecast the rest."""
    settings = prepared.settings
    _refuse_larger_plan(prepared)
    few = {
        n: replace(benchmark, samples=min(PILOT_SAMPLES, benchmark.samples))
        for n, benchmark in settings.benchmarks.items()
    }
    planned = {s.name: (len(s.questions), settings.benchmarks[s.name].samples) for s in prepared.sets}
    announced = sum(questions * samples for questions, samples in planned.values())
    outcome = generate(prepared, replace(settings, benchmarks=few, announced=announced), watcher)
    planned_keys = {(s.name, q.question_id) for s in prepared.sets for q in s.questions}
    stored = (
        sample
        for name in planned
        for sample in read_samples(prepared.folder.benchmark(name))
        if (sample.benchmark, sample.question_id) in planned_keys
    )
    return Piloted(
        folder=settings.out,
        model=settings.model,
        prices=settings.prices,
        outcome=outcome,
        forecast=forecast(stored, planned, settings.concurrency, settings.prices),
        expected={name: _expectation(prepared, name, samples) for name, (_, samples) in planned.items()},
        concurrency=settings.concurrency,
    )


def _refuse_larger_plan(prepared: Prepared) -> None:
    """Raise `UsageError` if the run already plans more samples than a pilot has."""
    if not prepared.folder.manifest.exists():
        return
    for name, record in Manifest.load(prepared.folder).benchmarks.items():
        if name in prepared.settings.benchmarks and record.plan.samples > PILOT_SAMPLES:
            plans = f"{prepared.folder.path} already plans {count_noun(record.plan.samples, 'sample')} of each question"
            if not any(read_samples(prepared.folder.benchmark(name))):
                raise UsageError(f"{plans} of {name}, and has none of them: delete this folder to begin with a pilot")
            raise UsageError(
                f"{plans} of {name}; a pilot is for a run that has not begun. Leave out `pilot` to go on; "
                "`harness plan` says how many samples show a given difference"
            )


def _expectation(prepared: Prepared, name: str, samples: int) -> ExpectedScore:
    """The score of the pilot's samples, and the sampling error to expect once the run is complete.

    samples: of each question in the complete run.
    """
    (question_set,) = (candidate for candidate in prepared.sets if candidate.name == name)
    questions = {q.question_id: q for q in question_set.questions}
    stored = (s for s in read_samples(prepared.folder.benchmark(name)) if s.question_id in questions)
    score = score_benchmark(question_set.questions, pool.grade_all(questions, stored), None)
    # Undecided samples count as wrong in a score, which for a forecast would be a claim about them.
    undecided, accuracy = score.undecided_bounds, score.accuracy and score.accuracy.value
    interval = None if undecided or score.accuracy is None or score.accuracy.at_most else score.accuracy.sampling
    now = None if interval is None else interval.half_width / Z_95
    # The variance of a mean of n samples of each question falls with 1/n.
    then = None if now is None else now * (score.n_samples / score.n_questions / samples) ** 0.5
    return ExpectedScore(
        samples=samples,
        accuracy=None if undecided else accuracy,
        error_now=now,
        error_then=then,
        low=undecided.low if undecided else accuracy,
        high=undecided.high if undecided else accuracy,
        n_samples=score.n_samples,
        n_undecided=score.n_undecided,
        verifier_errors=score.verifier_errors,
    )
