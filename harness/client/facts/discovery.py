"""What a server reports about itself before the first sample.

    function             question                                          if the server does not answer
    find_model           does it serve this model, with how long a context  `ServerError`
    stated_concurrency   how many requests does it run at once             None
    describe             engine, version, weights, defaults … (facts)      the facts are left out

A value that a server does not report is None, never a guess. `describe` queries all servers at once within one
deadline, and nothing that a server does there can fail or delay a run. The engine's profile says which pages to read
and where each fact is.

All calls block; code on an event loop uses `asyncio.to_thread`.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from harness.client.address.endpoint import Endpoint, error_quoted, redact_values, secrets_of
from harness.client.protocol.failures import RequestFailed, error_words, failure_of_event, failure_of_status
from harness.core import codec
from harness.core.errors import ServerError, near_names
from harness.core.records import ServerFacts
from harness.core.sanitize import MAX_ERROR_BODY_BYTES, quoted
from harness.core.secret import without_secrets
from server_launchers.engines import table as engines
from server_launchers.engines.engine import MODELS, EngineProfile, FactKind, fact_fields

if TYPE_CHECKING:
    from harness.core.http_get import Page

PAGE_S = 10.0
"""Timeout in seconds for connecting to a server, for the next bytes of a page, and for its body."""
_CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Names under which servers state a model's context length in their list of models."""
_SHOWN_MODELS = 8
"""Largest number of models that a message lists."""
_MAX_PARTS = 20
"""Largest number of pages of a list of models that are read; Anthropic's have 20 models each."""
_COMPARED_MODELS = 10_000
"""Largest number of listed models that are compared with a misspelled name, which takes 0.1 s."""
_MAX_VALUES = 1_000_000
"""Largest number of JSON values in a page that is decoded; decoded, they take 0.1 GB."""


class NotServed(ServerError):
    """A server answers, but its list does not contain the requested model."""


@dataclass(slots=True)
class Pages:
    """The pages of one server that have been read; each function below adds to them, so that no page is read twice.

    own: path → page, for the server's pages outside the OpenAI API; an empty page could not be read. listed: model →
    its entry in the server's list of models; None until the list has been read. server: the `Server` header that came
    with the list. no_list: why the list could not be read. due: the deadline for reading this server's pages, on the
    monotonic clock.
    """

    own: dict[str, dict[str, Any]] = field(default_factory=dict)
    listed: dict[str, dict[str, Any]] | None = None
    server: str = ""
    no_list: NoList | None = None
    due: float = math.inf

    def seconds(self) -> float:
        """`PAGE_S`, shortened so that the next page is read before `due`. Raises `ServerError` after `due`."""
        from harness.client.facts.page import WHOLE_PAGE

        left = self.due - time.monotonic()
        if left <= 0:
            raise ServerError("requesting information from the server took too long", hope="passing")
        return min(PAGE_S, left / WHOLE_PAGE)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that a server lists. context_tokens: limit on a request's prompt and completion tokens together."""

    id: str
    context_tokens: int | None = None


class NoList(ServerError):
    """The server answers but lists no models; requests to a named model are possible nevertheless."""


_NO_LIST = (403, 404, 405, 429, 500, 501)
"""Statuses that say nothing about the model: no list, a rate limit, a fault, or a key without access to the list."""


def list_models(endpoint: Endpoint, pages: Pages) -> list[ModelInfo]:
    """The models that the server lists, from all pages if the list has several, as Anthropic's does.

    Empty for a hosted provider without a list. Raises `ServerError`.
    """
    entries, after = dict[str, dict[str, Any]](), ""
    for _ in range(_MAX_PARTS):
        try:
            part = _part_of_list(endpoint, f"/models?after_id={quote(after, safe='')}" if after else "/models", pages)
        except ServerError:
            if not after:
                raise
            break  # the server says that there are further pages, but has none
        listed = [each for each in part.get("data", []) if isinstance(each, dict)]
        new = {each["id"]: each for each in listed if isinstance(each.get("id"), str)}
        goes_on = part.get("has_more") is True and not new.keys() <= entries.keys()
        entries |= new
        after = str(part.get("last_id") or next(reversed(new), ""))
        if not goes_on:
            break
    else:
        raise NoList(f"{endpoint.base_url}/models has more than {_MAX_PARTS} pages.")
    pages.listed = entries
    return [ModelInfo(name, _context(endpoint, entry, pages)) for name, entry in entries.items()]


