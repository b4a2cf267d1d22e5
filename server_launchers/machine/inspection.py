"""Facts about the machine before a start: whether the engine is installed, its version, and which devices exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from server_launchers.errors import LaunchError
from server_launchers.machine import accelerators, environments
from server_launchers.machine.accelerators import Accelerator
from server_launchers.program import Program, version_key
from server_launchers.spec import ServerSpec


class Facts(msgspec.Struct, frozen=True):
    """Facts about the machine that a spec depends on."""

    version: str
    """The engine's version; empty: unknown."""
    router_python: str = "python3"
    """The interpreter that starts the router."""
    device_ids: tuple[str, ...] | None = None
    """The accelerators; None: unknown."""
    versions: Mapping[str, str] = {}
    """Component (a package, the driver, the devices) → its version or description, as a run records it."""
    environment: Mapping[str, str] = {}
    """Variables that this machine requires."""


def of_package(spec: ServerSpec, program: Program, kind: Accelerator, facts: Facts) -> Facts:
    """The facts with what this machine says about an engine that is a Python package: version and devices.

    kind: the kind of accelerator to look for. facts: assumed ones, which stay where the machine does not answer.
    Raises LaunchError if the engine is missing or the spec's model does not exist.
    """
    environments.check_model(spec)
    package = program.package

    # The devices, and a description of them for the record of a run.
    machine = accelerators.Machine(None) if spec.device == "cpu" else accelerators.find(kind)
    versions = {"driver": machine.driver} if machine.driver else {}
    if spec.device == "cpu":
        versions["devices"] = accelerators.processor()
    else:
        used = machine if spec.devices is None else accelerators.of_ids(machine, spec.devices)
        if used.names:
            versions["devices"] = ", ".join(f"{n} x {name}" for name, n in Counter(used.names).items())
    facts = replace(facts, device_ids=machine.ids, versions=versions)

    # An image cannot be asked before the start: the version is what the spec names.
    if spec.docker is not None:
        environments.find_program(("docker",), program.install)
        stated = spec.engine_version
        return replace(facts, versions={**versions, package: stated}) if stated else facts

    # An installed engine states its version itself.
    installed = environments.installed_version(environments.prefix(spec, program), program)
    if installed is None:
        return facts
    if spec.engine_version is None:
        if not version_key(installed):
            raise LaunchError(f"cannot read the version of {package}: {installed!r}; give `engine_version`")
        facts = replace(facts, version=installed)
    return replace(facts, versions={**versions, package: installed})
