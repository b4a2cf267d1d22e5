"""`harness serve`: start an engine and wait until it works; list what runs; show logs; stop."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Collection, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from harness.cli import completing, terminal
from harness.cli.json_output import json_option, say
from harness.cli.server_options import server_fields
from harness.cli.spelling import Command
from harness.core import plugins
from harness.core.errors import UsageError, near_names
from harness.core.hidden import command_words, is_secret
from harness.core.inert import visible
from server_launchers import isolated
from server_launchers.command_line import EngineCommand, server_options, words_of
from server_launchers.engines import table as engines
from server_launchers.errors import SpecError
from server_launchers.keeping import registering

if TYPE_CHECKING:
    from server_launchers.keeping.state import ServerState
    from server_launchers.spec import ServerSpec

SHOWN_LOG_LINES = 200

EVERYWHERE = "0.0.0.0"  # noqa: S104 - servers that other nodes are to reach


on_option = click.option("--on", metavar="ray[://HOST:PORT]", help="On the nodes of a Ray cluster (docs/howto/ray.md).")


class ServeGroup(click.Group):
    """Engines and actions under one name, with near names for a typing mistake."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and args[0] in plugins.names("launcher"):
            takes = engines.named(engines.ANY_PROGRAM).launcher.takes
            self.add_command(_engine_command(args[0], "A plug-in's command.", takes))
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            near = near_names(args[0], self.commands)
            ctx.fail(f"no engine or action {args[0]!r}; there are {', '.join(self.commands)}.{near}")
        return super().resolve_command(ctx, args)


@click.group("serve", cls=ServeGroup)
def command() -> None:
    """Start an inference server and wait until it really answers; list, show the logs of, or stop servers.

    \b
    harness serve ENGINE MODEL [options] [-- engine flags]
    harness serve status | logs [NAME] | stop [NAME | --all]
    """


class _EngineCommand(EngineCommand, Command):
    """Words after `--` are the engine's; refusals name our flags."""


def _engine_command(engine: str, summary: str, takes: Collection[str]) -> click.Command:
    @click.command(
        engine,
        cls=_EngineCommand,
        help=f"{summary} Flags after `--` go to the engine as they stand.",
        options_metavar="[OPTIONS] [-- ENGINE FLAGS]",
    )
    @click.argument("model", default="")
    @click.option("--name", help="Name in `serve status` and `serve stop`. Default: from the model.")
    @click.option("--detach", is_flag=True, help="Return once it is ready; stop it with `harness serve stop`.")
    @click.option("--dry-run", is_flag=True, help="Print the command line and environment, start nothing.")
    @click.option(
        "--register",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Once ready, write its address here for other machines, and remove it at the end; a folder of such files "
        "(*.url) is what `harness run --endpoints` follows.",
    )
    @click.option("--until-eof", is_flag=True, help="End when standard input ends, with the program that started it.")
    @click.option("--slurm", type=int, metavar="N", help="Start N such servers as a job array of Slurm.")
    @on_option
    @click.option(
        "--replicas", type=click.IntRange(1, 4000), metavar="N", help="With --on: how many such servers. Default: 1."
    )
    @click.option(
        "--gpus-per-replica",
        type=click.FloatRange(0),
        metavar="N",
        help="With --on: what Ray holds for each, over all its nodes. Default: as the parallel sizes need.",
    )
    @click.option(
        "--slurm-folder",
        "--endpoints-folder",
        "endpoints_folder",
        type=click.Path(path_type=Path, file_okay=False),
        default="endpoints",
        show_default=True,
        help="With --slurm and --on: the shared folder in which they register, and where their logs are.",
    )
    @click.option(
        "--sbatch", multiple=True, metavar="OPTION", help="With --slurm: an option of sbatch, such as --partition=gpu."
    )
    @click.option("--print", "print_only", is_flag=True, help="With --slurm: print the job's script, submit nothing.")
    @server_options(shown=takes)
    def start(
        model: str,
        name: str | None,
        detach: bool,
        dry_run: bool,
        register: Path | None,
        until_eof: bool,
        slurm: int | None,
        on: str | None,
        replicas: int | None,
        gpus_per_replica: float | None,
        endpoints_folder: Path,
        sbatch: tuple[str, ...],
        print_only: bool,
        extra_flags: tuple[str, ...],
        **flags: Any,
    ) -> None:
        from harness.asking import servers
        from harness.cli.watching import Terminal

        if on is None and (replicas is not None or gpus_per_replica is not None):
            raise UsageError(f"{'--gpus-per-replica' if replicas is None else '--replicas'} goes with --on ray")
        if until_eof:
            if detach or slurm is not None or on is not None:
                raise UsageError("--until-eof goes without --detach, --slurm and --on")
            threading.Thread(target=_leave_at_eof, daemon=True).start()
        if slurm is not None or on is not None:
            _check_travels(server_fields(flags).get("environment", {}), extra_flags, by_slurm=slurm is not None)
        if slurm is not None:
            if detach or dry_run or register is not None or on is not None:
                raise UsageError("--slurm goes without --detach, --dry-run, --register and --on")
            flags.setdefault("server_host", None)
            flags["server_host"] = flags["server_host"] or EVERYWHERE
            nodes, head_port = flags.get("server_nodes") or 1, None
            if nodes > 1:
                servers.over_nodes(engine, model, "--slurm", **server_fields(flags), extra_flags=extra_flags)
                # Where nodes share a state folder, one name would meet itself.
                name, head_port = None, flags.pop("server_head_port", None)
            words = words_of(engine, model, flags, extra_flags, name)
            _on_slurm(words, (slurm, nodes, head_port), endpoints_folder, sbatch, print_only)
            return
        if sbatch or print_only:
            raise UsageError(f"{'--sbatch' if sbatch else '--print'} goes with --slurm N")

        watcher = Terminal()
        fields = {**server_fields(flags), "extra_flags": extra_flags, "name": name}
        if on is not None:
            if dry_run or register is not None:
                raise UsageError("--on goes without --dry-run and --register")
            many = (flags.get("server_nodes") or 1) > 1
            spec = (
                servers.over_nodes(engine, model, "--on", **fields)
                if many
                else servers.described(engine, model, **fields)
            )
            host = flags.pop("server_host", None)
            if host is not None:
                _check_reached(spec)
            words = words_of(engine, model, flags, extra_flags)
            _on_ray(on, spec, words, host, (replicas or 1, gpus_per_replica), endpoints_folder, detach=detach)
            return
        spec = servers.spec(engine, model, watcher, **fields)
        if register is not None:
            if detach:
                raise UsageError("--register goes without --detach: the address is removed when the command ends")
            _check_reached(spec)
        if dry_run:
            for line in plan_lines(spec):
                click.echo(line)
            return
        if twin := servers.twin(spec):
            terminal.warn(twin_sentence(twin))
        server = servers.launched(spec, watcher, detach=detach)
        if not detach:
            for number in (signal.SIGTERM, signal.SIGHUP):  # a cluster's way to say it; the server and its address go
                signal.signal(number, _leave)
            urls = registering.advertised(spec, server.base_urls)
            with server, registering.registered(register, urls) if register is not None else nullcontext():
                click.echo("Ctrl-C stops it.", err=True)
                server.wait()
                click.echo(
                    f"harness: the server {server.name} ended by itself: {visible(server.ended or '')}", err=True
                )
                sys.exit(2)

    return start


