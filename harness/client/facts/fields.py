"""What a server is, from the pages that it answers: the facts that its engine's dialect finds there. Pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from harness.core import codec
from harness.core.records import ServerFacts
from server_launchers.engines import table as engines
from server_launchers.engines.dialect import MODELS, Dialect, FactKind, stated_at

MAX_VALUE_BYTES = 2000
"""A longer value is kept as its digest."""

MAX_WORKERS = 64
"""Workers of a router that are kept."""

LISTED = (
    *stated_at(MODELS, "model", root="root", parent="parent", canonical_slug="canonical_slug"),
    *stated_at(MODELS, "host", context="max_model_len", owned_by="owned_by"),
)
"""Facts that the entry of a model may state on any server."""

_WORKER_FIELDS = ("url", "model_id", "worker_type", "is_healthy")


def pages_of(entry: Mapping[str, Any], *, anonymous: bool) -> tuple[str, ...]:
    """The pages that may tell more of a server, by its entry of the model; anonymous: it lists no model of its own."""
    if anonymous:
        router = engines.anonymous()
        return (router.workers, *router.pages)
    return tuple(dict.fromkeys(page for dialect in _fitting(entry) for page in dialect.pages))


def facts_of(entry: Mapping[str, Any], pages: Mapping[str, Mapping[str, Any]], server_header: str) -> ServerFacts:
    """What a server is: by its entry of the model, its own pages as far as it has them, and its `Server` header."""
    facts: dict[FactKind, dict[str, Any]] = {"model": {}, "host": {}}
    for field in (*(field for dialect in _fitting(entry) for field in dialect.facts), *LISTED):
        page = entry if field.page == MODELS else pages.get(field.page, {})
        value = _value(page, field.path)
        if value is not _ABSENT and field.name not in facts[field.kind]:
            facts[field.kind][field.name] = _stored(value, digest=field.digest)
    if name := engines.dialect_of_entry(entry).name:
        facts["host"]["engine"] = name
    if server_header:
        facts["host"]["server"] = _stored(server_header)
    if workers := list(_workers(pages.get(engines.anonymous().workers, {}))):
        facts["host"]["workers"] = workers
    return ServerFacts(model=facts["model"], host=facts["host"])


def _fitting(entry: Mapping[str, Any]) -> tuple[Dialect, ...]:
    """The dialect that the entry names; where it names none, all of them, those last whose mark it lacks."""
    named = engines.dialect_of_entry(entry)
    return (named,) if named.name else tuple(sorted(engines.dialects(), key=lambda dialect: bool(dialect.marks)))


_ABSENT: Final = object()
"""Not told. A value of null is told: no quantisation, say."""


def _value(page: Any, path: Collection[str]) -> Any:
    for key in path:
        if not isinstance(page, Mapping) or key not in page:
            return _ABSENT
        page = page[key]
    return page


def _stored(value: Any, *, digest: bool = False) -> Any:
    """`value`, or its digest where it is long or asked for."""
    data = codec.encode(value)
    if value is not None and (digest or len(data) > MAX_VALUE_BYTES):
        text = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else data
        return f"sha256:{hashlib.sha256(text).hexdigest()}"
    return value


def _workers(page: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    listed = page.get("workers")
    for worker in listed[:MAX_WORKERS] if isinstance(listed, list) else ():
        if isinstance(worker, dict):
            yield {name: _stored(worker[name]) for name in _WORKER_FIELDS if worker.get(name) is not None}
