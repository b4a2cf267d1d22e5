"""A sweep's results as tables: a grid with one axis as columns, or models with pass@1, pass@k, reported, mean length;
the means of a suite, the series of checkpoints, and each cell beside what is published.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.core.files import write_atomically
from harness.core.inert import csv_cell, visible
from harness.reports.comparison_tables import published_table
from harness.reports.formats import to_latex, to_markdown
from harness.reports.plots import draw
from harness.reports.plots.plot import Plot
from harness.reports.series import Step, series_plot, series_table
from harness.reports.tables import ABSENT, Table, accuracy_cell, interval_cell, percent, short
from harness.scoring.intervals import Interval
from harness.scoring.published import short_name
from harness.scoring.uncertainty import pass_at
from harness.verbs.sweep.cells import AXES
from harness.verbs.sweep.results import Aggregate, Result, Results, columns_axis
from harness.verbs.sweep.rows import CellRow, MeanRow

Point = Mapping[str, str]
MARK = " *"
"""After a number that differs from its base."""


class _Notes:
    """Numbered notes; one text has one number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        """` [2]`, to stand behind a cell; nothing for no text."""
        if not text:
            return ""
        if text not in self.texts:
            self.texts.append(text)
        return f" [{self.texts.index(text) + 1}]"


def tables(found: Results) -> list[Table]:
    """All of them, in the order in which they are read."""
    made = _grids(found) if found.sweep.table.layout == "grid" else _models(found)
    if found.aggregates:
        made.append(_means(found))
    made += [series_table(steps) for steps in _series(found).values()]
    rows = [
        (one.cell.name, comparison)
        for one in found.results
        for metric in dict.fromkeys(item.published.metric for item in one.published)
        if (comparison := one.nearest(metric)) is not None
    ]
    return [*made, published_table(rows)] if rows else made


def plots(found: Results) -> list[Plot]:
    """Accuracy against the step of checkpoints, where there are such."""
    from dataclasses import replace

    made = ((name, series_plot(steps)) for name, steps in _series(found).items())
    return [replace(plot, name=f"series-{name}", subject=name) for name, plot in made if plot is not None]


def write(found: Results) -> list[Path]:
    """table.md, .csv, .tex and .html in the sweep's folder, of a suite also means.csv, and the plots of a series.

    Raises `StoreError`.
    """
    from harness.reports.page import tables_page  # Jinja, which no other format needs

    made, pictures, out = tables(found), plots(found), found.sweep.out
    suite = found.sweep.suite
    subtitle = suite.title if suite is not None else f"{len(found.results)} cells"
    texts = {
        "md": to_markdown(made),
        "csv": to_csv(found),
        "tex": to_latex(made),
        "html": tables_page(found.sweep.name, subtitle, made, pictures),
    }
    written = []
    for suffix, text in texts.items():
        written.append(out / f"table.{suffix}")
        write_atomically(written[-1], text.encode("utf-8", "backslashreplace"))
    if found.aggregates:
        written.append(out / "means.csv")
        write_atomically(written[-1], _csv(mean_records(found)).encode("utf-8", "backslashreplace"))
    if pictures and draw.installed():
        written += draw.write_plots(pictures, out / "plots")
    return written


def to_csv(found: Results) -> str:
    """One line a cell: its point, its numbers as fractions, its difference from its base, and why it is lost."""
    return _csv(records(found))


def records(found: Results) -> list[CellRow]:
    """A row a cell."""
    return [_row(found, one) for one in found.results]


def mean_records(found: Results) -> list[MeanRow]:
    """The mean of a suite's benchmarks, one a point of the other axes; none of a file that is no suite."""
    return [
        MeanRow(
            **_named(found, one.point),
            mean=one.mean,
            **_ends("sampling", one.sampling_interval),
            **_ends("question", one.question_interval),
            difference=one.difference,
            p=one.p,
            missing=", ".join(one.missing),
        )
        for one in found.aggregates
    ]


def _csv(records: Sequence[CellRow] | Sequence[MeanRow]) -> str:
    rows = [msgspec.to_builtins(one) for one in records]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([csv_cell(visible(cell)) if isinstance(cell, str) else cell for cell in row.values()])
    return buffer.getvalue()


def _named(found: Results, point: Point) -> dict[str, Any]:
    return {axis: found.sweep.label(axis, point[axis]) for axis in AXES if axis in point}


