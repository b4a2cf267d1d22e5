"""Where an engine's program comes from: PATH, another interpreter, `uvx`, or a container image."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from server_launchers.deployment import Command
from server_launchers.errors import LaunchError
from server_launchers.machine.programs import run_quietly
from server_launchers.spec import ServerSpec

HUB_VARIABLES = ("HF_TOKEN", "HF_HOME", "HF_ENDPOINT", "HF_HUB_OFFLINE")
_ASCEND_DEVICES = ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
_ASCEND_MOUNTS = (
    "/usr/local/dcmi",
    "/usr/local/bin/npu-smi",
    "/usr/local/Ascend/driver/lib64",
    "/usr/local/Ascend/driver/version.info",
    "/etc/ascend_install.info",
)


@dataclass(frozen=True)
class Program:
    """How one program is called: as a script of an environment, or as a module of its interpreter."""

    script: str | None
    """Console script; None where the program is only a module."""
    module: tuple[str, ...]
    """`-m` arguments that do the same."""
    package: str
    """Distribution whose version decides on the flags."""
    install: str
    """The sentence that tells how it is installed."""
    subcommand: tuple[str, ...] = ()
    """First words of the script's own arguments."""


def prefix(spec: ServerSpec, program: Program) -> tuple[str, ...]:
    """The words before the program's own arguments, for all but containers."""
    if spec.uvx is not None:
        if program.script is not None:
            return ("uvx", "--from", spec.uvx, program.script)
        return ("uvx", "--from", spec.uvx, "python", *program.module)
    if spec.python is not None:
        python = spec.python.expanduser()
        # A path keeps its own spelling: resolving a venv's interpreter would leave the venv.
        absolute = str(python if python.is_absolute() else Path.cwd() / python)
        if program.script is not None:
            return (str(Path(absolute).parent / program.script),)
        return (absolute, *program.module)
    if program.script is not None:
        return (program.script,)
    return ("python3", *program.module)


def contained(
    spec: ServerSpec, image: str, entrypoint: tuple[str, ...], command: Command, *, port: int, kind: str, devices: str
) -> Command:
    """`command`'s arguments run in a container of `image`, with its devices, shared memory, port and model cache.

    `command.argv` are the arguments after the entry point. A local model folder is mounted at its own path.
    """
    name = f"harness-{port}"
    words = ["docker", "run", "--rm", "--init", "--name", name, "--ipc=host", "--network=host"]
    if kind == "ascend":
        words += [word for one in devices.split(",") for word in ("--device", f"/dev/davinci{one}")]
        words += [word for one in _ASCEND_DEVICES for word in ("--device", one)]
        words += [word for one in _ASCEND_MOUNTS for word in ("-v", f"{one}:{one}:ro")]
    else:
        words += ["--gpus", f'"device={devices}"' if devices else "all"]
    cache = os.environ.get("HF_HOME") or str(Path.home() / ".cache/huggingface")
    words += ["-v", f"{cache}:/root/.cache/huggingface"]
    model = Path(spec.model).expanduser()
    if model.is_dir():
        words += ["-v", f"{model.absolute()}:{model.absolute()}:ro"]
    if spec.chat_template is not None:
        template = spec.chat_template.expanduser().absolute()
        words += ["-v", f"{template}:{template}:ro"]
    # Named without a value: docker takes it from its own environment, so that no secret stands in argv.
    inherited = [one for one in HUB_VARIABLES if one in os.environ and one != "HF_HOME"]
    for variable in sorted({*command.environment, *command.secrets, *inherited}):
        words += ["-e", variable]
    words += ["--entrypoint", entrypoint[0], image, *entrypoint[1:], *command.argv]
    return Command(tuple(words), command.environment, command.secrets, cleanup=("docker", "rm", "-f", name))


def install_hint(requirement: str, *others: str) -> str:
    """The sentence that tells how an engine comes into an environment of its own, and other ways to have it."""
    made = f"uv venv ENV && uv pip install --python ENV/bin/python {requirement}"
    ways = "".join(f", or {other}" for other in others)
    return f"install it into an environment of its own: {made}, then --python ENV/bin/python{ways}"


def local_model(spec: ServerSpec) -> str:
    """The model as the engine is told it: a folder by its absolute path, since engines start elsewhere."""
    path = Path(spec.model).expanduser()
    return str(path.absolute()) if path.exists() else spec.model


def check_model(spec: ServerSpec) -> None:
    """Raise LaunchError where the model is a path and no model is there: engines take a minute to say so."""
    path = Path(spec.model).expanduser()
    if not path.exists():
        if path.is_absolute() or spec.model.startswith("."):
            raise LaunchError(f"there is no model at {path.absolute()}: correct the path, or give a name of the hub")
    elif path.is_dir() and not any((path / name).exists() for name in ("config.json", "params.json")):
        raise LaunchError(f"the folder {path.absolute()} holds no model: no config.json (nor params.json) is in it")


def find_program(argv: tuple[str, ...], install: str) -> str:
    """The path of the program that `argv` starts; raises LaunchError with the line that installs it."""
    found = shutil.which(argv[0])
    if found is None:
        raise LaunchError(f"{argv[0]} is not there; {install}")
    return found


def required_version(spec: ServerSpec) -> str | None:
    """`0.32.0` of `--uvx vllm==0.32.0`; None where no version is named."""
    return (spec.uvx or "").partition("==")[2].strip() or None


def installed_version(spec: ServerSpec, program: Program, argv: tuple[str, ...] | None = None) -> str | None:
    """Version of the engine's package in its environment; None for containers and `uvx`, where asking downloads it.

    Raises LaunchError where the environment has no such package.
    """
    found = find_program(argv or prefix(spec, program), program.install)
    if spec.docker is not None or spec.uvx is not None:
        return required_version(spec)
    python = found if program.script is None else _interpreter_of(Path(found))
    if python is None:
        return None
    code = f"import importlib.metadata as m; print(m.version({program.package!r}))"
    done = run_quietly((python, "-c", code))
    if done is None or done.returncode != 0:
        raise LaunchError(f"the environment of {python} has no {program.package}; {program.install}")
    return done.stdout.strip() or None


def _interpreter_of(script: Path) -> str | None:
    """The interpreter in a console script's first line."""
    try:
        with script.open("rb") as file:
            first = file.readline(1024)
    except OSError:
        return None
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    return words[0] if words and "python" in words[0] else None
