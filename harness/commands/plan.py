"""Estimates how many samples, tokens, hours and dollars a comparison needs, from a scored run or published spreads.

Differences and margins are planned by the same chain of functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from harness.benchmarks import catalog, questions
from harness.benchmarks.sources import readers, tables
from harness.commands.imported_runs import open_scored
from harness.core.errors import UsageError
from harness.core.number_text import Prices, in_percent, prices_in
from harness.core.records import MAX_SAMPLES
from harness.core.sanitize import visible
from harness.deciding.difference_stats import (
    MAX_PLANNED,
    DifferenceVariance,
    MarginReach,
    SampleSpread,
    least_variance,
    margin_reach,
    min_samples,
    planned_variance,
    smoothed_variance,
)
from harness.deciding.paired_comparison import most_possible
from harness.deciding.published import load_published
from harness.generation.forecast import Forecast, forecast
from harness.options.decisions import PlanOptions
from harness.reports.inputs import ScoredBenchmark, ScoredRun, counted_questions, read_runs
from harness.reports.plots.pictures import plan_plot
from harness.reports.plots.plot import write_plots
from harness.runs import read_samples
from harness.runs.layout import imported_at, run_around, run_in_results
from harness.runs.recorded_settings import recorded_prices
from harness.scoring.uncertainty import accuracy

_TESTS = 2
"""Number of p values that `harness compare` computes per benchmark: one for the same questions and one for new ones.
The p values of all benchmarks are corrected together, with one more for the mean of several benchmarks.
"""

_CONCURRENCY = 64
"""Number of requests in flight that a forecast assumes if the run does not record it."""

_POWER = 0.8
"""The chance with which a loss is to be detected."""

MIN_DOUBLINGS = 7
"""A plan says what 1, 2, 4 … samples per question can detect, for at least this many doublings."""

MIN_PUBLISHED = 10
"""Smallest number of published deviations from which a benchmark's spread is taken without a specified accuracy."""

Basis = Literal["run", "models on this benchmark", "models on all benchmarks"]
"""Whose spread a plan uses."""


class PlanSource(NamedTuple):
    """What to plan. name: a benchmark's name, or the path of its card, of a file of questions, or of a scored run.
    samples: the number per question, if the smallest detectable difference is wanted.
    """

    name: str
    samples: int | None = None

    @property
    def is_run(self) -> bool:
        """Whether `name` is the path of a run or of scored outputs, rather than a benchmark or a file of questions."""
        path = Path(self.name)
        if path.is_file():
            scored = run_around(path) is not None or imported_at(path).manifest.is_file()
            return scored or not (path.suffix in catalog.CARD_SUFFIXES or tables.is_named_as_data(path))
        return path.exists() or len(path.parts) > 1


@dataclass(frozen=True, kw_only=True)
class Needed:
    """The number of samples that two runs of a benchmark need to detect a difference, and the difference that a given
    number of samples can detect. If a margin is specified, "difference" means the margin, and detecting it means
    showing that an equally good model loses less than the margin.
    """

    benchmark: str
    """Name of the benchmark."""
    run: str
    """Folder of the run that the plan is based on; empty if the plan is based on published scores."""
    n_questions: int
    """Number of questions."""
    accuracy: float
    """Accuracy of that run or of the published models, or the specified accuracy, as a fraction."""
    deviation: float
    """Standard deviation of a single sample around its question's probability of a correct answer, as a fraction."""
    samples: int | None
    """Samples per question needed to detect the requested difference; None if no difference was requested, or if no
    number of samples is enough (see `least_difference`).
    """
    forecast: Forecast | None
    """Forecast for one new run with `samples` samples per question (or `given_samples`, if no difference was
    requested); None if there is no run to base it on.
    """
    concurrency: int
    """Number of requests in flight assumed by the forecast."""
    basis: Basis = "run"
    """Source of the spread: the run, published scores on this benchmark, or published scores on all benchmarks."""
    n_published: int = 0
    """Number of published scores that the spread is based on."""
    given_samples: int | None = None
    """The specified number of samples per question; None if not specified."""
    smallest_difference: float | None = None
    """Minimum detectable difference with `given_samples` samples per question (80% power), as a fraction. If it exceeds
    the largest difference that is possible at this `accuracy`, no difference is detectable.
    """
    least_difference: float | None = None
    """Smallest difference that can be detected, no matter how many samples are taken, as a fraction; None unless the
    requested difference is smaller than this.
    """
    floor_fails: float | None = None
    """Estimated share of runs with `given_samples` in which an unchanged model is below the specified `floor`."""
    floor_loss: float | None = None
    """Loss that brings 80% of these runs below the floor, as a fraction; None if they are without a loss, or if no
    floor was specified.
    """
    by_samples: Mapping[int, float]
    """Minimum detectable difference by number of samples per question. This number doubles with each entry; numbers
    that cannot detect any possible difference are omitted.
    """

    def largest_possible(self, *, loss: bool) -> float:
        """The largest possible difference from `accuracy`, as a fraction. loss: consider only a worse model."""
        return self.accuracy if loss else most_possible(self.accuracy)


