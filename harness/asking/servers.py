"""Which endpoints are asked, and servers that are started for the purpose.

An address or a provider's own, else OPENAI_BASE_URL, else the server that runs. Beside the command line, this is the
only module that meets `server_launchers`.

Long: finding a server and starting one are two answers to one question, and share what they check.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from harness.asking import own_servers
from harness.asking.options import WhichServer
from harness.client.address import providers
from harness.client.address.endpoint import Endpoint, split_weight
from harness.client.address.providers import Provider
from harness.client.address.routes import PREFIX, spread
from harness.client.facts import discovery
from harness.client.facts.discovery import ModelInfo
from harness.core import plugins
from harness.core.errors import ServerError, UsageError, near_names
from harness.core.files import read_named
from harness.core.inert import visible
from harness.core.records import NOTHING_TOLD, ServerFacts
from harness.core.secret import Secret
from harness.core.wording import Sentence, option
from harness.generation.network.endpoints_file import EndpointsFile
from harness.generation.signals import Signals
from server_launchers.engines import table as engines

if TYPE_CHECKING:
    from harness.asking.watching import Watcher
    from server_launchers.keeping.state import ServerState
    from server_launchers.keeping.supervisor import RunningServer
    from server_launchers.spec import ServerSpec

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"

W = TypeVar("W", bound=WhichServer)

LOOK_S = 60.0
"""Seconds in which all endpoints are looked at; one that is not done by then counts as down."""

LOOKS_AT_ONCE = 32
"""Endpoints that are looked at together."""

_HOLD_KEYS = frozenset({"environment", "api_key_env"})
"""Fields of a server's spec that may hold a key, the second by mistake: a refusal does not repeat their values."""

WEIGHTS_HASHED = "files.weights_sha256"
"""Fact of a server of ours: the checksum of all of its weights."""

EVERYBODY = frozenset({"0.0.0.0", "::"})  # noqa: S104 - known in order to be warned of
"""Addresses by which a server listens on every network that its machine is in."""

MAX_KEY_BYTES = 64 * 1024
"""Longest file of a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedServers:
    """The endpoints that are asked. about: facts of a server of ours, or the provider's name, for the manifest.

    own: what is known of a server of ours beyond what it tells. file: the file of endpoints that they come from, to be
    followed.
    """

    provider: Provider
    endpoints: tuple[Endpoint, ...]
    about: Mapping[str, Any]
    own: ServerFacts = NOTHING_TOLD
    file: EndpointsFile | None = None


def find(who: WhichServer, endpoints_file: Path | None = None) -> ReachedServers:
    """The endpoints that `who` and the environment name. Nothing is contacted. Raises `UsageError`, `ServerError`."""
    listed = EndpointsFile(endpoints_file).addresses() if endpoints_file is not None else []
    urls: list[str | None] = [*(listed or who.base_url)]
    provider = provider_of(who, [url.removeprefix(PREFIX) for url in urls if url])
    if not urls and who.server is None:
        if who.provider and provider.address.base_url is not None:
            urls = [None]
        elif os.environ.get(URL_VARIABLE):
            urls = [os.environ[URL_VARIABLE]]
        elif who.provider and provider.hosted:
            urls = [None]  # the provider says that an address is needed
    if not urls:
        return _running(who, provider)
    variable = who.api_key_env or provider.address.key_variable
    key = _key(variable, who.api_key_file)

    def complete(url: str | None) -> Endpoint:
        if url is not None and who.provider is None and providers.recognise(url).name != provider.name:
            raise UsageError(f"{visible(url, 200)} belongs to another provider than the run's, {provider.name}.")
        endpoint = provider.endpoint(url, key, who.header)
        if provider.hosted:
            _require_key(provider, endpoint, variable)
        return endpoint

    about = {"provider": provider.name} if provider.hosted else {}
    if endpoints_file is not None:
        file = EndpointsFile(endpoints_file, complete)
        return ReachedServers(provider=provider, endpoints=file.read(), about=about, file=file)
    weighted = [(address, weight) for url, weight in map(_weighted, urls) for address in _addresses(url)]
    endpoints = tuple(replace(complete(url), weight=weight) for url, weight in weighted)
    return ReachedServers(provider=provider, endpoints=endpoints, about=about)


def _addresses(url: str | None) -> Sequence[str | None]:
    """The address itself; of a `dns+` address, one for each machine that its name stands for now."""
    return spread(url) if url is not None and url.startswith(PREFIX) else [url]


def _weighted(url: str | None) -> tuple[str | None, float]:
    """(address, weight) of an address as it is given; None: the provider's own."""
    if url is None:
        return None, 1.0
    try:
        return split_weight(url)
    except UsageError as error:
        raise UsageError(error.sentence.marked, field="base_url", value=url) from error


