"""What a curve of checkpoints shows: its table of steps, which of them may be the best, and whether it still rises.

The runs of a report are steps of a curve if a sweep has noted their training steps. A sweep's own tables use the same
sentences about its cells.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.core.errors import UsageError
from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.reports.series import Step, late_table, listed_steps, series_table, step_text
from harness.reports.tables import Table, short
from harness.runs.manifest import BenchmarkRecord
from harness.runs.recorded_settings import differences_in_curve
from harness.scoring import QuestionTally
from harness.scoring.late_steps import N_LATE, LateChange, late_change, rivals


@dataclass(frozen=True, slots=True)
class CurveStep:
    """A step of a curve. name: of its run. benchmarks: its questions with their grades, by benchmark.

    accuracy: over several benchmarks, their mean. is_whole: no planned sample is missing, and the settings are
    those of the curve. apart: they are not.
    """

    name: str
    step: float
    benchmarks: Sequence[Sequence[QuestionTally]]
    accuracy: float
    n_samples: int
    is_whole: bool
    apart: bool


def settings_apart(steps: Iterable[tuple[str, float, str, BenchmarkRecord, bool]]) -> dict[str, str]:
    """Name of each step whose settings are not those of its curve → how they differ.

    steps: curve, step, name, record, and whether the settings are those that are asked for now. The settings of a curve
    are those of its last step with the latter; without one, of its last step.
    """
    ordered = sorted(steps, key=lambda item: (item[4], item[1]))
    latest = {curve: record for curve, _, _, record, _ in ordered}
    apart = {name: differences_in_curve(record, latest[curve]) for curve, _, name, record, _ in ordered}
    return {name: words for name, words in apart.items() if words}


def note_on_highest(curve: Sequence[CurveStep]) -> tuple[str, str] | None:
    """Name of the highest step, and a sentence about the steps that cannot be told from that step.

    Only `whole_steps` are ranked: the samples of a run that was stopped or that crashed are no fair draw. The sentence
    names the other steps apart. If all ranked steps are equal, it stands at the first of them and says so. None if a
    single step is ranked.
    """
    curve = sorted(curve, key=lambda item: item.step)
    ranked, unranked = whole_steps(curve), [item for item in curve if not item.is_whole and not item.apart]
    apart = [step_text(item.step) for item in curve if item.apart]
    if len(ranked) < 2:
        return None
    if len({item.accuracy for item in ranked}) == 1:
        first, *equal = ranked
        steps = ", ".join(step_text(item.step) for item in equal)
        return first.name, f"exactly as high as {steps}: none of these steps is seen to be better than another"
    highest, *untold = rivals([item.benchmarks for item in ranked])
    others = ", ".join(step_text(step) for step in sorted(ranked[number].step for number in untold))
    shared = [words for words, left in (("all samples", unranked), ("the same settings", apart)) if left]
    with_all = f" with {' and '.join(shared)}" if shared else ""
    promise = (
        f"highest{with_all}, perhaps by luck; cannot be told from it: {others}. The best step{with_all} is one of "
        "these in 95 % of such curves"
        if others
        else f"highest{with_all}, above every other step{with_all} by more than chance if this curve alone is looked "
        "at, once (p and * allow for all comparisons)"
    )
    planned = ranked[highest].n_samples
    counts = [f"{step_text(item.step)} ({item.n_samples:,} of {planned:,})" for item in unranked]
    lists = (("without all samples", counts), ("with other settings", apart))
    named = " and ".join(f"{which}: {listed_steps(steps)}" for which, steps in lists if steps)
    return ranked[highest].name, promise + (f". Nothing is said of steps {named}" if named else "")


def whole_steps(curve: Iterable[CurveStep]) -> list[CurveStep]:
    """The steps of a curve that have all planned samples, of each benchmark."""
    return [item for item in curve if item.is_whole]


def late_changes(curves: Mapping[str, Sequence[CurveStep]]) -> list[tuple[str, list[float], LateChange]]:
    """Each curve with enough whole steps: its name, the last of these steps, and how they changed."""
    compared = []
    for name, curve in curves.items():
        latest = sorted(whole_steps(curve), key=lambda item: item.step)[-2 * N_LATE :]
        columns = zip(*(item.benchmarks for item in latest), strict=True)  # a column has the steps of one benchmark
        with contextlib.suppress(UsageError):  # Steps without a common question have no change.
            if (change := late_change(list(columns))) is not None:
                compared.append((name, [item.step for item in latest], change))
    return compared


def steps_of(runs: Sequence[ScoredRun]) -> dict[str, list[Step]]:
    """Benchmark → the runs that are checkpoints, as steps of their curves; the highest of a curve has its sentence."""
    notes = dict(filter(None, map(note_on_highest, _curves(runs).values())))
    steps: dict[str, list[Step]] = {}
    for run, benchmark, step, apart in _checkpoints(runs):
        curve = _curve(run, benchmark.name)
        remark = notes.get(_key(run, benchmark)) or apart  # only a step with the settings of the curve is the highest
        points = steps.setdefault(benchmark.name, [])
        points.append(Step(curve, step, benchmark.score, remark=remark, apart=bool(apart)))
    return steps


def training_tables(runs: Sequence[ScoredRun]) -> list[Table]:
    """For each benchmark with two scored steps of a curve or more, the table of these steps; last, if a curve is long
    enough, how the last steps changed.
    """
    curves = {name: curve for name, curve in _curves(runs).items() if sum(item.n_samples > 0 for item in curve) > 1}
    by_step = [
        series_table(steps, subject=short(name))
        for name, steps in steps_of(runs).items()
        if any(step.series in curves for step in steps)
    ]
    late = late_changes(curves)
    return [*by_step, *([late_table(late)] if late else [])]


def _checkpoints(runs: Sequence[ScoredRun]) -> list[tuple[ScoredRun, ScoredBenchmark, int, str]]:
    """(run, benchmark, training step, how its settings differ from those of its curve) of each benchmark of the runs
    whose sweep has noted their step.
    """
    steps = [(run, item, run.suite.step) for run in runs for item in run.benchmarks.values()]
    placed = [(run, item, step) for run, item, step in steps if step is not None]
    apart = settings_apart(
        (_curve(run, item.name), step, _key(run, item), item.record, run.suite.is_whole) for run, item, step in placed
    )
    return [(run, item, step, apart.get(_key(run, item), "")) for run, item, step in placed]


def _curves(runs: Sequence[ScoredRun]) -> dict[str, list[CurveStep]]:
    """Name → curve, for each benchmark and line of checkpoints, as the sweep's own tables have them."""
    curves: dict[str, list[CurveStep]] = {}
    without: dict[str, set[float]] = {}
    for run, benchmark, step, apart in _checkpoints(runs):
        name, score = _curve(run, benchmark.name), benchmark.score
        without.setdefault(name, set()).update(run.suite.unsampled)
        if score is None or score.accuracy is None:
            without[name].add(step)
            continue
        # The score misses samples of its plan; those stored since then are not graded yet.
        is_whole = run.suite.is_whole and not (score.n_missing or benchmark.n_ungraded or apart)
        of_score = score.accuracy, score.n_samples, is_whole, bool(apart)
        point = CurveStep(_key(run, benchmark), step, [benchmark.questions], *of_score)
        curves.setdefault(name, []).append(point)
    for name, curve in curves.items():
        absent = without[name].difference(item.step for item in curve)
        curve += [CurveStep("", step, [()], 0.0, 0, is_whole=False, apart=False) for step in absent]
    return curves


def _key(run: ScoredRun, benchmark: ScoredBenchmark) -> str:
    return f"{run.label}/{benchmark.name}"


def _curve(run: ScoredRun, benchmark: str) -> str:
    """The name of the curve that the run is a point of; runs of several sweeps have curves of their own."""
    sweep, _, _ = run.label.rpartition("/")
    return " ".join(filter(None, (sweep, benchmark, run.suite.curve)))
