"""Looks up model, engine and context of each server that is probed, once, before its checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.asking import servers
from harness.asking.options import WhichServer
from harness.asking.servers import Looks
from harness.asking.watching import Watcher
from harness.verbs.probe.probed_endpoint import ProbedEndpoint


def promised(host: Mapping[str, Any]) -> bool:
    """Whether the server promises replies that do not depend on the batch. host: facts that the server states, or facts
    from its start options.
    """
    return any(host.get(name) in (True, 1, "1", "on") for name in ("batch_invariant", "deterministic"))


def probed(who: WhichServer, watcher: Watcher, *, shared_key: bool = True) -> list[ProbedEndpoint]:
    """The servers that `who` names, each looked up once. Raises `UsageError`, and `ServerError` if one cannot be asked.

    shared_key: as in `servers.find`.
    """
    addresses = servers.find(who, shared_key=shared_key)
    looks = servers.look(addresses, who, watcher)
    endpoints = []
    for look in looks.each:
        if look.failure is not None:
            raise look.failure
        engine = look.facts.host.get("engine")
        endpoints.append(
            ProbedEndpoint(
                endpoint=look.endpoint,
                asker=addresses.asker(Looks(looks.model, (look,))),
                engine=engine,
                context=look.info.context_tokens if look.info else None,
                deterministic=promised(look.facts.host) or promised(addresses.own.host),
                ca_file=who.ca_file,
            )
        )
    return endpoints
