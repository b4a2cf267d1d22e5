"""llama.cpp through `xllamacpp`: GGUF files on CPU, or on a GPU where the build has one.

python -m server_launchers.engines.llama_cpp MODEL.gguf --port 8080      # the server itself, in the foreground
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path

from server_launchers.deployment import Command, Readiness
from server_launchers.embedded import llama_cpp_server, openmp
from server_launchers.engines.known_flags import Flags
from server_launchers.errors import LaunchError
from server_launchers.spec import ServerSpec

READINESS = Readiness()


def command(spec: ServerSpec, *, port: int) -> Command:
    """The command that serves `spec.model`, a GGUF file, on `port`; raises LaunchError for what cannot be done."""
    if spec.tp > 1 or spec.pp > 1 or spec.nodes > 1:
        raise LaunchError("llama_cpp runs a model in one process on one machine: leave tp, pp and nodes at 1, use --dp")
    if spec.uvx is not None or spec.docker is not None:
        raise LaunchError("llama_cpp starts in this environment or in that of --python")
    if spec.python is None:
        program = (sys.executable, "-m", "server_launchers.embedded.llama_cpp_server")
    else:
        # By path, so that the other environment needs xllamacpp only; -P keeps our modules off its path.
        program = (str(spec.python), "-P", str(Path(llama_cpp_server.__file__).absolute()))
    options: list[str] = ["--host", spec.host, "--port", str(port)]
    for flag, value in (
        ("--served-name", spec.served_name),
        ("--slots", spec.max_sequences),
        ("--context", spec.context),
        ("--threads", spec.threads),
        ("--chat-template", spec.chat_template and spec.chat_template.expanduser().absolute()),
        ("--api-key-env", spec.api_key_env),
    ):
        if value is not None:
            options += [flag, str(value)]
    known = frozenset(word for action in llama_cpp_server.parser()._actions for word in action.option_strings)
    Flags("llama_cpp", "server", known, asked=True).check(spec.extra_flags)
    model = str(Path(spec.model).expanduser().absolute())
    return Command((*program, model, *options, *spec.extra_flags), dict(spec.environment))


def check(spec: ServerSpec) -> None:
    """Raise LaunchError where the start cannot work: no file, no xllamacpp, an unknown flag."""
    if not Path(spec.model).expanduser().is_file():
        raise LaunchError(
            f"no model file at {spec.model}; llama_cpp serves GGUF files (`harness models fetch smollm2-135m` gets one)"
        )
    if spec.python is None and importlib.util.find_spec("xllamacpp") is None:
        raise LaunchError(f"the embedded server needs xllamacpp; install it with {llama_cpp_server.INSTALL}")


def environment(spec: ServerSpec) -> dict[str, str]:
    """Variables that this machine's lack of an OpenMP runtime makes necessary."""
    return openmp.environment() if spec.python is None else {}


def versions(spec: ServerSpec) -> dict[str, str]:
    """The build that serves, for a run's manifest; nothing where it is in another environment."""
    return {} if spec.python is not None else {"xllamacpp": importlib.metadata.version("xllamacpp")}


if __name__ == "__main__":
    # The loader reads its path once, when a process starts.
    if needed := openmp.environment():
        argv = [sys.executable, "-m", "server_launchers.embedded.llama_cpp_server", *sys.argv[1:]]
        os.execve(sys.executable, argv, {**os.environ, **needed})  # noqa: S606 (ourselves, again)
    sys.exit(llama_cpp_server.main())
