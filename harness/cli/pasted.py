"""`harness` with the command line of another tool: prints ours, and what has no counterpart."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import click

from harness.cli.foreign.command_line import translations
from harness.cli.help import taken_by
from harness.core.errors import EXIT_COMPLETE, UsageError


def translate(group: click.Group, ctx: click.Context, args: Sequence[str]) -> int | None:
    """Print our commands on standard output, and what is left out on standard error; return the exit code.

    None if the words are no command line of a known tool. group: our commands.
    """

    def takes(words: Sequence[str]) -> Collection[str]:
        """The flags and arguments of a command of ours."""
        command: click.Command | None = group
        for word in words:
            command = command.get_command(ctx, word) if isinstance(command, click.Group) else command
        assert command is not None
        return taken_by(command)

    lines = []
    for translation in translations(args, takes):
        lines.append(translation.line())
        click.echo(lines[-1] or "# no command: it names no benchmark or model that is known here", err=not lines[-1])
        for reason in dict.fromkeys(translation.notes.values()):
            flags = ", ".join(flag for flag, why in translation.notes.items() if why == reason)
            click.echo(f"# {flags}: {reason}.", err=True)
    return (EXIT_COMPLETE if all(lines) else UsageError.exit_code) if lines else None
