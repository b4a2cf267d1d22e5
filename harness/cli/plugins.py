"""`harness plugins`: lists what other installed packages add, and whether each works."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from harness.cli.help import SpelledCommand, spelt
from harness.cli.json_output import json_option, say
from harness.core.errors import UsageError
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.core.plugins import Kind


def _prints() -> Any:
    from harness.cli.printed.lists import PluginRow

    return list[PluginRow]


@click.command("plugins", cls=SpelledCommand)
@json_option(_prints, "the list")
def command(as_json: bool) -> None:
    """List the plug-ins of installed packages: graders, prompts, sources, launchers, exporters, providers,
    trackers.

    Each is imported, and one that cannot be is told in a sentence; exit code 2 where there is one.
    """
    from harness.cli import terminal
    from harness.cli.printed.lists import PluginRow
    from harness.core.plugins import list_plugins

    rows = [PluginRow(**plugin._asdict(), problem=_problem(plugin.kind, plugin.name)) for plugin in list_plugins()]
    if as_json:
        say(rows)
    elif not rows:
        click.echo("no plug-in is installed; docs/plugins.md says how one is made")
    else:
        columns = ("kind", "name", "package", "value")
        terminal.table(columns, [tuple(visible(getattr(row, name), 100) for name in columns) for row in rows])
        for row in rows:
            if row.problem is not None:
                terminal.warn(row.problem)
    if any(row.problem is not None for row in rows):
        sys.exit(UsageError.exit_code)


def _problem(kind: Kind, name: str) -> str | None:
    from harness.core import plugins

    try:
        plugins.load(kind, name)
    except UsageError as error:
        return spelt(error.sentence)
    return None