class _Evidence(NamedTuple):
    """What is known about a benchmark before its comparison.

    spread: how its samples vary. run: the scored run with this spread; None: it is from `n_published` published scores.
    """

    source: PlanSource
    benchmark: str
    spread: SampleSpread
    run: ScoredRun | None = None
    basis: Basis = "run"
    n_published: int = 0


def sources_of(arguments: Sequence[str]) -> list[PlanSource]:
    """The sources that the arguments name, such as `aime24:64`, `results/mine` or `aime24:64,math500`.

    Raises `UsageError` for an invalid number of samples.
    """
    # As in `harness run`, commas separate benchmarks, but a path may also contain commas.
    words = [
        word.strip()
        for argument in arguments
        for word in ([argument] if Path(argument).exists() else argument.split(","))
    ]
    return [_source_of(word) for word in words if word]


def _source_of(word: str) -> PlanSource:
    """The source that one word names. Raises `UsageError`."""
    name, colon, number = word.rpartition(":")
    if not colon or Path(word).exists():
        return PlanSource(word)
    if not number.isdecimal() or not 1 <= int(number[:9]) <= MAX_SAMPLES or ":" in name:
        raise UsageError(
            f"{visible(word, 80)}: expected a benchmark or a run, optionally with one number of samples from "
            f"1 to {MAX_SAMPLES}, as in aime24:64"
        )
    return PlanSource(name, int(number))


def plan(sources: Sequence[PlanSource], options: PlanOptions) -> list[Needed]:
    """The plans for one comparison of two runs on all these benchmarks, in order.

    A plan for a run uses its samples, and a plan for a benchmark the spread of published runs. Raises `UsageError`, and
    `StoreError` for a run that is not scored.
    """
    bare = [source for source in sources if source.samples is None]
    if options.points(1.0) is None and bare:
        raise UsageError(
            f"specify the difference to detect (such as `detect=2`), the loss to rule out (such as `margin=2` or "
            f"`recovery=95`), or a number of samples after the name (such as {visible(bare[0].name, 200)}:64)"
        )
    benchmarks = [evidence for source in sources for evidence in _evidence_of(source, options)]
    names = [evidence.benchmark for evidence in benchmarks]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(
            f"{visible(twice, 80)} is listed twice: each benchmark can appear only once in a plan, because it "
            "covers a single comparison"
        )
    # The comparison corrects its p values together, with one more for the mean of several benchmarks.
    n_tests = (1 if options.is_margin else _TESTS) * len(benchmarks) + (len(benchmarks) > 1)
    plans = [_plan_benchmark(evidence, options, n_tests) for evidence in benchmarks]
    if options.plots is not None:
        noun = "margin" if options.is_margin else "difference"
        points = options.margin or options.detect  # a recovery is a different margin at each accuracy
        target = None if points is None else points / 100
        curves = {needed.benchmark: needed.by_samples for needed in plans}
        write_plots([plan_plot(noun, target, curves)], options.plots)
    return plans


def _evidence_of(source: PlanSource, options: PlanOptions) -> Iterator[_Evidence]:
    """What is known about each benchmark of `source`."""
    if not source.is_run:
        yield _published(source, None if options.accuracy is None else options.accuracy / 100, options.limit)
        return
    folder = open_scored(source.name)
    for name in ("accuracy", "limit"):
        if getattr(options, name) is not None:
            what = f"the questions, accuracy and spread are taken from {visible(str(folder.path), 200)}"
            raise UsageError(f"{what}: omit this option", field=name)
    (run,) = read_runs([folder])
    for benchmark in run.benchmarks.values():
        yield _Evidence(source, benchmark.name, _spread_of(run, benchmark), run)


