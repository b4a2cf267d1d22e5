"""What a question that a run is to answer would take: samples, tokens, hours, money, from a pilot or a former run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.core.errors import StoreError, UsageError
from harness.core.inert import visible
from harness.core.wording import option
from harness.experiments.comparing import scored
from harness.generation.forecast import Forecast, forecast
from harness.generation.spending import Prices
from harness.reports.scored import read_runs
from harness.runs import RunFolder, read_samples
from harness.scoring.differences import smoothed_variance
from harness.scoring.planning import samples_to_detect
from harness.scoring.uncertainty import accuracy

_CONCURRENCY = 64
"""Requests in flight that a forecast supposes where the run does not say how many it had."""


@dataclass(frozen=True, kw_only=True)
class Needed:
    """For one benchmark. accuracy: of the run; deviation: of one sample around its question's chance; fractions.

    samples: of each question; None where no number will do. forecast: of one run of that many, beyond what is stored;
    None with samples. concurrency: requests in flight that it supposes.
    """

    benchmark: str
    n_questions: int
    accuracy: float
    deviation: float
    samples: int | None
    forecast: Forecast | None
    concurrency: int


def former_run(benchmark: str, results: Path) -> RunFolder | None:
    """The run in the folder `results` whose scores of this benchmark were written last; None where none is of it.

    Raises `StoreError` where a run of it is there and no scores are.
    """
    folders = [RunFolder(path.parent) for path in sorted(results.glob("*/manifest.json"))]
    with_scores = [folder for folder in folders if folder.benchmark(benchmark).scores.is_file()]
    if with_scores:
        return max(with_scores, key=lambda folder: folder.benchmark(benchmark).scores.stat().st_mtime)
    for folder in folders:
        if folder.benchmark(benchmark).path.is_dir():
            name = visible(benchmark, 80)
            raise StoreError(f"{folder.path} is a run of {name} without scores: harness score {folder.path}")
    return None


def plan(
    folder: RunFolder,
    detect: float,
    other_samples: int | None = None,
    prices: Prices | None = None,
    benchmark: str | None = None,
) -> list[Needed]:
    """By benchmark of a scored run: what finds a true difference of `detect`, a fraction, four times in five.

    other_samples: of each question in what this run is compared with; None = as many as in this run.
    benchmark: the only one that is planned; None = all of the run.
    Raises `UsageError`, and `StoreError` where the run is not scored.
    """
    if not 0 < detect < 1:
        raise UsageError("expected points above 0 and below 100", field="detect", value=100 * detect)
    (run,) = read_runs([folder])
    found = []
    for one in run.benchmarks.values():
        if benchmark not in (None, one.name):
            continue
        items = [item for item in scored(run, one) if item.n]
        if not items or all(item.n == 1 for item in items):
            raise UsageError(
                f"{visible(one.name, 80)} has one sample a question, which shows no spread: take a pilot of two, "
                f"{option('pilot')}"
            )
        estimate = accuracy(items)
        variance = float(
            smoothed_variance(*(np.asarray(x) for x in (estimate.value, estimate.variance, estimate.trials)))
        )
        samples = samples_to_detect(variance, len(items), detect, other_samples)
        concurrency = int(one.record.settings.get("concurrency") or _CONCURRENCY)
        stored = read_samples(folder.benchmark(one.name))
        ahead = None
        if samples is not None:
            planned = {one.name: (len(one.questions), samples)}
            ahead = forecast((s for s in stored if s.benchmark == one.name), planned, concurrency, prices)
        found.append(
            Needed(
                benchmark=one.name,
                n_questions=len(items),
                accuracy=estimate.value,
                deviation=variance**0.5,
                samples=samples,
                forecast=ahead,
                concurrency=concurrency,
            )
        )
    return found
