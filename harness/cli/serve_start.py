"""`harness serve ENGINE`: starts the server and holds or detaches it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.cli import terminal
from harness.cli.flags import server_fields
from harness.cli.terminal import Terminal
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.preparing.server_start import launched, spec_of
from server_launchers import replicas
from server_launchers.keeping import launch


def start(
    engine: str,
    model: str,
    *,
    name: str | None,
    detach: bool,
    dry_run: bool,
    register: Path | None,
    extra_flags: tuple[str, ...],
    **flags: Any,
) -> None:
    """Start a server and hold it until it ends or a signal comes. Exits with 2 if the server ended by itself.

    name: None takes the model's. detach: start it without holding it. dry_run: only print its command lines. register:
    file in which its addresses stand as long as it is held. extra_flags: words that the engine gets unchanged. flags:
    values of the flags that describe the server, under `server_<field>`. Raises `UsageError`, `ServerError`.
    """
    watcher = Terminal()
    spec = spec_of(engine, model, watcher, **server_fields(flags), extra_flags=extra_flags, name=name)
    if register is not None:
        if detach:
            raise UsageError("--register does not work with --detach: the address is removed when the command ends")
        launch.refuse_unreachable(spec)
    if dry_run:
        for line in replicas.dry_run(spec):
            click.echo(line)
        for sentence in replicas.remarks(spec):
            terminal.note(sentence)
        return
    server = launched(spec, watcher, detach=detach)
    if detach:
        return
    with server, launch.registered(register, spec, server.base_urls):
        click.echo("Ctrl-C stops it.", err=True)
        why = server.wait()
        if why is None:
            click.echo(f"harness: the server {server.name} was stopped.", err=True)
            return
        click.echo(f"harness: the server {server.name} ended by itself: {visible(why)}", err=True)
        sys.exit(2)
