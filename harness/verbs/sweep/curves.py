"""The curves of a sweep over checkpoints: one for each benchmark and line of checkpoints, a point for each step."""

from __future__ import annotations

from harness.reports.plots.plot import Plot
from harness.reports.series import CurvePoint, Step, mean_plot, passed_over
from harness.verbs.sweep.results import Results


def series(results: Results) -> dict[str, list[Step]]:
    """Benchmark → all checkpoints on it; a `Step` has a curve's name, a training step and a score, if there is one."""
    by_series: dict[str, list[Step]] = {}
    for result in results.results:
        if (place := results.sweep.step_of(result.cell)) is not None:
            line, step = place
            curve, remark = f"{result.cell.benchmark} {line}".strip(), "; ".join(filter(None, result.notes))
            of_curve = curve, step, result.score, result.differs
            steps = by_series.setdefault(result.cell.benchmark, [])
            steps.append(Step(*of_curve, remark, bool(result.apart)))
    # A benchmark without any score has no table.
    return {name: steps for name, steps in by_series.items() if any(step.score is not None for step in steps)}


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
