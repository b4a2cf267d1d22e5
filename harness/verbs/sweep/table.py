"""A sweep's results as tables.

The tables: a grid with one axis as columns, or a row per model or per benchmark with the columns that the file lists;
the means of a suite; the series of checkpoints; and each cell beside published scores.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.core.files import write_atomically
from harness.core.inert import csv_cell, csv_file, visible
from harness.core.nouns import count_noun, in_points
from harness.reports.comparison_tables import published_table
from harness.reports.formats import to_latex, to_markdown
from harness.reports.plots import draw
from harness.reports.plots.plot import Plot
from harness.reports.published import differences
from harness.reports.series import MEAN_PLOT, benchmark_plot, benchmark_plot_name, cut_notes, series_table
from harness.reports.tables import Table, short
from harness.scoring.columns import ends
from harness.scoring.deciding import LEVEL
from harness.scoring.score import accuracy_cell
from harness.scoring.uncertainty import ABSENT, cells, value_cell, with_interval
from harness.verbs.sweep import curves
from harness.verbs.sweep.cells import AXES
from harness.verbs.sweep.columns import (
    MARK,
    Notes,
    column_heads,
    column_texts,
    pass_at_k,
    published_text,
    score_text,
    sources_text,
    verdict_text,
)
from harness.verbs.sweep.results import Aggregate, CellResult, Results, columns_axis
from harness.verbs.sweep.rows import CellRow, MeanRow

Point = Mapping[str, str]


def tables(results: Results) -> list[Table]:
    """All tables of a sweep, in reading order."""
    layouts = {"grid": _grids, "models": _models, "benchmarks": _benchmarks}
    sections = layouts[results.sweep.table.layout](results)
    if results.aggregates:
        sections.append(_means(results))
    for name, steps in curves.series(results).items():
        of_benchmark = [result for result in results.results if result.cell.benchmark == name]
        notes = Notes()
        legend = _beside_base(results, of_benchmark) + "".join(map(notes.mark, cut_notes(steps)))
        sections.append(series_table(steps, subject=short(name), legend=legend, legend_notes=notes.texts))
    # The nearest published score of each metric, beside each cell.
    rows = []
    for result in results.results:
        for metric in dict.fromkeys(item.published.metric for item in result.published):
            comparison = result.nearest(metric)
            if comparison is not None:
                rows.append((result.cell.name, comparison))
    return [*sections, published_table(rows)] if rows else sections


def score_lines(results: Results) -> list[str]:
    """A line for each cell with a score: the accuracy with its interval and, of a checkpoint, the change since the step
    before and the remarks on its settings and its model.
    """
    lines = []
    for result in results.results:
        if (score := result.score) is not None and score.accuracy is not None:
            change = result.since_before
            since = "" if change is None else f", {in_points(change.difference.value)} since the step before"
            remarks = "".join(f"; {words}" for words in (result.apart, result.remark) if words)
            lines.append(f"{visible(result.cell.name, 200)}: accuracy in %: {accuracy_cell(score)}{since}{remarks}")
    return lines


def plots(results: Results) -> list[Plot]:
    """The plots of accuracy against training step, where the sweep has checkpoints; last that of a suite's means."""
    drawn = [benchmark_plot(name, steps) for name, steps in curves.series(results).items()]
    return [plot for plot in (*drawn, curves.plot_of_means(results)) if plot is not None]


def write(results: Results) -> list[Path]:
    """Write table.md, .csv, .tex and .html to the sweep's folder; also a suite's means.csv and the plots of a series.

    The files of an earlier plot that cannot be drawn now, such as one with a single step left, are removed, since they
    would contradict the tables. Raises `StoreError`.
    """
    from harness.reports.page import tables_page  # Imported late: it needs Jinja, and no other format does.

    sections, pictures, out = tables(results), plots(results), results.sweep.out
    suite = results.sweep.suite
    subtitle = suite.title if suite is not None else count_noun(len(results.results), "cell")
    texts = {
        "md": to_markdown(sections),
        "csv": to_csv(results),
        "tex": to_latex(sections),
        "html": tables_page(results.sweep.name, subtitle, sections, pictures),
    }
    written = []
    for suffix, text in texts.items():
        written.append(out / f"table.{suffix}")
        content = csv_file(text) if suffix == "csv" else text.encode("utf-8", "backslashreplace")
        write_atomically(written[-1], content)
    if results.aggregates:
        written.append(out / "means.csv")
        write_atomically(written[-1], csv_file(_csv(mean_records(results))))
    folder = out / "plots"
    if pictures and draw.installed():
        written += draw.write_plots(pictures, folder)
    if results.sweep.checkpoints:
        names = [MEAN_PLOT, *(benchmark_plot_name(entry.name) for entry in results.sweep.axes["benchmarks"])]
        for path in {path for name in names for path in draw.files_of(name, folder)}.difference(written):
            path.unlink(missing_ok=True)
    return written


