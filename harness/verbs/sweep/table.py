"""A sweep's results as tables.

The tables: a grid with one axis as columns, or models with pass@1, pass@k, reported and mean length; the means of a
suite; the series of checkpoints; and each cell beside published scores.
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
from harness.verbs.sweep.results import Aggregate, CellResult, Results, columns_axis
from harness.verbs.sweep.rows import CellRow, MeanRow

Point = Mapping[str, str]
MARK = " *"
"""Stands behind a number that differs from its base."""


class _Notes:
    """Numbered footnotes; the same text gets the same number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        """The footnote mark ` [2]` for a text, to stand behind a cell; empty for an empty text."""
        if not text:
            return ""
        if text not in self.texts:
            self.texts.append(text)
        return f" [{self.texts.index(text) + 1}]"


def tables(results: Results) -> list[Table]:
    """All tables of a sweep, in reading order."""
    sections = _grids(results) if results.sweep.table.layout == "grid" else _models(results)
    if results.aggregates:
        sections.append(_means(results))
    sections += [series_table(steps) for steps in _series(results).values()]
    rows = [
        (aggregate.cell.name, comparison)
        for aggregate in results.results
        for metric in dict.fromkeys(item.published.metric for item in aggregate.published)
        if (comparison := aggregate.nearest(metric)) is not None
    ]
    return [*sections, published_table(rows)] if rows else sections


def plots(results: Results) -> list[Plot]:
    """The plots of accuracy against training step, where the sweep has checkpoints."""
    from dataclasses import replace

    drawn = ((name, series_plot(steps)) for name, steps in _series(results).items())
    return [replace(plot, name=f"series-{name}", subject=name) for name, plot in drawn if plot is not None]


def write(results: Results) -> list[Path]:
    """Write table.md, .csv, .tex and .html to the sweep's folder; also a suite's means.csv and the plots of a series.

    Raises `StoreError`.
    """
    from harness.reports.page import tables_page  # Imported late: it needs Jinja, and no other format does.

    sections, pictures, out = tables(results), plots(results), results.sweep.out
    suite = results.sweep.suite
    subtitle = suite.title if suite is not None else f"{len(results.results)} cells"
    texts = {
        "md": to_markdown(sections),
        "csv": to_csv(results),
        "tex": to_latex(sections),
        "html": tables_page(results.sweep.name, subtitle, sections, pictures),
    }
    written = []
    for suffix, text in texts.items():
        written.append(out / f"table.{suffix}")
        write_atomically(written[-1], text.encode("utf-8", "backslashreplace"))
    if results.aggregates:
        written.append(out / "means.csv")
        write_atomically(written[-1], _csv(mean_records(results)).encode("utf-8", "backslashreplace"))
    if pictures and draw.installed():
        written += draw.write_plots(pictures, out / "plots")
    return written


def to_csv(results: Results) -> str:
    """The table as CSV, one line per cell: its point, its numbers as fractions, its difference from the base, why it is
    lost.
    """
    return _csv(records(results))


def records(results: Results) -> list[CellRow]:
    """One row per cell."""
    return [_row(results, result) for result in results.results]


def mean_records(results: Results) -> list[MeanRow]:
    """The mean over a suite's benchmarks, one row per point of the other axes; empty for a file that is no suite."""
    return [
        MeanRow(
            **_named(results, aggregate.point),
            mean=aggregate.mean,
            **_ends("sampling", aggregate.sampling_interval),
            **_ends("question", aggregate.question_interval),
            difference=aggregate.difference,
            p=aggregate.p,
            missing=", ".join(aggregate.missing),
        )
        for aggregate in results.aggregates
    ]


def _csv(records: Sequence[CellRow] | Sequence[MeanRow]) -> str:
    """The records as CSV, a column for each field."""
    rows = [msgspec.to_builtins(record) for record in records]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([csv_cell(visible(cell)) if isinstance(cell, str) else cell for cell in row.values()])
    return buffer.getvalue()


def _named(results: Results, point: Point) -> dict[str, Any]:
    return {axis: results.sweep.label(axis, point[axis]) for axis in AXES if axis in point}


