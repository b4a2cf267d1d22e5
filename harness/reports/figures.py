"""The plots of a report: of all runs, of a benchmark in several runs, of one benchmark in one run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.reports.plots.accuracy import Labelled, accuracy_plot, budget_plot, curve_plot
from harness.reports.plots.plot import Plot
from harness.reports.plots.questions import scatter_plot
from harness.reports.plots.samples import length_plot
from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.reports.series import benchmark_plot
from harness.reports.trainings import steps_of
from harness.scoring.moves import pairs

MAX_PAIRS = 24
"""A page with more pairs of a run and a benchmark has no plots of single pairs: each takes half a second to draw."""


class RunBenchmark(NamedTuple):
    """One benchmark of one run."""

    run: ScoredRun
    benchmark: ScoredBenchmark


def parts(runs: Sequence[ScoredRun], name: str) -> list[RunBenchmark]:
    """The runs that hold the benchmark `name`."""
    return [RunBenchmark(run, run.benchmarks[name]) for run in runs if name in run.benchmarks]


def names(runs: Sequence[ScoredRun]) -> list[str]:
    """Every benchmark of the runs, in the order of their first occurrence."""
    return list(dict.fromkeys(name for run in runs for name in run.benchmarks))


def overview(runs: Sequence[ScoredRun]) -> list[Plot]:
    """The accuracy of all scores in one plot, if there are at least two; then, for each benchmark of a training, the
    accuracy over its steps.
    """
    every = [part for name in names(runs) for part in parts(runs, name)]
    scored = [
        Labelled(part.benchmark.name if len(runs) == 1 else f"{part.run.label} · {part.benchmark.name}", score)
        for part in every
        if (score := part.benchmark.score) is not None
    ]
    return [*_present([accuracy_plot(scored)] if len(scored) > 1 else []), *_trainings(runs)]


def _trainings(runs: Sequence[ScoredRun]) -> list[Plot]:
    """For each benchmark, the accuracy over the training steps that the sweep of the runs has noted."""
    by_benchmark = list(steps_of(runs).items())[:MAX_PAIRS]
    return _present([benchmark_plot(name, steps) for name, steps in by_benchmark])


def of_benchmark(present: Sequence[RunBenchmark]) -> list[Plot]:
    """The plots of one benchmark in several runs: accuracy against budget, and each run against the first.

    present: the benchmark in each of these runs. Empty for a single run.
    """
    if len(present) < 2:
        return []
    scored = [Labelled(run.label, benchmark.score) for run, benchmark in present if benchmark.score is not None]
    first, *others = present
    shared = ((part, pairs(first.benchmark.questions, part.benchmark.questions)) for part in others)
    scatters = [scatter_plot(first.run.label, part.run.label, paired) for part, paired in shared if paired]
    return _present([budget_plot(scored), *scatters])


def of_run(part: RunBenchmark, *, alone: bool) -> list[Plot]:
    """The plots of one benchmark in one run.

    alone: whether no other run of the report has the benchmark; then the plot of budgets is drawn here.
    """
    score, questions = part.benchmark.score, part.benchmark.questions
    if score is None:
        return []
    grades = (grade for item in questions for grade in item.grades)
    scored = [Labelled(part.benchmark.name, score)]
    return _present([curve_plot(score), budget_plot(scored) if alone else None, length_plot(grades)])


def every_plot(runs: Sequence[ScoredRun]) -> Iterator[Plot]:
    """All plots, each under its own file name."""
    for plot in overview(runs):
        yield plot
    for name in names(runs):
        present = parts(runs, name)
        for number, plot in enumerate(of_benchmark(present)):
            suffix = f"-{number}" if plot.name == "scatter" else ""
            yield dataclasses.replace(plot, name=f"{name}-{plot.name}{suffix}", subject=name)
        for part in present:
            for plot in of_run(part, alone=len(present) == 1):
                stem = name if len(runs) == 1 else f"{part.run.label}-{name}"
                yield dataclasses.replace(plot, name=f"{stem}-{plot.name}", subject=f"{part.run.label} · {name}")


def _present(plots: Sequence[Plot | None]) -> list[Plot]:
    """The plots that could be made: the list without its None."""
    return [plot for plot in plots if plot is not None]
