"""What a question that a run is to answer would take: samples, tokens, hours, money, from a pilot or a former run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.core.errors import UsageError
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


def plan(
    folder: RunFolder, detect: float, other_samples: int | None = None, prices: Prices | None = None
) -> list[Needed]:
    """By benchmark of a scored run: what finds a true difference of `detect`, a fraction, four times in five.

    other_samples: of each question in what this run is compared with; None = as many as in this run.
    Raises `UsageError`, and `StoreError` where the run is not scored.
    """
    if not 0 < detect < 1:
        raise UsageError("expected points above 0 and below 100", field="detect", value=100 * detect)
    (run,) = read_runs([folder])
    found = []
    for benchmark in run.benchmarks.values():
        items = [item for item in scored(run, benchmark) if item.n]
        if not items or all(item.n == 1 for item in items):
            raise UsageError(
                f"{visible(benchmark.name, 80)} has one sample a question, which shows no spread: take a pilot of two, "
                f"{option('pilot')}"
            )
        estimate = accuracy(items)
        variance = float(
            smoothed_variance(*(np.asarray(x) for x in (estimate.value, estimate.variance, estimate.trials)))
        )
        samples = samples_to_detect(variance, len(items), detect, other_samples)
        concurrency = int(benchmark.record.settings.get("concurrency") or _CONCURRENCY)
        stored = read_samples(folder.benchmark(benchmark.name))
        ahead = None
        if samples is not None:
            planned = {benchmark.name: (len(benchmark.questions), samples)}
            ahead = forecast((s for s in stored if s.benchmark == benchmark.name), planned, concurrency, prices)
        found.append(
            Needed(
                benchmark=benchmark.name,
                n_questions=len(items),
                accuracy=estimate.value,
                deviation=variance**0.5,
                samples=samples,
                forecast=ahead,
                concurrency=concurrency,
            )
        )
    return found
