"""A series of models, such as the checkpoints of a training run: accuracy against the step, as a plot and a table.

steps = [Step("aime24", 500, score), Step("aime24", 1000, other)]
write_plots([series_plot(steps)], folder)
to_markdown([series_table(steps)])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.core.number_text import count_noun, in_points
from harness.core.sanitize import visible
from harness.reports.inputs import ScoredBenchmark, ScoredRun
from harness.reports.plots.pictures import numbers_of
from harness.reports.plots.plot import BANDS, ENDS, Axis, Cell, Plot, lines_plot, round_values
from harness.reports.table import AT_MOST, MEANINGS, Notes, Table, short
from harness.runs.manifest import BenchmarkRecord
from harness.runs.recorded_settings import MAX_SETTING_CHARS, describe_setting, differences_in_curve, value_text
from harness.scoring.score import Score
from harness.scoring.stats import Estimate
from harness.scoring.table_cells import ABSENT, accuracy_cell, cells, value_cell
from harness.scoring.tally import MAX_MISSING_SHARE

SETTINGS_DIFFER, SAMPLES_MISSING = "settings differ", "samples are missing"
"""Why a step is skipped."""


class Step(NamedTuple):
    """One model of a series.

    series: the line of the plot, such as a benchmark or a run. step: the position along the line, such as the number of
    training steps. score: None if the model has none yet; the table then shows "missing". differs: whether the score
    differs from a base beyond chance; the table then marks it with `*`. remark: a footnote of the table, such as why
    samples are missing. apart: whether its settings differ from its curve's.
    """

    series: str
    step: float
    score: Score | None
    differs: bool = False
    remark: str = ""
    apart: bool = False

    @property
    def skip_reason(self) -> str:
        """Why the step is not a point of its curve: its settings differ (`apart`), or more than `MAX_MISSING_SHARE` of
        the planned samples are missing; otherwise empty.

        The first samples to finish tend to be short and right, or made a run stop, so a curve through such a score
        would show a jump of the model although only its run ended early.
        """
        score = self.score
        if score is None:
            return ""
        if self.apart:
            return SETTINGS_DIFFER
        lacks_samples = score.n_missing > MAX_MISSING_SHARE * (score.n_samples + score.n_missing)
        return SAMPLES_MISSING if lacks_samples else ""

    @property
    def plotted_accuracy(self) -> Estimate | None:
        """The accuracy shown in its curve; None if there is none."""
        return None if self.score is None or self.skip_reason else self.score.accuracy


def series_plot(steps: Sequence[Step]) -> Plot | None:
    """Accuracy against the step, one line per series, with 95% sampling intervals as bands.

    Steps may be in any order. A line has a gap at a step without a score, and at a skipped step (`skip_reason`), if it
    is between two others. Returns None if no series has two steps to draw. To write several plots into one folder, set
    their `name` and `subject` with `dataclasses.replace`.
    """
    present = [step for step in _order(steps) if step.plotted_accuracy is not None]
    labels = list(dict.fromkeys(step.series for step in present))
    lines = {name: [step for step in present if step.series == name] for name in labels}
    if not any(len({step.step for step in line}) > 1 for line in lines.values()):
        return None
    listed = [step for step in _order(steps) if step.series in lines]
    rows: list[tuple[Cell, ...]] = [(step.series, step.step, *numbers_of(step.plotted_accuracy)) for step in listed]
    ends = [
        f"{name} from {value_cell(line[0].plotted_accuracy)} to {value_cell(line[-1].plotted_accuracy)}%"
        for name, line in lines.items()
    ]
    between = [step for step in listed if lines[step.series][0].step < step.step < lines[step.series][-1].step]
    gaps = " Gaps are steps without a score." if any(step.score is None for step in between) else ""
    for why in (SETTINGS_DIFFER, SAMPLES_MISSING):
        if others := sum(step.skip_reason == why for step in listed):
            gaps += f" No point where {why}: {count_noun(others, 'step')}."
    low, high = min(step.step for step in present), max(step.step for step in present)
    return lines_plot(
        "series",
        "Accuracy by training step",
        f"{'; '.join(ends)}. {BANDS}{gaps}",
        ("series", "step", "accuracy", *ENDS),
        rows,
        Axis(low, high, [(value, step_text(value)) for value in round_values(low, high)], "training steps"),
    )


def benchmark_plot(benchmark: str, steps: Sequence[Step]) -> Plot | None:
    """The `series_plot` of one benchmark, with the benchmark in its title and its file name."""
    plot = series_plot(steps)
    if plot is None:
        return None
    title = f"{short(benchmark)}: {plot.title[0].lower()}{plot.title[1:]}"
    return replace(plot, name=benchmark_plot_name(benchmark), title=title)


def benchmark_plot_name(benchmark: str) -> str:
    """The name of the plot of one benchmark and of its files."""
    return f"series-{benchmark}"


def series_table(steps: Sequence[Step], legend: str = "", subject: str = "") -> Table:
    """One row per step: accuracy, both 95% intervals, number of samples, and the change since the previous step.

    The change is relative to the previous step that is not skipped (`skip_reason`); a skipped step has no change.
    legend: the title's explanation of the mark `*`. subject: the beginning of the title, such as the benchmark.
    """
    rows: list[tuple[str, ...]] = []
    notes = Notes()
    reached: dict[str, float] = {}  # by series, the accuracy of its latest step that is not skipped
    for step in _order(steps):
        mark = notes.mark(step.remark)
        names, score = (short(step.series), step_text(step.step)), step.score
        if score is None or score.accuracy is None:
            rows.append((*names, f"missing{mark}", *[ABSENT] * 4))
            continue
        change = ABSENT
        if not step.skip_reason:
            if step.series in reached:
                change = in_points(score.accuracy.value - reached[step.series])
            reached[step.series] = score.accuracy.value
        value, *intervals = cells(score.accuracy)
        shown = accuracy_cell(score) if score.partial else value
        differs = " *" if step.differs else ""
        rows.append((*names, f"{shown}{differs}{mark}", *intervals, f"{score.n_samples:,}", change))
    rows = [tuple(cell + notes.mark(AT_MOST * ("at most" in cell)) for cell in row) for row in rows]
    heads = ("step", "accuracy", "sampling interval", "question interval", "samples", "change")
    title = f"{subject}: accuracy" if subject else "Accuracy"
    change = "change: relative to the previous row"
    why = {step.skip_reason for step in steps}
    if SAMPLES_MISSING in why:
        change += f"; rows with more than {MAX_MISSING_SHARE * 100:g}% missing samples are skipped"
    if SETTINGS_DIFFER in why:
        change += "; rows with different settings are skipped"
    title += (
        f" by training step, in %, with 95% intervals ({MEANINGS}). Steps with overlapping intervals may be equally "
        f"good. {change}{legend}"
    )
    return Table.of(title, ("series",), heads, rows, notes.texts)


def step_text(step: float) -> str:
    """A step as shown in tables, such as `1,000`."""
    return f"{step:,.0f}" if step == int(step) else f"{step:g}"


def _order(steps: Sequence[Step]) -> list[Step]:
    """The steps: series in the order of their first occurrence, with ascending steps in each."""
    names = dict.fromkeys(step.series for step in steps)
    position = {name: number for number, name in enumerate(names)}
    return sorted(steps, key=lambda step: (position[step.series], step.step))


def settings_apart(steps: Iterable[tuple[str, float, str, BenchmarkRecord]]) -> dict[str, str]:
    """Name of each step whose settings differ from its curve's → how they differ (`max_tokens 32, the others 100`).

    steps: (curve, step, name, record). A curve's settings are those of its last step.
    """
    ordered = sorted(steps, key=lambda item: item[1])
    latest = {curve: record for curve, _, _, record in ordered}
    apart: dict[str, list[str]] = {}
    for curve, _, name, record in ordered:
        for change in differences_in_curve(record, latest[curve]):
            setting = visible(describe_setting(change.field), MAX_SETTING_CHARS)
            words = f"{setting} {value_text(change.old)}, the others {value_text(change.new)}"
            apart.setdefault(name, []).append(words)
    return {name: "; ".join(changes) for name, changes in apart.items()}


def steps_of(runs: Sequence[ScoredRun]) -> dict[str, list[Step]]:
    """Benchmark → the runs that are checkpoints, as steps of their curves; steps with different settings are marked
    `apart`.
    """
    every = [(run, item, run.suite.step) for run in runs for item in run.benchmarks.values()]
    placed = [(run, item, step) for run, item, step in every if step is not None]
    apart = settings_apart((_curve(run, item.name), step, _key(run, item), item.record) for run, item, step in placed)
    steps: dict[str, list[Step]] = {}
    for run, item, step in placed:
        differing = apart.get(_key(run, item), "")
        points = steps.setdefault(item.name, [])
        points.append(Step(_curve(run, item.name), step, item.score, remark=differing, apart=bool(differing)))
    return steps


def training_tables(runs: Sequence[ScoredRun]) -> list[Table]:
    """For each benchmark that has a curve with at least two scored steps, the table of its steps."""
    tables = []
    for name, steps in steps_of(runs).items():
        scored = Counter(step.series for step in steps if step.score is not None and step.score.n_samples)
        if any(n > 1 for n in scored.values()):
            tables.append(series_table(steps, subject=short(name)))
    return tables


def _key(run: ScoredRun, benchmark: ScoredBenchmark) -> str:
    return f"{run.label}/{benchmark.name}"


def _curve(run: ScoredRun, benchmark: str) -> str:
    """The name of the curve that the run is a point of; each sweep has separate curves."""
    sweep, _, _ = run.label.rpartition("/")
    return " ".join(filter(None, (sweep, benchmark, run.suite.curve)))
