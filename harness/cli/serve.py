"""`harness serve`: starts an engine and waits until it is ready; lists servers, shows their logs, and stops them."""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from harness.cli import terminal
from harness.cli.flags import SERVER_SCOPE, server_fields, server_flags
from harness.cli.help import Helping, HelpingGroup
from harness.cli.json_output import json_flags, print_json
from harness.core import plugins
from harness.core.errors import Exit, UsageError
from harness.core.sanitize import visible
from server_launchers.engines import table as engines

if TYPE_CHECKING:
    from server_launchers.lifecycle.servers import ServerState

SHOWN_LOG_LINES = 200
"""Number of lines that `serve logs` prints from the end of a log."""


class ServeGroup(HelpingGroup):
    """A group of engines and actions that suggests a correction for a misspelled name."""

    unknown = "unknown engine or action"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; the error for another tool's command line after `--` says where to put it."""
        if args[:1] == ["--"]:
            ctx.fail("put an engine's own command line after `harness`, as in harness vllm serve MODEL.")
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of an engine, an action, or a plug-in's launcher; None for any other name."""
        of_ours = super().get_command(ctx, cmd_name)
        if of_ours is not None or cmd_name not in plugins.names("launcher"):
            return of_ours
        takes = engines.by_name(engines.ANY_PROGRAM).takes
        return _engine_command(cmd_name, "A plug-in's engine.", takes)


@click.group("serve", cls=ServeGroup, invoke_without_command=True)
@click.option("--models", is_flag=True, help="List the embedded server's small models, and show which are downloaded.")
@click.pass_context
def command(ctx: click.Context, models: bool) -> None:
    """Start an inference server and wait until it is ready; list or stop servers, or show their logs.

    \b
    harness serve ENGINE MODEL [options] [-- engine flags]
    harness serve status | logs [NAME] | stop [NAME | --all]
    harness serve --models
    harness serve fetch smollm2-135m
    """
    if models:
        _list_models()
    elif ctx.invoked_subcommand is None:
        raise click.UsageError(
            "specify an engine and a model, as in `harness serve vllm MODEL`, or an action, such as `status`", ctx
        )


def _list_models() -> None:
    """Print the models that can be downloaded for the embedded server, and which are already downloaded."""
    from server_launchers.embedded import weights

    rows = [
        (m.name, f"{m.size / 1e6:.0f} MB", m.license, str(m.path) if m.path else "not fetched", m.source)
        for m in weights.KNOWN.values()
    ]
    terminal.table(("model", "size", "license", "file", "source"), rows)


@command.command("fetch")
@click.argument("name")
def fetch(name: str) -> None:
    """Download NAME's weights for the embedded server to the cache, verify them, and print the path.

    \b
    harness serve fetch smollm2-135m
    """
    from server_launchers.embedded import weights

    click.echo(weights.fetch(name, lambda what: terminal.note(f"fetching {what}")))


class _EngineCommand(Helping):
    """A command that collects the words after ` -- ` in its parameter `extra_flags`, which the engine receives
    unchanged.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before `--`; the words after it go to `extra_flags`."""
        # click drops the `--` and mixes the words after it with its own arguments, so they are split off first.
        end = args.index("--") if "--" in args else len(args)
        ctx.params["extra_flags"] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


_OURS = (
    click.Argument(["model"], default=""),
    click.Option(["--name"], help="Name in `serve status` and `serve stop`. Default: derived from the model name."),
    click.Option(
        ["--detach"], is_flag=True, help="Return once the server is ready. Stop it with `harness serve stop`."
    ),
    click.Option(
        ["--dry-run"], is_flag=True, help="Print the command line and environment without starting the server."
    ),
    click.Option(
        ["--register"],
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Keep the server's address in FILE (*.url) while the server is ready. `harness run --base-url FOLDER` "
        "uses the servers whose files are in FOLDER.",
    ),
)
"""Flags of every engine's command in addition to those that describe the server."""

_FIRST = (
    *("name", "detach", "dry_run", "register", "served_name", "host", "port", "api_key_env", "tp", "pp", "dp"),
    *("devices", "context", "memory_fraction", "max_sequences", "quantization", "reasoning_parser"),
    *("trust_remote_code", "docker", "health_path"),
)
"""The most common options; the short help of an engine's command shows only these."""


