"""What a launcher hands to the supervisor: processes to start, and where clients then send their requests."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec.structs import replace

from server_launchers import shown
from server_launchers.errors import LaunchError


class ProcessCommand(msgspec.Struct, frozen=True):
    """A program's arguments and the variables that it needs beside the inherited ones."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}
    """Variable of the program → variable of ours whose value it gets; never shown, never stored."""
    container: str | None = None
    """Name of the container that the program is the client of: it is removed once the client was stopped."""

    def adding(self, environment: Mapping[str, str]) -> ProcessCommand:
        """This command with more variables; its own win."""
        return replace(self, environment={**environment, **self.environment})

    def line(self) -> str:
        """One line for a POSIX shell. Secrets of variables stand in it as references; in arguments they are hidden."""
        words = shown.assignments(self.environment)
        words += [f'{name}="${source}"' for name, source in sorted(self.secrets.items()) if name != source]
        return " ".join([*words, shlex.join(shown.words(self.argv))])

    def resolved(self) -> dict[str, str]:
        """All variables with the secrets' values; raises LaunchError where one is not set."""
        missing = [source for source in self.secrets.values() if not os.environ.get(source)]
        if missing:
            raise LaunchError(f"the environment variable {missing[0]}, which is to hold the API key, is not set")
        return {**self.environment, **{name: os.environ[source] for name, source in self.secrets.items()}}


class PlannedProcess(msgspec.Struct, frozen=True):
    """One process of a server."""

    role: Literal["engine", "router"]
    command: ProcessCommand
    port: int | None
    devices: tuple[str, ...] | None = None
    keeps_folder: bool = False
    """Started in the caller's folder; engines otherwise start in an empty one, where nothing shadows a library."""


class Readiness(msgspec.Struct, frozen=True):
    """What tells that an engine of this kind can work."""

    health_path: str | None = "/health"
    lists_models: bool = True
    """Whether `/v1/models` reliably names the served model (a router may say "unknown")."""
    owns_port: bool = True
    """Whether the port must belong to a process that we started (not so for a container or a foreign server)."""


class Deployment(msgspec.Struct, frozen=True):
    """A whole server: its processes and its addresses."""

    processes: tuple[PlannedProcess, ...]
    base_urls: tuple[str, ...]
    """Empty on a node that only lends its devices to node 0."""
    readiness: Readiness
    versions: Mapping[str, str] = {}
