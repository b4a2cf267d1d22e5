"""The curves of a sweep over checkpoints: one for each benchmark and line of checkpoints, a point for each step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from statistics import fmean

from harness.core.errors import UsageError
from harness.reports.plots.plot import Plot
from harness.reports.series import CurvePoint, Step, lacks_samples, listed_steps, mean_plot, step_text
from harness.scoring import QuestionTally
from harness.scoring.late_steps import N_LATE, LateChange, late_change, rivals
from harness.verbs.sweep.results import CellResult, Results

_Curve = list[tuple[float, list[CellResult]]]
"""The steps of a curve, in the order of the sweep's models: (step, its result on each benchmark of the curve)."""


def series(results: Results) -> dict[str, list[Step]]:
    """Benchmark → all checkpoints on it; a `Step` has a curve's name, a training step and a score, if there is one."""
    by_series: dict[str, list[Step]] = {}
    highest = _highest(results)
    for result, line, step in _of_checkpoints(results):
        reason = f"{result.cell.name}: {result.reason}" if result.reason else ""
        notes = (highest.get(result.cell.name), reason, result.note_on_undecided, result.uncompared, result.remark)
        remark = "; ".join(filter(None, notes))
        by_series.setdefault(result.cell.benchmark, []).append(
            Step(_curve(result, line), step, result.score, result.differs, remark, result.p_since_before)
        )
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


def _curves(results: Results) -> dict[str, _Curve]:
    """Name → curve, for each benchmark and line of checkpoints."""
    by_curve: dict[str, _Curve] = {}
    for result, line, step in _of_checkpoints(results):
        by_curve.setdefault(_curve(result, line), []).append((step, [result]))
    return by_curve


def _mean_curves(results: Results) -> dict[str, _Curve]:
    """Name → curve of the mean over the benchmarks, for each line of checkpoints; empty for a sweep without means."""
    by_line: dict[str, dict[float, list[CellResult]]] = {}
    for result, line, step in _of_checkpoints(results) if results.aggregates else ():
        by_line.setdefault(f"mean {line}".strip(), {}).setdefault(step, []).append(result)
    return {name: list(steps.items()) for name, steps in by_line.items()}


def plot_of_means(results: Results) -> Plot | None:
    """The mean over the benchmarks against the training step; None without means or without two of them in a line."""
    points: list[CurvePoint] = []
    incomplete: list[CurvePoint] = []
    for mean in results.aggregates:
        of_mean = [result for result in results.results if mean.point.items() <= result.cell.point.items()]
        if of_mean and (series_step := results.sweep.step_of(of_mean[0].cell)) is not None:
            line, step = series_step
            lacking = any(lacks_samples(result.score) for result in of_mean if result.score is not None)
            intervals = mean.sampling_interval, mean.question_interval
            points.append(CurvePoint(f"mean {line}".strip(), step, mean.mean, *intervals, lacking))
            incomplete += points[-1:] if mean.missing and mean.mean is not None else []
    return mean_plot(points, [benchmark.label for benchmark in results.sweep.axes["benchmarks"]], incomplete)


def _highest(results: Results) -> dict[str, str]:
    """Name of the cell with the highest accuracy of each curve → which steps cannot be told from it."""
    return dict(filter(None, map(_note_on_highest, _curves(results).values())))


def highest_means(results: Results) -> dict[str, str]:
    """Name of the first cell of the step with the highest mean of each line → which steps cannot be told from it."""
    return dict(filter(None, map(_note_on_highest, _mean_curves(results).values())))


def _note_on_highest(curve: _Curve) -> tuple[str, str] | None:
    """Name of the first cell of the highest step, and a sentence about the steps that cannot be told from that step.

    Only steps with all samples that the sweep asks for now are ranked: the samples of a run that was stopped or that
    crashed are no fair draw. The sentence names the other steps apart. If all ranked steps are equal, it stands at the
    first of them and says so. None if a single step is ranked.
    """
    ranked, unranked = _whole(curve), [item for item in curve if not _is_whole(item[1])]
    if len(ranked) < 2:
        return None
    if len({_accuracy(listed) for _, listed in ranked}) == 1:
        (_, first), *equal = sorted(ranked, key=lambda item: item[0])
        steps = ", ".join(step_text(step) for step, _ in equal)
        return first[0].cell.name, f"exactly as high as {steps}: none of these steps is seen to be better than another"
    highest, *untold = rivals([[_tallies(result) for result in listed] for _, listed in ranked])
    others = ", ".join(step_text(step) for step in sorted(ranked[number][0] for number in untold))
    with_all = " with all samples" if unranked else ""
    promise = (
        f"highest{with_all}, perhaps by luck; cannot be told from it: {others}. The best step{with_all} is one of "
        "these in 95 % of such curves"
        if others
        else f"highest{with_all}, above every other step{with_all} by more than chance if this curve alone is looked "
        "at, once (p and * allow for all comparisons of the sweep)"
    )
    planned = sum(map(_n_samples, ranked[highest][1]))
    counts = [
        f"{step_text(step)} ({sum(map(_n_samples, listed)):,} of {planned:,})"
        for step, listed in sorted(unranked, key=lambda item: item[0])
    ]
    apart = f". Nothing is said of steps without all samples: {listed_steps(counts)}" if counts else ""
    return ranked[highest][1][0].cell.name, promise + apart


def _whole(curve: _Curve) -> _Curve:
    """The steps of a curve that have all samples that the sweep asks for now, of each benchmark."""
    return [item for item in curve if _is_whole(item[1])]


def _is_whole(listed: Sequence[CellResult]) -> bool:
    return all(result.is_whole for result in listed)


def _accuracy(listed: Sequence[CellResult]) -> float:
    """The mean accuracy of the results of a step that has all its samples."""
    return fmean(result.score.accuracy or 0.0 for result in listed if result.score is not None)


def _n_samples(result: CellResult) -> int:
    """The number of samples that the cell's score covers; 0 without a score."""
    return 0 if result.score is None else result.score.n_samples


def _tallies(result: CellResult) -> Sequence[QuestionTally]:
    return () if result.benchmark is None else result.benchmark.questions


def late(results: Results) -> list[tuple[str, list[float], LateChange]]:
    """Each curve with enough steps that have all samples: its name, the last of these steps, and how they changed.

    If the sweep has means over its benchmarks, their curves come last.
    """
    compared = []
    for name, steps in (*_curves(results).items(), *_mean_curves(results).items()):
        latest = sorted(_whole(steps), key=lambda item: item[0])[-2 * N_LATE :]
        columns = zip(*(listed for _, listed in latest), strict=True)  # a column has the steps of one benchmark
        with contextlib.suppress(UsageError):  # Steps without a common question have no change.
            if (change := late_change([[_tallies(result) for result in column] for column in columns])) is not None:
                compared.append((name, [step for step, _ in latest], change))
    return compared
