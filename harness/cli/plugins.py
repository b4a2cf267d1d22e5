"""`harness plugins`: lists what other installed packages add, and whether each works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from harness.cli.help import SpelledCommand, spell
from harness.cli.json_output import json_option, say
from harness.core.errors import UsageError
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.core.plugins import Kind


def _prints() -> Any:
    """Return the type of what this command prints with `--json`; its JSON schema is made from it."""
    from harness.cli.printed.lists import PluginRow

    return list[PluginRow]


@click.command("plugins", cls=SpelledCommand)
@json_option(_prints, "the list")
def command(as_json: bool) -> None:
    """List the plug-ins of installed packages: graders, prompts, sources, launchers, exporters, providers,
    trackers.

    Each is imported and tried: a prompt, an exporter and a provider are checked, a launcher is called. One sentence
    says why a plug-in cannot be used; the exit code is then 2.
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
    """The sentence that says why the plug-in cannot be used; None if it can."""
    try:
        _try(kind, name)
    except UsageError as error:
        return spell(error.sentence)
    return None


def _try(kind: Kind, name: str) -> None:
    """Load the plug-in as the commands that use it do. Raises `UsageError` if it cannot be used.

    A prompt, an exporter and a provider are checked completely. A launcher is called for the command line of a server.
    A grader, a source and a tracker must be functions; they are not called, which would need an answer, data or a run.
    """
    from harness.asking.servers import spec_without_download
    from harness.benchmarks.prompts import find_prompt
    from harness.client.address import providers
    from harness.core import plugins
    from harness.exports.exporting import find_exporter

    plugins.load(kind, name)
    tries: Mapping[Kind, Callable[[str], object]] = {
        "prompt": find_prompt,
        "exporter": find_exporter,
        "provider": providers.load,
        "launcher": lambda engine: spec_without_download(engine, "model"),
    }
    if kind in tries:
        tries[kind](name)
    else:
        plugins.function(kind, name)
