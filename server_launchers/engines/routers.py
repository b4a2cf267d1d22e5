"""One address before several replicas: sglang-router (before SGLang, llama.cpp, …) and vllm-router (before vLLM).

A router's `/health` says OK without a worker behind it; `/readiness` tells the truth. SGLang's router calls a
worker's model "unknown" unless the worker is an SGLang server.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from server_launchers import isolated
from server_launchers.deployment import Command, Readiness
from server_launchers.engines.sglang import KEY_VARIABLE, keyed
from server_launchers.machine.environments import Program
from server_launchers.machine.known_flags import recorded
from server_launchers.spec import ServerSpec

POLICY = "round_robin"
"""Requests of a benchmark are alike; a cache-aware policy would pile equal prompts on one replica."""
STARTUP_SECONDS = 86_400
"""Seconds that the router waits for its workers: a day, since the supervisor watches the start."""
VERSIONS = {"sglang_router": "0.3.2", "vllm_router": "0.1.17"}


def kind_for(engine: str) -> str:
    """The router that fits an engine's workers."""
    return "vllm_router" if engine in ("vllm", "vllm_ascend") else "sglang_router"


def wanted(spec: ServerSpec) -> bool:
    """Whether a router is to stand before the replicas."""
    return spec.engine == "sglang_router" or (spec.dp_mode == "router" and spec.dp > 1)


def readiness(kind: str) -> Readiness:
    """How a router tells that its workers can work."""
    return Readiness("/readiness", lists_models=kind == "vllm_router")


def program(kind: str, spec: ServerSpec) -> Program:
    """The router as a module; with a key, by a line that keeps the key off argv."""
    module = f"{kind}.launch_router"
    words = keyed(module) if spec.api_key_env else ("-m", module)
    return Program(None, words, kind.replace("_", "-"), install(kind))


def interpreter(spec: ServerSpec) -> str:
    """The environment that is to hold the router: the given one, else the engine's, else that on PATH."""
    chosen = spec.router_python or spec.python
    return "python3" if chosen is None else str(chosen.expanduser())


def found_interpreter(spec: ServerSpec) -> str:
    """As `interpreter`, but ours before the engine's where ours has the router."""
    ours = spec.router_python is None and importlib.util.find_spec(kind_for(spec.engine)) is not None
    return isolated.PYTHON if ours else interpreter(spec)


def install(kind: str) -> str:
    """The line that installs the router."""
    name = f"{kind.replace('_', '-')}=={VERSIONS[kind]}"
    return (
        "install the router into an environment of its own: uv venv ENV && "
        f"uv pip install --python ENV/bin/python {name}, then --router-python ENV/bin/python"
    )


def command(spec: ServerSpec, workers: Sequence[str], *, python: str, port: int, metrics_port: int) -> Command:
    """The command of the router in the environment of `python`, on `port` before `workers` (URLs without `/v1`)."""
    kind = kind_for(spec.engine)
    words = ["--host", spec.host, "--port", str(port), "--worker-urls", *workers, "--policy", POLICY]
    words += ["--worker-startup-timeout-secs", str(STARTUP_SECONDS)]
    # Every router on a machine would else take the same port for its metrics.
    words += ["--prometheus-host", spec.host, "--prometheus-port", str(metrics_port)]
    recorded(kind, VERSIONS[kind]).check(words)
    secrets = {KEY_VARIABLE: spec.api_key_env} if spec.api_key_env else {}
    return Command((python, *program(kind, spec).module, *words), {}, secrets)
