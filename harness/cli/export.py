"""`harness export`: a run as training data, as a table, or in another tool's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli import completing
from harness.cli.completing import names
from harness.cli.json_output import json_option, say
from harness.cli.spelling import Command
from harness.core.inert import visible


def _prints() -> Any:
    from harness.cli.printed.ends import Exported

    return Exported


class _Format(click.Option):
    """Its help lists the formats that ship, which are imported when that help is shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The formats by what they hold."""
        from harness.exports import formats

        kinds: dict[str, list[str]] = {}
        for name, exporter in formats().items():
            kinds.setdefault(exporter.kind, []).append(name)
        held = (("training", "training data"), ("samples", "samples"), ("results", "results"))
        self.help = "; ".join(f"{', '.join(kinds[kind])} ({what})" for kind, what in held if kind in kinds) + "."
        return super().get_help_record(ctx)


@click.command("export", cls=Command)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--to",
    cls=_Format,
    required=True,
    metavar="FORMAT",
    shell_complete=names(completing.exporters),
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files. Default: exports/FORMAT in the run folder.",
)
@click.option(
    "--take",
    type=click.Choice(["correct", "all"]),
    help="Which samples. Default: correct for training data, else all.",
)
@click.option("--shortest", type=int, metavar="N", help="Of each question at most N samples, the shortest ones.")
@click.option(
    "--finish-reason",
    "finish_reasons",
    multiple=True,
    metavar="REASON",
    help="Only replies that ended so (stop, length …; `any` for all); may be repeated. Default: stop for training "
    "data, else any.",
)
@click.option(
    "--distinct/--no-distinct",
    default=None,
    help="Equal replies to one question once. Default: once for training data, else all.",
)
@click.option(
    "--no-reasoning",
    "reasoning",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Training data without the model's thinking: what it said after it.",
)
@click.option(
    "--i-know",
    is_flag=True,
    help="Also training data of a benchmark that tests, and questions whose authors ask not to publish them.",
)
@json_option(_prints, "what was written")
def command(run: Path, to: str, as_json: bool, finish_reasons: tuple[str, ...], **given: Any) -> None:
    """Write RUN in the format of another tool: a folder with a file a benchmark.

    \b
    harness export results/limo --to sharegpt
    harness export results/limo --to trl --shortest 1
    harness export results/qwq-32b --to parquet --out tables
    """
    from harness.exports import export
    from harness.runs import RunFolder

    wanted = None if not finish_reasons else () if "any" in finish_reasons else finish_reasons
    written = export(RunFolder.open(run), to, given.pop("out"), finish_reasons=wanted, **given)
    if as_json:
        from harness.cli.printed.ends import Exported, ExportedFile

        files = [ExportedFile(path=str(file.path), records=file.n) for file in written.files]
        say(Exported(folder=str(written.folder), files=files))
        return
    for file in written.files:
        count = "" if file.n is None else f": {file.n}"
        click.echo(f"{visible(str(file.path.relative_to(written.folder)), 200)}{count}")
    click.echo(f"written to {visible(str(written.folder), 400)}")