def _engine_command(engine: str, summary: str, takes: Collection[str]) -> click.Command:
    """Return the command `harness serve ENGINE`. takes: names of the options that this engine accepts.

    summary: the engine's help line.
    """

    return _EngineCommand(
        engine,
        params=[*_OURS, *server_flags(takes)],
        callback=partial(_start, engine),
        help=f"{summary} Flags after `--` are passed to the engine.",
        options_metavar="[OPTIONS] [-- ENGINE FLAGS]",
        first=[*_FIRST, *(f"{SERVER_SCOPE}_{name}" for name in _FIRST)],
    )


def _start(
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
    """Start a server and hold it until it exits or a signal arrives. Exits with 2 if the server exited by itself.

    name: the server's name; None: the model's. detach: start it without holding it. dry_run: only print its command
    lines. register: file that contains its addresses while it is held. extra_flags: words passed to the engine
    unchanged. flags: values of the flags that describe the server, under `server_<field>`. Raises `UsageError`,
    `ServerError`.
    """
    from harness.preparing.server_start import launch_server, spec_of
    from server_launchers import replicas
    from server_launchers.lifecycle import launch

    watcher = terminal.Terminal()
    spec = spec_of(engine, model, watcher, **server_fields(flags), extra_flags=extra_flags, name=name)
    if register is not None:
        if detach:
            raise UsageError("--register does not work with --detach: the address is removed when the command ends")
        launch.refuse_unreachable(spec)
    if dry_run:
        for line in replicas.dry_run(spec):
            click.echo(line)
        for sentence in replicas.start_problems(spec):
            terminal.note(sentence)
        return
    server = launch_server(spec, watcher, detach=detach)
    if detach:
        return
    with server, launch.registered(register, spec, server.base_urls):
        click.echo("Ctrl-C stops it.", err=True)
        why = server.wait()
        if why is None:
            click.echo(f"harness: the server {server.name} was stopped.", err=True)
            return
        click.echo(f"harness: the server {server.name} exited unexpectedly: {visible(why)}", err=True)
        sys.exit(Exit.INVALID)


for _name, _engine in engines.engines_by_name().items():
    command.add_command(_engine_command(_name, _engine.summary, _engine.takes))


class ServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One server."""

    name: str
    """Server name."""
    engine: str
    """Engine that serves the model."""
    model: str
    """Name of the model."""
    status: str
    """Server state: "starting", "ready" or "exited"."""
    base_urls: list[str]
    """Base URLs, one for each replica."""
    log: str
    """Log file of the server's first process."""
    versions: dict[str, str]
    """Versions of the engine and the software it runs on, where known."""

    @classmethod
    def of(cls, server: ServerState) -> ServerRow:
        """The row of `server`."""
        values = {name: getattr(server, name) for name in cls.__struct_fields__}
        return cls(**{**values, "log": str(server.log)})

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the terminal shows it."""
        return self.name, self.engine, self.model, self.status, ", ".join(self.base_urls), self.log


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """The servers that were started on this machine."""

    servers: list[ServerRow]
    """One entry per server."""


@command.command("status", params=json_flags("harness.cli.serve:Servers"))
def status(as_json: bool) -> None:
    """List running servers and servers that exited unexpectedly."""
    from server_launchers.lifecycle import servers

    rows = [ServerRow.of(server) for server in servers.status()]
    if as_json:
        print_json(Servers(servers=rows))
        return
    if rows:
        terminal.table(("name", "engine", "model", "status", "url", "log"), [row.cells for row in rows])
    else:
        click.echo("no server is running; start one with `harness serve ENGINE MODEL`")


@command.command("stop")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Stop all servers.")
def stop(name: str | None, everything: bool) -> None:
    """Stop the server NAME, or the only running server: SIGTERM, then SIGKILL for the process group."""
    from server_launchers.lifecycle import servers

    stopped, survivors = servers.stop(name, all=everything)
    for text in survivors:
        terminal.warn(f"still there: {visible(text)}")
    if survivors:
        sys.exit(Exit.NO)
    click.echo(f"stopped {', '.join(map(visible, stopped)) or 'nothing, because no server was running'}")


@command.command("logs")
@click.argument("name", required=False)
def logs(name: str | None) -> None:
    """Print the end of a server's logs."""
    from server_launchers.lifecycle import servers

    for path in servers.logs(name):
        click.echo(f"== {visible(str(path))}")
        for line in servers.log_tail(path)[-SHOWN_LOG_LINES:]:
            click.echo(line)
