"""What a server says of itself before the first sample: which models, how long a context, how many at once, what it is.

All calls block. timeout: seconds to connect, between two reads, and for a page's body; from a running loop use
`asyncio.to_thread`. Whatever a server does not state is None, never guessed. Pages that only describe a server are
asked of all servers at once, within one deadline (`describe`); nothing that a server does there can fail a run or hold
it up. Which pages those are, and which facts stand in them, the engine's dialect says (`facts_of`, a pure function).
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from harness.client.address.endpoint import Endpoint, redacted, secrets_of, shown_safely
from harness.client.protocol.failures import error_words
from harness.core import codec
from harness.core.errors import ServerError, near_names
from harness.core.inert import quoted
from harness.core.limits import MAX_ERROR_BODY_BYTES
from harness.core.records import ServerFacts
from harness.core.secret import Secret, without_secrets
from harness.core.wording import option
from server_launchers.engines import table as engines
from server_launchers.engines.dialect import MODELS, Dialect, FactKind, stated_at

if TYPE_CHECKING:
    from harness.core.http_get import Page

_CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
_SHOWN_MODELS = 8
_COMPARED_MODELS = 10_000
"""Listed names that a misspelt one is compared with: 0.1 s."""
_MAX_VALUES = 1_000_000
"""In the JSON of one page, before it is decoded: 0.1 GB."""


@dataclass(slots=True)
class Pages:
    """What was read of one server, handed from one question to the next, so that nothing is read twice.

    own: its own pages by path; empty ones could not be had. listed: the entries of its model list, by model, or None
    before it was read. server: the `Server` header of the list. due: when the look at the server ends, on the monotonic
    clock, whatever is still to be read then.
    """

    own: dict[str, dict[str, Any]] = field(default_factory=dict)
    listed: dict[str, dict[str, Any]] | None = None
    server: str = ""
    due: float = math.inf

    def seconds(self, timeout: float) -> float:
        """The timeout of a page's steps, such that the whole page ends in time. Raises `NoAnswer` after that."""
        from harness.client.facts.page import WHOLE_PAGE, NoAnswer

        left = self.due - time.monotonic()
        if left <= 0:
            raise NoAnswer("the look at the servers took too long")
        return min(timeout, left / WHOLE_PAGE)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """id: as the server lists it. context_tokens: prompt and completion together, for one request."""

    id: str
    context_tokens: int | None = None


class NoList(ServerError):
    """The server answers but fails to list its models, as that of transformers does without a hub cache."""