for _name, _engine in engines.every().items():
    command.add_command(_engine_command(_name, _engine.summary, _engine.launcher.takes))


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _leave_at_eof() -> None:
    """SIGTERM to this process once standard input ends: before the server is ready its guard ends it, then `_leave`."""
    with suppress(OSError):
        while os.read(0, 65536):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _check_travels(environment: Mapping[str, str], extra_flags: tuple[str, ...], *, by_slurm: bool) -> None:
    """Raises `UsageError` for a key that would stand in the script of a job, or in command lines on other nodes."""
    place = "in the script of the job, which is stored" if by_slurm else "in command lines on the nodes"
    way = "where you submit it, which sbatch passes on" if by_slurm else "of the nodes, before `ray start`"
    instead = f"would stand {place}; set a variable that the engine reads, in the environment {way}"
    for name, value in environment.items():
        if is_secret(name, value):
            raise UsageError(f"its value {instead}", field="server.environment", value=name)
    if command_words(extra_flags) != list(extra_flags):
        raise UsageError(f"a key among the flags of the engine {instead}")


def _check_reached(spec: ServerSpec) -> None:
    try:
        registering.check(spec)
    except SpecError as error:
        raise UsageError(error.sentence, field=f"server.{error.field}", value=spec.host) from error


def _on_ray(
    on: str,
    spec: ServerSpec,
    words: list[str],
    host: str | None,
    size: tuple[int, float | None],
    folder: Path,
    *,
    detach: bool,
) -> None:
    """Start replicas on a cluster and wait until all are ready; hold them, or leave them there."""
    from harness.cli.watching import Terminal
    from harness.extensions.on_ray import serving
    from server_launchers.keeping.supervisor import stem_of

    name = spec.name or stem_of(spec)
    end = words.index("--") if "--" in words else len(words)
    own = ["--host", serving.HOST, "--register", serving.FILE, "--until-eof"]
    if spec.nodes > 1:
        own += ["--node-rank", serving.RANK, "--head-address", serving.HEAD, "--node-address", serving.NODE]
        own += [] if "--head-port" in words[:end] else ["--head-port", serving.PORT]
    wanted = serving.Replicas(
        name=name,
        words=(*words[:end], *own, *words[end:]),
        count=size[0],
        nodes=spec.nodes,
        resources=serving.resources_of(spec, size[1]),
        host=host,
        folder=folder,
    )
    with serving.Served(on, wanted, Terminal(), detach=detach) as served:
        for number in (signal.SIGTERM, signal.SIGHUP):  # Ray has put its own handler there
            signal.signal(number, _leave)
        served.until_ready()
        terminal.note(f"all are ready: harness run … --endpoints {shlex.quote(str(folder))}")
        if detach:
            terminal.note(f"`harness serve stop {name} --on {visible(on)}` ends them")
            return
        click.echo("Ctrl-C stops them.", err=True)
        served.hold()


