"""llama.cpp through `xllamacpp`: GGUF files on CPU, or on a GPU where the build has one."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import replace
from pathlib import Path

from server_launchers import isolated
from server_launchers.deployment import Command
from server_launchers.embedded import llama_cpp_server, openmp
from server_launchers.engines.launcher import ROUTED, Launcher
from server_launchers.errors import LaunchError
from server_launchers.machine import accelerators, inspection
from server_launchers.machine.inspection import Facts
from server_launchers.machine.known_flags import Flags, flag_pairs
from server_launchers.spec import ServerSpec

TAKES = ROUTED | {
    *("served_name", "api_key_env", "python"),
    *("context", "max_sequences", "threads", "chat_template"),
}


def command(spec: ServerSpec, _flags: Flags, port: int, _devices: str = "") -> Command:
    """The command that serves `spec.model`, a GGUF file, on `port`; raises LaunchError for what cannot be done."""
    # By path, so that another environment needs xllamacpp only.
    python = isolated.PYTHON if spec.python is None else str(spec.python)
    program = isolated.command(str(Path(llama_cpp_server.__file__).absolute()), python=python)
    options = flag_pairs(
        (
            ("--host", spec.host),
            ("--port", port),
            ("--served-name", spec.served_name),
            ("--slots", spec.max_sequences),
            ("--context", spec.context),
            ("--threads", spec.threads),
            ("--chat-template", spec.chat_template and spec.chat_template.expanduser().absolute()),
            ("--api-key-env", spec.api_key_env),
        )
    )
    known = frozenset(word for action in llama_cpp_server.parser()._actions for word in action.option_strings)
    Flags("llama_cpp", "server", known, asked=True).check(spec.extra_flags)
    model = str(Path(spec.model).expanduser().absolute())
    return Command((*program, model, *options, *spec.extra_flags), dict(spec.environment))


def recorded(spec: ServerSpec) -> Facts:
    """Facts without asking the machine."""
    return inspection.recorded(spec, "llama_cpp")


def inspect(spec: ServerSpec) -> Facts:
    """The build and the processor that serve; raises LaunchError where the file or xllamacpp is not there."""
    if not Path(spec.model).expanduser().is_file():
        raise LaunchError(
            f"no model file at {spec.model}; llama_cpp serves GGUF files (`harness models fetch smollm2-135m` gets one)"
        )
    if spec.python is None and importlib.util.find_spec("xllamacpp") is None:
        raise LaunchError(f"the embedded server needs xllamacpp; install it with {llama_cpp_server.INSTALL}")
    versions = {"devices": accelerators.processor()}
    if spec.python is not None:
        return replace(recorded(spec), versions=versions)
    versions = {"xllamacpp": importlib.metadata.version("xllamacpp"), **versions}
    return replace(recorded(spec), versions=versions, environment=openmp.environment())


LAUNCHER = Launcher(inspect=inspect, recorded=recorded, command=command, takes=TAKES, uses_devices=False)
