"""The plots of a report: for all runs, for a benchmark in several runs, and for one benchmark in one run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from harness.core.codec import digest
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
from harness.scoring.repeats import Counts, repeats_of, sizes_of

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
        yield from repeat_plots(present)


def repeat_plots(present: Sequence[RunBenchmark]) -> Iterator[Plot]:
    """The plots of how the accuracies of repeats differ, and of how the error falls with the number of samples.

    Repeats are complete runs that differ only in their seeds and numbers of samples.
    """
    complete = [
        part
        for part in present
        if part.benchmark.score is not None and not part.benchmark.score.n_missing and part.benchmark.questions
    ]
    repeated: dict[str, list[RunBenchmark]] = {}
    for part in complete:
        identity = {field: value for field, value in part.benchmark.record.identity.items() if field != "seed"}
        questions = [item.question.question_id for item in part.benchmark.questions]
        repeated.setdefault(digest([part.run.manifest.model, identity, questions]), []).append(part)
    groups = [group for group in repeated.values() if _are_repeats(group)]
    for group in groups:
        stem = f"{group[0].run.label}-" if len(groups) > 1 else ""
        for plot in _repeats(group):
            yield dataclasses.replace(plot, name=f"{stem}{plot.name}")


def _are_repeats(group: Sequence[RunBenchmark]) -> bool:
    """Whether these runs, whose records are otherwise the same, differ pairwise in their seed or number of samples.

    Two runs with the same seed differ in something that is not recorded, such as their servers. Other tools' outputs
    have no record of their settings.
    """
    records = [part.benchmark.record for part in group]
    drawn = {(record.identity.get("seed"), record.plan.samples) for record in records}
    return len(drawn) == len(group) > 1 and not any(record.imported for record in records)


def _repeats(group: Sequence[RunBenchmark]) -> Iterator[Plot]:
    """The plots of repeats: for one number of samples, and over all numbers of samples."""
    name = group[0].benchmark.name
    by_size: dict[float, list[RunBenchmark]] = {}
    for part in group:
        by_size.setdefault(part.benchmark.record.plan.samples, []).append(part)
    most = max(by_size.values(), key=len)
    if len(most) > 1:
        yield pictures.repeats_plot(name, [part.run.label for part in most], repeats_of(*_counts(most)))
    several = [_counts(of_size) for n, of_size in sorted(by_size.items()) if n >= MIN_SAMPLES]
    if len(several) > 1:
        yield pictures.sizes_plot(name, several[0][1].shape[1], sizes_of(several))


def _counts(runs: Sequence[RunBenchmark]) -> tuple[Counts, Counts]:
    """(right samples, samples) of each question in each run, both of shape (runs, Q)."""
    questions = [part.benchmark.questions for part in runs]
    correct = np.array([[item.right for item in of_run] for of_run in questions])
    return correct, np.array([[item.n for item in of_run] for of_run in questions])
