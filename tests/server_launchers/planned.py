"""What a spec would start, on a machine of which nothing is known."""

from __future__ import annotations

from server_launchers import replicas
from server_launchers.engines import table
from server_launchers.spec import ServerSpec


def planned(spec: ServerSpec) -> replicas.Deployment:
    engine, first = table.engine_of(spec), spec.port or 8000
    ports = range(first, first + replicas.ports_needed(spec))
    return replicas.deploy(spec, engine, ports, engine.assumed_facts(spec))
