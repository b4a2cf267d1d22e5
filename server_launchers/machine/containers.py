"""Our containers: they outlive the client that started them, so they are ended by name."""

from __future__ import annotations

import contextlib
import json
import re

from server_launchers.machine.processes import MARK
from server_launchers.machine.programs import output_of

_NAME = re.compile(r"harness-[0-9]{1,5}\Z")
"""The form of the names that we give to containers."""


def name_of(port: int) -> str:
    """The name of the container whose engine listens on `port`."""
    return f"harness-{port}"


def end(name: str, mark: str) -> None:
    """Remove the container `name` if it is ours: its name has our form, and `mark` is in its environment."""
    if _NAME.match(name) and f"{MARK}={mark}" in _environment(name):
        output_of("docker", "rm", "-f", name)


def _environment(name: str) -> list[str]:
    """The variables of a container, NAME=VALUE; none where there is no such container."""
    argv = ("docker", "inspect", "--type", "container", "--format", "{{json .Config.Env}}", name)
    with contextlib.suppress(ValueError):
        variables = json.loads(output_of(*argv))
        return variables if isinstance(variables, list) else []
    return []
