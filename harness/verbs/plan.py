"""Answers how many samples, tokens, hours and dollars a comparison needs, by a pilot, a former run or published runs.

Long: differences and margins, single benchmarks and their mean, are planned by one chain of functions.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from harness.asking.options import PlanOptions
from harness.core.errors import StoreError, UsageError, option
from harness.core.inert import visible
from harness.core.money import Prices
from harness.core.nouns import in_percent
from harness.generation.forecast import Forecast, forecast
from harness.reports.costs import recorded_prices
from harness.reports.scored import ScoredBenchmark, ScoredRun, read_runs
from harness.runs import RunFolder, read_samples
from harness.runs.layout import RESULTS
from harness.scoring.comparison import most_possible
from harness.scoring.stats import cluster_numbers, effective_clusters
from harness.scoring.stats_differences import (
    MAX_PLANNED,
    Detection,
    MarginReach,
    SampleSpread,
    fewest,
    least_question_difference,
    least_questions,
    margin_reach,
    mean_detection,
    mean_reach,
    planned_detection,
    smoothed_variance,
    spreads_within,
)
from harness.scoring.uncertainty import accuracy
from harness.verbs.again import options_again, pace_again
from harness.verbs.compare import counted_questions
from harness.verbs.former_run import former_run, no_spread
from harness.verbs.outputs import open_scored
from harness.verbs.plan_sources import PlanSource
from harness.verbs.plan_typical import TypicalSpread, typical_spread, typical_spread_of_questions

_TESTS = 2
"""Number of p values that `harness compare` makes for each benchmark: one for the same questions and one for new ones.
The p values of all benchmarks are corrected together, with one more for the mean of several benchmarks. `harness
verify` makes one test for each published score, and corrects none.
"""

_PRINTED_UNIT = 0.001
"""Unit of the last digit of a published score that a plan assumes: one decimal of a per cent."""

_CONCURRENCY = 64
"""Number of requests in flight that a forecast assumes where the run does not record its number."""

_MANY_TIMES = 10
"""A plan calls a stored run large enough for a difference if a new run of this many times its samples finds it."""

LISTED_POINTS = (1.0, 2.0, 5.0, 10.0)
"""Differences in points for which `Planned.listed` holds the samples."""

Basis = Literal["run", "models on this benchmark", "models on all benchmarks"]
"""Whose spread a plan takes."""


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What two runs on one benchmark need to show a difference, and what a given number of samples shows.

    run: the folder that the plan is based on; empty if the plan is based on published runs
    (`harness.verbs.plan_typical`). basis: whose spread is taken: that of `run`, of models published on this benchmark,
    or on all benchmarks. accuracy: of that run, or of `TypicalSpread`. deviation: standard deviation of one sample
    around its question's chance of being right. Both are fractions. With a margin, "difference" means the margin in all
    that follows, and to find it means to show that an equally good model is not worse by so much or more.

    samples: number of samples of each question that the wanted difference needs; None if no
    difference is wanted, or if no number is enough. samples_range: the fewest and the most, for the accuracies and
    deviations that the samples of `run` leave possible (95 % intervals); None without a run.

    smallest_difference: the smallest true difference that `given_samples` of each question
    find in 80 % of repetitions, a fraction; above the largest difference that an accuracy can have from `accuracy`
    (`largest_possible`), they find none. difference_range: as samples_range.

    forecast: of one run of `samples` (of `given_samples`, if no difference is wanted), beyond the stored
    samples; None if no run tells. If the run is unfinished and its own plan has more samples, `forecast` is of all of
    these. second_forecast: of a second run of that size, from its beginning; None if the other
    run exists already. concurrency: number of requests in flight that both assume.

    n_clusters: number of the questions, or of their clusters if questions come in clusters
    (`effective_clusters`); None if no run shows it. least_on_new_questions: the least observed difference that the line
    "new questions" can ever call a difference, with any number of samples. least_questions: the fewest questions (in
    clusters of this size) with which that line can ever call the wanted difference a difference; if no difference is
    wanted, `smallest_difference`. Both are None if n_clusters is, and beside a published score, which is about the same
    questions only.

    samples_of_mean, smallest_difference_of_mean: `samples` and `smallest_difference` for the mean of all
    benchmarks that are planned together, with equally many samples of each; None for a single benchmark.
    """

    benchmark: str
    run: str
    n_questions: int
    accuracy: float
    deviation: float
    samples: int | None
    forecast: Forecast | None
    concurrency: int
    basis: Basis = "run"
    given_samples: int | None = None
    smallest_difference: float | None = None
    samples_range: tuple[int, int | None] | None = None
    difference_range: tuple[float, float] | None = None
    second_forecast: Forecast | None = None
    n_clusters: float | None = None
    least_on_new_questions: float | None = None
    least_questions: int | None = None
    samples_of_mean: int | None = None
    smallest_difference_of_mean: float | None = None

    def largest_possible(self, *, loss: bool) -> float:
        """The largest difference from `accuracy` that is possible, a fraction. loss: only of a worse model."""
        return self.accuracy if loss else most_possible(self.accuracy)


