"""The table of launchers, and how one spec becomes processes: replicas, a router before them, or one engine."""

from __future__ import annotations

from collections.abc import Sequence

from server_launchers import llama_cpp
from server_launchers.deployment import Deployment, Process
from server_launchers.errors import LaunchError
from server_launchers.spec import ServerSpec


def ports_needed(spec: ServerSpec) -> int:
    """How many ports `deploy` wants for `spec`."""
    return spec.dp


def deploy(spec: ServerSpec, ports: Sequence[int]) -> Deployment:
    """The processes of `spec` on `ports` (as many as `ports_needed`); raises LaunchError for what cannot work."""
    if spec.engine != "llama_cpp":
        raise LaunchError(f"engine {spec.engine} is not supported yet")
    llama_cpp.check(spec)
    processes = tuple(Process("engine", llama_cpp.command(spec, port=port), port) for port in ports)
    return Deployment(processes, tuple(f"http://{spec.host}:{port}" for port in ports), llama_cpp.READINESS)
