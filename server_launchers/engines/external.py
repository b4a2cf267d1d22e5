"""A server that somebody else runs: looked at, never started or stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from server_launchers.deployment import Readiness
from server_launchers.engines.engine import Engine, Launcher
from server_launchers.errors import LaunchError

if TYPE_CHECKING:
    from server_launchers.spec import ServerSpec


def address(spec: ServerSpec) -> str:
    """The server's address without `/v1`; raises LaunchError where the model is no URL."""
    parts = urlsplit(spec.model)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise LaunchError(f"an external server is given by its URL, http://host:port, not {spec.model!r}")
    return spec.model.rstrip("/").removesuffix("/v1")


def readiness(spec: ServerSpec) -> Readiness:
    """The signs that the server is ready.

    They are its health page if the spec names one, and its model list if the spec gives the served name.
    """
    return Readiness(spec.health_path, lists_models=spec.served_name is not None, owns_port=False)


ENGINE = Engine(
    summary="A server that runs elsewhere, by its URL: checked, never started or stopped.",
    launcher=Launcher(
        takes=frozenset({"served_name", "api_key_env", "health_path"}),
        address=address,
        served_as=lambda _spec: "",
        readiness=readiness,
        devices="none",
    ),
)