class OutOfReach(NamedTuple):
    """What to plan instead of a difference that no number of samples finds.

    least: the smallest difference that any number finds, a fraction. enough: the fewest stored samples of each question
    beside which `_MANY_TIMES` as many find the wanted difference; None if no number is enough, or none are stored.
    """

    least: float
    enough: int | None


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The plan of one benchmark, with what only the command prints.

    listed: difference in points → samples of each question that find it, None if no number does; empty if no number of
    samples was given. typical: the spread of published runs; None if a run shows it. wide: `smallest_difference` for a
    spread that only a quarter of the published models exceed. steady: `smallest_difference` if a worse model's samples
    vary no more than those of this one. beyond: None unless no number of samples finds the wanted difference.
    extending: the options of `harness run` with which the run gets the forecast samples; empty without a forecast.
    run_samples: of each question in the run's own plan; 0 without a run.
    """

    source: PlanSource
    needed: Needed
    listed: Mapping[float, int | None]
    typical: TypicalSpread | None
    wide: float | None
    steady: float | None
    beyond: OutOfReach | None = None
    extending: Mapping[str, Any] = field(default_factory=dict)
    run_samples: int = 0


class _Evidence(NamedTuple):
    """What is known of a benchmark before its comparison.

    spread: how its samples vary. n_clusters: as in `Needed`. ends: the spreads that the run leaves possible
    (`spreads_within`). folder, run: the scored run that shows the spread; None: published runs do, and `typical` is
    their spread.
    """

    source: PlanSource
    benchmark: str
    spread: SampleSpread
    n_clusters: float | None
    ends: Sequence[SampleSpread] = ()
    folder: RunFolder | None = None
    run: ScoredRun | None = None
    typical: TypicalSpread | None = None


def plan(sources: Sequence[PlanSource], options: PlanOptions) -> list[Planned]:
    """The plans for one comparison of two runs on all these benchmarks, in their order.

    A run is planned from its samples; a benchmark from its latest scored run in `results/` (`former_run`), or without a
    run from the spread of published runs. Raises `UsageError`, and `StoreError` for a run that is not scored.
    """
    bare = [source for source in sources if source.samples is None]
    if options.points is None and bare:
        raise UsageError(
            f"give the difference to find, as {option('detect', 2)}, or the loss to rule out, as "
            f"{option('margin', 2)}; or a number of samples behind the name, as in {visible(bare[0].name, 200)}:64"
        )
    benchmarks = [evidence for source in sources for evidence in _evidence_of(source, options)]
    _check_each_once(benchmarks)
    # Without a run the cost is unknown, whatever the prices.
    has_run = any(evidence.run is not None for evidence in benchmarks)
    prices = prices_of(options.price_in, options.price_out) if has_run else None
    n_tests = n_tests_of(options, len(benchmarks))
    plans = [_plan_benchmark(evidence, options, prices or _own_prices(evidence), n_tests) for evidence in benchmarks]
    if len(plans) < 2 or options.published_samples:
        return plans
    return [replace(planned, needed=_with_mean(planned.needed, benchmarks, options, n_tests)) for planned in plans]


def n_tests_of(options: PlanOptions, n_benchmarks: int) -> int:
    """Number of p values that the planned comparison of two runs corrects together."""
    if options.published_samples:
        return 1
    of_each = 1 if options.margin is not None else _TESTS
    return of_each * n_benchmarks + (n_benchmarks > 1)


def _check_each_once(benchmarks: Sequence[_Evidence]) -> None:
    """Raise `UsageError` if a benchmark is given twice, such as by runs of two models: it would be corrected for twice
    and count twice in the mean.
    """
    first: dict[str, PlanSource] = {}
    for evidence in benchmarks:
        before = first.setdefault(evidence.benchmark, evidence.source)
        if before is not evidence.source:
            raise UsageError(
                f"{visible(evidence.benchmark, 80)} is given twice, as {visible(before.in_a_command, 200)} and as "
                f"{visible(evidence.source.in_a_command, 200)}: a plan is for one comparison, which has each benchmark "
                "once. Leave out one of the two; for a second plan, type a second command"
            )


def _evidence_of(source: PlanSource, options: PlanOptions) -> Iterator[_Evidence]:
    """What is known of each benchmark of `source`."""
    accuracy = None if options.accuracy is None else options.accuracy / 100
    n_questions, only = source.n_questions, None if source.of_run else source.benchmark
    folder = open_scored(source.name) if only is None else None
    # Where only a number of samples is asked about, a run that shows no spread is no reason to refuse.
    with contextlib.suppress(*(() if options.points is not None else (StoreError, UsageError))):
        # An accuracy that is given goes before that of a former run, which may be another model's.
        if only is not None and accuracy is None:
            folder = former_run(only, RESULTS, source.name if n_questions else "")
    if folder is None:
        typical = (
            typical_spread_of_questions(n_questions, accuracy) if n_questions else typical_spread(source.name, accuracy)
        )
        n_clusters = None if typical.in_clusters else float(typical.n_questions)
        yield _Evidence(source, source.benchmark, typical.spread(typical.variance), n_clusters, typical=typical)
        return
    if options.accuracy is not None:
        raise UsageError(
            f"the plan takes accuracy and spread from {visible(str(folder.path), 200)}: leave this option out",
            field="accuracy",
        )
    (run,) = read_runs([folder])
    for benchmark in run.benchmarks.values():
        if only in (None, benchmark.name):
            spread, ends = spread_of(run, benchmark, folder)
            clusters = cluster_numbers([item.cluster for item in counted_questions(run, benchmark) if item.n])
            yield _Evidence(
                source, benchmark.name, spread, effective_clusters(np.bincount(clusters)), ends, folder, run
            )


def spread_of(
    run: ScoredRun, benchmark: ScoredBenchmark, folder: RunFolder
) -> tuple[SampleSpread, Sequence[SampleSpread]]:
    """The spread that a scored run shows, and those that it leaves possible.

    Raises `UsageError` if the run has one sample of each question.
    """
    items = [item for item in counted_questions(run, benchmark) if item.n]
    repeated = [item.n for item in items if item.n > 1]
    if not repeated:
        raise UsageError(no_spread(folder, run.stored_name(benchmark)))
    estimate = accuracy(items)
    spread = SampleSpread(len(items), estimate.value, estimate.single, estimate.trials)
    samples = len(repeated) / math.fsum(1 / n for n in repeated)
    interval = estimate.intervals.sampling_interval
    return spread, () if interval is None else spreads_within(spread, samples, interval)


def _plan_benchmark(evidence: _Evidence, options: PlanOptions, prices: Prices | None, n_tests: int) -> Planned:
    """The plan of one benchmark.

    n_tests: p values that the comparison corrects together.
    """
    spread, ends, typical, given = evidence.spread, evidence.ends, evidence.typical, evidence.source.samples
    unit = _PRINTED_UNIT if options.published_samples else 0.0

    def smallest(of: SampleSpread, *, growth: bool = True) -> float | None:
        """The smallest difference of the given samples; None if no number is given."""
        if given is None:
            return None
        expected = _ahead(of, given, options, unit)
        if isinstance(expected, Detection) and not growth:
            expected = expected._replace(growth=np.asarray(0.0))
        return expected.smallest(n_tests)

    def samples(of: SampleSpread, points: float | None) -> int | None:
        """The samples that a difference needs; None without one, and where no number is enough."""
        if points is None:
            return None
        return fewest(lambda n: _ahead(of, n, options, unit), points / 100, n_tests)

    _check_possible(spread.mean, options)
    smallest_given = smallest(spread)
    difference = smallest_given if options.points is None else options.points / 100
    needed = Needed(
        benchmark=evidence.benchmark,
        run="" if evidence.folder is None else str(evidence.folder.source),
        basis=_basis(typical),
        n_questions=spread.n_questions,
        accuracy=spread.mean,
        deviation=_single_variance(spread) ** 0.5,
        samples=samples(spread, options.points),
        forecast=None,
        concurrency=_CONCURRENCY,
        given_samples=given,
        smallest_difference=smallest_given,
        n_clusters=evidence.n_clusters,
    )
    # A published score and a margin are about the same questions only.
    if evidence.n_clusters is not None and not options.published_samples and options.margin is None:
        least = least_questions(difference or 1.0) * spread.n_questions / evidence.n_clusters
        needed = replace(
            needed,
            least_on_new_questions=least_question_difference(evidence.n_clusters),
            least_questions=math.ceil(least),
        )
    if ends and needed.samples is not None:
        numbers = [samples(end, options.points) for end in ends]
        most = None if None in numbers else max(n or 0 for n in (*numbers, needed.samples))
        fewest_samples = min(n for n in (*numbers, needed.samples) if n is not None)
        needed = replace(needed, samples_range=(fewest_samples, most))
    if ends and needed.smallest_difference is not None:
        values = [needed.smallest_difference, *(smallest(end) or 0.0 for end in ends)]
        needed = replace(needed, difference_range=(min(values), max(values)))
    size = given if options.points is None else needed.samples
    needed = _with_forecasts(needed, evidence, size, options, prices)
    return Planned(
        source=evidence.source,
        needed=needed,
        listed={} if given is None else {points: samples(spread, points) for points in LISTED_POINTS},
        typical=typical,
        wide=None if typical is None else smallest(typical.spread(typical.wide)),
        steady=smallest(spread, growth=False),
        beyond=_out_of_reach(spread, options, n_tests, unit) if needed.samples is None else None,
        extending=_extending(evidence, size, prices) if needed.forecast is not None and size is not None else {},
        run_samples=evidence.run.benchmarks[evidence.benchmark].record.plan.samples if evidence.run else 0,
    )


def _own_prices(evidence: _Evidence) -> Prices | None:
    """The prices that the run of a benchmark was given; None without."""
    run = evidence.run
    return None if run is None else recorded_prices(run.benchmarks[evidence.benchmark].record)


def _extending(evidence: _Evidence, samples: int, prices: Prices | None) -> Mapping[str, Any]:
    """The options of `harness run` that extend the run to so many samples of each question of the benchmark; to those
    of the run's own plan, if that has more.
    """
    assert evidence.folder is not None
    assert evidence.run is not None
    manifest, benchmark = evidence.run.manifest, evidence.run.benchmarks[evidence.benchmark]
    stored = evidence.run.stored_name(benchmark)
    samples = max(samples, benchmark.record.plan.samples)
    (options,) = options_again(msgspec.structs.replace(manifest, benchmarks={stored: benchmark.record}))
    if "benchmarks" in options:
        options["benchmarks"] = [f"{name.rpartition(':')[0]}:{samples}" for name in options["benchmarks"]]
    else:
        options["samples"] = samples
    folder = evidence.source.name if evidence.source.of_run else str(evidence.folder.source)
    cost = {} if prices is None else {"price_in": f"{prices.prompt:g}", "price_out": f"{prices.completion:g}"}
    return {**options, **pace_again(benchmark.record), "out": folder, **cost}


def _out_of_reach(spread: SampleSpread, options: PlanOptions, n_tests: int, unit: float) -> OutOfReach | None:
    """What to plan instead of a wanted difference that no number of samples finds; None without a wanted difference.

    n_tests, unit: as in `samples_to_detect`.
    """
    if options.points is None:
        return None
    limit = _ahead(spread, MAX_PLANNED, options, unit)

    def beside_many(n: int) -> Detection | MarginReach:
        if options.margin is not None:
            return margin_reach(spread, _MANY_TIMES * n, n)
        return planned_detection(spread, _MANY_TIMES * n, n, unit)

    if options.stored_samples is None:
        return OutOfReach(limit.smallest(n_tests), None)
    return OutOfReach(limit.smallest(n_tests), fewest(beside_many, options.points / 100, n_tests))


def _ahead(spread: SampleSpread, samples: int, options: PlanOptions, unit: float) -> Detection | MarginReach:
    """What to expect of a comparison of so many samples a question. unit: as in `planned_detection`."""
    if options.margin is not None:
        return margin_reach(spread, samples, options.stored_samples)
    return planned_detection(spread, samples, options.stored_samples, unit)


def _check_possible(accuracy: float, options: PlanOptions) -> None:
    """Raise `UsageError` if no model can differ from this accuracy, a fraction, by the wanted difference."""
    most = 100 * most_possible(accuracy)
    if options.detect is not None and options.detect > most:
        raise UsageError(
            f"no accuracy differs by {options.detect:g} points from {in_percent(accuracy)} %, which the plan takes: "
            f"give at most {math.floor(10 * most) / 10:g}",
            field="detect",
        )


def _basis(typical: TypicalSpread | None) -> Basis:
    """Whose spread a plan takes, by the published spread; None: a run's."""
    if typical is None:
        return "run"
    return "models on all benchmarks" if typical.of_all else "models on this benchmark"


