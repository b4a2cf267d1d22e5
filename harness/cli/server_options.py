"""The flags that describe a server, gathered into the wish of `harness run --serve` and `harness score --serve`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.core.errors import UsageError
from harness.core.wording import option

SERVER_SCOPE = "server_"
"""Begins the parameters of flags that describe a server to start."""


def with_server(given: Mapping[str, Any], engine: str | None) -> dict[str, Any]:
    """`given` with the flags that describe a server gathered into `serve`. Raises `UsageError` without an engine."""
    rest = {name: value for name, value in given.items() if not name.startswith(SERVER_SCOPE)}
    described = server_fields(given)
    if engine is None:
        if described:
            first = option(f"server.{next(iter(described))}")
            raise UsageError(f"{first} describes a server to start: it goes with {option('serve', 'ENGINE')}")
        return rest
    return rest | {"serve": {"engine": engine, **described}}


def server_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a server's spec that the flags set."""
    fields = {
        name.removeprefix(SERVER_SCOPE): value
        for name, value in given.items()
        if name.startswith(SERVER_SCOPE) and value not in (None, ())
    }
    if "environment" in fields:
        fields["environment"] = dict(_variable(text) for text in fields["environment"])
    if "devices" in fields:
        fields["devices"] = tuple(part.strip() for part in fields["devices"].split(",") if part.strip())
    return fields


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError("expected NAME=VALUE", field="server.environment")  # what was typed may be a key
    return name, value
