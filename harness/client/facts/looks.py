"""One look at each endpoint before the first request: the model that it serves, its context, what it states of itself.

`look_at_each` asks all endpoints within one deadline, and each only once.
"""

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
from harness.core.records import NOTHING_TOLD, ServerFacts

LOOK_S = 60.0
"""Seconds for looking at all endpoints; an endpoint that has not answered by then counts as down."""


LOOKS_AT_ONCE = 32
"""Largest number of endpoints that are looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The answer of an endpoint to one look.

    info: its entry for the model; None if its list of models has none or was not read. concurrency: number of requests
    that it states to run at once. facts: what it states about itself. no_list: why its list could not be read, in a
    sentence; the model is asked all the same. failure: why it could not be asked; the other fields are then empty.
    """

    endpoint: Endpoint
    info: ModelInfo | None = None
    concurrency: int | None = None
    facts: ServerFacts = NOTHING_TOLD
    no_list: str | None = None
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
    def failures(self) -> list[ServerError]:
        """Why each endpoint that did not answer could not be asked."""
        return [look.failure for look in self.each if look.failure is not None]

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


def look_at_each(
    endpoints: Sequence[Endpoint], model: str | None, provider: Provider, own: ServerFacts, *, lists: bool, slots: bool
) -> Looks:
    """Ask each endpoint once for its models and facts. The look at one that is down holds the failure.

    model: the name to ask for; None: the only model that the first endpoint to answer lists; it is empty in the looks
    if that lists none. own: facts that go before those that each states. lists: whether the lists of models are read.
    slots: whether each is asked how many requests it runs at once. Raises `ServerError` if one refuses or lacks the
    model.
    """
    from harness.client.facts.page import NoAnswer

    due = time.monotonic() + LOOK_S

    def ask(endpoint: Endpoint, pages: discovery.Pages) -> Look:
        """Ask one endpoint about its models and its concurrency. Raises `ServerError` if it refuses."""
        try:
            info = _model(provider, endpoint, model, pages) if lists else None
        except NoAnswer as error:
            return Look(endpoint=endpoint, failure=error)
        n = discovery.stated_concurrency(endpoint, pages=pages) if slots else None
        return Look(endpoint=endpoint, info=info, concurrency=n, no_list=pages.no_list)

    looks: list[Look] = []
    # Each endpoint with the pages that are read of it.
    waiting = read = [(endpoint, discovery.Pages(due=due)) for endpoint in endpoints]
    with channel.waiting(f"an answer of {', '.join(endpoint.base_url for endpoint in endpoints[:3])}"):
        # Without a model's name, the first endpoint that answers sets it; the others are then asked together.
        while waiting and model is None:
            looks.append(ask(*waiting[0]))
            waiting = waiting[1:]
            model = looks[-1].info.id if looks[-1].info is not None else None
        if len(waiting) < 2:
            looks += [ask(*each) for each in waiting]
        else:
            with ThreadPoolExecutor(LOOKS_AT_ONCE, "look") as pool:
                looks += pool.map(ask, *zip(*waiting, strict=True))
    if model is None:
        return Looks("", tuple(looks))
    if all(look.failure is not None for look in looks):
        looks = list(map(_of_slow_list, looks))
    answered = [each for each, look in zip(read, looks, strict=True) if look.failure is None]
    facts = map(own.over, discovery.describe(answered, model, own_pages=not provider.hosted))
    return Looks(model, tuple(replace(look, facts=next(facts)) if look.failure is None else look for look in looks))


def _of_slow_list(look: Look) -> Look:
    """The look without its failure if that was slowness: such a server may answer, and without another it is asked."""
    from harness.client.facts.page import SlowAnswer

    return replace(look, failure=None, no_list=why.sentence) if isinstance(why := look.failure, SlowAnswer) else look


def _model(provider: Provider, endpoint: Endpoint, model: str | None, pages: discovery.Pages) -> ModelInfo | None:
    """Return the endpoint's entry for `model`. Raises `ServerError` if the endpoint is down, refuses or lacks it.

    A hosted provider's list may be incomplete: None if the model is missing there, or if a list that is known to be
    incomplete cannot be read.
    """
    try:
        return discovery.find_model(endpoint, model, pages=pages)
    except ServerError as error:
        must_be_read = provider.models_list == "all" and not isinstance(error, discovery.NotServed)
        if model is None or not provider.hosted or must_be_read:
            raise
        return None