def provider_of(who: WhichServer, urls: Sequence[str] = ()) -> Provider:
    """The provider of the name, else the one whose addresses these are. Raises `UsageError`: none, or several."""
    if who.provider is not None:
        return providers.load(who.provider)
    given = [] if who.server else list(urls) or [os.environ.get(URL_VARIABLE, "")]
    recognised = {provider.name: provider for provider in (providers.recognise(url.partition(",")[0]) for url in given)}
    if len(recognised) > 1:
        raise UsageError(
            f"the addresses belong to several providers ({', '.join(recognised)}): a run speaks to one of them"
        )
    return next(iter(recognised.values()), None) or providers.load(providers.GENERIC)


def _running(who: WhichServer, provider: Provider) -> ReachedServers:
    """A server of ours, the one that is named or the only one."""
    from server_launchers.errors import LaunchError
    from server_launchers.keeping import servers

    running = [server for server in servers.status() if server.status == "ready"]
    if who.server is None and not running:
        raise ServerError(
            f"no server is known: give {option('base_url')} (or {URL_VARIABLE}), or start one with "
            "`harness serve ENGINE MODEL`"
        )
    if who.server is None and len(running) > 1:
        names = ", ".join(server.name for server in running)
        raise ServerError(f"several servers run ({names}): pick one with {option('server')}")
    try:
        state = servers.find(who.server)
    except LaunchError as error:
        raise UsageError(str(error), field="server", value=who.server) from error
    named = who.api_key_env or KEY_VARIABLE
    key = _from_environment(state.api_key_env) if state.api_key_env else _key(named, who.api_key_file)
    about = {
        "server": state.name,
        "engine": state.engine,
        "source": state.source,
        "commands": state.commands,
        **state.versions,
    }
    endpoints = tuple(provider.endpoint(url, key, who.header) for url in state.base_urls)
    own = own_servers.facts_of(state, hash_weights=who.hash_weights)
    return ReachedServers(provider=provider, endpoints=endpoints, about=about, own=own)


