"""Answers how many samples, tokens, hours and dollars a comparison needs, from a pilot, an earlier run, or published
runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.asking.options import PlanOptions
from harness.benchmarks import catalogue
from harness.core.errors import StoreError, UsageError, option
from harness.core.inert import visible
from harness.core.limits import MAX_SAMPLES
from harness.generation.forecast import Forecast, forecast
from harness.generation.spending import Prices
from harness.reports.scored import ScoredBenchmark, ScoredRun, read_runs
from harness.runs import RunFolder, read_samples
from harness.scoring import score_file
from harness.scoring.differences import samples_to_detect, smallest_difference, smoothed_variance
from harness.scoring.uncertainty import Estimate, accuracy
from harness.verbs.compare import scored
from harness.verbs.plan_typical import TypicalSpread, typical_spread

_CORRECTED_TOGETHER = 2
"""Number of p values of a comparison of two runs that are corrected together: one for the same questions, one for new
questions.
"""

_CONCURRENCY = 64
"""Number of requests in flight that a forecast assumes where the run does not record its number."""


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What a run on one benchmark needs to show the wanted difference.

    run: the folder that the plan is based on; empty if it is based on published runs (`harness.verbs.plan_typical`).
    accuracy: of that run or those runs. deviation: standard deviation of one sample around its question's chance of
    being right; both are fractions. samples: number needed of each question; None if no number is enough. forecast: of
    one run with that many samples, beyond the stored ones; None if `samples` is None or the plan is based on published
    runs. concurrency: requests in flight that the forecast assumes.
    """

    benchmark: str
    run: str
    n_questions: int
    accuracy: float
    deviation: float
    samples: int | None
    forecast: Forecast | None
    concurrency: int


@dataclass(frozen=True, kw_only=True)
class Detectable:
    """The smallest difference that a number of samples of each question finds.

    run: the folder from which the spread of the samples is taken; None: it is taken from `typical`. difference: the
    smallest true difference, a fraction, that is found in 80 % of repetitions. wide: the same for a spread that only a
    quarter of the published models exceed; None if `run` is given. needed: difference in points → samples of each
    question that find it; None if no number does.
    """

    benchmark: str
    samples: int
    n_questions: int
    difference: float
    wide: float | None
    needed: Mapping[float, int | None]
    run: str | None
    typical: TypicalSpread | None


LISTED_POINTS = (1.0, 2.0, 5.0, 10.0)
"""Differences in points for which `Detectable.needed` lists the samples."""


def numbered(source: Path) -> tuple[str, int] | None:
    """Split the argument `aime24:64` or `results/mine:64` into name and number; None where it has no number.

    Raises `UsageError` for two numbers, as in `aime24:64:2`.
    """
    name, colon, number = str(source).rpartition(":")
    if source.exists() or not (name and colon and number.isdecimal()):
        return None
    two_numbers = name.rpartition(":")[2].isdecimal() and ":" in name and not Path(name).exists()
    if two_numbers or not 1 <= int(number) <= MAX_SAMPLES:
        raise UsageError(
            f"{visible(str(source), 80)}: expected a benchmark or a run, and one number of samples from 1 to "
            f"{MAX_SAMPLES}, as in aime24:64"
        )
    return name, int(number)


def check_source(source: str) -> None:
    """Raise `UsageError` if `source` is neither a path nor a benchmark that has a card or a run in `results`."""
    if Path(source).exists() or len(Path(source).parts) != 1:
        return
    if not _runs_of(source, Path("results")):
        catalogue.load(source)


def _runs_of(benchmark: str, results: Path) -> list[RunFolder]:
    """The runs of this benchmark in the folder `results`."""
    folders = [RunFolder(path.parent) for path in sorted(results.glob("*/manifest.json"))]
    return [folder for folder in folders if folder.benchmark(benchmark).path.is_dir()]


def detectable(source: str, samples: int, other_samples: int | None = None) -> list[Detectable]:
    """For each benchmark, the smallest difference that a comparison of two runs can find.

    source: where the spread of the samples comes from: the folder of a scored run, or the name of a benchmark. For a
    benchmark, its latest scored run in `results` is used; without such a run, the published runs are. samples: of each
    question in one run. other_samples: of each question in the other run; None: as many. Raises `UsageError`, and
    `StoreError` if the run is not scored.
    """
    if Path(source).exists() or len(Path(source).parts) != 1:
        folder = RunFolder.open(Path(source))
        (run,) = read_runs([folder])
        return [_detectable(name, samples, other_samples, folder, run) for name in run.benchmarks]
    former = None
    with contextlib.suppress(StoreError, UsageError):
        former = former_run(source, Path("results"))
    return [_detectable(source, samples, other_samples, former, None if former is None else read_runs([former])[0])]


def _detectable(
    benchmark: str, samples: int, other_samples: int | None, folder: RunFolder | None, run: ScoredRun | None
) -> Detectable:
    """What `samples` of each question of one benchmark find, by the spread of `run` (None: of published runs).

    folder: the folder of `run`.
    """
    typical = wide = None
    if folder is not None and run is not None:
        measured = spread_of(run, run.benchmarks[benchmark], folder)
        variance, n_questions = measured.variance, measured.n_questions
    else:
        typical = typical_spread(benchmark)
        variance, n_questions = typical.variance, typical.n_questions

    def smallest(of_one: float) -> float:
        both = of_one / n_questions * (1 / samples + 1 / (other_samples or samples))
        return float(smallest_difference(np.asarray(both), n_tests=_CORRECTED_TOGETHER))

    if typical is not None:
        wide = smallest(typical.wide)
    needed = {
        points: samples_to_detect(variance, n_questions, points / 100, other_samples, _CORRECTED_TOGETHER)
        for points in LISTED_POINTS
    }
    return Detectable(
        benchmark=benchmark, samples=samples, n_questions=n_questions, difference=smallest(variance), wide=wide,
        needed=needed, run=None if folder is None else str(folder.path), typical=typical,
    )  # fmt: skip


