"""What each endpoint reports before the first request: the model that it serves, its context, facts about itself.

`discover_each` queries all endpoints within one deadline, each only once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from harness.client.address.endpoint import Endpoint
from harness.client.address.providers import Provider
from harness.client.facts import discovery
from harness.client.facts.discovery import ModelInfo
from harness.client.request_builder import Asker
from harness.core.errors import ServerError
from harness.core.records import NOTHING_TOLD, ServerFacts

DISCOVERY_S = 60.0
"""Seconds for the discovery of all endpoints; an endpoint that has not answered by then counts as down."""


DISCOVERED_AT_ONCE = 32
"""Largest number of endpoints that are asked at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointInfo:
    """What one endpoint reported.

    entry: the model's entry in the list of models; None if there is none or the list was not read. concurrency: the
    number of requests that the endpoint says it runs at once. facts: what it states about itself. no_list: why its
    list could not be read; requests are still sent to it. failure: why it could not be asked; the other fields are then
    empty.
    """

    endpoint: Endpoint
    entry: ModelInfo | None = None
    concurrency: int | None = None
    facts: ServerFacts = NOTHING_TOLD
    no_list: ServerError | None = None
    failure: ServerError | None = None

    @property
    def unready(self) -> ServerError | None:
        """Why the endpoint may answer, or list its models, later; a slow one is used without its list."""
        may_list = self.no_list is not None and self.no_list.hope not in (None, "slow")
        return self.failure or (self.no_list if may_list else None)


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What all endpoints reported before the first request. model: the model's name in requests."""

    model: str
    each: tuple[EndpointInfo, ...]

    def asker(self, provider: Provider) -> Asker:
        """The asker for the provider's requests, without any of the user's options."""
        spelling = provider.spelling(self.model, engine=self.engine)
        return Asker(model=self.model, engine=self.engine, spelling=spelling)

    @property
    def contexts(self) -> list[int]:
        """The context lengths that the endpoints state, in tokens."""
        return [one.entry.context_tokens for one in self.each if one.entry and one.entry.context_tokens]

    @property
    def failures(self) -> list[ServerError]:
        """Why each endpoint that did not answer could not be asked."""
        return [one.failure for one in self.each if one.failure is not None]

    @property
    def facts(self) -> dict[str, ServerFacts]:
        """The facts about each endpoint that answered, by base URL."""
        return {one.endpoint.base_url: one.facts for one in self.each if one.failure is None}

    @property
    def engine(self) -> str | None:
        """The engine of all endpoints that answered; None if they differ or hide it."""
        engines = {facts.host.get("engine") for facts in self.facts.values()}
        return next(iter(engines)) if len(engines) == 1 else None

    @property
    def concurrency(self) -> int | None:
        """The total number of requests that all endpoints run at once; None unless each endpoint states its number."""
        stated = [one.concurrency for one in self.each]
        return sum(n for n in stated if n) if stated and all(stated) else None


def discover_each(
    endpoints: Sequence[Endpoint], model: str | None, provider: Provider, own: ServerFacts, *, lists: bool, slots: bool
) -> ServerInfo:
    """Ask each endpoint once for its models and facts. For an endpoint that is down, the result contains the failure.

    model: the name to ask for; None: the only model listed by the first endpoint that answers; the result's name is
    empty if it lists none. own: facts that take precedence over those that endpoints state. lists: whether to read the
    lists of models. slots: whether to ask each endpoint how many requests it runs at once. Raises `ServerError` if an
    endpoint rejects the request or does not serve the model.
    """
    due = time.monotonic() + DISCOVERY_S

    def ask(endpoint: Endpoint, pages: discovery.Pages) -> EndpointInfo:
        """Ask one endpoint about its models and its concurrency. Raises `ServerError` if it rejects the request."""
        try:
            info = _model(provider, endpoint, model, pages) if lists else None
        except ServerError as error:
            if error.hope is None:
                raise
            return EndpointInfo(endpoint=endpoint, failure=error)
        n = discovery.stated_concurrency(endpoint, pages) if slots else None
        return EndpointInfo(endpoint=endpoint, entry=info, concurrency=n, no_list=pages.no_list)

    infos: list[EndpointInfo] = []
    # Each endpoint with the pages read from it.
    waiting = read = [(endpoint, discovery.Pages(due=due)) for endpoint in endpoints]
    # Without a model's name, the first endpoint that answers sets it; the others are then asked together.
    while waiting and model is None:
        infos.append(ask(*waiting[0]))
        waiting = waiting[1:]
        model = infos[-1].entry.id if infos[-1].entry is not None else None
    if len(waiting) < 2:
        infos += [ask(*each) for each in waiting]
    else:
        with ThreadPoolExecutor(DISCOVERED_AT_ONCE, "discovery") as pool:
            infos += pool.map(ask, *zip(*waiting, strict=True))
    if model is None:
        return ServerInfo("", tuple(infos))
    if all(one.failure is not None for one in infos):
        # A slow server is used if there is no other.
        slow = [one.failure for one in infos if one.failure and one.failure.hope == "slow"]
        infos = [replace(one, failure=None, no_list=one.failure) if one.failure in slow else one for one in infos]
    answered = [each for each, one in zip(read, infos, strict=True) if one.failure is None]
    facts = map(own.with_defaults, discovery.describe(answered, model, own_pages=not provider.hosted))
    return ServerInfo(model, tuple(replace(one, facts=next(facts)) if one.failure is None else one for one in infos))


def _model(provider: Provider, endpoint: Endpoint, model: str | None, pages: discovery.Pages) -> ModelInfo | None:
    """The endpoint's entry for `model`. Raises `ServerError` if the endpoint is down, refuses or does not serve it.

    A hosted provider's list may be incomplete: None if the model is not on it, or if a list that is known to be
    incomplete cannot be read.
    """
    try:
        return discovery.find_model(endpoint, model, pages=pages)
    except ServerError as error:
        must_be_read = provider.models_list == "all" and not isinstance(error, discovery.NotServed)
        if model is None or not provider.hosted or must_be_read:
            raise
        return None
