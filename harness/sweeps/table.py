"""A sweep's results as tables.

The tables are a grid with one axis as columns, or rows per model or per benchmark with the columns that the file lists;
the means of a suite; the series of checkpoints; and each cell next to published scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from harness.core.number_text import count_noun
from harness.core.sanitize import csv_text
from harness.deciding.verdicts import LEVEL
from harness.reports.formats import in_markdown, to_latex, to_markdown, write_files
from harness.reports.plots.pictures import Labeled, accuracy_plot
from harness.reports.plots.plot import Plot, files_of, write_plots
from harness.reports.report_plots import ticks_of
from harness.reports.series import Step, benchmark_plot, benchmark_plot_name, series_table
from harness.reports.table import Notes, Table, short
from harness.scoring.stats import Estimate
from harness.scoring.table_cells import ABSENT, accuracy_cell, cells, ends, with_interval
from harness.sweeps.columns import MARK, column_heads, column_texts, pass_at_k, published_text, score_text
from harness.sweeps.load_curve import advice, curve_plots, curve_points, load_table
from harness.sweeps.plan import AXES, Sweep
from harness.sweeps.results import Aggregate, CellResult, Results
from harness.sweeps.rows import CellRow, MeanRow
from harness.sweeps.thinking import thinking_plots

Row = TypeVar("Row", CellRow, MeanRow)

DIGITS = 12
"""Number of decimals of a fraction in CSV and JSON."""

Point = Mapping[str, str]
"""Axis → name of the entry, for some axes of a sweep."""


def tables(results: Results) -> list[Table]:
    """All tables of a sweep, in reading order."""
    of_load = load_table(results, _base_legend(results, (result.p for result in results.results)))
    sections = [of_load] if of_load else []
    if not of_load or "table" in results.sweep.file.content:
        sections += _grids(results) if results.sweep.table.layout == "grid" else _listed(results)
    if results.aggregates:
        sections.append(_means(results))
    for name, steps in curves(results).items():
        of_benchmark = [result for result in results.results if result.cell.benchmark == name]
        legend = _base_legend(results, (result.p for result in of_benchmark))
        sections.append(series_table(steps, subject=short(name), legend=legend))
    return sections


def load_advice(results: Results) -> str:
    """The recommended loads as text; empty unless the sweep varies the load."""
    return ". ".join(advice(curve_points(results)))


def markdown(results: Results) -> str:
    """The answer and the tables as Markdown."""
    first = load_advice(results)
    return f"{in_markdown(first)}\n\n" * bool(first) + to_markdown(tables(results))


def plots(results: Results) -> list[Plot]:
    """The accuracies with published scores next to them, by benchmark; if the sweep has checkpoints, the accuracies
    against the training step.
    """
    steps, names = curves(results), [entry.name for entry in results.sweep.axes["benchmarks"]]
    rows = [
        Labeled(result.cell.name, result.score.accuracy, ticks_of(result.published, result.suite))
        for result in sorted(results.results, key=lambda result: names.index(result.cell.benchmark))
        if result.score is not None and result.cell.benchmark not in steps
    ]
    drawn = [
        *curve_plots(results),
        *thinking_plots(results),
        accuracy_plot(rows),
        *(benchmark_plot(name, of_curve) for name, of_curve in steps.items()),
    ]
    return [plot for plot in drawn if plot is not None]


def write(results: Results) -> list[Path]:
    """Write table.md, .csv, .tex and .html to the sweep's folder, as well as a suite's means.csv and the plots of a
    series.

    The files of an earlier plot that can no longer be drawn, such as one with a single step left, are removed, since
    they would contradict the tables. Raises `StoreError`.
    """
    from harness.reports.page import tables_page  # Imported late: it needs Jinja, which no other format does.

    sections, pictures, out = tables(results), plots(results), results.sweep.out
    suite = results.sweep.suite
    cells_in_words = suite.title if suite is not None else count_noun(len(results.results), "cell")
    texts = {
        "table.md": markdown(results),
        "table.csv": to_csv(results),
        "table.tex": to_latex(sections),
        "table.html": tables_page(results.sweep.name, load_advice(results) or cells_in_words, sections, pictures),
    }
    written = write_files(out, texts | ({"means.csv": _csv(mean_records(results))} if results.aggregates else {}))
    folder = out / "plots"
    if pictures:
        written += write_plots(pictures, folder)
    if results.sweep.checkpoints:
        names = [benchmark_plot_name(entry.name) for entry in results.sweep.axes["benchmarks"]]
        for path in {path for name in names for path in files_of(name, folder)}.difference(written):
            path.unlink(missing_ok=True)
    return written


def to_csv(results: Results) -> str:
    """The table as CSV with one line per cell: the entries of its axes, its numbers as fractions, its difference from
    the base, and why it has no score.
    """
    return _csv(records(results))


def records(results: Results) -> list[CellRow]:
    """One row per cell."""
    return [_without_noise(_row(results, result)) for result in results.results]


def mean_records(results: Results) -> list[MeanRow]:
    """The mean over a suite's benchmarks, one row per point of the other axes; empty if the file is not a suite."""
    return [
        _without_noise(
            MeanRow(
                **_labels(results, aggregate.point),
                **_value("mean", aggregate.mean, "sampling"),
                **ends("question", aggregate.mean and aggregate.mean.question),
                **_value("difference", aggregate.difference),
                p=aggregate.p,
                reported=aggregate.reported.published.value if aggregate.reported else None,
                missing=", ".join(aggregate.missing),
            )
        )
        for aggregate in results.aggregates
    ]


