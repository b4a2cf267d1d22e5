"""What each engine's module gives to the table of launchers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from server_launchers.deployment import Command, Readiness
from server_launchers.engines.inspection import Facts
from server_launchers.engines.known_flags import Flags
from server_launchers.spec import ServerSpec


@dataclass(frozen=True)
class Launcher:
    """How one engine is started."""

    inspect: Callable[[ServerSpec], Facts]
    """Asks the machine; raises LaunchError where the engine is missing or its version does not fit."""
    recorded: Callable[[ServerSpec], Facts]
    """Facts without asking the machine."""
    command: Callable[[ServerSpec, Flags, int, str], Command]
    """(spec, known options, port, devices joined by commas) → the command of one replica, or of one node.

    Raises LaunchError for what this version cannot do.
    """
    readiness: Callable[[ServerSpec], Readiness] = lambda _spec: Readiness()
    uses_devices: bool = True
    """Whether each replica gets accelerators of its own."""