def list_models(
    endpoint: Endpoint, *, timeout: float = 10.0, ca_file: Path | None = None, pages: Pages | None = None
) -> list[ModelInfo]:
    """The models that the server lists; empty where a hosted provider has no list. Raises `ServerError`."""
    pages = Pages() if pages is None else pages
    status, body, _, _, pages.server = _page(endpoint, endpoint.base_url + "/models", pages.seconds(timeout), ca_file)
    if status in (404, 405, 501) and not endpoint.local:
        return []
    if status != 200:
        kind = NoList if status == 500 else ServerError
        raise kind(_refusal(endpoint, "/models", status, body))
    listed = _object(body).get("data")
    if not isinstance(listed, list):
        raise ServerError(
            f"{endpoint.base_url}/models answers, but not as an OpenAI-compatible server: "
            f"{_quoted(endpoint, body)}; check the port and path of {option('base_url')}"
        )
    models = [entry for entry in listed if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    pages.listed = {entry["id"]: entry for entry in models}
    return [ModelInfo(entry["id"], _context(endpoint, entry, timeout, ca_file, pages)) for entry in models]


def find_model(
    endpoint: Endpoint,
    model: str | None,
    *,
    timeout: float = 10.0,
    ca_file: Path | None = None,
    pages: Pages | None = None,
) -> ModelInfo | None:
    """The listed model of that name; the only one if `model` is None.

    None when the server's list cannot tell (no list, one that fails, or a router that lists "unknown"). Raises
    `ServerError` with what the server has when the name is not among it.
    """
    try:
        models = list_models(endpoint, timeout=timeout, ca_file=ca_file, pages=pages)
    except NoList:
        if model is None:
            raise
        return None
    by_id = {info.id: info for info in models}
    if model is not None and model in by_id:
        return by_id[model]
    if not models or engines.anonymous().hides_behind in by_id:
        return None
    shown = ", ".join(quoted(name) for name in list(by_id)[:_SHOWN_MODELS])
    if len(by_id) > _SHOWN_MODELS:
        shown += f" and {len(by_id) - _SHOWN_MODELS} more"
    if model is None:
        if len(models) == 1:
            return models[0]
        raise ServerError(f"{endpoint.base_url} serves several models ({shown}); name one with {option('model')}")
    near = near_names(model, list(by_id)[:_COMPARED_MODELS])
    raise ServerError(f"{endpoint.base_url} does not serve {quoted(model)}; it has {shown}.{near}")


def stated_concurrency(
    endpoint: Endpoint, *, timeout: float = 10.0, ca_file: Path | None = None, pages: Pages | None = None
) -> int | None:
    """Requests that the server says it runs at once, on the first page of any engine that says so."""
    pages = Pages() if pages is None else pages
    for reading in (reading for dialect in engines.dialects() for reading in dialect.at_once):
        stated = reading.value(own_page(endpoint, reading.page, timeout, ca_file, pages))
        if type(stated) is int and stated > 0:
            return stated
    return None


def _refusal(endpoint: Endpoint, path: str, status: int, body: bytes) -> str:
    words = _quoted(endpoint, body)
    if status in (401, 403):
        cure = "the key was not accepted" if endpoint.api_key else "no key was sent: set OPENAI_API_KEY"
        return f"{endpoint.base_url} answers HTTP {status} ({words}); {cure}"
    if status == 404:
        return f"{endpoint.base_url}{path} does not exist (HTTP 404); {option('base_url')} usually ends in /v1"
    if status == 503:
        return f"{endpoint.base_url} is not ready (HTTP 503: {words}); it may still be loading the model"
    return f"{endpoint.base_url}{path} answers HTTP {status}: {words}"


def _context(
    endpoint: Endpoint, entry: dict[str, Any], timeout: float, ca_file: Path | None, pages: Pages
) -> int | None:
    for name in _CONTEXT_FIELDS:
        stated = entry.get(name)
        if type(stated) is int and stated > 0:
            return stated
    if not endpoint.local:
        return None
    reading = engines.dialect_of_entry(entry).context or engines.anonymous().context
    stated = reading and reading.value(own_page(endpoint, reading.page, timeout, ca_file, pages))
    return stated if type(stated) is int and stated > 0 else None


def own_page(endpoint: Endpoint, path: str, timeout: float, ca_file: Path | None, pages: Pages) -> dict[str, Any]:
    """A page of the server's own beside the OpenAI paths, read once; empty if it has none."""
    if path not in pages.own:
        pages.own[path] = {}
        with contextlib.suppress(ServerError):
            answer = _page(endpoint, _root(endpoint) + path, pages.seconds(timeout), ca_file)
            if answer.status == 200:
                pages.own[path] = _object(answer.body)
    return pages.own[path]


def _page(endpoint: Endpoint, url: str, timeout: float, ca_file: Path | None) -> Page:
    from harness.client.facts import page  # with its HTTP library, when it is first needed

    return page.get(endpoint, url, timeout=timeout, ca_file=ca_file)


def _object(body: bytes) -> dict[str, Any]:
    if codec.holds_more_than(_MAX_VALUES, body):
        return {}
    try:
        value: Any = codec.decode(body)
    except codec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _root(endpoint: Endpoint) -> str:
    parts = urlsplit(endpoint.base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.removesuffix("/v1"), "", ""))


def _quoted(endpoint: Endpoint, body: bytes) -> str:
    return shown_safely(error_words(body[:MAX_ERROR_BODY_BYTES]), secrets_of(endpoint)) or "no explanation"


# ---- all servers at once


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
    return [path for path in pages_of(_entry(pages, model), anonymous=anonymous) if path not in pages.own]


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
                own_page(endpoint, path, left, ca_file, pages)
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
    facts = facts_of(_entry(pages, model), dict(pages.own), pages.server)
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


# ---- facts from pages


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
    for fact in (*(fact for dialect in _fitting(entry) for fact in dialect.facts), *LISTED):
        page = entry if fact.page == MODELS else pages.get(fact.page, {})
        value = _value(page, fact.path)
        if value is not _ABSENT and fact.name not in facts[fact.kind]:
            facts[fact.kind][fact.name] = _stored(value, digest=fact.digest)
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
