"""Turn a spec into processes: replicas with their ports and devices, a router in front of them, or one engine.

`deploy` is a pure function of the spec and the machine's facts, so a dry run prints exactly what a start would run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from harness.core.number_text import count_noun
from server_launchers.command_line import ProcessCommand
from server_launchers.engines import table
from server_launchers.engines.engine import Engine, Readiness
from server_launchers.errors import LaunchError
from server_launchers.machine import accelerators
from server_launchers.machine.environments import Facts
from server_launchers.machine.ports import following
from server_launchers.spec import ServerSpec

DRY_PORT = 8000
"""The first port in a dry run if the spec specifies none."""


class PlannedProcess(msgspec.Struct, frozen=True):
    """One process of a server."""

    role: Literal["engine", "router"]
    command: ProcessCommand
    port: int | None
    devices: tuple[str, ...] | None = None
    keeps_folder: bool = False
    """Whether the process starts in the caller's folder; otherwise it starts in an empty folder, where none of the
    user's files can be imported in place of a library.
    """


class Deployment(msgspec.Struct, frozen=True):
    """A complete server: its processes and its addresses."""

    model: str
    """The model name for requests; empty if only the running server can report it."""
    processes: tuple[PlannedProcess, ...]
    base_urls: tuple[str, ...]
    """The server's addresses for clients; empty on a node that only lends its devices to node 0."""
    readiness: Readiness
    versions: Mapping[str, str] = {}


def ports_needed(spec: ServerSpec) -> int:
    """How many ports `deploy` needs for `spec`: one per replica, and for a router its own port plus one for metrics."""
    count = _engine_processes(spec)
    return count + 2 if spec.routed else count


def deploy(spec: ServerSpec, engine: Engine, ports: Sequence[int], facts: Facts) -> Deployment:
    """The processes of `spec` on `ports` (as many as `ports_needed`). Raises LaunchError for an impossible spec.

    engine: the spec's engine. facts: that engine's facts about this machine.
    """
    engine.check_flags(spec, facts.version, facts.lacking)
    if spec.dp > 1 and spec.nodes > 1 and spec.dp_mode != "engine":
        raise LaunchError(
            "replicas on several nodes are separate servers: start one on each node and give the client all URLs, "
            "or use `dp_mode=engine`"
        )
    count = _engine_processes(spec)
    devices_of_replicas = _devices(spec, engine, count, facts)
    kind = engine.runs_on(spec)
    processes = []
    # The router gets the user's port, its replicas the following ports, and its metrics the last one.
    replica_ports = ports[1 : count + 1] if spec.routed else ports[:count]
    for port, devices in zip(replica_ports, devices_of_replicas, strict=True):
        command = engine.full_command(spec, facts.version, port, ",".join(devices or ())).with_env(facts.environment)
        # A container gets its devices through docker's own options.
        if devices is not None and spec.docker is None:
            command = command.with_env({accelerators.VARIABLES[kind]: ",".join(devices)})
        processes.append(PlannedProcess("engine", command, port, devices, keeps_folder=engine.keeps_folder))
    host = _host_for_clients(spec.host)
    urls = tuple(f"http://{host}:{port}" for port in replica_ports)
    readiness = msgspec.structs.replace(engine.readiness(spec), owns_port=spec.docker is None)
    if spec.routed:
        router = engine.router
        router_command = router.command(
            spec, urls, python=facts.router_python, port=ports[0], metrics_port=ports[count + 1]
        )
        processes.append(PlannedProcess("router", router_command, ports[0]))
        urls = (f"http://{host}:{ports[0]}",)
        readiness = router.readiness
    # Only node 0 answers requests; the others lend their devices.
    if spec.node_rank > 0:
        urls = ()
    # vLLM's servers report this setting only in their development mode, so it is recorded next to the versions.
    versions = {**facts.versions, "deterministic": "on"} if spec.deterministic else facts.versions
    return Deployment(engine.client_name(spec), tuple(processes), urls, readiness, versions)