def _single_variance(spread: SampleSpread) -> float:
    """The variance of one sample, smoothed if it was estimated from few of them."""
    if math.isinf(spread.total):
        return spread.variance
    mean, total = np.asarray(spread.mean), np.asarray(spread.total)
    return float(smoothed_variance(mean, spread.variance / total, total))


def _with_forecasts(
    needed: Needed, evidence: _Evidence, size: int | None, options: PlanOptions, prices: Prices | None
) -> Needed:
    """The plan with the forecasts of two runs of `size` samples of each question: to extend the run, and a new one.

    Without a size there is no run to forecast; another tool's outputs hold no times.
    """
    if evidence.folder is None or evidence.run is None:
        return needed
    benchmark = evidence.run.benchmarks[evidence.benchmark]
    recorded = benchmark.record.settings.get("concurrency")
    concurrency = recorded if isinstance(recorded, int) and recorded > 0 else _CONCURRENCY
    needed = replace(needed, concurrency=concurrency)
    if size is None or benchmark.record.imported:
        return needed
    name = evidence.benchmark
    stored = [sample for sample in read_samples(evidence.folder.benchmark(name)) if sample.benchmark == name]
    planned = {name: (len(benchmark.questions), size)}
    second = None
    if options.stored_samples is None:
        second = forecast(stored, planned, concurrency, prices, same_run=False)
    ahead = forecast(stored, planned, concurrency, prices)
    own = benchmark.record.plan.samples
    if ahead.n_samples and own > size:  # An unfinished run is completed: a smaller plan would drop samples of it.
        ahead = forecast(stored, {name: (len(benchmark.questions), own)}, concurrency, prices)
    return replace(needed, forecast=ahead, second_forecast=second)


