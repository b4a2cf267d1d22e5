"""The plots of a report: for all runs, for a benchmark in several runs, and for one benchmark in one run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from harness.deciding.paired_comparison import pairs
from harness.deciding.published_comparison import PublishedComparison
from harness.deciding.published_order import reported_scores
from harness.deciding.verdicts import Decision
from harness.reports.inputs import ScoredBenchmark, ScoredRun
from harness.reports.plots import pictures
from harness.reports.plots.pictures import Labeled, PublishedTick
from harness.reports.plots.plot import Plot
from harness.reports.series import benchmark_plot, steps_of
from harness.runs.engine_pages import read_engine_pages
from harness.scoring.engine_metrics import moments

MAX_PAIRS = 24
"""A page with more pairs of a run and a benchmark than this has no plots for single pairs."""

Beside = Mapping[tuple[str, str], Sequence[PublishedComparison]]
"""(run label, benchmark) → its comparisons with published scores, nearest first."""

MIN_SAMPLES = 2
"""Minimum number of samples per question of runs that show a spread."""


class RunBenchmark(NamedTuple):
    """One benchmark of one run."""

    run: ScoredRun
    benchmark: ScoredBenchmark


def parts(runs: Sequence[ScoredRun], name: str) -> list[RunBenchmark]:
    """The runs that have the benchmark `name`."""
    return [RunBenchmark(run, run.benchmarks[name]) for run in runs if name in run.benchmarks]


def names(runs: Sequence[ScoredRun]) -> list[str]:
    """All benchmarks of the runs, in the order of their first occurrence."""
    return list(dict.fromkeys(name for run in runs for name in run.benchmarks))


def overview(runs: Sequence[ScoredRun], beside: Beside, decisions: Sequence[Decision] = ()) -> list[Plot]:
    """The differences from the baselines (`decisions`) in one plot; the accuracy of all scores in one plot, with
    published scores as ticks; then, for each benchmark of a training run, the accuracy over its steps.
    """
    compared = [
        Labeled(f"{one.run} − {one.baseline} · {one.paired.benchmark}", one.paired.difference) for one in decisions
    ]
    scored = []
    for run, benchmark in (part for name in names(runs) for part in parts(runs, name)):
        if benchmark.score is not None:
            label = benchmark.name if len(runs) == 1 else f"{run.label} · {benchmark.name}"
            ticks = ticks_of(beside.get((run.label, benchmark.name), ()), run.suite.source)
            scored.append(Labeled(label, benchmark.score.accuracy, ticks))
    curves = [benchmark_plot(name, steps) for name, steps in islice(steps_of(runs).items(), MAX_PAIRS)]
    return [*filter(None, (pictures.difference_plot(compared), pictures.accuracy_plot(scored), *curves))]


def ticks_of(comparisons: Sequence[PublishedComparison], suite: str) -> list[PublishedTick]:
    """The sources shown next to an accuracy, with their numbers. comparisons, suite: as in `reported_scores`."""
    return [
        PublishedTick(name, comparison.published.printed, comparison.published.value)
        for name, comparison in reported_scores(comparisons, "pass@1", suite)
    ]


def benchmark_plots(present: Sequence[RunBenchmark]) -> list[Plot]:
    """The plots of one benchmark in several runs: accuracy against budget, and each run against the first run.

    present: the benchmark in each of these runs. Empty for a single run.
    """
    if len(present) < 2:
        return []
    scored = [(run.label, benchmark.score) for run, benchmark in present if benchmark.score is not None]
    first, *others = present
    scatters = []
    for part in others:
        both = pairs(first.benchmark.questions, part.benchmark.questions)
        if rows := [(a.question.question_id, a.right / a.n, b.right / b.n, a.n, b.n) for a, b in both]:
            scatters.append(pictures.scatter_plot(first.run.label, part.run.label, rows))
    return [*filter(None, (pictures.budget_plot(scored), *scatters))]


def run_plots(part: RunBenchmark, *, alone: bool) -> list[Plot]:
    """The plots of one benchmark in one run.

    alone: whether no other run in the report has the benchmark; then the budget plot is drawn here. The server load is
    drawn with a run's first benchmark, but covers the whole run.
    """
    score = part.benchmark.score
    if score is None:
        return []
    is_first = part.benchmark is next(iter(part.run.benchmarks.values()))
    load = pictures.load_plots(moments(read_engine_pages(part.run.folder))) if is_first and score.engine else []
    budget = pictures.budget_plot([(part.benchmark.name, score)]) if alone else None
    return [*filter(None, (pictures.curve_plot(score), budget)), *load]


def every_plot(runs: Sequence[ScoredRun], beside: Beside, decisions: Sequence[Decision]) -> Iterator[Plot]:
    """All plots, each with a unique file name."""
    for plot in overview(runs, beside, decisions):
        yield plot
    for name in names(runs):
        present = parts(runs, name)
        for number, plot in enumerate(benchmark_plots(present)):
            suffix = f"-{number}" if plot.name == "scatter" else ""
            yield dataclasses.replace(plot, name=f"{name}-{plot.name}{suffix}", subject=name)
        for part in present:
            for plot in run_plots(part, alone=len(present) == 1):
                stem = name if len(runs) == 1 else f"{part.run.label}-{name}"
                yield dataclasses.replace(plot, name=f"{stem}-{plot.name}", subject=f"{part.run.label} · {name}")