def dry_run(spec: ServerSpec) -> list[str]:
    """The startup commands, one line per process, ready for a shell; for several nodes, the commands of each node in
    order. A missing engine is not an error: the newest tested version is then assumed.
    """
    engine = table.engine_of(spec)
    facts = engine.assumed_facts(spec)
    facts = msgspec.structs.replace(facts, machine=accelerators.Machine(accelerators.allowed(engine.runs_on(spec))))
    if spec.engine_version is None:
        with contextlib.suppress(LaunchError):
            facts = engine.actual_facts(spec)
    ports = following(spec.port or DRY_PORT, ports_needed(spec))
    nodes = [spec] if spec.nodes == 1 else [spec.replace(node_rank=rank) for rank in range(spec.nodes)]
    return [process.command.line() for node in nodes for process in deploy(node, engine, ports, facts).processes]


def start_problems(spec: ServerSpec) -> list[str]:
    """What prevents `spec` from starting on this machine, and which devices it would not use, as one sentence each."""
    engine, why = table.engine_of(spec), ""
    try:
        engine.actual_facts(spec)  # fails without the engine, the model's file or an option
    except LaunchError as error:
        why = str(error)
    sentences = [f"cannot be started here: {why}"] if why else []
    if engine.assumed_version and spec.extra_flags and (why or spec.docker or spec.engine_version):
        sentences.append("some flags after ` -- ` cannot be checked, because the engine is not installed here")
    uses_devices = engine.devices != "none" and spec.device != "cpu"
    machine = accelerators.find(engine.runs_on(spec)) if uses_devices else accelerators.Machine(None)
    if machine.problem and machine.problem not in why:
        sentences.append(f"not all devices of this machine are known: {machine.problem}")
    is_told = spec.device or spec.devices is not None or machine.ids
    if engine.devices == "named" and _engine_processes(spec) > 1 and not is_told:
        sentences.append(f"no devices were found for the {spec.dp} replicas: set `device` to the kind of device to use")
    # Any other engine decides itself which devices it uses.
    pool = (machine.ids if spec.devices is None else spec.devices) or ()
    if idle := pool[spec.tp * spec.pp * spec.dp // spec.nodes :] if uses_devices and engine.devices == "sliced" else ():
        sentences.append(f"idle: {count_noun(len(idle), 'device')} ({', '.join(idle)})")
    return sentences


def _engine_processes(spec: ServerSpec) -> int:
    """Number of engine processes: one per replica, or one for all replicas (`--dp-mode engine`)."""
    return 1 if spec.dp_mode == "engine" else spec.dp


def _devices(spec: ServerSpec, engine: Engine, count: int, facts: Facts) -> list[tuple[str, ...] | None]:
    """The devices of each of `count` processes; None for a process whose engine uses all visible devices."""
    # Several replicas of any program would all take the first device; without devices the program runs on the CPU.
    uses_devices = bool(spec.devices is not None or spec.device or facts.machine.ids) and (count > 1 or spec.devices)
    sliced = engine.devices == "sliced" or (engine.devices == "named" and uses_devices)
    if not sliced or spec.device == "cpu":
        return [None] * count
    kind = engine.runs_on(spec)
    # With data parallelism inside the engine, one process uses the devices of all its replicas.
    replicas_inside = spec.dp if count == 1 else 1
    per_process = max(1, spec.tp * spec.pp * replicas_inside // spec.nodes)
    # Called for every spec, because it also rejects a spec that needs more devices than there are.
    slices = accelerators.slices(kind, count, per_process, spec.devices, facts.machine)
    # An Ascend container sees only devices that are passed by name.
    needs_names = spec.docker is not None and kind == "ascend"
    if count == 1 and spec.devices is None and not needs_names:
        return [None]
    return list(slices)


def _host_for_clients(host: str) -> str:
    """The host with which a client on this machine reaches a server that listens on `host`."""
    # 0.0.0.0 and :: mean every interface; only Linux also lets a client connect to them.
    if host in ("0.0.0.0", ""):  # noqa: S104 (compared, not bound)
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host
