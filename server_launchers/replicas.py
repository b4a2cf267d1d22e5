"""Turns a spec into processes: replicas with their ports and devices, a router before them, or one engine.

A pure function of the spec and the machine's facts, so a dry run prints exactly what a start would run.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from server_launchers.deployment import Deployment, PlannedProcess
from server_launchers.engines import table
from server_launchers.engines.engine import Engine
from server_launchers.errors import LaunchError
from server_launchers.machine import accelerators
from server_launchers.machine.inspection import Facts
from server_launchers.spec import ServerSpec


def ports_needed(spec: ServerSpec) -> int:
    """How many ports `deploy` needs for `spec`: one per replica, and for a router its own port and one for metrics."""
    engine = table.engine_of(spec)
    count = _engine_processes(spec)
    return count + 2 if engine.routed(spec) else count


def deploy(spec: ServerSpec, ports: Sequence[int], facts: Facts) -> Deployment:
    """The processes of `spec` on `ports` (as many as `ports_needed`). Raises LaunchError for an impossible spec."""
    table.check(spec)
    engine = table.engine_of(spec)
    if spec.dp > 1 and spec.nodes > 1 and spec.dp_mode != "engine":
        raise LaunchError(
            "replicas on several nodes are separate servers: start one on each node and give the client all URLs, "
            "or use --dp-mode engine"
        )
    routed = engine.routed(spec)
    count = _engine_processes(spec)
    devices_of_replicas = _devices(spec, engine, count, facts)
    kind = engine.runs_on(spec)
    processes = []
    # The router gets the port that the user named, its replicas the ports after it, its metrics the last one.
    replica_ports = ports[1 : count + 1] if routed else ports[:count]
    for port, devices in zip(replica_ports, devices_of_replicas, strict=True):
        command = engine.full_command(spec, facts.version, port, ",".join(devices or ())).adding(facts.environment)
        # A container gets its devices by docker's own options.
        if devices is not None and spec.docker is None:
            command = command.adding({accelerators.VARIABLES[kind]: ",".join(devices)})
        processes.append(PlannedProcess("engine", command, port, devices, keeps_folder=engine.keeps_folder))
    host = _host_for_clients(spec.host)
    urls = tuple(f"http://{host}:{port}" for port in replica_ports)
    readiness = msgspec.structs.replace(engine.readiness(spec), owns_port=spec.docker is None)
    if routed:
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
    # vLLM's servers report this setting only in their development mode, so it is recorded beside the versions.
    versions = {**facts.versions, "deterministic": "on"} if spec.deterministic else facts.versions
    return Deployment(tuple(processes), urls, readiness, versions)


def lines(spec: ServerSpec, ports: Sequence[int], facts: Facts) -> list[str]:
    """The dry run: one line per process, ready for a shell; for several nodes, the lines of every node in order."""
    nodes = [spec] if spec.nodes == 1 else [spec.but(node_rank=rank) for rank in range(spec.nodes)]
    return [process.command.line() for node in nodes for process in deploy(node, ports, facts).processes]


def idle_devices(spec: ServerSpec, existing: Sequence[str] | None) -> list[str]:
    """The devices on this machine that `spec` leaves unused; none where the engine decides that itself.

    existing: the ids of the machine's devices; None: unknown.
    """
    pool = spec.devices if spec.devices is not None else existing
    if pool is None or table.engine_of(spec).devices != "sliced" or spec.device == "cpu":
        return []
    return list(pool[spec.tp * spec.pp * spec.dp // spec.nodes :])


def _engine_processes(spec: ServerSpec) -> int:
    """Number of engine processes: one per replica, or one that holds all replicas (`--dp-mode engine`)."""
    return 1 if spec.dp_mode == "engine" else spec.dp


def _devices(spec: ServerSpec, engine: Engine, count: int, facts: Facts) -> list[tuple[str, ...] | None]:
    """The devices of each of `count` processes; None for a process whose engine uses all devices that it sees."""
    # Replicas of any program get devices of their own where the machine has that many.
    enough = count > 1 and count * spec.tp * spec.pp <= len(facts.device_ids or ())
    sliced = engine.devices == "sliced" or (engine.devices == "named" and (spec.devices is not None or enough))
    if not sliced or spec.device == "cpu":
        return [None] * count
    kind = engine.runs_on(spec)
    # With data parallelism inside the engine, one process holds the devices of all its replicas.
    replicas_inside = spec.dp if count == 1 else 1
    per_process = max(1, spec.tp * spec.pp * replicas_inside // spec.nodes)
    # Called for every spec, since it also refuses a spec that needs more devices than there are.
    slices = accelerators.slices(kind, count, per_process, spec.devices, facts.device_ids)
    # A container on Ascend sees only devices that are passed by name.
    needs_names = spec.docker is not None and kind == "ascend"
    if count == 1 and spec.devices is None and not needs_names:
        return [None]
    return list(slices)


def _host_for_clients(host: str) -> str:
    """The host by which a client on this machine reaches a server that listens on `host`."""
    # 0.0.0.0 and :: mean every interface; only Linux also lets a client connect to them.
    if host in ("0.0.0.0", ""):  # noqa: S104 (compared, not bound)
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host
