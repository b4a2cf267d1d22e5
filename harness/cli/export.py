"""`harness export`: runs as training data, as a table, or in another tool's own files."""

from __future__ import annotations

import click

from harness.cli.json_output import say
from harness.cli.printed.ends import Exported, ExportedFile
from harness.commands.export import export
from harness.core.inert import visible
from harness.options.finished import ExportCommand, ExportOptions


def carry_out(options: ExportCommand) -> None:
    """Write the files, and print their names."""
    written = export(options.runs, options.narrowed(ExportOptions))
    if options.as_json:
        files = [ExportedFile(path=str(file.path), records=file.n) for file in written.files]
        say(Exported(folder=str(written.folder), files=files, left_out=written.left_out))
        return
    for file in written.files:
        count = "" if file.n is None else f": {file.n}"
        click.echo(f"{visible(str(file.path.relative_to(written.folder)), 200)}{count}")
    for sentence in written.sentences:
        click.echo(sentence)
    click.echo(f"written to {visible(str(written.folder), 400)}")