def _ends(name: str, interval: Interval | None) -> dict[str, Any]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def _row(results: Results, result: CellResult) -> CellRow:
    """The cell's numbers as one row of `table.csv`."""
    score, k = result.score, results.sweep.table.k_of(result.cell.benchmark)
    reported = result.nearest("pass@1")
    return CellRow(
        cell=result.cell.name,
        **_named(results, result.cell.point),
        accuracy=score.accuracy if score else None,
        **_ends("sampling", score.sampling_interval if score else None),
        sampling_error=score.sampling_error if score else None,
        question_error=score.question_error if score else None,
        pass_at_k=_pass_at(result, k) if score else None,
        k=k if score else None,
        mean_tokens=score.mean_completion_tokens if score else None,
        questions=score.n_questions if score else None,
        samples=score.n_samples if score else None,
        difference=result.beside.difference if result.beside else None,
        p=result.p,
        reported=reported.published.value if reported else None,
        standing=result.standing,
        **_ends("question", score.question_interval if score else None),
        reason=result.reason,
    )


# ---- grid: one axis as columns


def _grids(results: Results) -> list[Table]:
    """A table per benchmark and further point: rows and columns are entries of two axes, cells are accuracies in %."""
    sweep = results.sweep
    axis = columns_axis(sweep)
    grids = []
    for benchmark in sweep.axes["benchmarks"]:
        notes = _Notes()
        of_benchmark = {"benchmarks": benchmark.name}
        columns = [entry.name for entry in sweep.axes[axis]] if axis is not None else []
        others = [name for name in AXES[:-1] if name != axis and name in sweep.axes]
        rows = []
        for point in _points(results, others, of_benchmark):
            names = [short(sweep.label(name, point[name])) for name in others]
            cells = [{**point, axis: column} for column in columns] if axis is not None else [dict(point)]
            rows.append(
                (
                    *(names or [short(benchmark.label)]),
                    *(_cell(entry, notes) + _told(results, entry) for entry in map(results.of, cells)),
                )
            )
        heads = [_one(name) for name in others] or ["benchmark"]
        labels = [short(sweep.label(axis, column)) for column in columns] if axis is not None else ["accuracy"]
        grids.append(
            Table(
                f"{short(benchmark.label)}: accuracy in %{_said(results)}",
                (*heads, *labels),
                tuple(rows),
                tuple(notes.texts),
                frozenset(range(len(heads), len(heads) + len(labels))),
            )
        )
    return grids


def _cell(result: CellResult | None, notes: _Notes) -> str:
    """The accuracy of a cell in %, with the mark of a difference, and a footnote where it is incomplete."""
    if result is None:
        return ABSENT
    if result.score is None:
        return f"missing{notes.mark(f'{result.cell.name}: {result.reason}')}"
    lost = f"{result.cell.name}: {result.reason}" if result.reason else ""
    return accuracy_cell(result.score) + (MARK if result.differs else "") + notes.mark(lost)


def _told(results: Results, result: CellResult | None) -> str:
    """The number that the suite's source reports for this model on this server."""
    if result is None or results.sweep.suite is None:
        return ""
    point = result.cell.point
    fitting = [
        reported.percent
        for reported in results.sweep.suite.reported
        if short_name(reported.model) == short_name(result.cell.model)
        and (reported.server, reported.benchmark) == (point.get("servers"), result.cell.benchmark)
    ]
    return f", reported {fitting[0]:g}" if fitting else ""


def _said(results: Results) -> str:
    return f", with its 95 % interval (same questions, asked again){_beside_base(results)}"


def _beside_base(results: Results) -> str:
    if results.base is None:
        return ""
    axis, name = results.base
    return f"; * differs from {short(results.sweep.label(axis, name))} (p < 0.05 by Holm over this sweep)"


# ---- models: pass@1, pass@k, reported, length


def _models(results: Results) -> list[Table]:
    """A table per benchmark: a row per model, with pass@1, pass@k, the reported number and the mean length."""
    sweep = results.sweep
    model_tables = []
    others = [name for name in AXES[:-1] if name in sweep.axes]
    for benchmark in sweep.axes["benchmarks"]:
        notes, k = _Notes(), sweep.table.k_of(benchmark.name)
        rows = []
        for point in _points(results, others, {"benchmarks": benchmark.name}):
            result = results.of(point)
            names = [short(sweep.label(name, point[name])) for name in others] or [short(benchmark.label)]
            rows.append((*names, _cell(result, notes), *_numbers(result, k, notes)))
        heads = [_one(name) for name in others] or ["benchmark"]
        columns = ("pass@1", "reported", f"pass@{k}", "reported", "mean tokens")
        model_tables.append(
            Table(
                f"{short(benchmark.label)}, in %{_said(results)}",
                (*heads, *columns),
                tuple(rows),
                tuple(notes.texts),
                frozenset(range(len(heads), len(heads) + len(columns))),
            )
        )
    return model_tables