def _without_noise(row: Row) -> Row:
    """The row with fractions rounded to 12 digits, so that 0.571 does not become 0.5710000000000001; p, which may be
    tiny, is unchanged.
    """
    values = {name: value for name, value in msgspec.structs.asdict(row).items() if isinstance(value, float)}
    return replace(row, **{name: round(value, DIGITS) for name, value in values.items() if name != "p"})


def _csv(records: Sequence[CellRow] | Sequence[MeanRow]) -> str:
    """The records as CSV, with one column for each field. At least one record is needed."""
    rows = [msgspec.to_builtins(record) for record in records]
    rows = [{head: part for name, value in row.items() for head, part in _flat(name, value).items()} for row in rows]
    heads = dict.fromkeys(head for row in rows for head in row)
    return csv_text([heads, *([row.get(head) for head in heads] for row in rows)])


def _flat(name: str, value: Any) -> dict[str, Any]:
    """A value in CSV form: an object has a column for each of its parts, such as `load_total_p50`."""
    if not isinstance(value, dict):
        return {name: value}
    return {head: part for own, inner in value.items() for head, part in _flat(f"{name}_{own}", inner).items()}


def _labels(results: Results, point: Point) -> dict[str, Any]:
    """Axis → label of the point's entry, for the axes that the file has."""
    return {axis: results.sweep.label(axis, point[axis]) for axis in AXES if axis in point}


def _value(name: str, estimate: Estimate | None, of_ends: str = "") -> dict[str, Any]:
    """The value under its name, and the ends of its interval for the same questions, under `of_ends` or its name."""
    return {name: estimate and estimate.value, **ends(of_ends or name, estimate and estimate.sampling)}


def _row(results: Results, result: CellResult) -> CellRow:
    """The cell's numbers as one row of `table.csv`."""
    score, k = result.score, results.sweep.table.k_of(result.cell.benchmark)
    accuracy, reported = score.accuracy if score else None, result.nearest
    at_k = pass_at_k(result, k) if score else None
    return CellRow(
        cell=result.cell.name,
        **_labels(results, result.cell.point),
        **_value("accuracy", accuracy, "sampling"),
        sampling_error=score.sampling_error if score else None,
        question_error=score.question_error if score else None,
        **_value("pass_at_k", at_k),
        k=k if score else None,
        mean_tokens=score.mean_completion_tokens if score else None,
        questions=score.n_questions if score else None,
        samples=score.n_samples if score else None,
        **_value("difference", result.against_base.difference if result.against_base else None),
        p=result.p,
        reported=reported.published.value if reported else None,
        standing=result.standing,
        likelihood_difference=result.likelihood.difference.mean if result.likelihood else None,
        **ends("question", accuracy and accuracy.question),
        reason=result.reason,
        warnings="; ".join(score.sentences) if score else "",
        load=result.load or msgspec.UNSET,
        goodput=score.goodput if score else msgspec.UNSET,
    )


