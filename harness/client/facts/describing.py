"""What servers tell of themselves for nothing, all of them asked at once, within one deadline.

Nothing that a server does here can fail a run or hold it up: what is not told in time is not told.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from harness.client.address.endpoint import Endpoint
from harness.client.address.redact import redacted, secrets_of
from harness.client.facts import discovery, fields
from harness.client.facts.discovery import Pages
from harness.core.records import ServerFacts
from harness.core.secret import Secret, without_secrets
from server_launchers.engines import table as engines

DEADLINE_S = 5.0
"""Seconds in all for the pages of all servers."""

AT_ONCE = 32
"""Pages that are read at once."""

_Job = tuple[Endpoint, Pages, str]


def describe(
    servers: Sequence[tuple[Endpoint, Pages]],
    model: str,
    *,
    own_pages: bool = True,
    seconds: float = DEADLINE_S,
    ca_file: Path | None = None,
) -> list[ServerFacts]:
    """What each server tells of itself as the server of `model`, in the order given.

    servers: with what was read of each before; the rest is read here. own_pages: false where nothing but what was read
    before is to be looked at, as of somebody else's service. seconds: for all of them together.
    """
    if own_pages:
        _read_all(
            [(endpoint, pages, path) for endpoint, pages in servers for path in _wanted(pages, model)], seconds, ca_file
        )
    return [_facts(endpoint, pages, model) for endpoint, pages in servers]


def _entry(pages: Pages, model: str) -> dict[str, Any]:
    return (pages.listed or {}).get(model, {})


def _wanted(pages: Pages, model: str) -> list[str]:
    anonymous = engines.anonymous().hides_behind in (pages.listed or {})
    return [path for path in fields.pages_of(_entry(pages, model), anonymous=anonymous) if path not in pages.own]


def _read_all(jobs: Sequence[_Job], seconds: float, ca_file: Path | None) -> None:
    """Read the pages into their `Pages`, as far as they come in time."""
    waiting: SimpleQueue[_Job] = SimpleQueue()
    ended: SimpleQueue[None] = SimpleQueue()
    for job in jobs:
        waiting.put(job)
    due = time.monotonic() + seconds

    def work() -> None:
        while True:
            try:
                endpoint, pages, path = waiting.get_nowait()
            except Empty:
                return
            if (left := due - time.monotonic()) > 0:
                discovery.own_page(endpoint, path, left, ca_file, pages)
            ended.put(None)

    for _ in range(min(AT_ONCE, len(jobs))):
        # Left behind where a page has no end; a daemon keeps no process alive.
        Thread(target=work, daemon=True, name="describe").start()
    for _ in jobs:
        try:
            ended.get(timeout=max(0.0, due - time.monotonic()))
        except Empty:
            return


def _facts(endpoint: Endpoint, pages: Pages, model: str) -> ServerFacts:
    facts = fields.facts_of(_entry(pages, model), dict(pages.own), pages.server)
    secrets = secrets_of(endpoint)
    return ServerFacts(model=_safe(facts.model, secrets), host=_safe(facts.host, secrets))


def _safe(value: Any, secrets: tuple[Secret, ...]) -> Any:
    """`value` without secrets, also those that the server repeats."""
    if isinstance(value, dict):
        hidden = without_secrets(value)
        return {redacted(name, secrets): _safe(item, secrets) for name, item in hidden.items()}
    if isinstance(value, list):
        return [_safe(item, secrets) for item in value]
    return redacted(value, secrets) if isinstance(value, str) else value
