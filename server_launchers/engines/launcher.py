"""What each engine's module gives to the table of launchers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from server_launchers.deployment import Command, Readiness
from server_launchers.engines import inspection
from server_launchers.engines.environments import Program
from server_launchers.engines.inspection import Facts
from server_launchers.engines.known_flags import Flags
from server_launchers.spec import ServerSpec

WriteCommand = Callable[[ServerSpec, Flags, int, str], Command]
"""(spec, known options, port, devices joined by commas) → the command of one replica, or of one node.

Raises LaunchError for what this version cannot do.
"""


@dataclass(frozen=True)
class Launcher:
    """How one engine is started."""

    inspect: Callable[[ServerSpec], Facts]
    """Asks the machine; raises LaunchError where the engine is missing or its version does not fit."""
    recorded: Callable[[ServerSpec], Facts]
    """Facts without asking the machine."""
    command: WriteCommand
    readiness: Callable[[ServerSpec], Readiness] = lambda _spec: Readiness()
    uses_devices: bool = True
    """Whether each replica gets accelerators of its own."""

    @classmethod
    def of_package(
        cls, program: Callable[[ServerSpec], Program], command: WriteCommand, readiness: Readiness | None = None
    ) -> Self:
        """Of an engine that is a Python package: its environment is asked for its version and its options."""
        return cls(
            inspect=lambda spec: inspection.of_package(spec, program(spec)),
            recorded=lambda spec: inspection.recorded(spec, program(spec).package),
            command=command,
            readiness=lambda _spec: readiness or Readiness(),
        )