def _key(variable: str, file: Path | None) -> Secret | None:
    if file is None:
        return _from_environment(variable)
    try:
        text = read_named(file, MAX_KEY_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is no text in UTF-8"
        # The path is not repeated: the key itself may have been typed in its place.
        raise UsageError(f"the file of the key cannot be read: {reason}; give its path", field="api_key_file") from None
    if not text or "\n" in text or len(text) > MAX_KEY_BYTES:
        raise UsageError("expected one line with the key in the file", field="api_key_file")
    return Secret(text)


def _from_environment(variable: str) -> Secret | None:
    return Secret(key) if (key := os.environ.get(variable, "").strip()) else None


def _require_key(provider: Provider, endpoint: Endpoint, variable: str) -> None:
    """Raises `UsageError` where nothing that could be a key goes to a hosted provider."""
    sent = {name.lower() for name, _ in endpoint.headers}
    if endpoint.api_key or endpoint.local or sent & {"authorization", provider.address.key_header.lower()}:
        return
    raise UsageError(
        f"{provider.label} needs a key: set {variable}, or name another place with {option('api_key_env')} or "
        f"{option('api_key_file')}"
    )


# ---- the one look at each of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The reply of an endpoint to one look. info: None where its list tells nothing of the model.

    concurrency: requests that it says it runs at once. facts: what it is, as far as it tells. failure: why it could
    not be asked; the rest is then empty.
    """

    endpoint: Endpoint
    info: ModelInfo | None = None
    concurrency: int | None = None
    facts: ServerFacts = NOTHING_TOLD
    failure: ServerError | None = None


@dataclass(frozen=True, slots=True)
class Looks:
    """Facts of all endpoints before the first request. model: the name to ask for."""

    model: str
    each: tuple[Look, ...]

    @classmethod
    def failed(cls, model: str, endpoints: Sequence[Endpoint], failure: ServerError) -> Looks:
        """True if no endpoint could be asked."""
        return cls(model, tuple(Look(endpoint=endpoint, failure=failure) for endpoint in endpoints))

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
        """The engine of all that answered; None where they differ or do not tell."""
        engines = {facts.host.get("engine") for facts in self.facts.values()}
        return next(iter(engines)) if len(engines) == 1 else None

    @property
    def concurrency(self) -> int | None:
        """Requests that all of them together run at once; None unless each states it."""
        stated = [look.concurrency for look in self.each]
        return sum(n for n in stated if n) if stated and all(stated) else None

    def context_of(self, endpoint: Endpoint, model: str) -> int | None:
        """What the endpoint states as its context. Raises the `ServerError` that it was met with."""
        del model
        look = next(look for look in self.each if look.endpoint.base_url == endpoint.base_url)
        if look.failure is not None:
            raise look.failure
        return look.info.context_tokens if look.info else None


def look(reached: ReachedServers, who: WhichServer, watcher: Watcher) -> Looks:
    """Ask each endpoint once what it is. Raises `ServerError`: all are down, one refuses, or lacks the model.

    Of several endpoints, some may be down: they are named in a warning, and probed while the run goes on.
    """
    model, due = who.model, time.monotonic() + LOOK_S
    listed = model is None or _lists_models(reached.about.get("engine"))
    counted = not reached.provider.hosted and who.concurrency is None
    looks: list[Look] = []
    read: list[discovery.Pages] = []
    waiting = list(reached.endpoints)
    while waiting:
        # Where no model is named, the first endpoint that answers names it; the others are then asked at once.
        now, waiting = (waiting[:1], waiting[1:]) if model is None else (waiting, [])
        for answer, pages in _asked(now, reached.provider, model, who, due, listed=listed, counted=counted):
            if answer.info is not None:
                model = answer.info.id
            elif answer.failure is None and _unlisted(reached.provider, listed, model):
                watcher.warn(
                    Sentence(f"{reached.provider.name} does not list {visible(model or '', 80)}: is the name right?")
                )
            looks.append(answer)
            read.append(pages)
    down = [answer.failure for answer in looks if answer.failure is not None]
    if len(down) == len(looks):
        raise down[0]
    for failure in down:
        watcher.warn(Sentence(f"{failure.sentence.marked} The others begin without it."))
    if who.hash_weights and WEIGHTS_HASHED not in reached.own.model:
        watcher.warn(
            Sentence(
                f"no checksum of the weights is kept: {option('hash_weights')} reads a model's files where "
                f"`harness serve` or {option('serve')} started its server on this machine, and of "
                f"{reached.endpoints[0].base_url} none are known."
            )
        )
    if model is None:
        raise ServerError(f"{reached.endpoints[0].base_url} does not list its models: name one with {option('model')}")
    described = discovery.describe(
        [(answer.endpoint, pages) for answer, pages in zip(looks, read, strict=True) if answer.failure is None],
        model,
        own_pages=not reached.provider.hosted,
        ca_file=who.ca_file,
    )
    facts = iter(reached.own.over(answer) for answer in described)
    return Looks(model, tuple(answer if answer.failure else replace(answer, facts=next(facts)) for answer in looks))


def _asked(
    endpoints: Sequence[Endpoint],
    provider: Provider,
    model: str | None,
    who: WhichServer,
    due: float,
    *,
    listed: bool,
    counted: bool,
) -> list[tuple[Look, discovery.Pages]]:
    """Look at all of them at once, in their order. due: when that ends. listed: their model lists are read; counted:
    they are asked how many requests they run at once. Raises `ServerError` for the first that refuses."""
    from harness.client.facts.page import NoAnswer

    def ask(endpoint: Endpoint) -> tuple[Look, discovery.Pages]:
        pages = discovery.Pages(due=due)
        try:
            info = _model(provider, endpoint, model, who.ca_file, pages) if listed else None
        except NoAnswer as error:
            return Look(endpoint=endpoint, failure=error), pages
        concurrency = discovery.stated_concurrency(endpoint, ca_file=who.ca_file, pages=pages) if counted else None
        return Look(endpoint=endpoint, info=info, concurrency=concurrency), pages

    if len(endpoints) == 1:
        return [ask(endpoints[0])]
    with ThreadPoolExecutor(min(LOOKS_AT_ONCE, len(endpoints)), "look") as pool:
        return list(pool.map(ask, endpoints))


def _unlisted(provider: Provider, listed: bool, model: str | None) -> bool:
    """A hosted provider whose list holds every model does not have this one on it."""
    return listed and model is not None and provider.hosted and provider.models_list.lists == "all"


def _model(
    provider: Provider, endpoint: Endpoint, model: str | None, ca_file: Path | None, pages: discovery.Pages
) -> ModelInfo | None:
    """What the endpoint says of `model`; None if nothing. Raises `ServerError`: it is down, refuses, lacks the model.

    A hosted provider's list may be incomplete: a name that is not on it is no error, nor is a list that fails where
    it is known to hold other names.
    """
    if model is None or not provider.hosted:
        return discovery.find_model(endpoint, model, ca_file=ca_file, pages=pages)
    try:
        listed = discovery.list_models(endpoint, ca_file=ca_file, pages=pages)
    except ServerError:
        if provider.models_list.lists == "all":
            raise
        return None
    return next((info for info in listed if info.id == model), None)


def told_by(endpoint: Endpoint, model: str, ca_file: Path | None, *, hosted: bool) -> ServerFacts:
    """Facts of an endpoint that joins a run. Raises `ServerError` where it is down or lacks the model."""
    pages = discovery.Pages()
    if not hosted:
        discovery.find_model(endpoint, model, ca_file=ca_file, pages=pages)
    return discovery.describe([(endpoint, pages)], model, own_pages=not hosted, ca_file=ca_file)[0]


# ---- servers that are started


def spec(engine: str, model: str, watcher: Watcher, **fields: Any) -> ServerSpec:
    """The server that the fields describe. Raises `UsageError`; fetches the weights of a known small model."""
    if engines.launcher_of(described(engine, model, **fields)).fetches_weights:
        model, fields["served_name"] = _weights(model, fields.get("served_name"), watcher)
    return described(engine, model, **fields)


def takes(engine: str, field: str) -> bool:
    """Whether a server of that engine has the option; False for an engine that is none."""
    known_engine = engines.find(engine)
    return known_engine is not None and field in known_engine.launcher.takes


def parsers_of(engine: str) -> str:
    """The key under which presets have the engine's names of reasoning parsers; empty: it has the usual names."""
    known_engine = engines.find(engine)
    return "" if known_engine is None else known_engine.parsers


def _lists_models(engine: str | None) -> bool:
    """Whether the model list of a server that was started here names what it serves."""
    known_engine = engines.find(engine)
    return known_engine is None or known_engine.launcher.lists_models


def described(engine: str, model: str, **fields: Any) -> ServerSpec:
    """The same, fetching nothing. Raises `UsageError` naming the field."""
    from server_launchers.errors import SpecError
    from server_launchers.spec import ENGINES, ServerSpec

    if engine not in ENGINES and (line := plugins.function("launcher", engine)) is not None:
        words = (*map(str, line(model)), *fields.get("extra_flags", ()))
        engine, fields = engines.ANY_PROGRAM, fields | {"extra_flags": words}
    if engine not in ENGINES:
        raise UsageError(
            f"unknown engine; there are {', '.join(ENGINES)}.{near_names(engine, ENGINES)}", field="serve", value=engine
        )
    spec_fields = ServerSpec.__dataclass_fields__
    if unknown := [name for name in fields if name not in spec_fields]:
        raise UsageError(f"a server has no option {visible(unknown[0], 60)!r}.{near_names(unknown[0], spec_fields)}")
    try:
        spec = ServerSpec(engine=engine, model=model, **fields)
        engines.check(spec)
        return spec
    except SpecError as error:
        if error.field in fields and error.field not in _HOLD_KEYS:
            raise UsageError(error.sentence, field=f"server.{error.field}", value=fields[error.field]) from error
        raise UsageError(f"{option(f'server.{error.field}')}: {error.sentence}") from error


def over_nodes(engine: str, model: str, by: str, **fields: Any) -> ServerSpec:
    """One server over several nodes, where `by` (an option) runs one command on each and tells it its rank.

    Raises `UsageError` for what each node is told, and for what is no such server.
    """
    for name in ("node_rank", "head_address", "node_address"):
        if name in fields:
            raise UsageError(f"{by} finds it for each node: leave it out", field=f"server.{name}", value=fields[name])
    spec = described(engine, model, **fields, head_address="node-0")
    if spec.restarts:
        raise UsageError("a part of a model is not started again alone", field="server.restarts", value=spec.restarts)
    if engines.launcher_of(spec).always_routed or (spec.dp > 1 and spec.dp_mode != "engine"):
        raise UsageError(
            f"replicas of several nodes each are servers of their own: {by} says how many; "
            f"{option('server.dp_mode', 'engine')} spreads them inside the engine",
            field="server.dp",
            value=spec.dp,
        )
    if (devices := spec.tp * spec.pp * spec.dp) % spec.nodes:
        raise UsageError(f"{devices} devices cannot be spread evenly", field="server.nodes", value=spec.nodes)
    return spec


def _weights(model: str, served_name: str | None, watcher: Watcher) -> tuple[str, str | None]:
    """(file, served name): a known model's name becomes its file, and stays the name that clients use."""
    from server_launchers.embedded import weights
    from server_launchers.errors import LaunchError

    if model not in weights.KNOWN:
        return model, served_name
    try:
        with watcher.fetching(model) as progress:
            return str(weights.fetch(model, progress)), served_name or model
    except LaunchError as error:
        raise ServerError(str(error)) from error


def twin(spec: ServerSpec) -> ServerState | None:
    """The server of ours that serves the same model by the same engine already."""
    from server_launchers.keeping import servers

    same = (server for server in servers.status() if (server.engine, server.source) == (spec.engine, spec.model))
    return next((server for server in same if server.status != "exited"), None)


def _stopped_at_start(spec: ServerSpec, signum: int) -> str:
    return (
        f"stopped by {signal.Signals(signum).name} while the server of {spec.model or spec.engine} was starting. "
        "Nothing is left of that server. The same command starts it anew."
    )


def launched(spec: ServerSpec, watcher: Watcher, *, detach: bool = False) -> RunningServer:
    """The server, ready. Raises `ServerError` where it does not come up, `Interrupted` for a signal meanwhile."""
    from server_launchers.errors import LaunchError
    from server_launchers.keeping import supervisor

    if spec.host in EVERYBODY and spec.api_key_env is None:
        watcher.warn(
            Sentence(
                f"{option('server.host', spec.host)} lets everybody in the network use the server: give it a key "
                f"({option('server.api_key_env')}), or let it listen on 127.0.0.1."
            )
        )
    begun = time.monotonic()
    try:
        with Signals(partial(_stopped_at_start, spec)):
            server = supervisor.launch(spec, detach=detach, on_progress=watcher.starting)
    except LaunchError as error:
        raise ServerError(str(error)) from error
    watcher.started(server, time.monotonic() - begun)
    return server


def swapped(server: RunningServer, running: ServerSpec, spec: ServerSpec, watcher: Watcher) -> RunningServer | None:
    """`server` with other weights, where its engine takes such without a restart and nothing else changes; else None,
    with a warning where it tried and failed: what it serves is unknown then."""
    from server_launchers.errors import LaunchError
    from server_launchers.keeping import swapping

    if not swapping.possible(running, spec):
        return None
    begun = time.monotonic()
    try:
        swap = swapping.swap(server, spec)
    except LaunchError as error:
        watcher.warn(Sentence(f"{error}. It is started anew."))
        return None
    watcher.started(swap, time.monotonic() - begun)
    return swap


def at_server(who: W, server: RunningServer) -> W:
    """`who`, with the server that was started for it in the place of the wish to start one."""
    if server.pid is None or server.swapped:  # not ours by name, or not the model that its state names
        return who.but(serve=None, base_url=server.base_urls, model=server.model)
    return who.but(serve=None, server=server.name, model=server.model)
