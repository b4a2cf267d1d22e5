"""One address before several replicas: sglang-router (before SGLang, llama.cpp, …) and vllm-router (before vLLM).

A router's `/health` says OK without a worker behind it; `/readiness` tells the truth. SGLang's router calls a
worker's model "unknown" unless the worker is an SGLang server.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from server_launchers import isolated
from server_launchers.deployment import ProcessCommand, Readiness
from server_launchers.program import KEY_VARIABLE, Program, key_arguments

if TYPE_CHECKING:
    from server_launchers.spec import ServerSpec

POLICY = "round_robin"
"""The router's policy: replicas take turns. A cache-aware policy would send the equal prompts of a benchmark to one
replica.
"""
STARTUP_SECONDS = 86_400
"""Seconds that the router waits for its workers: a day, since a start has its own limit."""


class Router(msgspec.Struct, frozen=True):
    """One router.

    module: the router's Python module. version: the version that was tried. lists_models: whether the
    router's model list names the models of its workers.
    """

    module: str
    version: str
    lists_models: bool

    @property
    def readiness(self) -> Readiness:
        """The signs that the router and its workers are ready."""
        return Readiness("/readiness", lists_models=self.lists_models)

    @property
    def install(self) -> str:
        """The sentence that says how to install the router."""
        return (
            "install the router into an environment of its own: uv venv ENV && "
            f"uv pip install --python ENV/bin/python {self.module.replace('_', '-')}=={self.version}, "
            "then name ENV/bin/python as `router_python`"
        )

    @property
    def program(self) -> Program:
        """How the router is called: as a Python module."""
        return Program(None, ("-m", f"{self.module}.launch_router"), self.module.replace("_", "-"), self.install)

    def interpreter(self, spec: ServerSpec) -> str:
        """The Python that has the router installed: `--router-python`, else the engine's, else the one on PATH."""
        python = spec.router_python or spec.python
        return "python3" if python is None else str(python.expanduser())

    def preferred_interpreter(self, spec: ServerSpec) -> str:
        """The Python for the router.

        It is the one that `--router-python` names, else ours if it has the router, else the engine's, else the one on
        PATH.
        """
        ours = spec.router_python is None and importlib.util.find_spec(self.module) is not None
        return isolated.PYTHON if ours else self.interpreter(spec)

    def command(
        self, spec: ServerSpec, workers: Sequence[str], *, python: str, port: int, metrics_port: int
    ) -> ProcessCommand:
        """The command that starts the router on `port` by the interpreter `python`.

        workers: addresses of the replicas, without `/v1`. metrics_port: the port where the router shows its metrics.
        """
        words = ["--host", spec.host, "--port", str(port), "--worker-urls", *workers, "--policy", POLICY]
        words += ["--worker-startup-timeout-secs", str(STARTUP_SECONDS)]
        # By default, every router on a machine uses the same port for its metrics.
        words += ["--prometheus-host", spec.host, "--prometheus-port", str(metrics_port)]
        if spec.api_key_env is None:
            return ProcessCommand((python, *self.program.module, *words))
        return ProcessCommand((python, *key_arguments(self.program), *words), {}, {KEY_VARIABLE: spec.api_key_env})


SGLANG_ROUTER = Router("sglang_router", "0.3.2", lists_models=False)
VLLM_ROUTER = Router("vllm_router", "0.1.17", lists_models=True)
