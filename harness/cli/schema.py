"""`harness schema`: the JSON schema of what a command prints with `--json`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from harness.cli import completing
from harness.cli.help import SpelledCommand
from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted


def _known() -> Iterable[str]:
    from harness.cli.json_output import printing

    return printing()


@click.command("schema", cls=SpelledCommand)
@click.argument("words", metavar="COMMAND", nargs=-1, shell_complete=completing.names(_known))
def command(words: tuple[str, ...]) -> None:
    """Print the JSON schema (2020-12) of what COMMAND prints with --json.

    \b
    harness schema score
    harness schema experiment repeats
    """
    from harness.cli.json_output import say, schema

    commands, name = [*_known()], " ".join(words)
    if name not in commands:
        problem = (
            f"{quoted(name)!r} is no command with --json.{near_names(name, commands)}" if words else "name a command."
        )
        raise UsageError(f"{problem} These have --json: {', '.join(commands)}")
    say(schema(name))
