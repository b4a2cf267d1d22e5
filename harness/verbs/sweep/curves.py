"""The curves of a sweep over checkpoints: one for each benchmark and line of checkpoints, a point for each step."""

from __future__ import annotations

from collections.abc import Iterator

from harness.reports.plots.plot import Plot
from harness.reports.series import CurvePoint, Step, mean_plot, passed_over
from harness.verbs.sweep.results import CellResult, Results


def series(results: Results) -> dict[str, list[Step]]:
    """Benchmark → all checkpoints on it; a `Step` has a curve's name, a training step and a score, if there is one."""
    by_series: dict[str, list[Step]] = {}
    for result, line, step in _of_checkpoints(results):
        remark = "; ".join(filter(None, result.notes))
        of_curve = _curve(result, line), step, result.score, result.differs
        steps = by_series.setdefault(result.cell.benchmark, [])
        steps.append(Step(*of_curve, remark, result.p_since_before, bool(result.apart)))
    # A benchmark without any score has no table.
    return {name: steps for name, steps in by_series.items() if any(step.score is not None for step in steps)}


def _of_checkpoints(results: Results) -> Iterator[tuple[CellResult, str, float]]:
    """Yield the results of checkpoints, each with its line of checkpoints and its training step."""
    for result in results.results:
        if (series_step := results.sweep.step_of(result.cell)) is not None:
            yield result, *series_step


def _curve(result: CellResult, line: str) -> str:
    """The name of a curve: the benchmark, and the line of checkpoints if it has a name."""
    return " ".join(filter(None, (result.cell.benchmark, line)))


def plot_of_means(results: Results) -> Plot | None:
    """The mean over the benchmarks against the training step; None without means or without two of them in a line."""
    points: list[CurvePoint] = []
    incomplete: list[CurvePoint] = []
    for mean in results.aggregates:
        of_mean = [result for result in results.results if mean.point.items() <= result.cell.point.items()]
        if of_mean and (series_step := results.sweep.step_of(of_mean[0].cell)) is not None:
            line, step = series_step
            why = [passed_over(item.score, apart=bool(item.apart)) for item in of_mean if item.score is not None]
            points.append(CurvePoint(f"mean {line}".strip(), step, mean.mean, max(why, default="")))
            incomplete += points[-1:] if mean.missing and mean.mean is not None else []
    return mean_plot(points, [benchmark.label for benchmark in results.sweep.axes["benchmarks"]], incomplete)
