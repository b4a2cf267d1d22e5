"""`harness report`: makes one table for one or many runs, as text, Markdown, and a self-contained page."""

from __future__ import annotations

import click

from harness.cli import terminal
from harness.commands.report import default_folder, report
from harness.core.errors import Exit, StoreError
from harness.core.sanitize import visible
from harness.options.finished_runs import ReportCommand
from harness.reports.plots.plot import write_plots
from harness.reports.report import BREAKDOWNS
from harness.reports.settings import cost_of_judges, cost_of_sessions


def carry_out(options: ReportCommand) -> int:
    """Print and write the report. Returns the exit code: `Exit.CANNOT_SAY` if no run is scored."""
    table = report(options.runs)
    if options.plots is not None:
        plots = list(table.plots())
        write_plots(plots, options.plots)
        click.echo(f"plots: {len(plots)} in {options.plots}, each as SVG, CSV")
    try:
        page = table.write((options.out or default_folder(options.runs)).absolute())
    except StoreError as error:
        raise StoreError(f"{error.sentence}. Choose another folder for the report with `out`") from error
    terminal.console().print(table.terminal())
    for run in table.runs:
        for payees, cost in (("all sessions", cost_of_sessions(run)), ("the judge", cost_of_judges(run))):
            if cost is not None:
                click.echo(f"{payees} of {visible(run.label)}: {cost}")
    click.echo(f"report: {page} (also .md, .csv, .tex{f', and {BREAKDOWNS}' if table.breakdowns else ''})")
    if not table.scores:
        click.echo(
            "harness: no run has been scored, so the report contains no numbers; run `harness score` first", err=True
        )
        return Exit.CANNOT_SAY
    return Exit.YES