def to_csv(results: Results) -> str:
    """The table as CSV with one line per cell: the entries of its axes, its numbers as fractions, its difference from
    the base, and why it has no score.
    """
    return _csv(records(results))


def records(results: Results) -> list[CellRow]:
    """One row per cell."""
    return [_row(results, result) for result in results.results]


def mean_records(results: Results) -> list[MeanRow]:
    """The mean over a suite's benchmarks, one row per point of the other axes; empty for a file that is no suite."""
    return [
        MeanRow(
            **_labels(results, aggregate.point),
            mean=aggregate.mean and aggregate.mean.value,
            **ends("sampling", aggregate.mean and aggregate.mean.sampling),
            **ends("question", aggregate.mean and aggregate.mean.question),
            difference=aggregate.difference,
            p=aggregate.p,
            missing=", ".join(aggregate.missing),
        )
        for aggregate in results.aggregates
    ]


def _csv(records: Sequence[CellRow] | Sequence[MeanRow]) -> str:
    """The records as CSV, with one column for each field. At least one record is needed."""
    rows = [msgspec.to_builtins(record) for record in records]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([csv_cell(visible(cell)) if isinstance(cell, str) else cell for cell in row.values()])
    return buffer.getvalue()


def _labels(results: Results, point: Point) -> dict[str, Any]:
    """Axis → label of the point's entry, for the axes that the file has."""
    return {axis: results.sweep.label(axis, point[axis]) for axis in AXES if axis in point}


def _row(results: Results, result: CellResult) -> CellRow:
    """The cell's numbers as one row of `table.csv`."""
    score, k = result.score, results.sweep.table.k_of(result.cell.benchmark)
    accuracy, reported = score.accuracy if score else None, result.nearest("pass@1")
    return CellRow(
        cell=result.cell.name,
        **_labels(results, result.cell.point),
        accuracy=accuracy and accuracy.value,
        **ends("sampling", accuracy and accuracy.sampling),
        sampling_error=score.sampling_error if score else None,
        question_error=score.question_error if score else None,
        pass_at_k=pass_at_k(result, k) if score else None,
        k=k if score else None,
        mean_tokens=score.mean_completion_tokens if score else None,
        questions=score.n_questions if score else None,
        samples=score.n_samples if score else None,
        difference=result.against_base.difference.value if result.against_base else None,
        p=result.p,
        reported=reported.published.value if reported else None,
        standing=result.standing,
        **ends("question", accuracy and accuracy.question),
        reason=result.reason,
        reported_as=reported.published.printed if reported else "",
        reported_by=reported.published.source.named if reported else "",
        reported_under="; ".join(differences(reported, result.samples)) if reported else "",
        vendor=result.vendor.published.printed if result.vendor else "",
        sources=sources_text(result),
        change=result.since_before.difference.value if result.since_before else None,
        p_change=result.p_since_before,
    )


# ---- grid: one axis as columns


