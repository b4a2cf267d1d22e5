"""The table of launchers: which module starts an engine, and what the machine says before it does."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from server_launchers.engines import (
    command,
    environments,
    external,
    llama_cpp,
    routers,
    sglang,
    transformers,
    vllm,
    vllm_ascend,
)
from server_launchers.engines.inspection import Facts
from server_launchers.engines.launcher import Launcher
from server_launchers.errors import LaunchError
from server_launchers.spec import Engine, ServerSpec

LAUNCHERS: dict[Engine, Launcher] = {
    "llama_cpp": llama_cpp.LAUNCHER,
    "vllm": vllm.LAUNCHER,
    "vllm_ascend": vllm_ascend.LAUNCHER,
    "sglang": sglang.LAUNCHER,
    "sglang_router": sglang.LAUNCHER,
    "transformers": transformers.LAUNCHER,
    "external": external.LAUNCHER,
    "command": command.LAUNCHER,
}


def recorded_facts(spec: ServerSpec) -> Facts:
    """Facts without asking the machine: the recorded options, devices unknown."""
    return replace(LAUNCHERS[spec.engine].recorded(spec), router_python=routers.interpreter(spec))


def inspect(spec: ServerSpec) -> Facts:
    """Facts of this machine; raises LaunchError where the engine is missing or its version does not fit."""
    facts = replace(LAUNCHERS[spec.engine].inspect(spec), router_python=routers.found_interpreter(spec))
    if not routers.wanted(spec):
        return facts
    kind = routers.kind_for(spec.engine)
    # The router runs beside its workers' container or `uvx`, not in it.
    beside = replace(spec, uvx=None, docker=None)
    version = None
    # Whether it is there is checked before the start; a dry run needs no router.
    with contextlib.suppress(LaunchError):
        version = environments.installed_version(beside, routers.program(kind, spec), (facts.router_python,))
    return replace(facts, versions={**facts.versions, kind: version}) if version else facts
