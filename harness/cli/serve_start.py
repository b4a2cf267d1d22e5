"""`harness serve ENGINE`: starts the server and holds or detaches it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import click

from harness.asking import servers
from harness.cli import terminal
from harness.cli.flags import server_fields
from harness.cli.terminal import Terminal
from harness.core.errors import UsageError
from harness.core.inert import visible
from server_launchers import replicas
from server_launchers.keeping import launch


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A server that a command line asks for. flags: values of the flags that describe it, under `server_<field>`.

    The other fields are the command's own arguments and flags, by their names.
    """

    engine: str
    model: str
    name: str | None
    detach: bool
    dry_run: bool
    register: Path | None
    extra_flags: tuple[str, ...]
    flags: Mapping[str, Any]

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a server's spec that the flags set."""
        return server_fields(self.flags)


def start(wish: Wish) -> None:
    """Start the server and hold it until it ends or a signal comes.

    With --register its addresses are registered as long as it is held. With --detach the server is started and not
    held. With --dry-run only its command lines are printed.
    """
    watcher = Terminal()
    spec = servers.spec(wish.engine, wish.model, watcher, **wish.fields, extra_flags=wish.extra_flags, name=wish.name)
    if wish.register is not None:
        if wish.detach:
            raise UsageError("--register does not work with --detach: the address is removed when the command ends")
        launch.refuse_unreachable(spec)
    if wish.dry_run:
        for line in replicas.dry_run(spec):
            click.echo(line)
        for sentence in replicas.remarks(spec):
            terminal.note(sentence)
        return
    server = servers.launched(spec, watcher, detach=wish.detach)
    if wish.detach:
        return
    # Only now, since the server is ready. Before, SIGTERM kills this process, and the guard process that watches it
    # ends the server.
    _leave_at_signals()
    with server, launch.registered(wish.register, spec, server.base_urls):
        click.echo("Ctrl-C stops it.", err=True)
        why = server.wait()
        if why is None:
            click.echo(f"harness: the server {server.name} was stopped.", err=True)
            return
        click.echo(f"harness: the server {server.name} ended by itself: {visible(why)}", err=True)
        sys.exit(2)


def _leave_at_signals() -> None:
    """Handle SIGTERM and SIGHUP, which clusters send, as Ctrl-C: stop the server and remove its registered address."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