def _with_mean(needed: Needed, benchmarks: Sequence[_Evidence], options: PlanOptions, n_tests: int) -> Needed:
    """The plan with what the mean of all benchmarks needs and shows."""

    def of_mean(numbers: Sequence[int]) -> Detection | MarginReach:
        """What is to be expected of the mean, by the samples of each question of each benchmark."""
        each = list(zip((evidence.spread for evidence in benchmarks), numbers, strict=True))
        if options.margin is not None:
            return mean_reach([margin_reach(spread, n, options.other_samples) for spread, n in each])
        return mean_detection([planned_detection(spread, n, options.other_samples) for spread, n in each])

    smallest = samples = None
    numbers = [evidence.source.samples for evidence in benchmarks if evidence.source.samples is not None]
    if len(numbers) == len(benchmarks):
        smallest = of_mean(numbers).smallest(n_tests)
    if options.points is not None:
        samples = fewest(lambda n: of_mean([n] * len(benchmarks)), options.points / 100, n_tests)
    return replace(needed, samples_of_mean=samples, smallest_difference_of_mean=smallest)


def prices_of(price_in: float | None, price_out: float | None) -> Prices | None:
    """The prices in USD per million tokens of prompts and of replies; None if neither is given.

    Raises `UsageError` if only one of them is given.
    """
    if (price_in is None) != (price_out is None):
        raise UsageError(
            f"{option('price_in')} and {option('price_out')} must be given together: prompts and replies are both "
            f"billed"
        )
    return None if price_in is None or price_out is None else Prices(price_in, price_out)
