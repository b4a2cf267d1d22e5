"""Which endpoints a command talks to: `--base-url`, else OPENAI_BASE_URL, else the server that `serve status` knows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.client.endpoint import Endpoint
from harness.core.errors import ServerError, UsageError

if TYPE_CHECKING:
    from harness.client.discovery import ModelInfo

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"


def resolve(
    urls: Sequence[str],
    server: str | None,
    headers: Sequence[str] = (),
    key_variable: str = KEY_VARIABLE,
    key_file: Path | None = None,
) -> tuple[tuple[Endpoint, ...], dict[str, Any]]:
    """(endpoints, what is known of a server of ours). `urls`: "URL" or "URL,weight=2".

    Raises `UsageError`, `ServerError`.
    """
    if urls and server:
        raise UsageError("--base-url and --server are two ways to name the server: give one")
    extra = tuple(_header(text) for text in headers)
    if urls or (server is None and os.environ.get(URL_VARIABLE)):
        key = _key(key_variable, key_file)
        return tuple(_endpoint(url, key, extra) for url in urls or [os.environ[URL_VARIABLE]]), {}

    from server_launchers import supervisor

    running = [one for one in supervisor.status() if one.status == "ready"]
    if server is None and not running:
        raise ServerError(
            f"no server is known: give --base-url (or {URL_VARIABLE}), or start one with `harness serve ENGINE MODEL`"
        )
    if server is None and len(running) > 1:
        raise ServerError(
            f"several servers run ({', '.join(one.name for one in running)}): pick one with --server NAME"
        )
    state = supervisor.find(server)
    key = os.environ.get(state.api_key_env) if state.api_key_env else _key(key_variable, key_file)
    about = {"server": state.name, "engine": state.engine, "source": state.source, **state.versions}
    return tuple(_endpoint(url, key, extra) for url in state.base_urls), about


def find_models(endpoints: Sequence[Endpoint], model: str | None, ca_file: Path | None) -> tuple[str, list[ModelInfo]]:
    """(model name, what each endpoint says of it). Raises `ServerError`: one is down, refuses, or lacks the model."""
    from harness.client import discovery

    found = []
    for endpoint in endpoints:
        info = discovery.find_model(endpoint, model, ca_file=ca_file)
        if info is not None:
            model = info.id
            found.append(info)
    if model is None:
        raise ServerError(f"{endpoints[0].base_url} does not list its models: name one with --model")
    return model, found


def _key(variable: str, file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(variable, "").strip() or None
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--api-key-file {file}: {error}") from error
    if not text or "\n" in text:
        raise UsageError(f"--api-key-file {file}: expected one line with the key")
    return text


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError("--header: expected NAME:VALUE")
    return name.strip(), value.strip()


def _endpoint(text: str, key: str | None, headers: tuple[tuple[str, str], ...]) -> Endpoint:
    url, comma, option = text.partition(",")
    endpoint = Endpoint.parse(url, key, headers)
    if not comma:
        return endpoint
    name, _, value = option.partition("=")
    try:
        weight = float(value) if name == "weight" else -1.0
    except ValueError:
        weight = -1.0
    if not 0 < weight < float("inf"):
        raise UsageError(f"--base-url {endpoint.base_url},{option}: expected `,weight=NUMBER` after the address")
    return replace(endpoint, weight=weight)