def _part_of_list(endpoint: Endpoint, path: str, pages: Pages) -> dict[str, Any]:
    """A page of the list of models, with its list `data`; {} for a hosted provider without a list."""
    page = _read_page(endpoint, endpoint.base_url + path, pages.seconds())
    pages.server = page.headers.get("server", "")
    if page.status in (404, 405, 501) and not endpoint.local:
        return {}
    if page.status != 200:
        kind = NoList if page.status in _NO_LIST else ServerError
        failure = failure_of_status(page.status, page.body, page.headers, secrets_of(endpoint))
        raise kind(_refusal(endpoint, path, page, failure), hope=failure.hope)
    part = _parse_object(page.body)
    if not isinstance(part.get("data"), list):
        failure = failure_of_event(part, secrets_of(endpoint), f"{endpoint.base_url}{path}")
        if failure.hope == "starting":
            raise ServerError(failure.message, hope="starting")
        raise NoList(
            f"{endpoint.base_url}/models does not respond like an OpenAI-compatible server: "
            f"{_quote_error(endpoint, page.body)}; check the port and path in `base_url`"
        )
    if not part["data"]:
        raise NoList(f"{endpoint.base_url}{path} lists no models", advice="specify one with `model`", hope="passing")
    return part


def find_model(endpoint: Endpoint, model: str | None, *, pages: Pages | None = None) -> ModelInfo | None:
    """The listed model of that name; if `model` is None, the only model that the server lists.

    None if the server's list is not evidence: there is no list, reading it fails, or a router lists a placeholder in
    place of its models. Raises a `ServerError` that lists the server's models if the name is not among them.
    """
    pages = Pages() if pages is None else pages
    try:
        models = list_models(endpoint, pages)
    except NoList as error:
        if model is None:
            raise
        pages.no_list = error
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
        raise ServerError(f"{endpoint.base_url} serves several models ({shown}); choose one with `model`")
    near = near_names(model, list(by_id)[:_COMPARED_MODELS])
    raise NotServed(f"{endpoint.base_url} does not serve {quoted(model)}; it serves {shown}.{near}")


def stated_concurrency(endpoint: Endpoint, pages: Pages) -> int | None:
    """The number of requests that the server says it runs at once; None if its pages do not state it."""
    readings = (reading for profile in engines.profiles() for reading in profile.at_once)
    stated = (reading.value(read_own_page(endpoint, reading.page, pages)) for reading in readings)
    return next(filter(None, map(_positive, stated)), None)


def _positive(stated: object) -> int | None:
    """The number that a server states, if it is above 0."""
    return stated if type(stated) is int and stated > 0 else None


def _refusal(endpoint: Endpoint, path: str, page: Page, failure: RequestFailed) -> str:
    """The sentence for a page that answers with an error status, with what to do."""
    status, words = page.status, _quote_error(endpoint, page.body)
    if status in (401, 403):
        cure = "no key was sent: set OPENAI_API_KEY, or specify another variable with `api_key_env`"
        if endpoint.api_key:
            correct = "set its environment variable (see `api_key_env`) to the correct key, without quotes"
            cure = f"the key was rejected: {correct}"
        return f"{endpoint.base_url} returned HTTP {status} ({words}); {cure}"
    if status == 404:
        return f"{endpoint.base_url}{path} does not exist (HTTP 404); `base_url` usually ends in /v1"
    if status == 503:
        return f"{endpoint.base_url} is not ready (HTTP 503: {words}); it may still be loading the model"
    return f"{endpoint.base_url}{path} returned {failure}"


def _context(endpoint: Endpoint, entry: dict[str, Any], pages: Pages) -> int | None:
    """The context length that the server states, in tokens; None if it states none.

    It is read from the model's entry, or else from a page of the server's engine.
    """
    listed = next(filter(None, (_positive(entry.get(name)) for name in _CONTEXT_FIELDS)), None)
    if listed or not endpoint.local:
        return listed
    reading = engines.profile_of_entry(entry).context or engines.anonymous().context
    return _positive(reading and reading.value(read_own_page(endpoint, reading.page, pages)))


def read_own_page(endpoint: Endpoint, path: str, pages: Pages) -> dict[str, Any]:
    """Read a page outside the OpenAI API, such as `/props`, once; {} if the server does not have it."""
    if path not in pages.own:
        # Noted before it is read, so that a page that fails is not requested again.
        pages.own[path] = {}
        with contextlib.suppress(ServerError):
            answer = _read_page(endpoint, endpoint.root + path, pages.seconds())
            if answer.status == 200:
                pages.own[path] = _parse_object(answer.body)
    return pages.own[path]


def _read_page(endpoint: Endpoint, url: str, timeout: float) -> Page:
    from harness.client.facts import page  # imports an HTTP library, so only when it is first needed

    return page.get(endpoint, url, timeout=timeout)


