"""Which endpoints a command talks to: `--base-url` or a provider's address, else OPENAI_BASE_URL, else the server that
`serve status` knows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli import terminal
from harness.client.address.endpoint import Endpoint
from harness.core.errors import ServerError, UsageError
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.client.address.providers import Provider
    from harness.client.facts.discovery import ModelInfo

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"


def provider_of(name: str | None, urls: Sequence[str], server: str | None) -> Provider:
    """The provider of that name, else the one whose addresses these are. Raises `UsageError`: none, or several."""
    from harness.client.address import providers

    if name is not None:
        return providers.load(name)
    given = [] if server else list(urls) or [os.environ.get(URL_VARIABLE, "")]
    found = {one.name: one for one in (providers.recognise(url.partition(",")[0]) for url in given)}
    if len(found) > 1:
        raise UsageError(f"the addresses belong to several providers ({', '.join(found)}): a run speaks to one of them")
    return next(iter(found.values()), None) or providers.load(providers.GENERIC)


def resolve(
    urls: Sequence[str],
    server: str | None,
    headers: Sequence[str] = (),
    key_variable: str | None = None,
    key_file: Path | None = None,
    provider: str | None = None,
) -> tuple[tuple[Endpoint, ...], dict[str, Any]]:
    """(endpoints, what is known of them). `urls`: "URL" or "URL,weight=2". key_variable: None = the provider's.

    Raises `UsageError`, `ServerError`.
    """
    if not all(urls):
        raise UsageError("--base-url is empty: give the server's address, such as http://127.0.0.1:8000")
    if urls and server:
        raise UsageError("--base-url and --server are two ways to name the server: give one")
    if provider and server:
        raise UsageError("--provider is for addresses, --server for servers of `harness serve`: give one")
    extra = tuple(_header(text) for text in headers)
    given: list[str | None] = [*urls]
    chosen = provider_of(provider, urls, server)
    if not given and chosen.address.base_url is not None and provider:
        given = [None]
    if not given and server is None and os.environ.get(URL_VARIABLE):
        given = [os.environ[URL_VARIABLE]]
    if given or (provider and chosen.hosted):
        variable = key_variable or chosen.address.key_variable
        key = _key(variable, key_file)
        endpoints = tuple(_endpoint(chosen, url, key, extra) for url in given or [None])
        if not chosen.hosted:
            return endpoints, {}
        for endpoint in endpoints:
            _require_key(chosen, endpoint, variable)
        return endpoints, {"provider": chosen.name}

    from server_launchers.keeping import servers

    running = [one for one in servers.status() if one.status == "ready"]
    if server is None and not running:
        raise ServerError(
            f"no server is known: give --base-url (or {URL_VARIABLE}), or start one with `harness serve ENGINE MODEL`"
        )
    if server is None and len(running) > 1:
        raise ServerError(
            f"several servers run ({', '.join(one.name for one in running)}): pick one with --server NAME"
        )
    state = servers.find(server)
    key = os.environ.get(state.api_key_env) if state.api_key_env else _key(key_variable or KEY_VARIABLE, key_file)
    about = {
        "server": state.name,
        "engine": state.engine,
        "source": state.source,
        "commands": state.commands,
        **state.versions,
    }
    return tuple(_endpoint(chosen, url, key, extra) for url in state.base_urls), about


def find_model(provider: Provider, endpoint: Endpoint, model: str | None, ca_file: Path | None) -> ModelInfo | None:
    """What the endpoint says of `model`; None if nothing. Raises `ServerError`: it is down, refuses, lacks the model.

    A hosted provider's list may be incomplete: a name that is not on it is no error, nor is a list that fails where
    it is known to hold other names.
    """
    from harness.client.facts import discovery

    if model is None or not provider.hosted:
        return discovery.find_model(endpoint, model, ca_file=ca_file)
    try:
        listed = discovery.list_models(endpoint, ca_file=ca_file)
    except ServerError:
        if provider.models_list.lists == "all":
            raise
        return None
    return next((info for info in listed if info.id == model), None)


def find_models(
    provider: Provider, endpoints: Sequence[Endpoint], model: str | None, ca_file: Path | None
) -> tuple[str, list[ModelInfo]]:
    """(model name, what each endpoint says of it). Raises `ServerError` as `find_model` does.

    Of several endpoints, some may be down: they are named in a warning, and probed while the run goes on.
    """
    from harness.client.facts.page import NoAnswer

    found = []
    down: list[NoAnswer] = []
    for endpoint in endpoints:
        try:
            info = find_model(provider, endpoint, model, ca_file)
        except NoAnswer as error:
            down.append(error)
            continue
        if info is not None:
            model = info.id
            found.append(info)
        elif model is not None and provider.hosted and provider.models_list.lists == "all":
            terminal.warn(f"{provider.name} does not list {visible(model, 80)}: is the name right?")
    if len(down) == len(endpoints):
        raise down[0]
    for missing in down:
        terminal.warn(f"{missing} The others begin without it.")
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


def _require_key(provider: Provider, endpoint: Endpoint, variable: str) -> None:
    """Raises `UsageError` where nothing that could be a key goes to a hosted provider."""
    sent = {name.lower() for name, _ in endpoint.headers}
    if endpoint.api_key or endpoint.local or sent & {"authorization", provider.address.key_header.lower()}:
        return
    raise UsageError(
        f"{provider.label} needs a key: set {variable}, or name another place with --api-key-env or --api-key-file"
    )


def _endpoint(provider: Provider, text: str | None, key: str | None, headers: tuple[tuple[str, str], ...]) -> Endpoint:
    url, comma, option = (text or "").partition(",")
    endpoint = provider.endpoint(url or None, key, headers)
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
