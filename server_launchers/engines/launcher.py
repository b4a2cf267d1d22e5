"""What each engine's module gives to the table of launchers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from server_launchers.deployment import Command, Readiness
from server_launchers.machine import inspection
from server_launchers.machine.environments import Program
from server_launchers.machine.inspection import Facts
from server_launchers.machine.known_flags import Flags
from server_launchers.spec import ServerSpec

WriteCommand = Callable[[ServerSpec, Flags, int, str], Command]
"""(spec, known options, port, devices joined by commas) → the command of one replica, or of one node.

Raises LaunchError for what this version cannot do.
"""


STARTED = frozenset({"host", "port", "environment", "dp", "dp_mode", "start_timeout", "stop_grace", "restarts"})
"""Fields of the spec that every process that we start takes: they are ours, and no engine's."""
ROUTED = STARTED | {"router_python"}
PACKAGED = ROUTED | {"python", "uvx", "engine_version", "devices"}
"""Those that every engine that is a Python package takes."""
NODES = frozenset({"nodes", "node_rank", "head_address", "head_port", "interface", "node_address"})


@dataclass(frozen=True)
class Launcher:
    """How one engine is started."""

    inspect: Callable[[ServerSpec], Facts]
    """Asks the machine; raises LaunchError where the engine is missing or its version does not fit."""
    recorded: Callable[[ServerSpec], Facts]
    """Facts without asking the machine."""
    command: WriteCommand
    takes: frozenset[str]
    """Fields of the spec that it takes; `check` refuses the others."""
    instead: str = ""
    """What the refusal of a field goes on to say."""
    spreads: bool = False
    """Whether the engine itself can run several replicas (`dp_mode` engine)."""
    readiness: Callable[[ServerSpec], Readiness] = lambda _spec: Readiness()
    uses_devices: bool = True
    """Whether each replica gets accelerators of its own."""

    @classmethod
    def of_package(
        cls,
        program: Callable[[ServerSpec], Program],
        command: WriteCommand,
        takes: frozenset[str],
        *,
        spreads: bool = False,
        instead: str = "",
        readiness: Readiness | None = None,
    ) -> Self:
        """Of an engine that is a Python package: its environment is asked for its version and its options."""
        return cls(
            inspect=lambda spec: inspection.of_package(spec, program(spec)),
            recorded=lambda spec: inspection.recorded(spec, program(spec).package),
            command=command,
            takes=takes,
            spreads=spreads,
            instead=instead,
            readiness=lambda _spec: readiness or Readiness(),
        )
