"""`harness serve ENGINE --slurm` and `--on ray`: starts the server on other machines."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from harness.asking import servers
from harness.cli import terminal
from harness.cli.serve_start import check_reached, leave_at_signals
from harness.cli.terminal import Terminal
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.secret import command_words, is_secret
from harness.verbs.elsewhere import FILE, HEAD, HOST, NODE, PORT, RANK, Replicas, cluster, scheduler
from server_launchers import isolated
from server_launchers.command_line import words_of
from server_launchers.errors import SpecError
from server_launchers.keeping.supervisor import stem_of

if TYPE_CHECKING:
    from harness.cli.serve_start import Wish

EVERYWHERE = "0.0.0.0"  # noqa: S104 - servers that other nodes are to reach


def start_elsewhere(wish: Wish) -> None:
    """Start the server by Slurm or on a Ray cluster, as the flags require. Raises `UsageError`."""
    _check_travels(wish)
    if wish.slurm is not None:
        _by_slurm(wish, wish.slurm)
    elif wish.on is not None:
        _on_cluster(wish, wish.on)


def _check_travels(wish: Wish) -> None:
    """Raise `UsageError` if a key would be written to a job's script or to command lines on other nodes."""
    by_slurm = wish.slurm is not None
    where = "in the script of the job, which is stored" if by_slurm else "in command lines on the nodes"
    way = "from which you submit (sbatch passes it on)" if by_slurm else "of the nodes, before `ray start`"
    instead = f"would stand {where}; set a variable that the engine reads, in the environment {way}"
    for name, value in wish.fields.get("environment", {}).items():
        if is_secret(name, value):
            raise UsageError(f"its value {instead}", field="server.environment", value=name)
    if command_words(wish.extra_flags) != list(wish.extra_flags):
        raise UsageError(f"a key among the flags of the engine {instead}")


def _by_slurm(wish: Wish, members: int) -> None:
    """Submit a job array of `members` servers, or print its script. Raises `UsageError`."""
    flags = {**wish.flags, "server_host": wish.flags.get("server_host") or EVERYWHERE}
    name, nodes, head_port = wish.name, flags.get("server_nodes") or 1, None
    if nodes > 1:
        servers.over_nodes(wish.engine, wish.model, "--slurm", **wish.fields, extra_flags=wish.extra_flags)
        # Nodes may share a state folder, where equal names would collide.
        name, head_port = None, flags.pop("server_head_port", None)
    words = words_of(wish.engine, wish.model, flags, wish.extra_flags, name)
    command = isolated.command("harness", "serve", *words)
    folder = wish.endpoints_folder
    slurm = scheduler("slurm")
    try:
        text = slurm.script(command, members, folder, wish.sbatch, nodes=nodes, head_port=head_port)
    except SpecError as error:
        raise UsageError(error.sentence, field=error.field) from error
    if wish.print_only:
        click.echo(text, nl=False)
        return
    job = slurm.submit(text, folder)
    terminal.note(f"job {visible(job)}: {members} servers, which register in {visible(str(folder))}")
    terminal.note(
        f"once the servers are ready: harness run … --endpoints {shlex.quote(str(folder))}; scancel {visible(job)} "
        f"ends them"
    )


def _on_cluster(wish: Wish, on: str) -> None:
    """Start replicas on a cluster and wait until all are ready. Then hold them until Ctrl-C; with --detach, return."""
    flags = dict(wish.flags)
    there = cluster(on)
    fields = {**wish.fields, "extra_flags": wish.extra_flags, "name": wish.name}
    if (flags.get("server_nodes") or 1) > 1:
        spec = servers.over_nodes(wish.engine, wish.model, "--on", **fields)
    else:
        spec = servers.spec_without_download(wish.engine, wish.model, **fields)
    host = flags.pop("server_host", None)
    if host is not None:
        check_reached(spec)
    words = words_of(wish.engine, wish.model, flags, wish.extra_flags)
    # What follows `--` goes to the engine, so our own options must stand before it.
    end = words.index("--") if "--" in words else len(words)
    own = ["--host", HOST, "--register", FILE, "--until-eof"]
    if spec.nodes > 1:
        own += ["--node-rank", RANK, "--head-address", HEAD, "--node-address", NODE]
        own += [] if "--head-port" in words[:end] else ["--head-port", PORT]
    name = spec.name or stem_of(spec)
    replicas = Replicas(
        name=name,
        words=(*words[:end], *own, *words[end:]),
        count=wish.replicas or 1,
        nodes=spec.nodes,
        resources=there.resources_of(spec, wish.gpus_per_replica),
        host=host,
        folder=wish.endpoints_folder,
    )
    with there.serve(on, replicas, Terminal(), detach=wish.detach) as served:
        leave_at_signals()  # Ray has installed its own signal handler.
        served.until_ready()
        terminal.note(f"all are ready: harness run … --endpoints {shlex.quote(str(wish.endpoints_folder))}")
        if wish.detach:
            terminal.note(f"`harness serve stop {name} --on {visible(on)}` ends them")
            return
        click.echo("Ctrl-C stops them.", err=True)
        served.hold()
