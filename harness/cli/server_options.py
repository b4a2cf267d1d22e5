"""A server as the command line of `harness` asks for it: the launchers' own flags, and weights by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.core.errors import UsageError
from server_launchers.command_line import given_flags, spec_from
from server_launchers.spec import ServerSpec


def refuse_server_flags(flags: Mapping[str, Any]) -> None:
    """Raises `UsageError` naming the first flag that describes a server, where none is to be started."""
    given = given_flags(flags)
    if flags.get("engine_flags"):
        given.append("--engine-flag")
    if given:
        raise UsageError(f"{given[0]} describes a server to start: it goes with --serve ENGINE")


def spec_of(
    engine: str, model: str, flags: Mapping[str, Any], extra: tuple[str, ...] = (), name: str | None = None
) -> ServerSpec:
    """The spec that the flags describe; fetches the weights of a known small model.

    Raises LaunchError: a flag is wrong, no such engine, the weights cannot be had.
    """
    if engine == "llama_cpp":
        model, served_name = _weights(model, flags.get("server_served_name"))
        flags = {**flags, "server_served_name": served_name}
    return spec_from(engine, model, flags, extra, name)


def _weights(model: str, served_name: str | None) -> tuple[str, str | None]:
    """(file, served name): a known model's name becomes its file, and stays the name that clients use."""
    from harness.cli import terminal
    from server_launchers.embedded import weights

    if model not in weights.KNOWN:
        return model, served_name
    with terminal.byte_progress(f"fetching {model}") as progress:
        return str(weights.fetch(model, progress)), served_name or model
