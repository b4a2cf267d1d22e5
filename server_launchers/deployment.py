"""What a launcher hands to the supervisor: processes to start, and where clients then send their requests."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Command:
    """A program's arguments and the variables that it needs beside the inherited ones."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def line(self) -> str:
        """One line that a POSIX shell can run."""
        words = [f"{name}={shlex.quote(value)}" for name, value in sorted(self.environment.items())]
        return " ".join([*words, shlex.join(self.argv)])


@dataclass(frozen=True)
class Process:
    """One process of a server."""

    role: Literal["engine", "router"]
    command: Command
    port: int | None
    devices: tuple[str, ...] | None = None
    keeps_folder: bool = False
    """Started in the caller's folder; engines otherwise start in an empty one, where nothing shadows a library."""


@dataclass(frozen=True)
class Readiness:
    """What tells that an engine of this kind can work."""

    health_path: str | None = "/health"
    lists_models: bool = True
    """Whether `/v1/models` reliably names the served model (a router may say "unknown")."""
    owns_port: bool = True
    """Whether the port must belong to a process that we started (not so for a container or a foreign server)."""


@dataclass(frozen=True)
class Deployment:
    """A whole server: its processes and its addresses."""

    processes: tuple[Process, ...]
    base_urls: tuple[str, ...]
    readiness: Readiness
    versions: Mapping[str, str] = field(default_factory=dict)
