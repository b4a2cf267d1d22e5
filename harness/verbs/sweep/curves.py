"""The curves of a sweep over checkpoints: one for each benchmark and line of checkpoints, a point for each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from harness.reports.plots.plot import Plot
from harness.reports.series import CurvePoint, Step, mean_plot, passed_over
from harness.reports.trainings import CurveStep, late_changes, note_on_highest
from harness.scoring.late_steps import LateChange
from harness.verbs.sweep.results import CellResult, Results


def series(results: Results) -> dict[str, list[Step]]:
    """Benchmark → all checkpoints on it; a `Step` has a curve's name, a training step and a score, if there is one."""
    by_series: dict[str, list[Step]] = {}
    highest = _highest(results)
    for result, line, step in _of_checkpoints(results):
        remark = "; ".join(filter(None, (highest.get(result.cell.name), *result.notes)))
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


def _curve_step(step: float, listed: Sequence[CellResult]) -> CurveStep:
    """The step of a curve. listed: its result on each benchmark of the curve."""
    return CurveStep(
        listed[0].cell.name,
        step,
        [() if result.benchmark is None else result.benchmark.questions for result in listed],
        fmean(result.score.accuracy or 0.0 if result.score is not None else 0.0 for result in listed),
        sum(result.score.n_samples for result in listed if result.score is not None),
        all(result.is_whole for result in listed),
        any(result.apart for result in listed),
    )


def _curves(results: Results) -> dict[str, list[CurveStep]]:
    """Name → curve, for each benchmark and line of checkpoints."""
    by_curve: dict[str, list[CurveStep]] = {}
    for result, line, step in _of_checkpoints(results):
        by_curve.setdefault(_curve(result, line), []).append(_curve_step(step, [result]))
    return by_curve


def _mean_curves(results: Results) -> dict[str, list[CurveStep]]:
    """Name → curve of the mean over the benchmarks, for each line of checkpoints; empty for a sweep without means."""
    by_line: dict[str, dict[float, list[CellResult]]] = {}
    for result, line, step in _of_checkpoints(results) if results.aggregates else ():
        by_line.setdefault(f"mean {line}".strip(), {}).setdefault(step, []).append(result)
    return {name: [_curve_step(*step) for step in steps.items()] for name, steps in by_line.items()}


def plot_of_means(results: Results) -> Plot | None:
    """The mean over the benchmarks against the training step; None without means or without two of them in a line."""
    points: list[CurvePoint] = []
    incomplete: list[CurvePoint] = []
    for mean in results.aggregates:
        of_mean = [result for result in results.results if mean.point.items() <= result.cell.point.items()]
        if of_mean and (series_step := results.sweep.step_of(of_mean[0].cell)) is not None:
            line, step = series_step
            why = [passed_over(item.score, apart=bool(item.apart)) for item in of_mean if item.score is not None]
            intervals = mean.sampling_interval, mean.question_interval
            points.append(CurvePoint(f"mean {line}".strip(), step, mean.mean, *intervals, max(why, default="")))
            incomplete += points[-1:] if mean.missing and mean.mean is not None else []
    return mean_plot(points, [benchmark.label for benchmark in results.sweep.axes["benchmarks"]], incomplete)


def _highest(results: Results) -> dict[str, str]:
    """Name of the cell with the highest accuracy of each curve → which steps cannot be told from it."""
    return dict(filter(None, map(note_on_highest, _curves(results).values())))


def highest_means(results: Results) -> dict[str, str]:
    """Name of the first cell of the step with the highest mean of each line → which steps cannot be told from it."""
    return dict(filter(None, map(note_on_highest, _mean_curves(results).values())))


def late(results: Results) -> list[tuple[str, list[float], LateChange]]:
    """Each curve with enough steps that have all samples: its name, the last of these steps, and how they changed.

    If the sweep has means over its benchmarks, their curves come last.
    """
    return late_changes({**_curves(results), **_mean_curves(results)})
