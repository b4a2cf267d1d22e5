"""The tables of a training's checkpoints in a report.

The runs of a report are steps of a curve if a sweep has noted their training steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.reports.series import Step, series_table
from harness.reports.tables import Table, short
from harness.runs.manifest import BenchmarkRecord
from harness.runs.recorded_settings import differences_in_curve


def settings_apart(steps: Iterable[tuple[str, float, str, BenchmarkRecord]]) -> dict[str, str]:
    """Name of each step whose settings are not those of its curve → how they differ.

    steps: curve, step, name, record. The settings of a curve are those of its last step.
    """
    ordered = sorted(steps, key=lambda item: item[1])
    latest = {curve: record for curve, _, _, record in ordered}
    apart = {name: differences_in_curve(record, latest[curve]) for curve, _, name, record in ordered}
    return {name: words for name, words in apart.items() if words}


def steps_of(runs: Sequence[ScoredRun]) -> dict[str, list[Step]]:
    """Benchmark → the runs that are checkpoints, as steps of their curves; one of other settings stands apart."""
    steps: dict[str, list[Step]] = {}
    for run, benchmark, step, differing in _checkpoints(runs):
        points = steps.setdefault(benchmark.name, [])
        points.append(Step(_curve(run, benchmark.name), step, benchmark.score, remark=differing, apart=bool(differing)))
    return steps


def training_tables(runs: Sequence[ScoredRun]) -> list[Table]:
    """For each benchmark with two scored steps of a curve or more, the table of these steps."""
    tables = []
    for name, steps in steps_of(runs).items():
        scored = Counter(step.series for step in steps if step.score is not None and step.score.n_samples)
        if any(n > 1 for n in scored.values()):
            tables.append(series_table(steps, subject=short(name)))
    return tables


def _checkpoints(runs: Sequence[ScoredRun]) -> list[tuple[ScoredRun, ScoredBenchmark, int, str]]:
    """(run, benchmark, training step, how its settings differ from those of its curve) of each benchmark of the runs
    whose sweep has noted their step.
    """
    steps = [(run, item, run.suite.step) for run in runs for item in run.benchmarks.values()]
    placed = [(run, item, step) for run, item, step in steps if step is not None]
    apart = settings_apart((_curve(run, item.name), step, _key(run, item), item.record) for run, item, step in placed)
    return [(run, item, step, apart.get(_key(run, item), "")) for run, item, step in placed]


def _key(run: ScoredRun, benchmark: ScoredBenchmark) -> str:
    return f"{run.label}/{benchmark.name}"


def _curve(run: ScoredRun, benchmark: str) -> str:
    """The name of the curve that the run is a point of; runs of several sweeps have curves of their own."""
    sweep, _, _ = run.label.rpartition("/")
    return " ".join(filter(None, (sweep, benchmark, run.suite.curve)))