def _numbers(result: CellResult | None, k: int, notes: _Notes) -> tuple[str, str, str, str]:
    """pass@1, pass@k, reported number and mean length of one cell as texts."""
    if result is None or result.score is None:
        return ABSENT, ABSENT, ABSENT, ABSENT
    at_k = _pass_at(result, k)
    few = "" if at_k is not None else f"{result.cell.name}: fewer than {k} samples a question"
    tokens = result.score.mean_completion_tokens
    return (
        _reported(result, "pass@1", notes),
        percent(at_k) + notes.mark(few),
        _reported(result, f"pass@{k}", notes),
        ABSENT if tokens is None else f"{tokens:,.0f}",
    )


def _reported(result: CellResult, metric: str, notes: _Notes) -> str:
    nearest = result.nearest(metric)
    if nearest is None:
        return ABSENT
    source = nearest.published.source
    return f"{100 * nearest.published.value:g}{notes.mark(source.named)}"


def _pass_at(result: CellResult, k: int) -> float | None:
    """pass@k of the cell; None if a question has fewer samples."""
    assert result.score is not None
    assert result.benchmark is not None
    if k in result.score.pass_at:
        return result.score.pass_at[k]
    items = [item for item in result.benchmark.questions if item.n]
    return pass_at(items, k).value if items and all(item.n >= k for item in items) else None


# ---- means, series


def _means(results: Results) -> Table:
    """The table of a suite's means, a row per point of the other axes."""
    sweep, notes = results.sweep, _Notes()
    others = [name for name in AXES[:-1] if name in sweep.axes]
    rows = []
    for aggregate in results.aggregates:
        names = [short(sweep.label(name, aggregate.point[name])) for name in others] or [short(sweep.name)]
        accuracies = []
        for benchmark in sweep.axes["benchmarks"]:
            result = results.of({**aggregate.point, "benchmarks": benchmark.name})
            missing = result is None or result.score is None
            accuracies.append(
                "missing" if missing or result is None or result.score is None else percent(result.score.accuracy)
            )
        rows.append((*names, *accuracies, *_mean_cells(aggregate, notes)))
    heads = [_one(name) for name in others] or ["suite"]
    columns = [*(short(aggregate.label) for aggregate in sweep.axes["benchmarks"]), "mean", "new questions"]
    return Table(
        "Mean of the benchmarks' accuracies in %, each counted once, with the 95 % interval for the same questions "
        f"asked again; new questions: the interval for other questions of these kinds{_beside_base(results)}",
        (*heads, *columns),
        tuple(rows),
        tuple(notes.texts),
        frozenset(range(len(heads), len(heads) + len(columns))),
    )


def _mean_cells(aggregate: Aggregate, notes: _Notes) -> tuple[str, str]:
    """The mean with its interval, and the interval for new questions, as texts."""
    if aggregate.mean is None:
        return f"missing{notes.mark('no mean without ' + ', '.join(aggregate.missing))}", ABSENT
    differs = MARK if aggregate.p is not None and aggregate.p < 0.05 else ""
    return (
        f"{percent(aggregate.mean)} ({interval_cell(aggregate.sampling_interval, at_most=aggregate.at_most)}){differs}",
        interval_cell(aggregate.question_interval),
    )


def _series(results: Results) -> dict[str, list[Step]]:
    """Benchmark → the checkpoints' scores; one line per run of checkpoints and point of the other axes."""
    steps = {entry.name: entry for entry in results.sweep.axes.get("models", ()) if entry.step is not None}
    by_series: dict[str, list[Step]] = {}
    for result in results.results:
        entry = steps.get(result.cell.point.get("models", ""))
        if entry is None or entry.step is None or result.score is None:
            continue
        run = entry.label.rpartition("-")[0]
        rest = [
            results.sweep.label(axis, name)
            for axis, name in result.cell.point.items()
            if axis not in ("models", "benchmarks") and len(results.sweep.axes[axis]) > 1
        ]
        line = " ".join([result.cell.benchmark, *([run] if run else []), *rest])
        by_series.setdefault(result.cell.benchmark, []).append(Step(line, entry.step, result.score))
    return by_series


def _points(results: Results, axes: Sequence[str], fixed: Point) -> Iterable[Point]:
    """The distinct points of these axes, in order, each with the entries of `fixed` added."""
    seen: dict[tuple[str, ...], Point] = {}
    for result in results.results:
        key = tuple(result.cell.point[axis] for axis in axes)
        seen.setdefault(key, {**dict(zip(axes, key, strict=True)), **fixed})
    return seen.values()


def _one(axis: str) -> str:
    """The heading of an axis in the singular: `models` heads a column with one model per row."""
    return axis.removesuffix("s")