def _grids(results: Results) -> list[Table]:
    """A table of accuracies in % for each benchmark: the entries of one axis are the columns, and each combination of
    entries of the other axes is a row. A benchmark with a table of steps has no grid of a single column.
    """
    sweep = results.sweep
    axis = columns_axis(sweep)
    grids = []
    by_step = [] if axis is not None and len(sweep.axes[axis]) > 1 else curves.series(results)
    for benchmark in sweep.axes["benchmarks"]:
        shown = _with(results, {"benchmarks": benchmark.name})
        if benchmark.name in by_step and not any(result.published or result.other_questions for result in shown):
            continue  # The table of its steps has the same accuracies.
        notes = Notes()
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
                    *(score_text(entry, notes) + _beside(results, entry, notes) for entry in map(results.of, cells)),
                )
            )
        heads = [_in_singular(name) for name in others] or ["benchmark"]
        labels = [short(sweep.label(axis, column)) for column in columns] if axis is not None else ["accuracy"]
        grids.append(
            Table(
                f"{short(benchmark.label)}: accuracy in %{_measured_as(results, _with(results, of_benchmark))}",
                (*heads, *labels),
                tuple(rows),
                tuple(notes.texts),
                frozenset(range(len(heads), len(heads) + len(labels))),
            )
        )
    return grids


def _beside(results: Results, result: CellResult | None, notes: Notes) -> str:
    """What the suite's source reports for the cell, and whether it agrees: `, reported 55.83 [1]: compatible`.

    Empty for a cell without a score, for a sweep that is no suite, and where nothing is published. If the published
    score is of other questions, the text is only the mark of a footnote that says so.
    """
    nearest = result.nearest("pass@1") if result is not None and result.score is not None else None
    if result is not None and result.other_questions:
        return notes.mark(result.other_questions)
    if result is None or nearest is None or results.sweep.suite is None:
        return ""
    verdict = verdict_text(result)
    return f", reported {published_text(result, nearest, notes)}" + (f": {verdict}" if verdict else "")


def _with(results: Results, entries: Point) -> list[CellResult]:
    """The results of the cells that have these entries."""
    return [result for result in results.results if entries.items() <= result.cell.point.items()]


def _measured_as(results: Results, shown: Sequence[CellResult]) -> str:
    """The end of a table's title: which interval its accuracies have, and what the sign `MARK` (*) means."""
    return f", with its 95 % interval (same questions, asked again){_beside_base(results, shown)}"


def _beside_base(results: Results, shown: Sequence[CellResult]) -> str:
    """The end of a table's title that says what the sign `MARK` (*) means; empty if no cell shown has a base."""
    axis = results.base_axis
    bases = [result.base.point[axis] for result in shown if axis is not None and result.base is not None]
    return _differs_from(results, bases)


def _differs_from(results: Results, bases: Sequence[str]) -> str:
    """What the sign `MARK` (*) means in a table whose cells are compared with these entries; empty without any."""
    axis, named = results.base_axis, dict.fromkeys(bases)
    if axis is None or not named:
        return ""
    labels = " or ".join(short(results.sweep.label(axis, name)) for name in named)
    which = ", the first step with all samples there" if len(named) > 1 else ""
    return f"; * differs from {labels}{which} (p < 0.05, corrected for all comparisons of this sweep)"


# ---- models, benchmarks: a row per cell, with the columns that the file lists


def _models(results: Results) -> list[Table]:
    """A table per benchmark, with a row per combination of entries of the other axes."""
    sweep = results.sweep
    model_tables = []
    others = [name for name in AXES[:-1] if name in sweep.axes]
    for benchmark in sweep.axes["benchmarks"]:
        notes, k = Notes(), sweep.table.k_of(benchmark.name)
        rows = []
        for point in _points(results, others, {"benchmarks": benchmark.name}):
            names = [short(sweep.label(name, point[name])) for name in others] or [short(benchmark.label)]
            rows.append((*names, *column_texts(sweep.table.shown, results.of(point), k, notes)))
        heads = [_in_singular(name) for name in others] or ["benchmark"]
        title = _title(results, short(benchmark.label), {"benchmarks": benchmark.name})
        model_tables.append(_rows_table(results, title, heads, rows, k, notes))
    return model_tables


