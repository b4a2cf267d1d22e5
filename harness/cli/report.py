"""`harness report`: one table for one or many runs, as text, Markdown and a self-contained page."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli import terminal


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder for report.html, .md, .csv and .tex.")
def command(runs: tuple[Path, ...], out: Path | None) -> None:
    """Print one table for RUN_FOLDER..., benchmarks as columns, and write it as Markdown, CSV, LaTeX and HTML.

    The files go to --out, else into the run folder; for several runs, into the folder that holds the first.
    """
    from harness.reports import report
    from harness.runs import RunFolder
    from harness.scoring import load_published

    folders = [RunFolder.open(path) for path in runs]
    made = report(folders, load_published())
    target = (out or (folders[0].path if len(folders) == 1 else folders[0].path.parent)).absolute()
    page = made.write(target)
    terminal.console().print(made.terminal())
    click.echo(f"report: {page} (also .md, .csv, .tex)")
