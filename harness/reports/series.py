"""A series of models, such as the checkpoints of a training run: accuracy against the step, as a plot and a table.

steps = [Step("aime24", 500, score), Step("aime24", 1000, other)]
draw.write_plots([series_plot(steps)], folder)
to_markdown([series_table(steps)])
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from harness.core.nouns import in_points
from harness.reports.plots.accuracy import curves, numbers_of
from harness.reports.plots.plot import Cell, Plot, axis
from harness.reports.tables import AT_MOST, MEANINGS, Table, short
from harness.scoring.score import Score, accuracy_cell, cut_share
from harness.scoring.stats import Estimate
from harness.scoring.tally import MAX_MISSING_SHARE
from harness.scoring.uncertainty import ABSENT, cells, value_cell

MAX_NAMED_STEPS = 8
"""Largest number of steps that `listed_steps` names."""


SETTINGS_DIFFER, SAMPLES_MISSING = "settings differ", "samples are missing"
"""Why a step is passed over."""


MEAN_PLOT = "means"
"""Name of the plot of the mean over the benchmarks, which its files have."""


class Step(NamedTuple):
    """One model of a series.

    series: the line of the plot, such as a benchmark or a run. step: the position along the line, such as the number of
    training steps. score: None if the model has none yet; the table then says "missing". differs: the score differs
    from a base beyond chance; the table then marks it with `*`. remark: a footnote of the table, such as why samples
    are missing. apart: it has other settings than its curve.
    """

    series: str
    step: float
    score: Score | None
    differs: bool = False
    remark: str = ""
    apart: bool = False


class CurvePoint(NamedTuple):
    """A point of a curve. estimate: the accuracy; None where the step has none. passed_over: why the accuracy is not
    drawn, as the function of this name says it.
    """

    series: str
    step: float
    estimate: Estimate | None
    passed_over: str = ""

    @property
    def drawn(self) -> bool:
        return self.estimate is not None and not self.passed_over


_Item = TypeVar("_Item", Step, CurvePoint)


def series_plot(steps: Sequence[Step]) -> Plot | None:
    """Accuracy against the step, one line per series, with 95 % sampling intervals as bands.

    Steps may come in any order. A line has a gap at a step without a score, and at one that is passed over
    (`passed_over`), between two others. Returns None if no series has two steps to draw. To write several plots into
    one folder, vary `name` and `subject` by `dataclasses.replace`.
    """
    return _plot([_point(step) for step in steps])


def benchmark_plot(benchmark: str, steps: Sequence[Step]) -> Plot | None:
    """The `series_plot` of one benchmark, with the benchmark in its title and its file name."""
    plot = series_plot(steps)
    if plot is None:
        return None
    title = f"{short(benchmark)}: {plot.title[0].lower()}{plot.title[1:]}"
    return replace(plot, name=benchmark_plot_name(benchmark), title=title)


def benchmark_plot_name(benchmark: str) -> str:
    """The name of the plot of one benchmark, which its files have."""
    return f"series-{benchmark}"


def _point(step: Step) -> CurvePoint:
    if step.score is None:
        return CurvePoint(step.series, step.step, None)
    return CurvePoint(step.series, step.step, step.score.accuracy, passed_over(step.score, apart=step.apart))


def passed_over(score: Score, *, apart: bool) -> str:
    """Why a step is no point of its curve: its settings are others (`apart`), or more than `MAX_MISSING_SHARE` of the
    planned samples are missing; else empty.

    The samples that came first tend to be short and right, or made a run stop: a curve through such a score would show
    a jump of the model where only its run ended.
    """
    lacks_samples = score.n_missing > MAX_MISSING_SHARE * (score.n_samples + score.n_missing)
    return SETTINGS_DIFFER if apart else SAMPLES_MISSING if lacks_samples else ""


def mean_plot(
    points: Sequence[CurvePoint], benchmarks: Sequence[str], incomplete: Collection[CurvePoint] = ()
) -> Plot | None:
    """The mean accuracy over these benchmarks against the step, as `series_plot` draws the accuracy of one.

    incomplete: the points with a mean of which samples are missing. The caption names them, and the steps without a
    mean.
    """
    plot = _plot(points)
    if plot is None:
        return None
    n_series = len({point.series for point in points})
    summary = f"{plot.summary} The mean counts each benchmark once: {', '.join(map(short, benchmarks))}."
    if absent := [point for point in points if point.estimate is None]:
        summary += f" No point, since a benchmark has no score: {_steps_text(absent, n_series)}."
    if shown := [point for point in incomplete if point.drawn]:
        summary += f" Of an incomplete score: {_steps_text(shown, n_series)}."
    return replace(
        plot, name=MEAN_PLOT, title="Mean of the benchmarks: accuracy against training steps", summary=summary
    )


def _steps_text(points: Collection[CurvePoint], n_series: int) -> str:
    """The steps in words: `step 100`, `steps 100, 200`; of more than `MAX_NAMED_STEPS` the first ones and a count.

    n_series: of several curves, each step stands behind the name of its curve: `mean sft 100`.
    """
    ordered = sorted(points, key=lambda point: (point.series, point.step))
    named = [f"{point.series} {step_text(point.step)}" if n_series > 1 else step_text(point.step) for point in ordered]
    word = "" if n_series > 1 else "step " if len(named) == 1 else "steps "
    return f"{word}{listed_steps(named)}"


def listed_steps(named: Sequence[str]) -> str:
    """Texts about steps, in one list; of more than `MAX_NAMED_STEPS` the first ones and a count."""
    more = f" and {len(named) - MAX_NAMED_STEPS:,} more" if len(named) > MAX_NAMED_STEPS else ""
    return f"{', '.join(named[:MAX_NAMED_STEPS])}{more}"


def _plot(points: Sequence[CurvePoint]) -> Plot | None:
    """The plot of these points, one line per series with a point to draw; None if no series has two of them.

    The rows also hold the steps without such a point; these are empty behind the step.
    """
    present = [point for point in _order(points) if point.drawn]
    labels = list(dict.fromkeys(point.series for point in present))
    lines = {name: [point for point in present if point.series == name] for name in labels}
    if not any(len({point.step for point in line}) > 1 for line in lines.values()):
        return None
    listed = [point for point in _order(points) if point.series in lines]
    rows: list[tuple[Cell, ...]] = [
        (point.series, point.step, *numbers_of(point.estimate if point.drawn else None)) for point in listed
    ]
    ends = [
        f"{name} from {value_cell(line[0].estimate)} to {value_cell(line[-1].estimate)} %"
        for name, line in lines.items()
    ]
    between = [point for point in listed if lines[point.series][0].step < point.step < lines[point.series][-1].step]
    gaps = " Gaps: steps without a score." if any(point.estimate is None for point in between) else ""
    for why in (SETTINGS_DIFFER, SAMPLES_MISSING):
        if others := [point for point in listed if point.passed_over == why]:
            gaps += f" No point, since {why}: {_steps_text(others, len(labels))}."
    domain = {"domain": [min(point.step for point in present), max(point.step for point in present)], "nice": False}
    return Plot(
        name="series",
        title="Accuracy against training steps",
        summary=f"{'; '.join(ends)}. Bands: 95 % sampling intervals (same questions, asked again).{gaps}",
        columns=("series", "step", "accuracy", "low", "high", "question_low", "question_high"),
        rows=tuple(rows),
        drawing=curves(
            labels,
            axis("step", "training steps", scale=domain, format=",~f"),
            "accuracy",
            lone_points=len(present) < len(listed) or any(len(line) == 1 for line in lines.values()),
        ),
    )


def series_table(steps: Sequence[Step], legend: str = "", subject: str = "", legend_notes: Sequence[str] = ()) -> Table:
    """One row per step: accuracy, both 95 % intervals, number of samples, and the change since the step before.

    A change is counted from the last step before that is not passed over (`passed_over`); a step that is has none.
    legend: what the title says of the mark `*`. subject: what the title begins with, such as the benchmark.
    legend_notes: the footnotes of the legend, which come first.
    """
    rows: list[tuple[str, ...]] = []
    notes = [*legend_notes]
    reached: dict[str, float] = {}
    for name, step, score, differs, remark, apart in _order(steps):
        if remark:
            notes.append(remark)
        if score is None or score.accuracy is None:
            missing = "missing" + (f" [{len(notes)}]" if remark else "")
            rows.append((short(name), step_text(step), missing, *[ABSENT] * 4))
            continue
        is_point = not passed_over(score, apart=apart)
        before = reached.get(name) if is_point else None
        if is_point:
            reached[name] = score.accuracy.value
        value, *intervals = cells(score.accuracy)
        rows.append(
            (
                short(name),
                step_text(step),
                (accuracy_cell(score) if score.partial else value)
                + (" *" if differs else "")
                + (f" [{len(notes)}]" if remark else ""),
                *intervals,
                f"{score.n_samples:,}",
                ABSENT if before is None else in_points(score.accuracy.value - before),
            )
        )
    if any("at most" in cell for row in rows for cell in row):
        notes.append(AT_MOST)
        mark = f" [{len(notes)}]"
        rows = [tuple(f"{cell}{mark}" if "at most" in cell else cell for cell in row) for row in rows]
    columns = ("series", "step", "accuracy", "sampling interval", "question interval", "samples", "change")
    title = f"{subject}: accuracy" if subject else "Accuracy"
    change = "change: from the row before"
    why = {passed_over(step.score, apart=step.apart) for step in steps if step.score is not None}
    if SAMPLES_MISSING in why:
        change += f"; a row with more than {MAX_MISSING_SHARE * 100:g} % of its samples missing is passed over"
    if SETTINGS_DIFFER in why:
        change += "; a row with other settings is passed over"
    return Table(
        f"{title} against step, in %, with 95 % intervals ({MEANINGS}); steps whose intervals overlap may be equally "
        f"good; {change}{legend}",
        columns,
        tuple(rows),
        tuple(notes),
        frozenset(range(1, len(columns))),
    )


def cut_notes(steps: Sequence[Step]) -> list[str]:
    """The footnotes on steps of which so many samples were cut that their scores warn: by max_tokens, by the server."""
    n_series, notes = len({step.series for step in steps}), []
    for by_server, words in ((False, "max_tokens"), (True, "the server, below max_tokens,")):
        named = [
            f"{share:.1%} at step {f'{step.series} ' if n_series > 1 else ''}{step_text(step.step)}"
            for step in _order(steps)
            if step.score is not None and (share := cut_share(step.score)) and bool(step.score.early_cut) == by_server
        ]
        if named:
            notes.append(
                f"of the samples, {words} cut {listed_steps(named)}; few cut replies have an answer, so accuracies may "
                "differ by the lengths of replies alone"
            )
    return notes


def step_text(step: float) -> str:
    """A step as the tables write it, such as `1,000`."""
    return f"{step:,.0f}" if step == int(step) else f"{step:g}"


def _order(items: Sequence[_Item]) -> list[_Item]:
    """The items: series in the order of their first occurrence, steps rising."""
    names = dict.fromkeys(item.series for item in items)
    position = {name: number for number, name in enumerate(names)}
    return sorted(items, key=lambda item: (position[item.series], item.step))
