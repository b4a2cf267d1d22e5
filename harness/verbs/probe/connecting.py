"""Looks up model, engine and context of each server that is probed, once, before its checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.asking import servers
from harness.asking.options import WhichServer
from harness.asking.options.request import HowWritten
from harness.asking.servers import Looks
from harness.asking.watching import Watcher
from harness.verbs.probe.probed_endpoint import ProbedEndpoint


def promised(host: Mapping[str, Any]) -> bool:
    """Whether the server promises replies that do not depend on the batch. host: facts that the server states, or facts
    from its start options.
    """
    return any(host.get(name) in (True, 1, "1", "on") for name in ("batch_invariant", "deterministic"))


def probed(who: WhichServer, watcher: Watcher, written: HowWritten, *, shared_key: bool = True) -> list[ProbedEndpoint]:
    """The servers that `who` names, each looked up once. Raises `UsageError`, and `ServerError` if one cannot be asked.

    written: the fields that all requests have, or lack, besides those of the checks. shared_key: as in `servers.find`.
    """
    addresses = servers.find(who, shared_key=shared_key)
    looks = servers.look(addresses, who, watcher)
    endpoints = []
    for look in looks.each:
        if look.failure is not None:
            raise look.failure
        engine = look.facts.host.get("engine")
        asker = addresses.asker(Looks(looks.model, (look,)))
        spelling = replace(
            asker.spelling,
            chat_template_kwargs={**asker.spelling.chat_template_kwargs, **written.chat_template_kwargs},
            extra_body={**asker.spelling.extra_body, **written.extra_body},
            stream_usage=asker.spelling.stream_usage and "stream_options" not in written.drop,
        )
        endpoints.append(
            ProbedEndpoint(
                endpoint=look.endpoint,
                asker=replace(asker, spelling=spelling, left_out=frozenset(written.drop)),
                engine=engine,
                context=look.info.context_tokens if look.info else None,
                deterministic=promised(look.facts.host) or promised(addresses.own.host),
                ca_file=who.ca_file,
            )
        )
    return endpoints
