"""A server that somebody else runs: looked at, never started or stopped."""

from __future__ import annotations

from urllib.parse import urlsplit

from server_launchers.deployment import Command, Readiness
from server_launchers.engines.launcher import Launcher
from server_launchers.errors import LaunchError
from server_launchers.machine import inspection
from server_launchers.machine.known_flags import Flags
from server_launchers.spec import ServerSpec


def base_url(url: str) -> str:
    """The server's address without `/v1`; raises LaunchError where it is no URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise LaunchError(f"an external server is given by its URL, http://host:port, not {url!r}")
    return url.rstrip("/").removesuffix("/v1")


def readiness(spec: ServerSpec) -> Readiness:
    """Its health page and its list of models, where the spec says what to look for there."""
    return Readiness(spec.health_path, lists_models=spec.served_name is not None, owns_port=False)


def _no_command(_spec: ServerSpec, _flags: Flags, _port: int, _devices: str) -> Command:
    raise AssertionError("an external server is not started")


def _nothing_asked(spec: ServerSpec) -> inspection.Facts:
    return inspection.recorded(spec, "external")


LAUNCHER = Launcher(
    inspect=_nothing_asked,
    recorded=_nothing_asked,
    command=_no_command,
    takes=frozenset({"served_name", "api_key_env", "health_path"}),
    readiness=readiness,
    uses_devices=False,
)
