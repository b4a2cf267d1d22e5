"""`harness report`: one table for one or many runs, as text, Markdown and a self-contained page."""

from __future__ import annotations

from pathlib import Path

import click

from harness.asking.options import AnyK
from harness.cli import terminal
from harness.cli.flags import flags_of
from harness.cli.spelling import Command

(_any_k,) = flags_of(AnyK)


@click.command("report", cls=Command)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder for report.html, .md, .csv and .tex.")
@click.option(
    "--plots", type=click.Path(path_type=Path, file_okay=False), help="Folder for each plot as SVG, PNG and CSV."
)
@_any_k
@click.option(
    "--i-know", is_flag=True, help="Show also questions that their authors ask to keep out of what is published."
)
def command(runs: tuple[Path, ...], out: Path | None, plots: Path | None, k: tuple[int, ...], i_know: bool) -> None:
    """Print one table for RUNS, benchmarks as columns, and write it as Markdown, CSV, LaTeX and HTML.

    A run is a run folder, or another tool's outputs that `harness score` has graded. The files go to --out, else into
    the run folder; for several runs, into the folder that holds the first.
    """
    from harness.cli.again import typed
    from harness.core.about import install_line
    from harness.reports.plots import draw
    from harness.reports.report import report
    from harness.runs import Manifest
    from harness.scoring import load_published
    from harness.verbs.again import options_again
    from harness.verbs.outputs import open_scored

    folders = [open_scored(path) for path in runs]
    made = report(
        folders,
        load_published(models=[Manifest.load(folder).model for folder in folders]),
        repeat=lambda manifest: [typed(options) for options in options_again(manifest)],
        show_withheld=i_know,
        ks=AnyK.of(k=k).k,
    )
    target = (out or (folders[0].path if len(folders) == 1 else folders[0].path.parent)).absolute()
    if plots is not None:
        n_plots = len(draw.write_plots(made.plots(), plots)) // len(draw.FORMATS)
        click.echo(f"plots: {n_plots} in {plots}, each as {', '.join(draw.FORMATS)}")
    page = made.write(target)
    terminal.console().print(made.terminal())
    click.echo(f"report: {page} (also .md, .csv, .tex)")
    if not draw.installed():
        click.echo(f"it has no plots: {install_line(draw.EXTRA)}")
