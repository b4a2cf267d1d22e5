"""A series of models, such as the checkpoints of a training run: accuracy against the step, as a plot and a table.

steps = [Step("aime24", 500, score), Step("aime24", 1000, other)]
draw.write_plots([series_plot(steps)], folder)
to_markdown([series_table(steps)])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.reports.plots.accuracy import curves
from harness.reports.plots.plot import Cell, Plot, axis
from harness.reports.tables import (
    ABSENT,
    AT_MOST,
    MEANINGS,
    Table,
    accuracy_cell,
    interval_cell,
    p_cell,
    percent,
    points,
    points_interval,
    short,
)
from harness.scoring import PairedComparison, Score
from harness.scoring.late_steps import N_LATE, LateChange
from harness.scoring.mean_difference import MeanComparison


class Step(NamedTuple):
    """One model of a series.

    series: the line of the plot, such as a benchmark or a run. step: the position along the line, such as the number of
    training steps. score: None if the model has none yet; the table then says "missing". differs: the score differs
    from a base beyond chance; the table then marks it with `*`. remark: a footnote of the table, such as why samples
    are missing. p: of the change since the step before; None if unknown.
    """

    series: str
    step: float
    score: Score | None
    differs: bool = False
    remark: str = ""
    p: float | None = None


def series_plot(steps: Sequence[Step]) -> Plot | None:
    """Accuracy against the step, one line per series, with 95 % sampling intervals as bands.

    Steps may come in any order. A line has a gap at a step without a score between two that have one. Returns None if
    no series has two steps. To write several plots into one folder, vary `name` and `subject` by `dataclasses.replace`.
    """
    drawn = _from_first_to_last_score(_order(steps))
    rows: list[tuple[Cell, ...]] = []
    for name, x, score, *_ in drawn:
        sampling, question = (None, None) if score is None else (score.sampling_interval, score.question_interval)
        accuracy = None if score is None else score.accuracy
        rows.append((name, x, accuracy, *(sampling or (None, None)), *(question or (None, None))))
    present = [step for step in drawn if _accuracy(step) is not None]
    gaps = " Gaps: steps without a score." if len(present) < len(drawn) else ""
    labels = list(dict.fromkeys(step.series for step in present))
    lines = [[step for step in present if step.series == name] for name in labels]
    if not any(len({step.step for step in line}) > 1 for line in lines):
        return None
    ends = [
        f"{name} from {percent(_accuracy(line[0]))} to {percent(_accuracy(line[-1]))} %"
        for name, line in zip(labels, lines, strict=True)
    ]
    domain = {"domain": [min(step.step for step in present), max(step.step for step in present)], "nice": False}
    return Plot(
        name="series",
        title="Accuracy against training steps",
        summary=f"{'; '.join(ends)}. Bands: 95 % sampling intervals (same questions, asked again).{gaps}",
        columns=("series", "step", "accuracy", "low", "high", "question_low", "question_high"),
        rows=tuple(rows),
        drawing=curves(
            labels,
            axis("step", "training steps", scale=domain, format=",~f", labelOverlap=True, labelSeparation=6),
            "accuracy",
        ),
    )


def series_table(steps: Sequence[Step], legend: str = "", subject: str = "") -> Table:
    """One row per step: accuracy, both 95 % intervals, number of samples, and the change since the step before.

    legend: what the title says of the mark `*`. subject: what the title begins with, such as the benchmark. If a step
    states the p of its change, the last column shows it.
    """
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    reached: dict[str, float] = {}
    with_p = any(step.p is not None for step in steps)
    for name, step, score, differs, remark, p in _order(steps):
        if remark:
            notes.append(remark)
        if score is None or score.accuracy is None:
            missing = "missing" + (f" [{len(notes)}]" if remark else "")
            rows.append((short(name), step_text(step), missing, *[ABSENT] * (4 + with_p)))
            continue
        before = reached.get(name)
        reached[name] = score.accuracy
        rows.append(
            (
                short(name),
                step_text(step),
                (accuracy_cell(score) if score.partial else percent(score.accuracy))
                + (" *" if differs else "")
                + (f" [{len(notes)}]" if remark else ""),
                interval_cell(score.sampling_interval, at_most=score.sampling_error is None),
                interval_cell(score.question_interval),
                f"{score.n_samples:,}",
                ABSENT if before is None else points(score.accuracy - before),
                *([ABSENT if p is None else p_cell(p)] if with_p else []),
            )
        )
    if any("at most" in cell for row in rows for cell in row):
        notes.append(AT_MOST)
        mark = f" [{len(notes)}]"
        rows = [tuple(f"{cell}{mark}" if "at most" in cell else cell for cell in row) for row in rows]
    columns = ("series", "step", "accuracy", "sampling interval", "question interval", "samples", "change")
    title = f"{subject}: accuracy" if subject else "Accuracy"
    change = "change: from the row before" + (", with its p" if with_p else "")
    return Table(
        f"{title} against step, in %, with 95 % intervals ({MEANINGS}); {change}{legend}",
        (*columns, *(["p"] if with_p else [])),
        tuple(rows),
        tuple(notes),
        frozenset(range(1, len(columns) + with_p)),
    )


def late_table(series: Sequence[tuple[str, Sequence[float], LateChange]]) -> Table:
    """How each series changed lately: its last steps together minus the steps before together, and within the last.

    series: (name, the compared steps in order, their change).
    """
    rows = []
    for name, steps, late in series:
        before, last = (", ".join(map(step_text, half)) for half in (steps[:-N_LATE], steps[-N_LATE:]))
        rows.append(
            (
                short(name),
                before,
                last,
                points(late.between.difference),
                _sampling_points(late.between),
                points_interval(late.between.question_interval if isinstance(late.between, PairedComparison) else None),
                percent(late.between.smallest()),
                points(late.within.difference),
                _sampling_points(late.within),
            )
        )
    return Table(
        f"Has it stopped improving? The last {N_LATE} steps together minus the {N_LATE} before together: above 0, "
        f"it rose somewhere in these {2 * N_LATE} steps, perhaps only in the first of them. Within the last "
        f"{N_LATE}: the last step minus the first of these {N_LATE}. In points, with 95 % intervals (same "
        "questions, asked again; new questions of this kind) for a single look; detectable: the smallest true "
        "difference seen in 80 % of repetitions",
        (
            "series",
            "steps before",
            "last steps",
            "difference",
            "same questions",
            "new questions",
            "detectable",
            f"within the last {N_LATE}",
            "same questions",
        ),
        tuple(rows),
        (),
        frozenset(range(3, 9)),
    )


def _sampling_points(compared: PairedComparison | MeanComparison) -> str:
    return ("at most " if compared.at_most else "") + points_interval(compared.sampling_interval)


def step_text(step: float) -> str:
    """A step as the tables write it, such as `1,000`."""
    return f"{step:,.0f}" if step == int(step) else f"{step:g}"


def _accuracy(step: Step) -> float | None:
    return None if step.score is None else step.score.accuracy


def _from_first_to_last_score(steps: Sequence[Step]) -> list[Step]:
    """The steps, without those before the first and behind the last step of their series that has a score."""
    ends: dict[str, tuple[float, float]] = {}
    for step in steps:
        if _accuracy(step) is not None:
            ends[step.series] = ends.get(step.series, (step.step,))[0], step.step
    return [step for step in steps if step.series in ends and ends[step.series][0] <= step.step <= ends[step.series][1]]


def _order(steps: Sequence[Step]) -> list[Step]:
    """The steps: series in the order of their first occurrence, steps rising."""
    names = dict.fromkeys(step.series for step in steps)
    position = {name: number for number, name in enumerate(names)}
    return sorted(steps, key=lambda step: (position[step.series], step.step))
