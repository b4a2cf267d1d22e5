"""The table of launchers, and how one spec becomes processes: replicas, a router before them, or one engine.

`inspect` asks the machine (installed engine, its options, devices); `deploy` is a pure function of the spec and
those facts, so that a dry run prints exactly what a start would run.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from server_launchers.deployment import Command, Deployment, Process, Readiness
from server_launchers.engines import (
    command,
    devices,
    environments,
    known_flags,
    llama_cpp,
    routers,
    sglang,
    transformers,
    vllm,
    vllm_ascend,
)
from server_launchers.engines.known_flags import Flags
from server_launchers.errors import LaunchError
from server_launchers.spec import ServerSpec

PACKAGES = {
    "vllm": "vllm",
    "vllm_ascend": "vllm",
    "sglang": "sglang",
    "sglang_router": "sglang",
    "transformers": "transformers",
}
"""Engine → package whose options it takes."""


@dataclass(frozen=True)
class Facts:
    """What the machine says, as far as a spec needs it."""

    flags: Flags
    router_python: str = "python3"
    device_ids: tuple[str, ...] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that this machine makes necessary."""


def ports_needed(spec: ServerSpec) -> int:
    """How many ports `deploy` wants for `spec`: one a replica, and for a router its own and its metrics'."""
    if spec.engine == "external":
        return 0
    replicas = _replicas(spec)
    return replicas + 2 if _routed(spec) else replicas


def recorded_facts(spec: ServerSpec) -> Facts:
    """Facts without asking the machine: the recorded options, devices unknown."""
    package = PACKAGES.get(spec.engine, spec.engine)
    version = spec.engine_version
    if version is None and spec.engine == "vllm_ascend":
        version = vllm_ascend.PAIRS[0].vllm
    return Facts(known_flags.recorded(package, version), routers.interpreter(spec))


def inspect(spec: ServerSpec) -> Facts:
    """Facts of this machine; raises LaunchError where the engine is missing or its version does not fit."""
    facts = replace(_inspect_engine(spec), router_python=routers.found_interpreter(spec))
    if not _routed(spec):
        return facts
    kind = routers.kind_for(spec.engine)
    program = routers.program(kind, spec)
    version = None
    # The router runs beside its workers' container or `uvx`, not in it.
    beside = spec.model_copy(update={"uvx": None, "docker": None})
    # Whether it is there is checked before the start; a dry run needs no router.
    with contextlib.suppress(LaunchError):
        version = environments.installed_version(beside, program, (facts.router_python,), routers.install(kind))
    return replace(facts, versions={**facts.versions, kind: version}) if version else facts


def _inspect_engine(spec: ServerSpec) -> Facts:
    if spec.engine == "llama_cpp":
        llama_cpp.check(spec)
        versions = {**llama_cpp.versions(spec), "devices": devices.processor()}
        return replace(recorded_facts(spec), versions=versions, environment=llama_cpp.environment(spec))
    if spec.engine == "command":
        environments.find_program(spec.extra_flags, "give the path of a program after `--`")
    if spec.engine not in PACKAGES:
        return recorded_facts(spec)
    environments.check_model(spec)
    package = PACKAGES[spec.engine]
    found = devices.find(_kind(spec)) if _uses_devices(spec) else devices.Found(None)
    versions = {"driver": found.driver} if found.driver else {}
    if spec.device == "cpu":
        versions["devices"] = devices.processor()
    elif found.names:
        versions["devices"] = ", ".join(f"{n} x {name}" for name, n in Counter(found.names).items())
    if spec.docker is not None or spec.uvx is not None:
        program = ("docker",) if spec.docker is not None else ("uvx",)
        environments.find_program(program, _install(spec))
        version = spec.engine_version or (spec.uvx or "").partition("==")[2].strip() or _tag_version(spec.docker)
        known = known_flags.recorded(package, version or None)
        return Facts(known, device_ids=found.ids, versions=versions | ({package: version} if version else {}))
    argv = environments.prefix(spec, _program(spec))
    installed = environments.installed_version(spec, _program(spec), argv, _install(spec))
    if installed is None:
        return replace(recorded_facts(spec), device_ids=found.ids, versions=versions)
    if spec.engine_version is None and not known_flags.version_key(installed):
        raise LaunchError(f"cannot read the version of {package}: {installed!r}; give --engine-version")
    if spec.engine == "vllm_ascend":
        versions["vllm_ascend"] = _check_ascend(spec, argv, installed)
    known = (
        known_flags.ask(package, installed, _help_argv(spec))
        if spec.engine_version is None
        else recorded_facts(spec).flags
    )
    return Facts(known, device_ids=found.ids, versions=versions | {package: installed})


def deploy(spec: ServerSpec, ports: Sequence[int], facts: Facts) -> Deployment:
    """The processes of `spec` on `ports` (as many as `ports_needed`); raises LaunchError for what cannot work."""
    if spec.engine == "external":
        return Deployment((), (_base_url(spec.model),), external_readiness(spec))
    if spec.engine == "sglang_router":
        spec = spec.model_copy(update={"dp_mode": "router"})
    replicas = _replicas(spec)
    shares = _devices(spec, replicas, facts)
    processes = []
    # A router listens where the user said; its replicas come after it.
    own = ports[1:] if _routed(spec) else ports
    for port, share in zip(own[:replicas], shares, strict=True):
        made = _engine_command(spec, facts.flags, port, ",".join(share or ())).adding(facts.environment)
        if share is not None and spec.docker is None:
            made = made.adding({devices.VARIABLES[_kind(spec)]: ",".join(share)})
        processes.append(Process("engine", made, port, share, keeps_folder=spec.engine == "command"))
    urls = tuple(f"http://{_reached(spec.host)}:{port}" for port in own[:replicas])
    readiness = replace(_readiness(spec), owns_port=spec.docker is None)
    if _routed(spec):
        router = routers.command(spec, urls, python=facts.router_python, port=ports[0], metrics_port=own[replicas])
        processes.append(Process("router", router, ports[0]))
        urls = (f"http://{_reached(spec.host)}:{ports[0]}",)
        readiness = routers.readiness(routers.kind_for(spec.engine))
    if spec.node_rank > 0:
        urls = ()
    return Deployment(tuple(processes), urls, readiness, facts.versions)


