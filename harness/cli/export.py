"""`harness export`: runs as training data, as a table, or in another tool's own files."""

from __future__ import annotations

from collections.abc import Mapping

import click
import msgspec

from harness.cli.json_output import print_json
from harness.commands.export import export
from harness.core.sanitize import visible
from harness.options.finished_runs import ExportCommand, ExportOptions


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An exported file."""

    path: str
    """File path."""
    records: int | None
    """Number of samples or results in the file; None if it contains neither."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """Exported files."""

    folder: str
    """Folder that contains the files."""
    files: list[ExportedFile]
    """Files that were written."""
    left_out: Mapping[str, Mapping[str, int]]
    """Number of samples that were not exported, by benchmark, then by reason."""


def carry_out(options: ExportCommand) -> None:
    """Write the files, and print their names."""
    written = export(options.runs, options.narrow(ExportOptions))
    if options.as_json:
        files = [ExportedFile(path=str(file.path), records=file.n) for file in written.files]
        print_json(Exported(folder=str(written.folder), files=files, left_out=written.left_out))
        return
    for file in written.files:
        count = "" if file.n is None else f": {file.n}"
        click.echo(f"{visible(str(file.path.relative_to(written.folder)), 200)}{count}")
    for sentence in written.sentences:
        click.echo(sentence)
    click.echo(f"written to {visible(str(written.folder), 400)}")
