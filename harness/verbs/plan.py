"""Answers how many samples, tokens, hours and dollars a comparison needs, from a pilot, an earlier run, or published
runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from harness.asking.options import PlanOptions
from harness.benchmarks import catalogue
from harness.core.errors import StoreError, UsageError, option
from harness.core.inert import visible
from harness.core.limits import MAX_SAMPLES
from harness.generation.forecast import Forecast, forecast
from harness.generation.spending import Prices
from harness.reports.scored import ScoredBenchmark, ScoredRun, read_runs
from harness.runs import Manifest, RunFolder, read_samples
from harness.scoring import score_file
from harness.scoring.differences import samples_to_detect, smallest_difference, smoothed_variance
from harness.scoring.uncertainty import Estimate, accuracy
from harness.verbs.compare import scored
from harness.verbs.outputs import open_scored
from harness.verbs.plan_typical import TypicalSpread, typical_spread

_TESTS = 2
"""Number of p values that `harness compare` makes for each benchmark: one for the same questions and one for new ones.
It corrects those of all benchmarks together.
"""


_CONCURRENCY = 64
"""Number of requests in flight that a forecast assumes where the run does not record its number."""


Basis = Literal["run", "models on this benchmark", "models on all benchmarks"]
"""Whose spread a plan takes."""


@dataclass(frozen=True, kw_only=True)
class PlanSource:
    """What to plan. name: of a benchmark, or the path of its card, of a scored run or of another tool's scored outputs.
    samples: of each question, if their smallest difference is asked for.
    """

    name: str
    samples: int | None = None

    @property
    def of_card(self) -> bool:
        """Whether `name` is a benchmark's, or the path of a card, and no run's."""
        path = Path(self.name)
        if path.suffix in catalogue.CARD_SUFFIXES and path.is_file():
            return True
        return not path.exists() and len(path.parts) == 1


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What a run on one benchmark needs to show the wanted difference.

    run: the folder that the plan is based on; empty if it is based on published runs (`harness.verbs.plan_typical`).
    basis: whose spread is taken: that of `run`, of models published on this benchmark, or on all benchmarks. accuracy:
    of that run, or of `TypicalSpread`. deviation: standard deviation of one sample around its question's chance of
    being right; both are fractions. samples: needed of each question; None where no number is enough. forecast: of one
    run of that size, beyond the stored samples; None if samples is None or no run tells. concurrency: requests in
    flight that the forecast assumes. given_samples, smallest_difference: where a number of samples was given, the
    smallest true difference that so many samples of each question find in 80 % of repetitions, a fraction.
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


def sources_of(arguments: Sequence[str]) -> list[PlanSource]:
    """What the arguments name, such as `aime24:64`, `results/mine` or `aime24:64,math500`.

    Raises `UsageError` for a name that is no benchmark's and no path, and for a number of samples that is none.
    """
    # As in `harness run`, commas stand between benchmarks; a path may have them, too.
    words = [
        word.strip()
        for argument in arguments
        for word in ([argument] if Path(argument).exists() else argument.split(","))
    ]
    return [_source_of(word) for word in words if word]


def _source_of(word: str) -> PlanSource:
    """The source that one word names. Raises `UsageError`."""
    name, colon, number = word.rpartition(":")
    source = PlanSource(name=word)
    if colon and name and not Path(word).exists():
        names_one = Path(name).exists() or catalogue.knows(name) or number.isdecimal()
        two_numbers = name.rpartition(":")[2].isdecimal() and ":" in name and not Path(name).exists()
        if names_one and (two_numbers or not number.isdecimal() or not 1 <= int(number) <= MAX_SAMPLES):
            raise UsageError(
                f"{visible(word, 80)}: expected a benchmark or a run, and one number of samples from 1 to "
                f"{MAX_SAMPLES}, as in aime24:64"
            )
        if names_one:
            source = PlanSource(name=name, samples=int(number))
    if source.of_card and not _runs_of(source.name, Path("results")):
        catalogue.load(source.name)
    return source


def n_benchmarks(sources: Sequence[PlanSource]) -> int:
    """How many benchmarks the sources have together. Raises `StoreError` for a path that is no scored run."""
    return sum(1 if source.of_card else len(Manifest.load(open_scored(source.name)).benchmarks) for source in sources)


def _runs_of(benchmark: str, results: Path) -> list[RunFolder]:
    """The runs of this benchmark in the folder `results`."""
    folders = [RunFolder(path.parent) for path in sorted(results.glob("*/manifest.json"))]
    return [folder for folder in folders if folder.benchmark(benchmark).path.is_dir()]


def detectable(source: PlanSource, options: PlanOptions, n_together: int = 1) -> list[Detectable]:
    """How small a difference two runs can find, by benchmark: one with `source.samples` of each question, and another
    one.

    n_together: benchmarks that are compared together. The spread is that of the run that `source` names. Of a benchmark
    it is that of its latest scored run in `results`, else of the published runs. Raises `UsageError`, and `StoreError`
    where the run is not scored.
    """
    if not source.of_card:
        folder = open_scored(source.name)
        (run,) = read_runs([folder])
        return [_detectable(name, source, options, n_together, folder, run) for name in run.benchmarks]
    former = None
    with contextlib.suppress(StoreError, UsageError):
        former = former_run(_card_name(source), Path("results"))
    former_scored = None if former is None else read_runs([former])[0]
    return [_detectable(_card_name(source), source, options, n_together, former, former_scored)]


def _card_name(source: PlanSource) -> str:
    """The name of the benchmark that `source` names, or of the card at its path."""
    return catalogue.load(source.name).name if Path(source.name).suffix in catalogue.CARD_SUFFIXES else source.name


def _detectable(
    benchmark: str,
    source: PlanSource,
    options: PlanOptions,
    n_together: int,
    folder: RunFolder | None,
    run: ScoredRun | None,
) -> Detectable:
    """What `source.samples` of each question of one benchmark find.

    folder, run: the scored run whose spread is taken; None: the published runs.
    """
    typical = wide = None
    if folder is not None and run is not None:
        _refuse_accuracy(options, folder)
        measured = spread_of(run, run.benchmarks[benchmark], folder)
        variance, n_questions = measured.variance, measured.n_questions
    else:
        typical = typical_spread(source.name, _fraction(options.accuracy))
        variance, n_questions = typical.variance, typical.n_questions
    samples, other_samples, n_tests = source.samples or 1, options.other_samples, _TESTS * n_together
    if typical is not None:
        wide = _smallest(typical.wide, n_questions, samples, other_samples, n_tests)
    needed = {
        points: samples_to_detect(variance, n_questions, points / 100, other_samples, n_tests)
        for points in LISTED_POINTS
    }
    return Detectable(
        benchmark=benchmark,
        samples=samples,
        n_questions=n_questions,
        difference=_smallest(variance, n_questions, samples, other_samples, n_tests),
        wide=wide,
        needed=needed,
        run=None if folder is None else str(folder.path),
        typical=typical,
    )


def _smallest(variance: float, n_questions: int, samples: int, other_samples: int | None, n_tests: int) -> float:
    """The smallest true difference, a fraction, that two runs find in 80 % of repetitions.

    variance: of one sample. samples, other_samples: of each question in the two runs; None: as many.
    """
    both = variance / n_questions * (1 / samples + 1 / (other_samples or samples))
    return float(smallest_difference(np.asarray(both), n_tests=n_tests))


def _fraction(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _refuse_accuracy(options: PlanOptions, folder: RunFolder) -> None:
    """Raise `UsageError` if an accuracy is given although a run shows it."""
    if options.accuracy is not None:
        raise UsageError(
            f"the plan takes accuracy and spread from {visible(str(folder.path), 200)}: leave this option out",
            field="accuracy",
        )


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


def plan_from(source: PlanSource, options: PlanOptions, n_together: int | None = None) -> list[Needed]:
    """The plan for `source`. A run is planned from its samples; a benchmark from its latest scored run in `results/`
    (`former_run`), or without a run from the spread of published runs.

    n_together: benchmarks that are compared together; None: those of this source.
    """
    prices = prices_of(options.price_in, options.price_out)
    n_tests = _TESTS * (n_benchmarks([source]) if n_together is None else n_together)
    only = _card_name(source) if source.of_card else None
    folder = open_scored(source.name) if only is None else former_run(only, Path("results"))
    if folder is None:
        return [_typical_plan(source, only or source.name, options, n_tests)]
    _refuse_accuracy(options, folder)
    return plan(folder, options, prices, only, n_tests, source.samples)


def _typical_plan(source: PlanSource, name: str, options: PlanOptions, n_tests: int) -> Needed:
    """The plan of a benchmark that no run here has, without a forecast. Raises `UsageError` if it has no card."""
    typical = typical_spread(source.name, _fraction(options.accuracy))
    variance, n_questions, n_other = typical.variance, typical.n_questions, options.other_samples
    return Needed(
        benchmark=name,
        run="",
        basis="models on all benchmarks" if typical.of_all else "models on this benchmark",
        n_questions=n_questions,
        accuracy=typical.accuracy,
        deviation=variance**0.5,
        samples=samples_to_detect(variance, n_questions, options.detect / 100, n_other, n_tests),
        forecast=None,
        concurrency=_CONCURRENCY,
        given_samples=source.samples,
        smallest_difference=source.samples and _smallest(variance, n_questions, source.samples, n_other, n_tests),
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
    options: PlanOptions,
    prices: Prices | None = None,
    benchmark: str | None = None,
    n_tests: int = _TESTS,
    given_samples: int | None = None,
) -> list[Needed]:
    """By benchmark of a scored run: the samples that show the true difference `options.detect` four times in five.

    benchmark: the only benchmark to plan; None = all of the run. n_tests: p values that the comparison corrects
    together. given_samples: as in `Needed`. Raises `UsageError`, and `StoreError` where the run is not scored.
    """
    (run,) = read_runs([folder])
    n_other = options.other_samples
    plans = []
    for benchmark_run in run.benchmarks.values():
        if benchmark not in (None, benchmark_run.name):
            continue
        n_questions, variance, estimate = spread_of(run, benchmark_run, folder)
        samples = samples_to_detect(variance, n_questions, options.detect / 100, n_other, n_tests)
        concurrency = int(benchmark_run.record.settings.get("concurrency") or _CONCURRENCY)
        # Without a number of samples that is enough, there is no larger run to forecast; another tool's outputs hold no
        # times.
        ahead = None
        if samples is not None and not benchmark_run.record.imported:
            stored = read_samples(folder.benchmark(benchmark_run.name))
            planned = {benchmark_run.name: (len(benchmark_run.questions), samples)}
            ahead = forecast((s for s in stored if s.benchmark == benchmark_run.name), planned, concurrency, prices)
        plans.append(
            Needed(
                benchmark=benchmark_run.name,
                run=str(folder.source),
                n_questions=n_questions,
                accuracy=estimate.value,
                deviation=variance**0.5,
                samples=samples,
                forecast=ahead,
                concurrency=concurrency,
                given_samples=given_samples,
                smallest_difference=given_samples and _smallest(variance, n_questions, given_samples, n_other, n_tests),
            )
        )
    return plans


def _no_spread(name: str) -> str:
    """The end of an error about a run that has one sample of each question, with what to do."""
    return (
        f"one sample of each question, which shows no spread. Take two and score them: harness run {name}:2 … && "
        f"harness score results/…"
    )