# ---- the cells


def _grids(results: Results) -> Iterator[Table]:
    """One table with the benchmarks as columns, or one table per benchmark, whose columns are the entries of another
    axis. The rows are the entries of the remaining axes.

    A benchmark with a table of steps, which shows the same accuracies, has no single-column grid.
    """
    sweep, across, split = results.sweep, results.sweep.columns_axis, ["benchmarks"]
    several = len(sweep.axes["benchmarks"]) > 1 and sweep.suite is None and not sweep.checkpoints
    if across is not None and (sweep.table.columns == "benchmarks" or (sweep.table.columns is None and several)):
        across, split = "benchmarks", []
    down = [axis for axis in sweep.other_axes if axis != across] or ["benchmarks"]
    entries = sweep.axes[across] if across is not None else ()
    with_steps = curves(results) if len(entries) <= 1 else {}
    for point in _points(results.results, split):
        shown, notes = _with(results.results, point), Notes()
        has_published = any(result.published or result.other_questions for result in shown)
        if point.get("benchmarks") in with_steps and not has_published:
            continue
        columns = [({str(across): entry.name}, short(entry.label)) for entry in entries] or [({}, "accuracy")]
        columns = [(of_column, head) for of_column, head in columns if _with(shown, of_column)]
        rows = [
            (row, [_grid_text(results, _with(shown, {**row, **of_column}), notes) for of_column, _ in columns])
            for row in _points(shown, down)
        ]
        title = _title(results, point, ": accuracy in %", shown)
        yield _table(sweep, title, down, [head for _, head in columns], rows, notes)


def _grid_text(results: Results, cells: Sequence[CellResult], notes: Notes) -> str:
    """The text of one cell of a grid; `ABSENT` for a cell that the file excludes."""
    return "".join(score_text(cell, notes) + _published_cell(results, cell, notes) for cell in cells) or ABSENT


def _listed(results: Results) -> Iterator[Table]:
    """Tables with the columns that the file lists. Layout models: a table per benchmark, with a row per cell; layout
    benchmarks: a table per combination of the other axes, with a row per benchmark.
    """
    sweep, options = results.sweep, results.sweep.table
    split, down = ["benchmarks"], sweep.other_axes or ["benchmarks"]
    if options.layout == "benchmarks":
        split, down = sweep.other_axes, ["benchmarks"]
    for point in _points(results.results, split):
        shown, notes, rows = _with(results.results, point), Notes(), []
        for row in _points(shown, down):
            (cell,) = _with(shown, row)
            rows.append((row, column_texts(options.shown, cell, options.k_of(cell.cell.benchmark), notes)))
        heads = column_heads(options.shown, {options.k_of(result.cell.benchmark) for result in shown})
        yield _table(sweep, _title(results, point, ", in %", shown), down, heads, rows, notes)


def _title(results: Results, point: Point, what: str, shown: Iterable[CellResult]) -> str:
    """The title of a table of the cells at this point. what: description of its numbers, such as ", in %"."""
    names = ", ".join(short(results.sweep.label(axis, name)) for axis, name in point.items())
    beside = _base_legend(results, (result.p for result in shown))
    return f"{names or short(results.sweep.name)}{what}, with its 95% interval (same questions, sampled again){beside}"


def _table(
    sweep: Sweep,
    title: str,
    axes: Sequence[str],
    heads: Sequence[str],
    rows: Iterable[tuple[Point, Sequence[str]]],
    notes: Notes,
) -> Table:
    """A table whose first columns name the entry of each of these axes. rows: each point, with the texts for the
    columns in `heads`.
    """
    named = ((*(short(sweep.label(axis, point[axis])) for axis in axes), *texts) for point, texts in rows)
    return Table.of(title, [axis.removesuffix("s") for axis in axes], heads, named, notes.texts)


def _points(results: Iterable[CellResult], axes: Sequence[str]) -> Iterable[Point]:
    """The distinct combinations of entries of these axes (points), in order."""
    points = [{axis: result.cell.point[axis] for axis in axes} for result in results]
    return {tuple(point.values()): point for point in points}.values()


def _with(results: Iterable[CellResult], entries: Point) -> list[CellResult]:
    """The results of the cells that have these entries, in order."""
    return [result for result in results if entries.items() <= result.cell.point.items()]