def _ends(name: str, interval: Interval | None) -> dict[str, Any]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def _row(found: Results, one: Result) -> CellRow:
    score, k = one.score, found.sweep.table.k_of(one.cell.benchmark)
    reported = one.nearest("pass@1")
    return CellRow(
        cell=one.cell.name,
        **_named(found, one.cell.point),
        accuracy=score.accuracy if score else None,
        **_ends("sampling", score.sampling_interval if score else None),
        sampling_error=score.sampling_error if score else None,
        question_error=score.question_error if score else None,
        pass_at_k=_pass_at(one, k) if score else None,
        k=k if score else None,
        mean_tokens=score.mean_completion_tokens if score else None,
        questions=score.n_questions if score else None,
        samples=score.n_samples if score else None,
        difference=one.beside.difference if one.beside else None,
        p=one.p,
        reported=reported.published.value if reported else None,
        standing=one.standing,
        **_ends("question", score.question_interval if score else None),
        reason=one.reason,
    )


# ---- grid: one axis as columns


def _grids(found: Results) -> list[Table]:
    sweep = found.sweep
    axis = columns_axis(sweep)
    made = []
    for benchmark in sweep.axes["benchmarks"]:
        notes = _Notes()
        at = {"benchmarks": benchmark.name}
        columns = [one.name for one in sweep.axes[axis]] if axis is not None else []
        others = [name for name in AXES[:-1] if name != axis and name in sweep.axes]
        rows = []
        for point in _points(found, others, at):
            names = [short(sweep.label(name, point[name])) for name in others]
            cells = [{**point, axis: column} for column in columns] if axis is not None else [dict(point)]
            rows.append(
                (
                    *(names or [short(benchmark.label)]),
                    *(_cell(one, notes) + _told(found, one) for one in map(found.of, cells)),
                )
            )
        heads = [_one(name) for name in others] or ["benchmark"]
        labels = [short(sweep.label(axis, column)) for column in columns] if axis is not None else ["accuracy"]
        made.append(
            Table(
                f"{short(benchmark.label)}: accuracy in %{_said(found)}",
                (*heads, *labels),
                tuple(rows),
                tuple(notes.texts),
                frozenset(range(len(heads), len(heads) + len(labels))),
            )
        )
    return made


def _cell(one: Result | None, notes: _Notes) -> str:
    if one is None:
        return ABSENT
    if one.score is None:
        return f"missing{notes.mark(f'{one.cell.name}: {one.reason}')}"
    lost = f"{one.cell.name}: {one.reason}" if one.reason else ""
    return accuracy_cell(one.score) + (MARK if one.differs else "") + notes.mark(lost)


def _told(found: Results, one: Result | None) -> str:
    """What the suite's source reports for this model on this server."""
    if one is None or found.sweep.suite is None:
        return ""
    point = one.cell.point
    fitting = [
        reported.percent
        for reported in found.sweep.suite.reported
        if short_name(reported.model) == short_name(one.cell.model)
        and (reported.server, reported.benchmark) == (point.get("servers"), one.cell.benchmark)
    ]
    return f", reported {fitting[0]:g}" if fitting else ""


def _said(found: Results) -> str:
    return f", with its 95 % interval (same questions, asked again){_beside_base(found)}"


def _beside_base(found: Results) -> str:
    if found.base is None:
        return ""
    axis, name = found.base
    return f"; * differs from {short(found.sweep.label(axis, name))} (p < 0.05 by Holm over this sweep)"


# ---- models: pass@1, pass@k, reported, length


def _models(found: Results) -> list[Table]:
    sweep = found.sweep
    made = []
    others = [name for name in AXES[:-1] if name in sweep.axes]
    for benchmark in sweep.axes["benchmarks"]:
        notes, k = _Notes(), sweep.table.k_of(benchmark.name)
        rows = []
        for point in _points(found, others, {"benchmarks": benchmark.name}):
            one = found.of(point)
            names = [short(sweep.label(name, point[name])) for name in others] or [short(benchmark.label)]
            rows.append((*names, _cell(one, notes), *_numbers(one, k, notes)))
        heads = [_one(name) for name in others] or ["benchmark"]
        columns = ("pass@1", "reported", f"pass@{k}", "reported", "mean tokens")
        made.append(
            Table(
                f"{short(benchmark.label)}, in %{_said(found)}",
                (*heads, *columns),
                tuple(rows),
                tuple(notes.texts),
                frozenset(range(len(heads), len(heads) + len(columns))),
            )
        )
    return made


