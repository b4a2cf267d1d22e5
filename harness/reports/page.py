"""Builds the self-contained HTML page. This module provides its sections as values; `page.html` is its template and
`page.css` its style sheet.

The page has no scripts and sends no requests: its content security policy forbids both, and allows only the page's own
style sheet, by digest. Jinja makes all text inert and escapes it. The page contains no questions, answers or replies.
Browser extensions can still act on the page.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup, escape

from harness.core.installation import __version__
from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.deciding.verdicts import Decision
from harness.reports import report_plots
from harness.reports.inputs import ScoredRun
from harness.reports.plots.plot import DARK_STYLE, Plot
from harness.reports.report_plots import RunBenchmark
from harness.reports.score_tables import breakdown_table, endpoint_table, samples_cell
from harness.reports.settings import checksum_table, failure_table, rubrics, run_table, settings_table
from harness.reports.table import Table, short
from harness.runs.manifest import UNKNOWN_MODEL
from harness.scoring.call_measures import SCHEMA_ACCURACY
from harness.scoring.score import Score
from harness.scoring.table_cells import cells, lead_estimate, percent, value_cell

Values = dict[str, Any]
"""Values shown in a part of the page, by their names in the template; any other name is an error."""


def page(
    runs: Sequence[ScoredRun],
    summary: Table,
    comparisons: Sequence[Table],
    numbers: Sequence[Table],
    beside: report_plots.Beside,
    answer: str = "",
    decisions: Sequence[Decision] = (),
    *,
    commands: Sequence[tuple[str, str]] = (),
    title: str = "",
) -> str:
    """The HTML page for these runs.

    numbers: the tables at its end. beside: the published scores for each benchmark. answer: the result in one sentence.
    decisions: the comparisons of the runs. commands: (run label, a line of the
    command that repeats the run). title: the heading; empty: the names of the models (`_title`).
    """
    templates = _environment()
    names = report_plots.names(runs)
    drawn = sum(len(report_plots.parts(runs, name)) for name in names) <= report_plots.MAX_PAIRS
    sections = [_section(number, name, runs, drawn=drawn) for number, name in enumerate(names, 1)]
    return templates.get_template("page.html").render(
        policy=_policy(templates),
        title=title or _title(runs, names),
        subtitle=answer or f"{count_noun(len(runs), 'run')} · {', '.join(visible(name, 40) for name in names)}",
        headlines=[] if len(runs) > 1 else list(map(_headline, runs[0].scores)),
        summary=summary,
        n_answers=int(bool(decisions)),
        overview=_figures(report_plots.overview(runs, beside, decisions)),
        comparisons=[_without_run(table, runs) for table in comparisons],
        sections=sections,
        several=len(runs) > 1,
        numbers=[_without_run(table, runs) for table in numbers],
        run_table=run_table(runs),
        failures=_without_run(failure_table(runs), runs),
        commands=commands,
        undrawn=not drawn,
        versions=", ".join(sorted({short(run.manifest.harness_version) for run in runs} | {__version__})),
    )


def tables_page(title: str, subtitle: str, tables: Sequence[Table], plots: Sequence[Plot] = ()) -> str:
    """A page with only tables and plots, with the same protections as the page of runs."""
    templates = _environment()
    return templates.get_template("tables.html").render(
        policy=_policy(templates),
        title=title,
        subtitle=subtitle,
        tables=tables,
        pictures=_figures(plots),
    )


def _title(runs: Sequence[ScoredRun], benchmarks: Sequence[str]) -> str:
    """The names of the models. If none is known, as for imported files: the run's name, or for several runs, the names
    of the benchmarks.
    """
    models = [run.manifest.model for run in runs if run.manifest.model != UNKNOWN_MODEL]
    return ", ".join(dict.fromkeys(map(short, models or ([runs[0].label] if len(runs) == 1 else benchmarks))))


def _policy(templates: jinja2.Environment) -> str:
    """The content security policy: nothing may be fetched or run; only the style sheet is allowed, by its digest."""
    # Hash the rendered style sheet, because a browser hashes the text in the page.
    style = templates.get_template("page.css").render()
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"


@cache
def _environment() -> jinja2.Environment:
    """The Jinja environment of the page: every value is escaped, and an unknown name is an error.

    It is cached with its compiled templates, because a sweep rewrites its page after each cell.
    """
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.reports", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_escape_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["dark_style"] = Markup(DARK_STYLE)  # noqa: S704 - a constant
    return templates


def _escape_controls(value: Any) -> Any:
    """Make text that a template prints inert, before Jinja escapes it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _markup(text: str) -> Markup:
    """`text` for a `pre` element: inert and escaped, but with its line breaks and tabs."""
    return escape("".join(part if part in "\n\t" else visible(part) for part in re.split(r"([\n\t])", text)))