def _published(source: PlanSource, accuracy: float | None, limit: int | None) -> _Evidence:
    """The spread of a benchmark's samples, from published runs. accuracy: a fraction; None: the published accuracy.
    limit: the number of questions that are asked; None: all.

    Some sources publish the standard deviation s of a run's accuracy over repeated runs. One run asks each of Q
    questions once, so Q · s² is the variance of one sample around its question's probability of a correct answer,
    averaged over the questions. A few repeats estimate it poorly, and models differ, so the median over all published
    models is used. At another accuracy a, a model's variance is scaled as a share of the largest possible, a · (1 − a).

    Raises `UsageError` for an unknown benchmark, and if the accuracy is unknown and too little is published.
    """
    if not catalog.knows(source.name) and (run := run_in_results(source.name)) is not None:
        raise UsageError(f"{visible(source.name, 80)} is not a benchmark. Did you mean the run {visible(str(run))}?")
    card = catalog.load(source.name)
    # The number of questions is read only from a file on this machine.
    n_questions = card.questions or (questions.build(card).n_all if readers.reads_a_file(card) else None)
    if not n_questions:
        raise UsageError(
            f"the card {visible(source.name, 80)} does not specify its number of questions: add `questions: N` to "
            "the card, or specify a scored run instead of its name"
        )
    n_questions = min(n_questions, limit or n_questions)
    rows = _published_scores()
    own = [row[1:] for row in rows if row[0] == card.name]
    enough = len(own) >= MIN_PUBLISHED
    if not enough and accuracy is None:
        raise UsageError(
            f"no published spread is known for {visible(card.name, 80)}: specify your model's "
            f"`accuracy`, or a scored run instead of the name"
        )
    taken = own if enough else [row[1:] for row in rows]
    if accuracy is None:
        accuracy, variance = (float(value) for value in np.median(taken, axis=0))
    else:
        variance = float(np.median([v / (a * (1 - a)) for a, v in taken])) * accuracy * (1 - accuracy)
    spread = SampleSpread(n_questions, accuracy, max(variance, least_variance(accuracy, n_questions)))
    basis: Basis = "models on this benchmark" if enough else "models on all benchmarks"
    return _Evidence(source, card.name, spread, basis=basis, n_published=len(taken))


@cache
def _published_scores() -> list[tuple[str, float, float]]:
    """(benchmark, accuracy, variance of one sample) for each published score with a deviation over repeated runs."""
    return [
        (score.benchmark, score.value, score.run_deviation**2 * score.n_questions)
        for score in load_published()
        if score.metric == "pass@1" and score.run_deviation and score.n_questions and 0 < score.value < 1
    ]


def _spread_of(run: ScoredRun, benchmark: ScoredBenchmark) -> SampleSpread:
    """The spread of a scored run's samples.

    Raises `UsageError` if the run has only one sample per question.
    """
    items = [item for item in counted_questions(run, benchmark) if item.n]
    if not any(item.n > 1 for item in items):
        raise UsageError(
            f"{visible(benchmark.name, 80)} of {run.folder.path} has one sample per question, which is not enough to "
            "estimate the spread: sample a quarter of the questions twice (repeat the run with 1.25 samples per "
            "question)"
        )
    draws = accuracy(items)
    return SampleSpread(len(items), draws.estimate.value, draws.single, draws.trials)


def _plan_benchmark(evidence: _Evidence, options: PlanOptions, n_tests: int) -> Needed:
    """The plan for one benchmark. n_tests: number of p values that the comparison corrects together."""
    spread, given = evidence.spread, evidence.source.samples
    points = options.points(spread.mean)
    most = 100 * most_possible(spread.mean)
    if options.detect is not None and options.detect > most:
        raise UsageError(
            f"the accuracy cannot differ by {options.detect:g} points from the assumed {in_percent(spread.mean)}%: "
            f"use at most {math.floor(10 * most) / 10:g}",
            field="detect",
        )

    needed = Needed(
        benchmark=evidence.benchmark,
        run="" if evidence.run is None else str(evidence.run.folder.source),
        basis=evidence.basis,
        n_published=evidence.n_published,
        n_questions=spread.n_questions,
        accuracy=spread.mean,
        deviation=_single_variance(spread) ** 0.5,
        samples=None if points is None else min_samples(lambda n: _outlook(spread, n, options), points / 100, n_tests),
        forecast=None,
        concurrency=_CONCURRENCY,
        given_samples=given,
        smallest_difference=None if given is None else _outlook(spread, given, options).smallest(n_tests),
        by_samples={},
    )
    if options.floor is not None:
        if given is None:
            raise UsageError(
                "specify a number of samples after the name, as in gsm8k:1", field="floor", value=options.floor
            )
        chance = partial(
            _chance_below, options.floor / 100, needed.accuracy, needed.deviation, spread.n_questions * given
        )
        losses = (step / 1_000 for step in range(1, math.ceil(1_000 * needed.accuracy)))
        detected = None if chance(0.0) >= _POWER else next((loss for loss in losses if chance(loss) >= _POWER), None)
        needed = replace(needed, floor_fails=chance(0.0), floor_loss=detected)
    if points is not None and needed.samples is None:
        needed = replace(needed, least_difference=_outlook(spread, MAX_PLANNED, options).smallest(n_tests))
    size = given if points is None else needed.samples
    doubling = [2**power for power in range(max(MIN_DOUBLINGS, (size or 1).bit_length()) + 1)]
    finds = {n: _outlook(spread, n, options).smallest(n_tests) for n in doubling if n <= MAX_PLANNED}
    largest = needed.largest_possible(loss=options.is_margin)
    by_samples = {n: difference for n, difference in finds.items() if difference <= largest}
    return _with_forecast(replace(needed, by_samples=by_samples), evidence, size, options)