def _on_slurm(
    words: list[str],
    size: tuple[int, int, int | None],
    folder: Path,
    directives: tuple[str, ...],
    print_only: bool,
) -> None:
    """Print the script of the job array, or submit it. size: members, the nodes of each, and their port if given."""
    from server_launchers import slurm

    members, nodes, head_port = size
    command = isolated.command("harness", "serve", *words)
    try:
        text = slurm.script(command, members, folder, directives, nodes=nodes, head_port=head_port)
    except SpecError as error:
        raise UsageError(error.sentence, field=error.field) from error
    if print_only:
        click.echo(text, nl=False)
        return
    job = slurm.submit(text, folder)
    terminal.note(f"job {visible(job)}: {members} servers, which register in {visible(str(folder))}")
    terminal.note(
        f"when they are ready: harness run … --endpoints {shlex.quote(str(folder))}; scancel {visible(job)} ends them"
    )


def _prints_servers() -> Any:
    from harness.cli.printed.lists import Servers

    return Servers


@command.command("status")
@json_option(_prints_servers, "the list")
def status(as_json: bool) -> None:
    """List the servers that run, and those that ended without being asked to."""
    from server_launchers.keeping import servers

    if as_json:
        from harness.cli.printed.lists import ServerRow, Servers

        listed = [
            ServerRow(
                name=one.name,
                engine=one.engine,
                model=one.model,
                status=one.status,
                base_urls=one.base_urls,
                log=str(one.log),
                versions=one.versions,
            )
            for one in servers.status()
        ]
        say(Servers(servers=listed, unreadable=[str(path) for path in servers.unreadable()]))
        return
    rows = [
        (one.name, one.engine, one.model, one.status, ", ".join(one.base_urls), str(one.log))
        for one in servers.status()
    ]
    for path in servers.unreadable():
        terminal.warn(
            f"{visible(str(path))} is no state file of ours: its server may be running unseen (log beside it)"
        )
    if not rows:
        click.echo("no server is running; start one with `harness serve ENGINE MODEL`")
        return
    terminal.table(("name", "engine", "model", "status", "url", "log"), rows)


@command.command("stop", cls=Command)
@click.argument("name", required=False, shell_complete=completing.names(completing.servers))
@click.option("--all", "everything", is_flag=True, help="Stop all of them.")
@on_option
def stop(name: str | None, everything: bool, on: str | None) -> None:
    """Stop the server NAME, or the only one: TERM, wait, KILL of the whole group, then a look for survivors."""
    from server_launchers.keeping import servers

    if on is not None:
        from harness.extensions.on_ray import serving

        ended = serving.stop(on, name, everything=everything)
        click.echo(f"stopped {', '.join(map(visible, ended)) or 'nothing: no server was running'}")
        return
    known = servers.status()
    survivors = servers.stop(name, all=everything)
    for text in survivors:
        terminal.warn(f"still there: {visible(text)}")
    if survivors:
        sys.exit(1)
    click.echo(f"stopped {name or ', '.join(one.name for one in known) or 'nothing: no server was running'}")


@command.command("logs")
@click.argument("name", required=False, shell_complete=completing.names(completing.servers))
def logs(name: str | None) -> None:
    """Print the end of a server's logs."""
    from server_launchers.keeping import servers

    for path in servers.logs(name):
        click.echo(f"== {path}")
        for line in Path(path).read_text("utf-8", "replace").splitlines()[-SHOWN_LOG_LINES:]:
            click.echo(visible(line))


def twin_sentence(twin: ServerState) -> str:
    """The same model runs already: how that server is used, or ended."""
    return visible(
        f"{twin.name} serves {twin.source} already, at {', '.join(twin.base_urls)}: "
        f"`harness run … --server {twin.name}` uses it, `harness serve stop {twin.name}` ends it. "
        "This starts another one."
    )


def plan_lines(spec: ServerSpec) -> list[str]:
    """One line a shell can run for each process that the spec starts."""
    from server_launchers.keeping import supervisor

    return supervisor.dry_run(spec)
