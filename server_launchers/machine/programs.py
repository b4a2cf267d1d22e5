"""Run other programs to completion: short queries, and the removal of our containers.

A program that fails returns no answer. Containers outlive the client that started them, so they are stopped by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess


import contextlib
import json
import re

from server_launchers import isolated
from server_launchers.machine.processes import MARK

ASK_SECONDS = 30.0
"""Seconds that a program may take; after that, its answer counts as unknown."""


def run_quietly(argv: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Run a program to completion, outside the caller's folder; None if it cannot run or takes more than
    `ASK_SECONDS`."""
    import subprocess  # Imported late: code that only reads facts about engines does not need it.

    try:
        return subprocess.run(
            argv,
            # A program that prompts for input must not wait for the user's terminal.
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ASK_SECONDS,
            check=False,
            # Python also imports from its folder: a user's file called `vllm.py` would run here.
            cwd="/",
            env=isolated.environment(*isolated.CONTAINERS),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def output_of(*argv: str) -> str:
    """The output of a program; empty if it cannot run, fails or takes too long."""
    completed = run_quietly(argv)
    return "" if completed is None or completed.returncode != 0 else completed.stdout


_CONTAINER = re.compile(r"harness-[0-9]{1,5}\Z")
"""The form of our container names."""


def container_name(port: int) -> str:
    """The name of the container whose engine listens on `port`."""
    return f"harness-{port}"


def end_container(name: str, mark: str) -> None:
    """Remove the container `name` if it is ours: its name has our form, and `mark` is in its environment."""
    if _CONTAINER.match(name) and f"{MARK}={mark}" in _container_variables(name):
        output_of("docker", "rm", "-f", name)


def _container_variables(name: str) -> list[str]:
    """The variables of a container, NAME=VALUE; empty if there is no such container."""
    argv = ("docker", "inspect", "--type", "container", "--format", "{{json .Config.Env}}", name)
    with contextlib.suppress(ValueError):
        variables = json.loads(output_of(*argv))
        return variables if isinstance(variables, list) else []
    return []