def lines(spec: ServerSpec, ports: Sequence[int], facts: Facts) -> list[str]:
    """The dry run: one line a process that a shell can run; for several nodes those of every node, in order."""
    if spec.nodes == 1:
        return [process.command.line() for process in deploy(spec, ports, facts).processes]
    nodes = [spec.model_copy(update={"node_rank": rank}) for rank in range(spec.nodes)]
    return [process.command.line() for node in nodes for process in deploy(node, ports, facts).processes]


def external_readiness(spec: ServerSpec) -> Readiness:
    """What is asked of a server that somebody else runs."""
    return Readiness(spec.health_path, lists_models=spec.served_name is not None, owns_port=False)


def _engine_command(spec: ServerSpec, known: Flags, port: int, share: str) -> Command:
    match spec.engine:
        case "llama_cpp":
            return llama_cpp.command(spec, port=port)
        case "vllm":
            return vllm.command(spec, known, port=port, devices=share)
        case "vllm_ascend":
            return vllm_ascend.command(spec, known, port=port, devices=share)
        case "sglang" | "sglang_router":
            return sglang.command(spec, known, port=port, devices=share)
        case "transformers":
            return transformers.command(spec, known, port=port)
        case "command":
            return command.command(spec, port=port)
        case "external":
            raise AssertionError("an external server is not started")


def _check_ascend(spec: ServerSpec, argv: tuple[str, ...], vllm_version: str) -> str:
    """The plug-in's version; raises LaunchError where it is missing, is for another vLLM, or an NPU is not well."""
    plugin = replace(_program(spec), package="vllm-ascend")
    version = environments.installed_version(spec, plugin, argv, _install(spec)) or "unknown"
    vllm_ascend.check_pair(vllm_version, version)
    if unhealthy := devices.unhealthy_ascend():
        raise LaunchError(f"npu-smi reports a device that is not well: {unhealthy[0]}")
    return version


def _readiness(spec: ServerSpec) -> Readiness:
    if spec.engine == "command":
        return command.readiness(spec)
    return transformers.READINESS if spec.engine == "transformers" else Readiness()


def _program(spec: ServerSpec) -> environments.Program:
    match spec.engine:
        case "vllm" | "vllm_ascend":
            return vllm.program(spec)
        case "transformers":
            return transformers.PROGRAM
        case _:
            return sglang.PROGRAM


def _help_argv(spec: ServerSpec) -> tuple[str, ...]:
    match spec.engine:
        case "vllm" | "vllm_ascend":
            return vllm.help_argv(spec)
        case "transformers":
            return transformers.help_argv(spec)
        case _:
            return sglang.help_argv(spec)


def _install(spec: ServerSpec) -> str:
    match spec.engine:
        case "vllm":
            return vllm.INSTALL
        case "vllm_ascend":
            return vllm_ascend.INSTALL + vllm_ascend.pairing_table()
        case "transformers":
            return transformers.INSTALL
        case _:
            return sglang.INSTALL


def _replicas(spec: ServerSpec) -> int:
    return 1 if spec.dp_mode == "engine" and spec.engine != "sglang_router" else spec.dp


def _routed(spec: ServerSpec) -> bool:
    return spec.engine == "sglang_router" or (spec.dp_mode == "router" and spec.dp > 1)


def _kind(spec: ServerSpec) -> devices.Kind:
    return "ascend" if spec.engine == "vllm_ascend" or spec.device == "npu" else "cuda"


def _uses_devices(spec: ServerSpec) -> bool:
    return spec.engine in PACKAGES and spec.device != "cpu"


def _devices(spec: ServerSpec, replicas: int, facts: Facts) -> list[tuple[str, ...] | None]:
    """Devices of each replica; None leaves the choice to the engine (one replica on all that is visible)."""
    if not _uses_devices(spec):
        return [None] * replicas
    inside = spec.dp if replicas == 1 else 1
    each = max(1, spec.tp * spec.pp * inside // spec.nodes)
    shares = devices.slices(_kind(spec), replicas, each, spec.devices, facts.device_ids)
    # A container on Ascend sees only the devices that are handed to it by name.
    if replicas == 1 and spec.devices is None and not (spec.docker and _kind(spec) == "ascend"):
        return [None]
    return list(shares)


def _tag_version(image: str | None) -> str | None:
    """`0.33.0` of `vllm/vllm-openai:v0.33.0`; None where the tag is no version."""
    tag = (image or "").rpartition(":")[2].removeprefix("v")
    return tag if len(known_flags.version_key(tag)) >= 2 else None


def _reached(host: str) -> str:
    """The address at which a server listening on `host` is reached from here."""
    if host in ("0.0.0.0", ""):  # noqa: S104 (compared, not bound)
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise LaunchError(f"an external server is given by its URL, http://host:port, not {url!r}")
    return url.rstrip("/").removesuffix("/v1")
