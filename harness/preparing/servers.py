"""Finds a run's endpoints and their keys, and queries each for its model, context length and other information.

The endpoint is the specified address, else the provider's, else OPENAI_BASE_URL, else the server running on this
machine. `find` contacts no server.
"""

from __future__ import annotations

import os
import re
import string
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.client.address import providers
from harness.client.address.endpoint import Endpoint
from harness.client.address.providers import Provider
from harness.client.facts.server_info import EndpointInfo, ServerInfo, discover_each
from harness.core import channel
from harness.core.errors import UNSET, ServerError, UsageError
from harness.core.literals import ApiName
from harness.core.records import NOTHING_TOLD, ServerFacts
from harness.core.sanitize import visible
from harness.core.secret import Secret, looks_like_a_key
from harness.generation.network.admission import EndpointsFile
from harness.generation.settings import Patience
from harness.options.server import WhichServer
from harness.preparing import launched_servers
from harness.preparing.run_questions import RunQuestions
from harness.progress.events import Watcher

if TYPE_CHECKING:
    from server_launchers.lifecycle.servers import ServerState


URL_VARIABLE = "OPENAI_BASE_URL"


_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
"""Usual form of environment variable names. A text that matches may be shown in an error; any other may be a key."""

_NO_ADDRESS = re.compile(r"(?!localhost$)[\w-]+|.*(?:/|\.(?:txt|url|ya?ml))")
"""A word without a dot or port, or ending like a file name, which cannot be a server's address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedServers:
    """The endpoints of a run.

    about: facts about a server started here, or a hosted provider's name, for the manifest. own: facts about a server
    started here that it does not report over HTTP. model: the model's name on a server started here whose model list
    does not include it, else None. key_variable: the environment variable with the key, if the user named it, for the
    record. file: the file that lists the endpoints, if any; the run reads it again when it changes.
    """

    provider: Provider
    endpoints: tuple[Endpoint, ...]
    about: Mapping[str, Any]
    own: ServerFacts = NOTHING_TOLD
    model: str | None = None
    key_variable: str | None = None
    file: EndpointsFile | None = None


def find(who: WhichServer, *, shared_key: bool = True, api: ApiName = "chat", or_none: bool = False) -> ReachedServers:
    """The endpoints that `who` and the environment specify; none is contacted. Raises `UsageError`, `ServerError`.

    shared_key: whether a server of an unknown provider gets the key in OPENAI_API_KEY if `who` names no key. api: the
    API to use. or_none: whether to return no endpoints if no server is running, instead of raising `ServerError`.
    """
    try:
        at = _addresses(who)
    except ServerError:
        if not or_none:
            raise
        at = _Addresses(())
    provider = providers.choose(who.provider, [url for url in at.urls if url is not None])
    variable, key = _key_of(who, at.state, provider, shared=shared_key)
    named = key_variable(who)

    def complete(url: str | None) -> Endpoint:
        """The endpoint of this address, with key and headers. Raises `UsageError` if it belongs to another provider."""
        if url is not None and who.provider is None and providers.recognize(url).name != provider.name:
            raise UsageError(
                f"{visible(url, 200)} does not belong to the run's provider, {provider.name}: a run can have only one "
                "provider"
            )
        endpoint = provider.endpoint(url, key, who.header, api=api)
        provider.require_key(endpoint, variable)
        return endpoint

    file = EndpointsFile(at.file, complete) if at.file is not None else None
    endpoints = file.read() if file is not None else tuple(map(complete, at.urls))
    about: dict[str, Any] = {"provider": provider.name} if provider.hosted else {}
    reached = ReachedServers(provider=provider, endpoints=endpoints, about=about, key_variable=named, file=file)
    if file is not None:
        return reached
    states = [at.state] if at.state is not None else launched_servers.servers_at(endpoints)
    if len(states) == 1:
        record = launched_servers.record_of(states[0])
        return replace(reached, about=record.about, own=record.facts, model=record.model)
    commands = [command for state in states for command in state.commands]
    return replace(reached, about={"commands": commands}) if states else reached


@dataclass(frozen=True, slots=True)
class _Addresses:
    """Where the servers are. urls: None stands for the provider's own address. state: state of the matching server
    started here. file: the file that lists the addresses.
    """

    urls: Sequence[str | None]
    state: ServerState | None = None
    file: Path | None = None


def _addresses(who: WhichServer) -> _Addresses:
    """The addresses that `who` names, else the named provider's own, else OPENAI_BASE_URL, else those of the only
    server running here. Raises `UsageError`, `ServerError`.
    """
    only = who.base_url[0] if len(who.base_url) == 1 else ""
    if (state := launched_servers.running_as(only)) is not None:
        return _Addresses(state.base_urls, state)
    if only and "://" not in only and Path(only).exists():
        return _Addresses(EndpointsFile(Path(only)).addresses() or who.base_url, file=Path(only))
    if who.base_url:
        _refuse_other_words(who.base_url)
        return _Addresses(who.base_url)
    provider = providers.load(who.provider) if who.provider is not None else None
    if provider is not None and provider.address.base_url is not None:
        return _Addresses([None])
    if url := os.environ.get(URL_VARIABLE, "").strip(" \t\r\n'\""):  # files of variables may keep the quotes
        try:
            Endpoint.parse(url)
        except UsageError as error:
            why = error.sentence.rpartition(": ")[2]
            raise UsageError(f"the environment variable {URL_VARIABLE} is not an address: {why}") from error
        return _Addresses([url])
    if provider is not None and provider.hosted:
        return _Addresses([None])  # the endpoint's error asks for the address
    state = _only_running(who)
    return _Addresses(state.base_urls, state)


def _refuse_other_words(urls: Sequence[str]) -> None:
    """Raise `UsageError` for the first text that is clearly not an address, such as a misspelled file name."""
    for url in urls:
        if "://" not in url and (Path(url).exists() or _NO_ADDRESS.fullmatch(url)):
            raise UsageError(
                "expected an address, such as http://127.0.0.1:8000, or the name of one running server "
                "(`harness serve status` lists them), or one existing address file",
                field="base_url",
                value=UNSET if looks_like_a_key(url) else url,
            )


def _only_running(who: WhichServer) -> ServerState:
    """The only running server that was started here. Raises `ServerError` if there are none or several."""
    running = launched_servers.running()
    if not running:
        why = launched_servers.latest_ended()
        known = "no server was found" if why is None else f"{why}. To use another server"
        raise ServerError(f"{known}: set `{who.flag}` (or {URL_VARIABLE}), or run `harness serve ENGINE MODEL`")
    if len(running) > 1:
        names = ", ".join(server.name for server in running)
        raise ServerError(f"several servers are running ({names}): choose one by name with `base_url`")
    return running[0]


def _key_of(
    who: WhichServer, state: ServerState | None, provider: Provider, *, shared: bool
) -> tuple[str, Secret | None]:
    """The environment variable of the API key, and the key: from the server's own start, else as named by `who`, else
    the provider's.

    shared: whether a server of an unknown provider gets the key in the usual variable. Raises `UsageError` if the user
    named a variable that is not set and gave no header, since requests would have no key.
    """
    # A server that was started here expects the key from its own variable, whatever the run names.
    if state is not None and state.api_key_env:
        return state.api_key_env, _from_environment(state.api_key_env)
    variable = who.api_key_env or provider.address.key_variable
    if who.api_key_env is None and not provider.hosted and not shared and state is None:
        return variable, None
    key = _from_environment(variable)
    if key is None and who.api_key_env is not None and not who.header:
        # The key itself may have been typed instead of the variable's name.
        name = who.api_key_env if _VARIABLE_NAME.fullmatch(who.api_key_env) else "of that name"
        raise UsageError(f"the environment variable {name} is missing or empty: set it to the key", field="api_key_env")
    return variable, key


def key_variable(who: WhichServer) -> str | None:
    """The environment variable that `who` names and that has the key; None if there is none."""
    # A name that is not set may be the key itself, typed in the wrong place; it must not be recorded.
    named = who.api_key_env
    return named if named is not None and _from_environment(named) is not None else None


def _from_environment(variable: str) -> Secret | None:
    """The key in an environment variable; None if it is not set or blank. Raises `UsageError`."""
    key = os.environ.get(variable, "").strip(_BLANK)
    if odd := next((character for character in key if not (character.isascii() and character.isprintable())), None):
        raise UsageError(f"the environment variable {variable} contains U+{ord(odd):04X}: copy the key again")
    return Secret(key) if key else None


_BLANK = string.whitespace + "\ufeff\u200b"
"""Characters that copying may leave at the ends of a key: blanks, a byte-order mark, a zero-width space."""


# ---- the first look at each endpoint


PATIENCE = Patience()
"""How long servers that have not answered yet are waited for."""

LOOK_S = 5.0
"""Longest time in seconds between two looks at a server that is waited for."""


def discovered(questions: RunQuestions, watcher: Watcher, *, must_answer: bool) -> tuple[ReachedServers, ServerInfo]:
    """The endpoints of a run, and what each reports about itself. A session queries each endpoint only here.

    must_answer: whether a server that does not answer is an error even if the run began earlier. Raises as `find` and
    `discover` do.
    """
    # An earlier run may have all its samples and so need no server. If a sample is missing, requesting it fails with
    # the same sentence.
    options = questions.options
    folder = options.folder(options.model) if options.model is not None else None
    earlier = folder if not must_answer and folder is not None and folder.manifest.exists() else None
    reached = find(options, api=options.api, or_none=earlier is not None)
    down: list[EndpointInfo] = []
    try:
        if reached.endpoints:
            return reached, discover(
                reached, options, watcher, lambda: earlier is None or not questions.are_sampled(earlier)
            )
    except ServerError as error:
        if earlier is None:
            raise
        down = [EndpointInfo(endpoint=endpoint, failure=error) for endpoint in reached.endpoints]
    return replace(reached, about={}), ServerInfo(options.model or "", tuple(down))


def discover(
    reached: ReachedServers, who: WhichServer, watcher: Watcher, needed: Callable[[], bool] = lambda: True
) -> ServerInfo:
    """Ask each endpoint for its models and facts. If none is ready, wait until one is.

    needed: returns whether the servers are worth waiting for. Raises `ServerError` if all stay down, if one does not
    have the model, or if no model is named and none is listed. If only some of several endpoints are down, a warning
    names them, and the run retries them while it continues.
    """
    provider, urls = reached.provider, [endpoint.base_url for endpoint in reached.endpoints]
    look = partial(
        discover_each,
        reached.endpoints,
        who.model or reached.model,
        provider,
        reached.own,
        lists=reached.model is None,
        slots=not provider.hosted and who.concurrency is None,
    )
    begun, pause = time.monotonic(), 1.0
    patience = replace(PATIENCE, wait=who.wait)
    with channel.waiting(f"an answer of {', '.join(urls[:3])}"):
        info = look()
    while all(unready := [one.failure if provider.hosted else one.unready for one in info.each]):
        first, why = next(filter(None, unready)), launched_servers.latest_ended(url=urls[0])
        seconds, waited = patience.before_reply(each.hope for each in unready if each), time.monotonic() - begun
        if waited >= seconds or (why and who.wait is None) or (pause == 1.0 and not needed()):
            if len(info.failures) < len(info.each):
                break  # the others may have the model without listing it
            if waited >= seconds > 0:
                first.add(f"Gave up after {waited:.0f} s (`{who.wait_flag}`).")
            raise first if why is None else ServerError(f"{first.sentence} {why}") from first
        if pause == 1.0:
            channel.note(f"waiting for a server for up to {seconds:g} s (`{who.wait_flag}`): {first.cause}")
        time.sleep(min(pause, seconds - waited))
        pause, info = min(2 * pause, LOOK_S), look()
    model, failures = visible(info.model, 80), info.failures
    for one in info.each:
        if one.no_list is not None:
            watcher.warn(f"{one.no_list.cause.rstrip('.')}. The model {model} is used anyway.")
        elif info.model and provider.hosted and provider.models_list == "all" and not (one.entry or one.failure):
            watcher.warn(f"{provider.name} does not list {model}: is the name correct?")
    for failure in failures:
        watcher.warn(f"{failure.sentence} The run will start without it, on the other endpoints.")
    if not info.model:
        raise ServerError(f"{urls[0]} does not list its models: specify one with `model`")
    return info