def _numbers(one: Result | None, k: int, notes: _Notes) -> tuple[str, str, str, str]:
    if one is None or one.score is None:
        return ABSENT, ABSENT, ABSENT, ABSENT
    at_k = _pass_at(one, k)
    few = "" if at_k is not None else f"{one.cell.name}: fewer than {k} samples a question"
    tokens = one.score.mean_completion_tokens
    return (
        _reported(one, "pass@1", notes),
        percent(at_k) + notes.mark(few),
        _reported(one, f"pass@{k}", notes),
        ABSENT if tokens is None else f"{tokens:,.0f}",
    )


def _reported(one: Result, metric: str, notes: _Notes) -> str:
    nearest = one.nearest(metric)
    if nearest is None:
        return ABSENT
    source = nearest.published.source
    return f"{100 * nearest.published.value:g}{notes.mark(source.named)}"


def _pass_at(one: Result, k: int) -> float | None:
    """None where a question has fewer samples."""
    assert one.score is not None
    assert one.benchmark is not None
    if k in one.score.pass_at:
        return one.score.pass_at[k]
    items = [item for item in one.benchmark.questions if item.n]
    return pass_at(items, k).value if items and all(item.n >= k for item in items) else None


# ---- means, series


def _means(found: Results) -> Table:
    sweep, notes = found.sweep, _Notes()
    others = [name for name in AXES[:-1] if name in sweep.axes]
    rows = []
    for one in found.aggregates:
        names = [short(sweep.label(name, one.point[name])) for name in others] or [short(sweep.name)]
        accuracies = []
        for benchmark in sweep.axes["benchmarks"]:
            result = found.of({**one.point, "benchmarks": benchmark.name})
            missing = result is None or result.score is None
            accuracies.append(
                "missing" if missing or result is None or result.score is None else percent(result.score.accuracy)
            )
        rows.append((*names, *accuracies, *_mean_cells(one, notes)))
    heads = [_one(name) for name in others] or ["suite"]
    columns = [*(short(one.label) for one in sweep.axes["benchmarks"]), "mean", "new questions"]
    return Table(
        "Mean of the benchmarks' accuracies in %, each counted once, with its 95 % interval; new questions: that over "
        f"other questions of these kinds{_beside_base(found)}",
        (*heads, *columns),
        tuple(rows),
        tuple(notes.texts),
        frozenset(range(len(heads), len(heads) + len(columns))),
    )


def _mean_cells(one: Aggregate, notes: _Notes) -> tuple[str, str]:
    if one.mean is None:
        return f"missing{notes.mark('no mean without ' + ', '.join(one.missing))}", ABSENT
    differs = MARK if one.p is not None and one.p < 0.05 else ""
    return (
        f"{percent(one.mean)} ({interval_cell(one.sampling_interval, at_most=one.at_most)}){differs}",
        interval_cell(one.question_interval),
    )


def _series(found: Results) -> dict[str, list[Step]]:
    """Benchmark → the checkpoints' scores; a line for each run of checkpoints and each point of the other axes."""
    steps = {one.name: one for one in found.sweep.axes.get("models", ()) if one.step is not None}
    made: dict[str, list[Step]] = {}
    for one in found.results:
        entry = steps.get(one.cell.point.get("models", ""))
        if entry is None or entry.step is None or one.score is None:
            continue
        run = entry.label.rpartition("-")[0]
        rest = [
            found.sweep.label(axis, name)
            for axis, name in one.cell.point.items()
            if axis not in ("models", "benchmarks") and len(found.sweep.axes[axis]) > 1
        ]
        line = " ".join([one.cell.benchmark, *([run] if run else []), *rest])
        made.setdefault(one.cell.benchmark, []).append(Step(line, entry.step, one.score))
    return made


def _points(found: Results, axes: Sequence[str], at: Point) -> Iterable[Point]:
    """The points of these axes, in order, each once, with `at` added."""
    seen: dict[tuple[str, ...], Point] = {}
    for one in found.results:
        key = tuple(one.cell.point[axis] for axis in axes)
        seen.setdefault(key, {**dict(zip(axes, key, strict=True)), **at})
    return seen.values()


def _one(axis: str) -> str:
    """The heading of an axis: `models` heads a column of one model each."""
    return axis.removesuffix("s")
