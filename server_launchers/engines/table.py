"""The table of launchers: which module starts an engine, and what the machine says before it does."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from server_launchers.engines import (
    command,
    external,
    llama_cpp,
    routers,
    sglang,
    tensorrt_llm,
    transformers,
    vllm,
    vllm_ascend,
)
from server_launchers.engines.launcher import Launcher
from server_launchers.errors import LaunchError, SpecError
from server_launchers.machine import environments
from server_launchers.machine.inspection import Facts
from server_launchers.spec import OPTIONS, Engine, ServerSpec

LAUNCHERS: dict[Engine, Launcher] = {
    "llama_cpp": llama_cpp.LAUNCHER,
    "vllm": vllm.LAUNCHER,
    "vllm_ascend": vllm_ascend.LAUNCHER,
    "sglang": sglang.LAUNCHER,
    "sglang_router": sglang.BEHIND_ROUTER,
    "tensorrt_llm": tensorrt_llm.LAUNCHER,
    "transformers": transformers.LAUNCHER,
    "external": external.LAUNCHER,
    "command": command.LAUNCHER,
}


def check(spec: ServerSpec) -> None:
    """Raise SpecError for the first field that the engine does not take: nothing that is asked for is dropped."""
    launcher = LAUNCHERS[spec.engine]
    for name, option in OPTIONS.items():
        if name in launcher.takes or getattr(spec, name) == ({} if option.kind is dict else option.default):
            continue
        able = [engine for engine, one in LAUNCHERS.items() if name in one.takes]
        others = f"; {', '.join(able)} {'do' if len(able) > 1 else 'does'}" if able else ""
        raise SpecError(name, f"{spec.engine} does not take it{others}{launcher.instead}")
    if spec.engine == "external" and spec.extra_flags:
        raise SpecError("extra_flags", "nothing is started that could take them; leave out what follows `--`")
    if spec.dp_mode == "engine" and not launcher.spreads:
        raise SpecError("dp_mode", f"{spec.engine} runs one replica a process: choose client or router")
    if spec.router_python is not None and spec.engine != "sglang_router" and spec.dp_mode != "router":
        raise SpecError("router_python", "no router is asked for: it goes with --dp-mode router")


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