def _parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in `body`; empty if it is not an object or contains too many values."""
    if codec.holds_more_than(_MAX_VALUES, body):
        return {}
    try:
        value: Any = codec.decode(body)
    except codec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _quote_error(endpoint: Endpoint, body: bytes) -> str:
    return error_quoted(error_words(body[:MAX_ERROR_BODY_BYTES]), secrets_of(endpoint)) or "no explanation"


# ---- all servers at once


DEADLINE_S = 7.5
"""Longest time, in seconds, for reading the pages of all servers together."""

AT_ONCE = 32
"""Largest number of pages that are read at the same time."""


def describe(
    servers: Sequence[tuple[Endpoint, Pages]], model: str, *, own_pages: bool = True, seconds: float = DEADLINE_S
) -> list[ServerFacts]:
    """The facts about each server that concern `model`, in the order of `servers`.

    servers: each with its pages read so far. own_pages: True reads the missing pages; False uses only the pages already
    read, as for a hosted service. seconds: limit on the whole call.
    """
    # The entry in the list of models may reveal the engine and therefore the pages.
    with_dialects = [(endpoint, pages, engines.profile_of_entry(_entry(pages, model))) for endpoint, pages in servers]
    if own_pages:
        due, missing = time.monotonic() + seconds, list[tuple[Endpoint, str, Pages]]()
        for endpoint, pages, named in with_dialects:
            pages.due = min(pages.due, due)
            missing += [(endpoint, path, pages) for path in _unread_paths(pages, named)]
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="describe") as pool:
            list(pool.map(lambda page: read_own_page(*page), missing))
    return [_facts(endpoint, pages, model, named) for endpoint, pages, named in with_dialects]


def _entry(pages: Pages, model: str) -> dict[str, Any]:
    """The model's entry in the server's list of models; empty if the list does not contain it."""
    return (pages.listed or {}).get(model, {})


def _unread_paths(pages: Pages, named: EngineProfile) -> list[str]:
    """The paths of the pages that may contain facts about the server and have not been read yet."""
    hidden = engines.anonymous().hides_behind in (pages.listed or {})
    possible = (engines.anonymous(),) if hidden else _possible_profiles(named)
    paths = dict.fromkeys(path for profile in possible for path in profile.pages)
    return [path for path in paths if path not in pages.own]


# ---- facts from pages


MAX_VALUE_BYTES = 2000
"""Longest value of a fact, as JSON; for a longer value, the digest is stored instead."""

LISTED = (
    *fact_fields(MODELS, "model", root="root", parent="parent", canonical_slug="canonical_slug"),
    *fact_fields(MODELS, "host", context="max_model_len", owned_by="owned_by"),
)
"""Facts that a model's entry in the list of models may state, whatever the engine."""


def _facts(endpoint: Endpoint, pages: Pages, model: str, named: EngineProfile) -> ServerFacts:
    """The facts that a server's pages state, without fields that contain keys and without repetitions of our key.

    named: the profile of the engine named in the entry for the model.
    """
    entry = _entry(pages, model)
    facts: dict[FactKind, dict[str, Any]] = {"model": {}, "host": {}}
    facts_of_engines = [fact for profile in _possible_profiles(named) for fact in profile.facts]
    for fact in (*facts_of_engines, *LISTED):
        page = entry if fact.page == MODELS else pages.own.get(fact.page, {})
        value = _value_at(page, fact.path)
        if value is not _ABSENT and fact.name not in facts[fact.kind]:
            facts[fact.kind][fact.name] = _value_or_digest(value, digest=fact.digest)
    if named.name:
        facts["host"]["engine"] = named.name
    if pages.server:
        facts["host"]["server"] = _value_or_digest(pages.server)
    shown = redact_values(without_secrets(facts), secrets_of(endpoint))
    return ServerFacts(model=shown["model"], host=shown["host"])


def _possible_profiles(named: EngineProfile) -> tuple[EngineProfile, ...]:
    """The profile of the engine named in a model's entry; if none is named, all profiles.

    Profiles that would have left a mark in the entry come last: if two state a fact, the first takes precedence.
    """
    return (named,) if named.name else tuple(sorted(engines.profiles(), key=lambda profile: bool(profile.marks)))


_ABSENT: Final = object()
"""Means "the page does not state the fact". A stated null is a fact: no quantization, for example."""


def _value_at(page: Any, path: Collection[str]) -> Any:
    for key in path:
        if not isinstance(page, Mapping) or key not in page:
            return _ABSENT
        page = page[key]
    return page


def _value_or_digest(value: Any, *, digest: bool = False) -> Any:
    """`value`, or its SHA-256 if it is long or `digest` is True."""
    data = codec.encode(value)
    if value is not None and (digest or len(data) > MAX_VALUE_BYTES):
        text = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else data
        return f"sha256:{hashlib.sha256(text).hexdigest()}"
    return value