def _published_cell(results: Results, result: CellResult, notes: Notes) -> str:
    """What the suite's source reports for the cell, and whether it agrees: `, reported 55.83 [1]: compatible`.

    Empty for a cell without a score, for a sweep that is not a suite, and if nothing is published. If the published
    score is for different questions, the text is only the mark of a footnote that says so.
    """
    if result.other_questions:
        return notes.mark(result.other_questions)
    nearest = result.nearest if result.score is not None else None
    if nearest is None or results.sweep.suite is None:
        return ""
    return f", reported {published_text(nearest, result.samples, notes)}: {result.standing}"


def _base_legend(results: Results, ps: Iterable[float | None]) -> str:
    """The end of a table's title, which explains `MARK` (*); empty if no cell is compared with the base.

    ps: p-values of the table's cells; None for a cell that is not compared.
    """
    if all(p is None for p in ps):
        return ""
    sweep = results.sweep
    label = short(sweep.label(*sweep.base)) if sweep.base else "the first configuration at its lowest load"
    return f"; * differs from {label} (p < 0.05, corrected for all comparisons of this sweep)"


# ---- means


def _means(results: Results) -> Table:
    """The table of a suite's means, with a row per combination of entries of the other axes."""
    sweep, notes, rows = results.sweep, Notes(), []
    names = {entry.name for entry in sweep.averaged}
    reported = any(aggregate.reported for aggregate in results.aggregates)
    for aggregate in results.aggregates:
        at_point = _with(results.results, aggregate.point)
        cells = [cell for cell in at_point if cell.cell.point["benchmarks"] in names]
        accuracies = ["missing" if cell.score is None else accuracy_cell(cell.score) for cell in cells]
        texts = (*accuracies, *_mean_cells(aggregate, notes, [cell.remark for cell in cells]))
        if reported:
            texts += (published_text(aggregate.reported, sum(cell.samples or 0 for cell in cells), notes),)
        rows.append(({**aggregate.point, "suite": sweep.name}, texts))
    title = (
        "Mean of the benchmark accuracies in %, weighted equally, with the 95% interval for the same questions, "
        "sampled again; the column `new questions` has the interval for new questions of the same kinds"
        f"{_base_legend(results, (mean.p for mean in results.aggregates))}"
    )
    heads = [*(short(benchmark.label) for benchmark in sweep.averaged), "mean", "new questions"]
    heads += ["reported"] if reported else []
    return _table(sweep, title, sweep.other_axes or ["suite"], heads, rows, notes)


def _mean_cells(aggregate: Aggregate, notes: Notes, remarks: Sequence[str]) -> tuple[str, str]:
    """The mean with its interval, and the interval for new questions, as texts; notes explain what is missing.

    remarks: further notes on the mean; empty ones are ignored, and duplicates are written once.
    """
    names = ", ".join(aggregate.missing)
    if aggregate.mean is None:
        return f"missing{notes.mark('no mean without ' + names)}", ABSENT
    differs = MARK if aggregate.p is not None and aggregate.p < LEVEL else ""
    incomplete = f"incomplete: {names}; see the benchmark tables for the reasons" if names else ""
    lost = notes.mark(*dict.fromkeys((*remarks, incomplete)))
    return f"{with_interval(aggregate.mean)}{differs}{lost}", cells(aggregate.mean)[2]


# ---- checkpoints


def curves(results: Results) -> dict[str, list[Step]]:
    """Benchmark → all checkpoints on it; a `Step` has a curve's name, a training step and, if available, a score.

    In a result, `differs` means that it differs significantly from its base cell, and `apart` that its settings differ
    from its curve's.
    """
    by_series: dict[str, list[Step]] = {}
    for result in results.results:
        cell = result.cell
        if cell.checkpoint is not None:
            curve, remark = f"{cell.benchmark} {cell.curve}".strip(), "; ".join(filter(None, result.notes))
            of_curve = curve, cell.checkpoint.step, result.score, result.differs
            by_series.setdefault(cell.benchmark, []).append(Step(*of_curve, remark, bool(result.apart)))
    # A benchmark without any score has no table.
    return {name: steps for name, steps in by_series.items() if any(step.score is not None for step in steps)}