def former_run(benchmark: str, results: Path) -> RunFolder | None:
    """The run in the folder `results` with the latest scores of this benchmark, among runs whose score has a sampling
    error (they have several samples of a question).

    None if no run has this benchmark. Raises `StoreError` if runs of it exist but none is scored, `UsageError` if every
    scored run has one sample of each question.
    """
    of_it = _runs_of(benchmark, results)
    with_scores = [folder for folder in of_it if folder.benchmark(benchmark).scores.is_file()]
    latest = sorted(with_scores, key=lambda folder: folder.benchmark(benchmark).scores.stat().st_mtime, reverse=True)
    for folder in latest:
        score = score_file.read(folder.benchmark(benchmark))
        if score is not None and score.sampling_error is not None:
            return folder
    name = visible(benchmark, 80)
    if latest:
        raise UsageError(f"every scored run of {name} in {results} has {_no_spread(name)}")
    if of_it:
        raise StoreError(f"{of_it[0].path} is a run of {name} but is not scored: run harness score {of_it[0].path}")
    return None


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


def plan_from(source: Path, options: PlanOptions) -> list[Needed]:
    """The plan for `source`, a run folder or the name of a benchmark.

    A run folder is planned from its samples; a benchmark from its latest scored run in `results/` (see `former_run`),
    or without a run from the spread of published runs. Raises `UsageError`, and `StoreError` if no run is scored.
    """
    detect, prices = options.detect / 100, prices_of(options.price_in, options.price_out)
    if source.exists() or len(source.parts) != 1:
        return plan(RunFolder.open(source), detect, options.other_samples, prices)
    folder = former_run(str(source), Path("results"))
    if folder is None:
        return [_typical_plan(str(source), detect, options.other_samples)]
    return plan(folder, detect, options.other_samples, prices, str(source))


def _typical_plan(name: str, detect: float, other_samples: int | None) -> Needed:
    """The plan of a benchmark that no run here has, without a forecast. Raises `UsageError` if no card has this name.

    detect: the difference to find, a fraction. other_samples: samples of each question in the other run; None: as many.
    """
    typical = typical_spread(name)
    return Needed(
        benchmark=name,
        run="",
        n_questions=typical.n_questions,
        accuracy=typical.accuracy,
        deviation=typical.variance**0.5,
        samples=samples_to_detect(typical.variance, typical.n_questions, detect, other_samples, _CORRECTED_TOGETHER),
        forecast=None,
        concurrency=_CONCURRENCY,
    )


class _Spread(NamedTuple):
    """How much the samples of a run vary.

    variance: of one sample around its question's chance of being right, mean over questions. estimate: the accuracy.
    """

    n_questions: int
    variance: float
    estimate: Estimate


def spread_of(run: ScoredRun, benchmark: ScoredBenchmark, folder: RunFolder) -> _Spread:
    """The spread that a scored run shows. Raises `UsageError` if it has one sample of each question."""
    items = [item for item in scored(run, benchmark) if item.n]
    if not items or all(item.n == 1 for item in items):
        raise UsageError(
            f"{visible(benchmark.name, 80)} of {folder.path} has {_no_spread(visible(benchmark.name, 80))}"
        )
    estimate = accuracy(items)
    mean, variance_of_mean, trials = map(np.asarray, (estimate.value, estimate.variance, estimate.trials))
    variance = smoothed_variance(mean, variance_of_mean, trials)
    return _Spread(len(items), float(variance), estimate)


def plan(
    folder: RunFolder,
    detect: float,
    other_samples: int | None = None,
    prices: Prices | None = None,
    benchmark: str | None = None,
) -> list[Needed]:
    """For each benchmark of a scored run: how many samples find a true difference of `detect`, a fraction, in 80 % of
    repetitions.

    other_samples: samples of each question in the run to compare with; None: as many as in this run. benchmark: the
    only benchmark to plan; None: all of the run. Raises `UsageError`, and `StoreError` if the run is not scored.
    """
    (run,) = read_runs([folder])
    plans = []
    for benchmark_run in run.benchmarks.values():
        if benchmark not in (None, benchmark_run.name):
            continue
        n_questions, variance, estimate = spread_of(run, benchmark_run, folder)
        samples = samples_to_detect(variance, n_questions, detect, other_samples, _CORRECTED_TOGETHER)
        concurrency = int(benchmark_run.record.settings.get("concurrency") or _CONCURRENCY)
        stored = read_samples(folder.benchmark(benchmark_run.name))
        # If no number of samples is enough, there is no run to forecast.
        ahead = None
        if samples is not None:
            planned = {benchmark_run.name: (len(benchmark_run.questions), samples)}
            ahead = forecast((s for s in stored if s.benchmark == benchmark_run.name), planned, concurrency, prices)
        plans.append(
            Needed(
                benchmark=benchmark_run.name,
                run=str(folder.path),
                n_questions=n_questions,
                accuracy=estimate.value,
                deviation=variance**0.5,
                samples=samples,
                forecast=ahead,
                concurrency=concurrency,
            )
        )
    return plans


def _no_spread(name: str) -> str:
    """The end of an error about a run that has one sample of each question, with what to do."""
    return (
        f"one sample of each question, which shows no spread. Take two and score them: harness run {name}:2 … && "
        f"harness score results/…"
    )
