"""What a start needs to know: the processes to start, and the addresses for clients."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec.structs import replace

from server_launchers import shown


class ProcessCommand(msgspec.Struct, frozen=True):
    """A program's arguments, and the variables that it needs in addition to the inherited ones."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}
    """Environment variable of the program → variable of this process that holds its value. The value is never shown or
    stored.
    """
    container: str | None = None
    """Name of the container that this program starts as a client; the container is removed once the client is stopped.
    """

    def adding(self, environment: Mapping[str, str]) -> ProcessCommand:
        """A copy of this command with these variables added; a variable that the command sets keeps its value."""
        return replace(self, environment={**environment, **self.environment})

    def line(self) -> str:
        """The command as one line for a POSIX shell.

        Secret variables appear as references; secrets in arguments are hidden.
        """
        words = shown.assignments(self.environment)
        words += [f'{name}="${source}"' for name, source in sorted(self.secrets.items()) if name != source]
        return " ".join([*words, shlex.join(shown.words(self.argv))])

    def resolved(self) -> dict[str, str]:
        """All variables, with the values of the secrets."""
        return {**self.environment, **{name: os.environ[source] for name, source in self.secrets.items()}}


class PlannedProcess(msgspec.Struct, frozen=True):
    """One process of a server."""

    role: Literal["engine", "router"]
    command: ProcessCommand
    port: int | None
    devices: tuple[str, ...] | None = None
    keeps_folder: bool = False
    """Whether the process starts in the caller's folder; else it starts in an empty one, where no file of the user can
    be imported in place of a library.
    """


class Readiness(msgspec.Struct, frozen=True):
    """The signs that a server of this engine can work."""

    health_path: str | None = "/health"
    lists_models: bool = True
    """Whether `/v1/models` reliably names the served model (a router may say "unknown")."""
    owns_port: bool = True
    """Whether the port must belong to a process that we started (not so for a container or a foreign server)."""


class Deployment(msgspec.Struct, frozen=True):
    """A whole server: its processes and its addresses."""

    processes: tuple[PlannedProcess, ...]
    base_urls: tuple[str, ...]
    """The server's addresses for clients; empty on a node that only lends its devices to node 0."""
    readiness: Readiness
    versions: Mapping[str, str] = {}
