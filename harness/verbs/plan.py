"""Answers how many samples, tokens, hours and dollars a comparison needs, from a pilot or an earlier run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.asking.options import PlanOptions
from harness.core.errors import StoreError, UsageError, option
from harness.core.inert import visible
from harness.generation.forecast import Forecast, forecast
from harness.generation.spending import Prices
from harness.reports.scored import read_runs
from harness.runs import RunFolder, read_samples
from harness.scoring import score_file
from harness.scoring.differences import samples_to_detect, smoothed_variance
from harness.scoring.uncertainty import accuracy
from harness.verbs.compare import scored

_LINES = 2
"""p values of a comparison of two runs that are corrected together: one for the same questions, one for new questions.
"""

_CONCURRENCY = 64
"""Requests in flight that a forecast assumes where the run does not record its number."""


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What one benchmark needs.

    run: the folder that the plan is based on. accuracy: of that run. deviation: standard deviation of one sample around
    its question's chance of being right; both are fractions. samples: needed of each question; None where no number is
    enough. forecast: of one run of that size, beyond the stored samples; None if samples is None. concurrency: requests
    in flight that the forecast assumes.
    """

    benchmark: str
    run: str
    n_questions: int
    accuracy: float
    deviation: float
    samples: int | None
    forecast: Forecast | None
    concurrency: int


def former_run(benchmark: str, results: Path) -> RunFolder | None:
    """The run in the folder `results` with the latest scores of this benchmark, among runs with two samples of each
    question.

    None if no run has this benchmark. Raises `StoreError` where a run of it exists but none is scored, `UsageError`
    where every scored run has one sample of each question.
    """
    folders = [RunFolder(path.parent) for path in sorted(results.glob("*/manifest.json"))]
    of_it = [folder for folder in folders if folder.benchmark(benchmark).path.is_dir()]
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
    """USD per million tokens of prompts and of replies; None if neither is given.

    Raises `UsageError` if one is missing.
    """
    if (price_in is None) != (price_out is None):
        raise UsageError(
            f"{option('price_in')} and {option('price_out')} must be given together: prompts and replies are both "
            f"billed"
        )
    return None if price_in is None or price_out is None else Prices(price_in, price_out)


def plan_from(source: Path, options: PlanOptions) -> list[Needed]:
    """Plan from a run folder; or from a benchmark's name: then from the run in `results` that `former_run` finds."""
    detect, prices = options.detect / 100, prices_of(options.price_in, options.price_out)
    if source.exists() or len(source.parts) != 1:
        return plan(RunFolder.open(source), detect, options.other_samples, prices)
    folder = former_run(str(source), Path("results"))
    if folder is None:
        name = visible(str(source), 80)
        raise UsageError(
            f"{name} is no run folder, and results/ holds no run of a benchmark of that name. Take two samples of each "
            f"question and score them: harness run {name}:2 … && harness score results/…"
        )
    return plan(folder, detect, options.other_samples, prices, str(source))


def plan(
    folder: RunFolder,
    detect: float,
    other_samples: int | None = None,
    prices: Prices | None = None,
    benchmark: str | None = None,
) -> list[Needed]:
    """By benchmark of a scored run: the samples that show a true difference of `detect`, a fraction, four times in
    five.

    other_samples: samples of each question in the run to compare with; None = as many as in this run. benchmark: the
    only benchmark to plan; None = all of the run. Raises `UsageError`, and `StoreError` where the run is not scored.
    """
    (run,) = read_runs([folder])
    plans = []
    for benchmark_run in run.benchmarks.values():
        if benchmark not in (None, benchmark_run.name):
            continue
        items = [item for item in scored(run, benchmark_run) if item.n]
        if not items or all(item.n == 1 for item in items):
            raise UsageError(
                f"{visible(benchmark_run.name, 80)} of {folder.path} has {_no_spread(visible(benchmark_run.name, 80))}"
            )
        estimate = accuracy(items)
        variance = float(
            smoothed_variance(*(np.asarray(x) for x in (estimate.value, estimate.variance, estimate.trials)))
        )
        samples = samples_to_detect(variance, len(items), detect, other_samples, _LINES)
        concurrency = int(benchmark_run.record.settings.get("concurrency") or _CONCURRENCY)
        stored = read_samples(folder.benchmark(benchmark_run.name))
        ahead = None
        if samples is not None:
            planned = {benchmark_run.name: (len(benchmark_run.questions), samples)}
            ahead = forecast((s for s in stored if s.benchmark == benchmark_run.name), planned, concurrency, prices)
        plans.append(
            Needed(
                benchmark=benchmark_run.name,
                run=str(folder.path),
                n_questions=len(items),
                accuracy=estimate.value,
                deviation=variance**0.5,
                samples=samples,
                forecast=ahead,
                concurrency=concurrency,
            )
        )
    return plans


def _no_spread(name: str) -> str:
    return (
        f"one sample of each question, which shows no spread. Take two and score them: harness run {name}:2 … && "
        f"harness score results/…"
    )
