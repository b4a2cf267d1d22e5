"""Start any program that serves the OpenAI protocol: `-- ./my_server --port {port}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from server_launchers.command_line import ProcessCommand
from server_launchers.engines.engine import ROUTED, Engine, Readiness
from server_launchers.errors import LaunchError

if TYPE_CHECKING:
    from server_launchers.machine.environments import Facts
    from server_launchers.spec import ServerSpec

PLACEHOLDERS = ("{port}", "{host}", "{model}", "{served_name}")
"""Placeholders in the command line for values of the spec."""


class AnyProgram(Engine):
    """A program from the user or a plug-in."""

    summary = "Start any program with an OpenAI-compatible API: `-- ./my_server --port {port}`."
    takes = ROUTED | {"served_name", "api_key_env", "devices", "device", "tp", "pp", "health_path"}
    needs = "extra_flags"
    devices = "named"
    keeps_folder = True

    def readiness(self, spec: ServerSpec) -> Readiness:
        """The health page if the spec has one, and the model list if the spec has a model name."""
        return Readiness(spec.health_path, lists_models=bool(self.client_name(spec)))

    def check(self, spec: ServerSpec, facts: Facts) -> Facts:
        """The facts, including this machine's devices if there are several replicas. Raises LaunchError if the program
        is missing."""
        from server_launchers.machine import accelerators, environments

        # If only the guard noticed the missing program, the error would appear only in its log.
        environments.find_program(spec.extra_flags, "correct the name, or give the program's path")
        if spec.dp == 1 or spec.device == "cpu":
            return facts
        machine = accelerators.find(self.runs_on(spec))
        if not machine.ids and spec.device is None and accelerators.find("ascend").ids:
            raise LaunchError("set `device=npu`: without it, replicas do not get separate devices on this machine")
        return replace(facts, machine=machine)

    def command(self, spec: ServerSpec, _version: str, port: int) -> ProcessCommand:
        """The user's words with `{port}`, `{host}`, `{model}` and `{served_name}` filled in.

        Raises LaunchError if several replicas would listen on the same port.
        """
        values = dict(zip(PLACEHOLDERS, (str(port), spec.host, spec.model, self.client_name(spec)), strict=True))
        if spec.dp > 1 and not any("{port}" in word for word in spec.extra_flags):
            raise LaunchError(
                "for several replicas (`dp`), the command must contain `{port}` so that each has its own port"
            )
        words = []
        for word in spec.extra_flags:
            for placeholder, value in values.items():
                word = word.replace(placeholder, value)
            words.append(word)
        secrets = {spec.api_key_env: spec.api_key_env} if spec.api_key_env else {}
        return ProcessCommand(tuple(words), dict(spec.environment), secrets)


ENGINE = AnyProgram()
