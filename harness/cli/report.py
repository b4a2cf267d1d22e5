"""`harness report`: one table for one or many runs, as text, Markdown and a self-contained page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.asking.options import ReportOptions
from harness.cli import terminal
from harness.cli.audit import say_left_open
from harness.cli.flags import takes
from harness.cli.help import Helping
from harness.core.errors import EXIT_OWED, StoreError
from harness.core.inert import visible


@click.command("report", cls=Helping, verb="report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@takes(ReportOptions)
def command(runs: tuple[Path, ...], **given: Any) -> None:
    """Print one table for RUNS, benchmarks as columns, and write it as Markdown, CSV, LaTeX and HTML.

    A run is a run folder, or another tool's outputs that `harness score` has graded; the folder of a sweep stands for
    all its runs. The files go to --out, else into
    the run folder; for several runs, into the folder that holds the first. Exit code 1: none of RUNS is scored.

    \b
    harness report results/base
    harness report results/base results/tuned --out comparison
    """
    from harness.core.about import install_line
    from harness.reports.plots import draw
    from harness.reports.report import BREAKDOWNS
    from harness.reports.settings import cost_of_judges, cost_of_sessions
    from harness.verbs.report import default_folder, report

    options = ReportOptions.of(**given)
    table = report(runs, options)
    if options.plots is not None:
        plots = list(table.plots())
        draw.write_plots(plots, options.plots)
        for plot in plots:
            if plot.name.endswith(("-repeats", "-samples")):
                click.echo(f"{visible(plot.name)}: {plot.summary}")
        click.echo(f"plots: {len(plots)} in {options.plots}, each as {', '.join(draw.FORMATS)}")
    try:
        page = table.write((options.out or default_folder(runs)).absolute())
    except StoreError as error:
        raise StoreError(f"{error.sentence}. Name another folder for the report by `out`") from error
    terminal.console().print(table.terminal())
    for run in table.runs:
        for payees, cost in (("all sessions", cost_of_sessions(run)), ("the judge", cost_of_judges(run))):
            if cost is not None:
                click.echo(f"{payees} of {visible(run.label)}: {cost}")
    click.echo(f"report: {page} (also .md, .csv, .tex{f', and {BREAKDOWNS}' if table.breakdowns else ''})")
    for source in runs:
        say_left_open(source)
    if not draw.installed():
        click.echo(f"the report has no plots; to get them: {install_line(draw.EXTRA)}")
    if not table.scores:
        click.echo("harness: none of the runs is scored, so the report has no number; `harness score` first", err=True)
        sys.exit(EXIT_OWED)