def _without_run(table: Table, runs: Sequence[ScoredRun]) -> Table:
    """The table, without its column of run names if there is only one run."""
    if len(runs) != 1 or table.columns[0] != "run":
        return table
    return dataclasses.replace(
        table,
        columns=table.columns[1:],
        rows=tuple(row[1:] for row in table.rows),
        numeric=frozenset(column - 1 for column in table.numeric),
    )


def _headline(score: Score) -> Values:
    """The headline of one benchmark: its accuracy in large letters; `facts`: (name, value) of each line below it."""
    most = max(score.pass_at, default=0)
    accuracy, same, new = cells(lead_estimate(score))
    facts = [
        *([] if score.accuracy else [("measure", SCHEMA_ACCURACY)]),
        ("same questions", same),
        ("new questions", new),
        ("size", f"{count_noun(score.n_questions, 'question')} × {samples_cell(score)}"),
    ]
    if most > 1:
        both = f"{value_cell(score.pass_at[most])} · {value_cell(score.maj_at.get(most))}"
        facts.append((f"pass@{most} · maj@{most}", both))
    if score.n_truncated is not None and score.n_samples:
        facts.append(("cut short", f"{score.n_truncated / score.n_samples:.1%}"))
    if score.partial:
        facts.append(("when complete, within", f"{percent(score.bounds.low)}–{percent(score.bounds.high)}"))
    return {"benchmark": short(score.benchmark), "accuracy": accuracy, "facts": facts}


def _section(number: int, name: str, runs: Sequence[ScoredRun], *, drawn: bool) -> Values:
    """The section of one benchmark, with the parts of all runs.

    number: the section's number, for its address on the page. drawn: whether plots of single runs are drawn.
    """
    present = report_plots.parts(runs, name)
    alone = len(present) == 1  # the budget plot is then drawn in its part; otherwise above, for all runs
    return {
        "anchor": f"benchmark-{number}",
        "name": short(name),
        "figures": _figures(report_plots.benchmark_plots(present)),
        # Without graded questions, a run has only settings.
        "parts": [_run_part(part, drawn=drawn, alone=alone) for part in present if part.benchmark.questions],
        "settings": settings_table([part.run for part in present], name),
        "checksums": checksum_table([part.run for part in present], name),
        "rubrics": {prompt: _markup(text) for prompt, text in rubrics(runs, name).items()},
    }


def _run_part(part: RunBenchmark, *, drawn: bool, alone: bool) -> Values:
    """One run's part in the section of a benchmark.

    drawn: whether plots of single runs are drawn. alone: whether no other run in the report has the benchmark.
    """
    run, benchmark = part
    score = benchmark.score
    return {
        "label": short(run.label),
        "figures": _figures(report_plots.run_plots(part, alone=alone)) if drawn else [],
        "breakdowns": [breakdown_table(run.label, score, by) for by in score.breakdowns] if score else [],
        "endpoints": endpoint_table([(run.label, score)]) if score else None,
    }


def _figures(plots: Sequence[Plot]) -> list[Values]:
    """The values of the plots, each with its `picture`."""
    # Pictures are hidden from screen readers, because the caption of the figure describes them.
    drawn = [(plot, plot.svg().replace("<svg", '<svg aria-hidden="true"', 1)) for plot in plots]
    return [{"title": plot.title, "summary": plot.summary, "picture": Markup(svg)} for plot, svg in drawn]  # noqa: S704 - `plot` escapes, which tests check
