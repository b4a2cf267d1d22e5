"""`harness export`: a run as training data, as a table, or in another tool's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.asking.options import ExportOptions
from harness.cli.flags import takes
from harness.cli.help import Helping
from harness.cli.json_output import json_option, say
from harness.core.inert import visible


class _Format(click.Option):
    """The option --to. Its help lists the shipped formats, which are imported only when that help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """List the formats in the help, sorted by what they hold: training data, samples or results."""
        from harness.exports import formats

        kinds: dict[str, list[str]] = {}
        for name, exporter in formats().items():
            kinds.setdefault(exporter.kind, []).append(name)
        held = (("training", "training data"), ("samples", "samples"), ("results", "results"))
        self.help = "; ".join(f"{', '.join(kinds[kind])} ({what})" for kind, what in held if kind in kinds) + "."
        return super().get_help_record(ctx)


@click.command("export", cls=Helping, verb="export")
@click.argument("run", type=click.Path(path_type=Path))
@takes(ExportOptions, classes={"to": _Format})
@json_option("harness.cli.printed.ends:Exported", "what was written")
def command(run: Path, as_json: bool, **given: Any) -> None:
    """Write RUN in the format of another tool: a folder with a file for each benchmark.

    \b
    harness export results/limo --to sharegpt
    harness export limo --to alpaca --solution-key solution
    harness export results/limo --to trl --shortest 1
    harness export results/qwq-32b --to parquet --out tables
    """
    from harness.verbs.export import export

    written = export(run, ExportOptions.of(**given))
    if as_json:
        from harness.cli.printed.ends import Exported, ExportedFile

        files = [ExportedFile(path=str(file.path), records=file.n) for file in written.files]
        say(Exported(folder=str(written.folder), files=files))
        return
    for file in written.files:
        count = "" if file.n is None else f": {file.n}"
        click.echo(f"{visible(str(file.path.relative_to(written.folder)), 200)}{count}")
    click.echo(f"written to {visible(str(written.folder), 400)}")