def _benchmarks(results: Results) -> list[Table]:
    """A table per combination of entries of the other axes, with a row per benchmark."""
    sweep = results.sweep
    benchmark_tables = []
    others = [name for name in AXES[:-1] if name in sweep.axes]
    names = [benchmark.name for benchmark in sweep.axes["benchmarks"]]
    ks = {sweep.table.k_of(name) for name in names}
    for point in _points(results, others, {}):
        notes = Notes()
        title = ", ".join(short(sweep.label(name, point[name])) for name in others) or short(sweep.name)
        rows = [
            (
                short(sweep.label("benchmarks", name)),
                *column_texts(
                    sweep.table.shown, results.of({**point, "benchmarks": name}), sweep.table.k_of(name), notes
                ),
            )
            for name in names
        ]
        k = ks.copy().pop() if len(ks) == 1 else None
        benchmark_tables.append(_rows_table(results, _title(results, title, point), ["benchmark"], rows, k, notes))
    return benchmark_tables


def _title(results: Results, title: str, entries: Point) -> str:
    """The title of a table of the cells that have these entries."""
    return f"{title}, in %{_measured_as(results, _with(results, entries))}"


def _rows_table(
    results: Results, title: str, first: Sequence[str], rows: Sequence[tuple[str, ...]], k: int | None, notes: Notes
) -> Table:
    """A table of `rows`. first: the headings of their first columns; the columns that the sweep's file lists follow.

    k: the k of pass@k for all rows; None if the rows have different ones.
    """
    columns = column_heads(results.sweep.table.shown, k)
    return Table(
        title,
        (*first, *columns),
        tuple(rows),
        tuple(notes.texts),
        frozenset(range(len(first), len(first) + len(columns))),
    )


# ---- means, series


def _means(results: Results) -> Table:
    """The table of a suite's means, with a row per combination of entries of the other axes."""
    sweep, notes = results.sweep, Notes()
    others = [name for name in AXES[:-1] if name in sweep.axes]
    rows = []
    for aggregate in results.aggregates:
        names = [short(sweep.label(name, aggregate.point[name])) for name in others] or [short(sweep.name)]
        cells = [results.of({**aggregate.point, "benchmarks": item.name}) for item in sweep.axes["benchmarks"]]
        scores = [None if result is None else result.score for result in cells]
        accuracies = ["missing" if score is None else value_cell(score.accuracy) for score in scores]
        present = [item for item in cells if item is not None]
        remarks = [item.remark for item in present]
        rows.append((*names, *accuracies, *_mean_cells(aggregate, notes, remarks)))
    bases = [mean.base for mean in results.aggregates if mean.base and mean.p is not None]
    heads = [_in_singular(name) for name in others] or ["suite"]
    columns = [*(short(benchmark.label) for benchmark in sweep.axes["benchmarks"]), "mean", "new questions"]
    return Table(
        "Mean of the benchmarks' accuracies in %, each counted once, with the 95 % interval for the same questions "
        "asked again; new questions: the interval for other questions of these kinds"
        f"{_differs_from(results, bases)}",
        (*heads, *columns),
        tuple(rows),
        tuple(notes.texts),
        frozenset(range(len(heads), len(heads) + len(columns))),
    )


def _mean_cells(aggregate: Aggregate, notes: Notes, remarks: Sequence[str]) -> tuple[str, str]:
    """The mean with its interval, and the interval for new questions, as texts; notes say what is missing.

    remarks: further notes on the mean; an empty one is none, and an equal one is written once.
    """
    names = ", ".join(aggregate.missing)
    if aggregate.mean is None:
        return f"missing{notes.mark('no mean without ' + names)}", ABSENT
    differs = MARK if aggregate.p is not None and aggregate.p < LEVEL else ""
    incomplete = f"incomplete: {names}; the tables of the benchmarks say why" if names else ""
    lost = "".join(map(notes.mark, dict.fromkeys((*remarks, incomplete, aggregate.uncompared))))
    return f"{with_interval(aggregate.mean)}{differs}{lost}", cells(aggregate.mean)[2]


def _points(results: Results, axes: Sequence[str], fixed: Point) -> Iterable[Point]:
    """The distinct combinations of entries of these axes (points), in order, each with the entries of `fixed` added."""
    seen: dict[tuple[str, ...], Point] = {}
    for result in results.results:
        key = tuple(result.cell.point[axis] for axis in axes)
        seen.setdefault(key, {**dict(zip(axes, key, strict=True)), **fixed})
    return seen.values()


def _in_singular(axis: str) -> str:
    """The heading of an axis in the singular: `model` heads a column with one model per row."""
    return axis.removesuffix("s")
