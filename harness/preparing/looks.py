"""Looks once at each endpoint before a run: which model it serves, its context, and what it states of itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from harness.client.address.endpoint import Endpoint
from harness.client.address.providers import Provider
from harness.client.asker import Asker
from harness.client.facts import discovery
from harness.client.facts.discovery import ModelInfo
from harness.core import channel
from harness.core.errors import ServerError
from harness.core.inert import visible
from harness.core.records import NOTHING_TOLD, ServerFacts
from harness.options.run import RunOptions
from harness.options.whom import WhichServer
from harness.preparing import own_servers, servers
from harness.preparing.servers import ReachedServers
from harness.progress.watching import Watcher
from server_launchers.engines import table as engines

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
        reached = servers.find(options, api=options.api)
        return reached, look_at(reached, options, watcher)
    except ServerError as error:
        # A run that has begun may miss no sample, and then needs no server. If a sample is missing, asking for it fails
        # with the same sentence.
        folder = options.folder(options.model) if options.model is not None else None
        if must_answer or folder is None or not folder.manifest.exists():
            raise
        reached = reached or ReachedServers(provider=servers.provider_of(options), endpoints=(), about={})
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
