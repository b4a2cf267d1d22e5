"""Finds the endpoints to ask, with their keys, and looks at each once: its model, its context, what else it states.

The endpoint is a given address or the provider's own, else OPENAI_BASE_URL, else the server that runs on this machine.
`find` contacts none.

Long: finding the endpoints and looking at them are one step of a run.
"""

from __future__ import annotations

import os
import re
import string
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.client.address import providers
from harness.client.address.endpoint import Endpoint
from harness.client.address.providers import Provider
from harness.client.asker import Asker
from harness.client.facts import discovery
from harness.client.facts.discovery import ModelInfo
from harness.core import channel
from harness.core.about import state_folder
from harness.core.choices import Api
from harness.core.errors import UNSET, ServerError, UsageError
from harness.core.inert import visible
from harness.core.records import NOTHING_TOLD, ServerFacts
from harness.core.secret import Secret, looks_like_a_key
from harness.generation.network.admission import EndpointsFile
from harness.options.run import RunOptions
from harness.options.whom import WhichServer
from harness.preparing import own_servers
from harness.progress.watching import Watcher
from server_launchers.engines import table as engines

if TYPE_CHECKING:
    from server_launchers.keeping.servers import ServerState


KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"


_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
"""Usual names of environment variables. A text that matches may be shown in an error; another text may be a key."""