def _outlook(spread: SampleSpread, samples: int, options: PlanOptions) -> DifferenceVariance | MarginReach:
    """What to expect from a comparison with this many samples per question."""
    return margin_reach(spread, samples) if options.is_margin else planned_variance(spread, samples)


def _chance_below(floor: float, accuracy: float, deviation: float, n_samples: int, loss: float) -> float:
    """Estimate the chance that a run scores below a floor after a loss of accuracy, all as fractions.

    deviation: of a single sample without the loss. The number of wrong samples is binomial with its mean and variance,
    as if some samples were certain to be right; a normal distribution is off by a factor of two near 100%.
    """
    accuracy = min(max(accuracy, 0.5 / n_samples), 1 - 0.5 / n_samples)
    wrong, random = 1 - accuracy + loss, min(1.0, deviation**2 / (accuracy * (1 - accuracy)))
    n_uncertain = max(1, round(n_samples * wrong / (1 - random * (1 - wrong))))
    chance = min(n_samples * wrong / n_uncertain, 1 - 1e-12)
    allowed = np.arange(min(math.floor(n_samples * (1 - floor) + 1e-9), n_uncertain))
    steps = np.log((n_uncertain - allowed) / (allowed + 1)) + math.log(chance / (1 - chance))
    return max(0.0, 1 - float(np.exp(n_uncertain * math.log1p(-chance) + np.cumsum(np.append(0.0, steps))).sum()))


def _single_variance(spread: SampleSpread) -> float:
    """The variance of one sample, smoothed if it was estimated from few samples."""
    if math.isinf(spread.total):
        return spread.variance
    mean, total = np.asarray(spread.mean), np.asarray(spread.total)
    return float(smoothed_variance(mean, spread.variance / total, total))


def _with_forecast(needed: Needed, evidence: _Evidence, size: int | None, options: PlanOptions) -> Needed:
    """The plan with the forecast for a new run with `size` samples per question.

    There is no forecast without a size, or for another tool's outputs, which have no times.
    """
    if evidence.run is None:
        return needed
    prices = None if options.prices is None else prices_in(options.prices)
    n_questions = len(evidence.run.benchmarks[evidence.benchmark].questions)
    ahead, concurrency = run_forecast(evidence.run, evidence.benchmark, (n_questions, size or 1), prices)
    return replace(needed, concurrency=concurrency, forecast=None if size is None else ahead)


def run_forecast(
    run: ScoredRun, name: str, planned: tuple[int, int], prices: Prices | None = None
) -> tuple[Forecast | None, int]:
    """Forecast the time, tokens and cost of a run like `run`; also return the number of requests in flight assumed.

    planned: numbers of questions and of samples per question. prices: by default, those recorded in `run`. The forecast
    is None for another tool's outputs, which have no times.
    """
    record = run.benchmarks[name].record
    recorded = record.settings.get("concurrency")
    concurrency = recorded if isinstance(recorded, int) and recorded > 0 else _CONCURRENCY
    if record.imported:
        return None, concurrency
    stored = [sample for sample in read_samples(run.folder.benchmark(name)) if sample.benchmark == name]
    prices = prices or recorded_prices(record)
    return forecast(stored, {name: planned}, concurrency, prices), concurrency
