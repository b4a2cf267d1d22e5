"""How one spec becomes processes: replicas with their ports and devices, a router before them, or one engine.

A pure function of the spec and the machine's facts, so that a dry run prints exactly what a start would run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from server_launchers.deployment import Deployment, Process
from server_launchers.engines import external, routers, table
from server_launchers.errors import LaunchError
from server_launchers.machine import accelerators
from server_launchers.machine.inspection import Facts
from server_launchers.spec import ServerSpec


def ports_needed(spec: ServerSpec) -> int:
    """How many ports `deploy` wants for `spec`: one a replica, and for a router its own and its metrics'."""
    if spec.engine == "external":
        return 0
    count = _count(spec)
    return count + 2 if routers.wanted(spec) else count


def deploy(spec: ServerSpec, ports: Sequence[int], facts: Facts) -> Deployment:
    """The processes of `spec` on `ports` (as many as `ports_needed`); raises LaunchError for what cannot work."""
    table.check(spec)
    launcher = table.LAUNCHERS[spec.engine]
    if spec.engine == "external":
        return Deployment((), (external.base_url(spec.model),), launcher.readiness(spec))
    if spec.dp > 1 and spec.nodes > 1 and spec.dp_mode != "engine":
        raise LaunchError(
            "replicas on several nodes are separate servers: start one on each node and give the client all URLs, "
            "or use --dp-mode engine"
        )
    routed = routers.wanted(spec)
    count = _count(spec)
    # A program of unknown kind gets devices where they are named.
    given = launcher.uses_devices or (spec.engine == "command" and spec.devices is not None)
    shares = _devices(spec, count, facts) if given and spec.device != "cpu" else [None] * count
    processes = []
    # A router listens where the user said; its replicas come after it.
    own = ports[1:] if routed else ports
    for port, share in zip(own[:count], shares, strict=True):
        made = launcher.command(spec, facts.flags, port, ",".join(share or ())).adding(facts.environment)
        if share is not None and spec.docker is None:
            made = made.adding({accelerators.VARIABLES[accelerators.kind_of(spec)]: ",".join(share)})
        processes.append(Process("engine", made, port, share, keeps_folder=spec.engine == "command"))
    urls = tuple(f"http://{_reached(spec.host)}:{port}" for port in own[:count])
    readiness = replace(launcher.readiness(spec), owns_port=spec.docker is None)
    if routed:
        router = routers.command(spec, urls, python=facts.router_python, port=ports[0], metrics_port=own[count])
        processes.append(Process("router", router, ports[0]))
        urls = (f"http://{_reached(spec.host)}:{ports[0]}",)
        readiness = routers.readiness(routers.kind_for(spec.engine))
    if spec.node_rank > 0:
        urls = ()
    # Of vLLM it stands in no argv.
    versions = {**facts.versions, "deterministic": "on"} if spec.deterministic else facts.versions
    return Deployment(tuple(processes), urls, readiness, versions)


def lines(spec: ServerSpec, ports: Sequence[int], facts: Facts) -> list[str]:
    """The dry run: one line a process that a shell can run; for several nodes those of every node, in order."""
    nodes = [spec] if spec.nodes == 1 else [replace(spec, node_rank=rank) for rank in range(spec.nodes)]
    return [process.command.line() for node in nodes for process in deploy(node, ports, facts).processes]


def _count(spec: ServerSpec) -> int:
    return 1 if spec.dp_mode == "engine" else spec.dp


def _devices(spec: ServerSpec, count: int, facts: Facts) -> list[tuple[str, ...] | None]:
    """Devices of each replica; None leaves the choice to the engine (one replica on all that is visible)."""
    kind = accelerators.kind_of(spec)
    inside = spec.dp if count == 1 else 1
    each = max(1, spec.tp * spec.pp * inside // spec.nodes)
    shares = accelerators.slices(kind, count, each, spec.devices, facts.device_ids)
    # A container on Ascend sees only the devices that are handed to it by name.
    if count == 1 and spec.devices is None and not (spec.docker and kind == "ascend"):
        return [None]
    return list(shares)


def _reached(host: str) -> str:
    """The address at which a server listening on `host` is reached from here."""
    if host in ("0.0.0.0", ""):  # noqa: S104 (compared, not bound)
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host