_NO_ADDRESS = re.compile(r"(?!localhost$)[\w-]+|.*(?:/|\.(?:txt|url|ya?ml))")
"""A word without a dot or port, or the end of a file's name: no address of a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedServers:
    """The endpoints to ask.

    about: facts of a server started here, or a hosted provider's name, for the manifest. own: facts of a server started
    here that it does not state over HTTP. model: the name that a server started here has for its model. file: the file
    that lists the endpoints, which the run reads again when it changes; None without one.
    """

    provider: Provider
    endpoints: tuple[Endpoint, ...]
    about: Mapping[str, Any]
    own: ServerFacts = NOTHING_TOLD
    model: str | None = None
    file: EndpointsFile | None = None


def find(who: WhichServer, *, shared_key: bool = True, api: Api = "chat") -> ReachedServers:
    """The endpoints that `who` and the environment name; none is contacted. Raises `UsageError`, `ServerError`.

    shared_key: whether a server of no known provider gets the key in OPENAI_API_KEY if `who` names no key. api: by
    which they are asked.
    """
    only = who.base_url[0] if len(who.base_url) == 1 else ""
    if (state := _started_here(only)) is not None:
        return _asked_at(state, who)
    path = Path(only) if only and "://" not in only and Path(only).exists() else None
    listed = EndpointsFile(path).addresses() if path is not None else []
    provider = provider_of(who, listed or who.base_url)
    urls = who.base_url or _default_urls(who, provider)
    if not urls:
        return _asked_at(_only_running(who), who)
    if path is None:
        _refuse_other_words(who.base_url)
    variable = who.api_key_env or provider.address.key_variable
    key = _key_of(who, variable) if who.api_key_env is not None or provider.hosted or shared_key else None

    def complete(url: str | None) -> Endpoint:
        """The endpoint of this address, with key and headers. Raises `UsageError` if it belongs to another provider."""
        if url is not None and who.provider is None and providers.recognise(url).name != provider.name:
            raise UsageError(
                f"{visible(url, 200)} belongs to another provider than the run's, {provider.name}: a run speaks to one "
                "of them"
            )
        endpoint = provider.endpoint(url, key, who.header, api=api)
        if provider.hosted:
            _require_key(provider, endpoint, variable)
        return endpoint

    about: dict[str, Any] = {"provider": provider.name} if provider.hosted else {}
    if path is not None:
        file = EndpointsFile(path, complete)
        return ReachedServers(provider=provider, endpoints=file.read(), about=about, file=file)
    endpoints = tuple(map(complete, urls))
    states = own_servers.servers_at(endpoints)
    if len(states) == 1:
        return _with_record(states[0], provider, endpoints)
    if states:
        about = {"commands": [command for state in states for command in state.commands]}
    return ReachedServers(provider=provider, endpoints=endpoints, about=about)


def _default_urls(who: WhichServer, provider: Provider) -> list[str | None]:
    """The address if `who` gives none: None for the named provider's own, else OPENAI_BASE_URL; empty without one.

    provider: the one that `who` names, if it names one.
    """
    if who.provider is not None and provider.address.base_url is not None:
        return [None]
    if url := os.environ.get(URL_VARIABLE):
        return [url]
    # A named hosted provider without an address of its own stays: its endpoint's error asks for the address.
    return [None] if who.provider is not None and provider.hosted else []


def _refuse_other_words(urls: Sequence[str]) -> None:
    """Raise `UsageError` for the first that is plainly no address, such as a misspelt name of a server or of a file."""
    for url in urls:
        if "://" not in url and (Path(url).exists() or _NO_ADDRESS.fullmatch(url)):
            raise UsageError(
                "expected an address, such as http://127.0.0.1:8000; or, given alone, the name of a running server "
                "(`harness serve status` lists them) or an existing file of addresses",
                field="base_url",
                value=UNSET if looks_like_a_key(url) else url,
            )


def _with_record(state: ServerState, provider: Provider, endpoints: tuple[Endpoint, ...]) -> ReachedServers:
    """The endpoints of a server that was started here, with what its start recorded."""
    about = {
        "server": state.name,
        "engine": state.engine,
        "source": state.source,
        "commands": state.commands,
        **state.versions,
    }
    own = own_servers.facts_of(state)
    return ReachedServers(provider=provider, endpoints=endpoints, about=about, own=own, model=state.model)


def provider_of(who: WhichServer, urls: Sequence[str] = ()) -> Provider:
    """The provider that `who` names, else the provider that owns the addresses, else the generic one.

    urls: the addresses; without them, OPENAI_BASE_URL. Raises `UsageError` for an unknown provider or several.
    """
    if who.provider is not None:
        return providers.load(who.provider)
    given = list(urls) or [os.environ.get(URL_VARIABLE, "")]
    recognised = {provider.name: provider for provider in map(providers.recognise, given)}
    if len(recognised) > 1:
        raise UsageError(
            f"the addresses belong to several providers ({', '.join(recognised)}): a run speaks to one of them"
        )
    return next(iter(recognised.values()), None) or providers.load(providers.GENERIC)


def _running() -> list[ServerState]:
    """The servers that were started here and answer."""
    from server_launchers.keeping import servers

    return [server for server in servers.status() if server.status == "ready"]


def _started_here(name: str) -> ServerState | None:
    """The running server of this name that was started here; None if there is none."""
    # Most runs give an address, and this machine keeps no state of any server.
    if not name or not re.fullmatch(r"[\w.-]+", name) or not (state_folder() / "servers").is_dir():
        return None
    if (server := next((server for server in _running() if server.name == name), None)) is not None:
        return server
    if (why := own_servers.latest_ended(name)) is not None:
        raise ServerError(why)
    return None


def _only_running(who: WhichServer) -> ServerState:
    """The only running server that was started here. Raises `ServerError` if there is none, or several."""
    running = _running()
    if not running:
        why = own_servers.latest_ended()
        known = "no server is known" if why is None else f"{why}. For another one"
        raise ServerError(
            f"{known}: give {who.flag} (or {URL_VARIABLE}), or start one with `harness serve ENGINE MODEL`"
        )
    if len(running) > 1:
        names = ", ".join(server.name for server in running)
        raise ServerError(f"several servers are running ({names}): choose one by its name with base_url")
    return running[0]


def _asked_at(state: ServerState, who: WhichServer) -> ReachedServers:
    """All replicas of a server that was started here."""
    provider = provider_of(who, state.base_urls)
    # The server was started to expect the key of its own variable, whatever the run names.
    key = _from_environment(state.api_key_env) if state.api_key_env else _key_of(who, who.api_key_env or KEY_VARIABLE)
    endpoints = tuple(provider.endpoint(url, key, who.header) for url in state.base_urls)
    return _with_record(state, provider, endpoints)


def address_of_running(name: str) -> str | None:
    """The address of the running server of this name that was started here; None if there is none."""
    state = _started_here(name)
    return state.base_urls[0] if state is not None and state.base_urls else None


def _key_of(who: WhichServer, variable: str) -> Secret | None:
    """The API key that `who` names, else the one in `variable`.

    Raises `UsageError` if the user named a variable that is not set, and no header: requests would go out without a
    key.
    """
    key = _from_environment(variable)
    if key is None and who.api_key_env is not None and not who.header:
        # The key itself may have been typed in the place of the variable's name.
        name = who.api_key_env if _VARIABLE_NAME.fullmatch(who.api_key_env) else "of that name"
        raise UsageError(f"the environment variable {name} is not set or empty: set it to the key", field="api_key_env")
    return key


def key_variable(who: WhichServer) -> str | None:
    """The environment variable that `who` names and that holds the key; None without one."""
    # A name that is not set may be the key itself, typed in the wrong place; it must not be recorded.
    named = who.api_key_env
    return named if named is not None and _from_environment(named) is not None else None


def _from_environment(variable: str) -> Secret | None:
    """The key in an environment variable; None if it is not set or blank. Raises `UsageError`."""
    key = os.environ.get(variable, "").strip(_BLANK)
    if odd := next((character for character in key if not (character.isascii() and character.isprintable())), None):
        raise UsageError(
            f"the environment variable {variable} holds U+{ord(odd):04X}, which no header can carry: copy the key again"
        )
    return Secret(key) if key else None


_BLANK = string.whitespace + "\ufeff\u200b"
"""Characters that copying leaves at the ends of a key: blanks, a byte-order mark, a zero-width space."""


def _require_key(provider: Provider, endpoint: Endpoint, variable: str) -> None:
    """Raise `UsageError` if requests to a hosted provider would have neither a key nor a header that can hold one.

    A local endpoint needs no key. variable: the environment variable that was read, for the message.
    """
    sent = {name.lower() for name, _ in endpoint.headers}
    if endpoint.api_key or endpoint.local or sent & {"authorization", provider.address.key_header.lower()}:
        return
    raise UsageError(f"{provider.label} needs a key: set {variable}, or name another variable by api_key_env")


# ---- one look at each endpoint


LOOK_S = 60.0
"""Seconds for looking at all endpoints; an endpoint that has not answered by then counts as down."""


LOOKS_AT_ONCE = 32
"""Largest number of endpoints that are looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The answer of an endpoint to one look.

    info: its entry for the model; None if its list of models has none or was not read. concurrency: number of requests
    that it states to run at once. facts: what it states about itself. failure: why it could not be asked; the other
    fields are then empty.
    """

    endpoint: Endpoint
    info: ModelInfo | None = None
    concurrency: int | None = None
    facts: ServerFacts = NOTHING_TOLD
    failure: ServerError | None = None


@dataclass(frozen=True, slots=True)
class Looks:
    """What all endpoints stated before the first request. model: the model's name in requests."""

    model: str
    each: tuple[Look, ...]

    def asker(self, provider: Provider) -> Asker:
        """The asker of the provider's requests, without any option of the user."""
        spelling = provider.spelling(self.model, engine=self.engine)
        return Asker(model=self.model, engine=self.engine, spelling=spelling)

    @property
    def contexts(self) -> list[int]:
        """The contexts that the endpoints state, in tokens."""
        return [look.info.context_tokens for look in self.each if look.info and look.info.context_tokens]

    @property
    def facts(self) -> dict[str, ServerFacts]:
        """Facts of each endpoint that answered, by base URL."""
        return {look.endpoint.base_url: look.facts for look in self.each if look.failure is None}

    @property
    def engine(self) -> str | None:
        """The engine of all endpoints that answered; None if they differ or hide it."""
        engines = {facts.host.get("engine") for facts in self.facts.values()}
        return next(iter(engines)) if len(engines) == 1 else None

    @property
    def concurrency(self) -> int | None:
        """Number of requests that all endpoints together run at once; None unless each endpoint states its number."""
        stated = [look.concurrency for look in self.each]
        return sum(n for n in stated if n) if stated and all(stated) else None

    def context_of(self, endpoint: Endpoint, model: str) -> int | None:
        """The context that the endpoint states, in tokens; None if it states none. `model` is not used.

        Raises `ServerError` if the endpoint could not be asked.
        """
        del model
        look = next(look for look in self.each if look.endpoint.base_url == endpoint.base_url)
        if look.failure is not None:
            raise look.failure
        return look.info.context_tokens if look.info else None


