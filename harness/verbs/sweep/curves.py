"""The curves of a sweep over checkpoints: one for each benchmark and line of checkpoints, a point for each step."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from harness.core.errors import UsageError
from harness.reports.series import Step, step_text
from harness.scoring import QuestionTally
from harness.scoring.late_steps import N_LATE, LateChange, late_change, rivals
from harness.verbs.sweep.results import CellResult, Results


def series(results: Results) -> dict[str, list[Step]]:
    """Benchmark → all checkpoints on it; a `Step` has a curve's name, a training step and a score, if there is one."""
    by_series: dict[str, list[Step]] = {}
    highest = _highest(results)
    for result in results.results:
        series_step = results.sweep.step_of(result.cell)
        if series_step is not None:
            line, step = series_step
            reason = f"{result.cell.name}: {result.reason}" if result.reason else ""
            remark = "; ".join(filter(None, (highest.get(result.cell.name), reason, result.uncompared, result.remark)))
            by_series.setdefault(result.cell.benchmark, []).append(
                Step(_curve(result, line), step, result.score, result.differs, remark, result.p_since_before)
            )
    # A benchmark without any score has no table.
    return {name: steps for name, steps in by_series.items() if any(step.score is not None for step in steps)}


def _curve(result: CellResult, line: str) -> str:
    """The name of a curve: the benchmark, and the line of checkpoints if it has a name."""
    return " ".join(filter(None, (result.cell.benchmark, line)))


def _highest(results: Results) -> dict[str, str]:
    """Name of the cell with the highest accuracy of each curve → which steps cannot be told from it."""
    by_curve: dict[str, list[tuple[float, CellResult, Sequence[QuestionTally]]]] = {}
    for result in results.results:
        series_step = results.sweep.step_of(result.cell)
        if series_step is not None and result.benchmark is not None and result.score is not None:
            line, step = series_step
            if result.score.accuracy is not None:
                by_curve.setdefault(_curve(result, line), []).append((step, result, result.benchmark.questions))
    notes = {}
    for steps in by_curve.values():
        if len(steps) < 2:
            continue
        highest, *untold = rivals([questions for _, _, questions in steps])
        others = ", ".join(step_text(step) for step in sorted(steps[number][0] for number in untold))
        notes[steps[highest][1].cell.name] = (
            f"highest, perhaps by luck; cannot be told from it: {others}. The best step is one of these in 95 % of "
            "such curves"
            if others
            else "highest, above every other step by more than chance"
        )
    return notes


def late(results: Results) -> list[tuple[str, list[float], LateChange]]:
    """Each curve with enough steps that miss no sample: its name, the last of these steps, and how they changed."""
    whole: dict[str, list[tuple[float, Sequence[QuestionTally]]]] = {}
    for result in results.results:
        series_step = results.sweep.step_of(result.cell)
        if series_step is not None and result.benchmark is not None and result.is_whole:
            line, step = series_step
            whole.setdefault(_curve(result, line), []).append((step, result.benchmark.questions))
    compared = []
    for name, steps in whole.items():
        latest = sorted(steps, key=lambda item: item[0])[-2 * N_LATE :]
        with contextlib.suppress(UsageError):  # The steps share no question.
            if (change := late_change([questions for _, questions in latest])) is not None:
                compared.append((name, [step for step, _ in latest], change))
    return compared