def looked_at(options: RunOptions, watcher: Watcher, *, must_answer: bool) -> tuple[ReachedServers, Looks]:
    """The endpoints of a run, and what each states of itself. A session looks at each endpoint only here.

    must_answer: whether a server that does not answer is an error even if the run has begun before. Raises as `find`
    and `look_at` do.
    """
    reached = None
    try:
        reached = find(options, api=options.api)
        return reached, look_at(reached, options, watcher)
    except ServerError as error:
        # A run that has begun may miss no sample, and then needs no server. If a sample is missing, asking for it fails
        # with the same sentence.
        folder = options.folder(options.model) if options.model is not None else None
        if must_answer or folder is None or not folder.manifest.exists():
            raise
        reached = reached or ReachedServers(provider=provider_of(options), endpoints=(), about={})
        failed = tuple(Look(endpoint=endpoint, failure=error) for endpoint in reached.endpoints)
        return replace(reached, about={}), Looks(options.model or "", failed)


def look_at(reached: ReachedServers, who: WhichServer, watcher: Watcher) -> Looks:
    """Ask each endpoint once for its models and facts.

    Raises `ServerError` if all are down, one lacks the model, or no model is named and none is listed. If only some of
    several endpoints are down, a warning names them, and the run tries them again while it goes on.
    """
    from harness.client.facts.page import NoAnswer

    provider = reached.provider
    # Of a server that was started here the engine is known, and whether its list names the model that it serves.
    started = engines.find(reached.about.get("engine"))
    has_list = started is None or started.lists_models
    model = who.model or (None if has_list else reached.model)
    read_lists = model is None or has_list
    ask_concurrency = not provider.hosted and who.concurrency is None
    due = time.monotonic() + LOOK_S
    # The pages that are read of each endpoint.
    pages = [discovery.Pages(due=due) for _ in reached.endpoints]

    def ask(endpoint: Endpoint, pages: discovery.Pages) -> Look:
        """Ask one endpoint about its models and its concurrency. Raises `ServerError` if it refuses."""
        try:
            info = _model(provider, endpoint, model, pages) if read_lists else None
        except NoAnswer as error:
            return Look(endpoint=endpoint, failure=error)
        concurrency = discovery.stated_concurrency(endpoint, pages=pages) if ask_concurrency else None
        return Look(endpoint=endpoint, info=info, concurrency=concurrency)

    looks: list[Look] = []
    waiting = list(zip(reached.endpoints, pages, strict=True))
    with channel.waiting(f"an answer of {', '.join(endpoint.base_url for endpoint in reached.endpoints[:3])}"):
        # Without a model's name, the first endpoint that answers sets it; the others are then asked together.
        while waiting and model is None:
            looks.append(ask(*waiting.pop(0)))
            model = looks[-1].info.id if looks[-1].info is not None else None
        if len(waiting) < 2:
            looks += [ask(*each) for each in waiting]
        else:
            with ThreadPoolExecutor(LOOKS_AT_ONCE, "look") as pool:
                looks += pool.map(ask, *zip(*waiting, strict=True))

    for look, read in zip(looks, pages, strict=True):
        if read.no_list is not None:
            _warn_of_no_list(read.no_list, model, watcher)
        elif model and provider.hosted and provider.models_list == "all" and not (look.info or look.failure):
            watcher.warn(f"{provider.name} does not list {visible(model, 80)}: is the name right?")
    looks = _not_all_down(looks, model, watcher)
    if model is None:
        raise ServerError(f"{reached.endpoints[0].base_url} does not list its models: name one with `model`")
    answered = [(look.endpoint, read) for look, read in zip(looks, pages, strict=True) if look.failure is None]
    described = discovery.describe(answered, model, own_pages=not provider.hosted)
    facts = {
        endpoint.base_url: reached.own.over(stated) for (endpoint, _), stated in zip(answered, described, strict=True)
    }
    return Looks(model, tuple(replace(look, facts=facts.get(look.endpoint.base_url, look.facts)) for look in looks))


def _not_all_down(looks: Sequence[Look], model: str | None, watcher: Watcher) -> list[Look]:
    """Return the looks, of which one at least has no failure, with a warning for each that has one.

    Raises the first failure if all endpoints are down.
    """
    from harness.client.facts.page import SlowAnswer

    looks = list(looks)
    if model is not None and all(look.failure is not None for look in looks):
        # A server that is slow to list its models may answer: without another one, it is asked.
        for i, look in enumerate(looks):
            if isinstance(look.failure, SlowAnswer):
                _warn_of_no_list(look.failure.sentence, model, watcher)
                looks[i] = replace(look, failure=None)
    failures = [look.failure for look in looks if look.failure is not None]
    if len(failures) == len(looks):
        why = own_servers.latest_ended(url=looks[0].endpoint.base_url)
        raise failures[0] if why is None else ServerError(f"{failures[0].sentence} {why}") from failures[0]
    for failure in failures:
        watcher.warn(f"{failure.sentence} The run begins with the other endpoints.")
    return looks


def _warn_of_no_list(why: str, model: str | None, watcher: Watcher) -> None:
    """Warn that a model is asked although the server's list of models could not be read. why: the cause."""
    watcher.warn(f"{why} The model {visible(model or '', 80)} is asked all the same.")


def _model(provider: Provider, endpoint: Endpoint, model: str | None, pages: discovery.Pages) -> ModelInfo | None:
    """Return the endpoint's entry for `model`. Raises `ServerError` if the endpoint is down, refuses or lacks it.

    A hosted provider's list may be incomplete: None if the model is missing there, or if a list that is known to be
    incomplete cannot be read.
    """
    if model is None or not provider.hosted:
        return discovery.find_model(endpoint, model, pages=pages)
    try:
        listed = discovery.list_models(endpoint, pages=pages)
    except discovery.NoList as error:
        pages.no_list = error.sentence
        return None
    except ServerError:
        if provider.models_list == "all":
            raise
        return None
    return next((info for info in listed if info.id == model), None)
