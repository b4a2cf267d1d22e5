"""Hosted providers as data: their addresses, where the key goes, which fields a request may have, how thinking is set.

Each provider is a file in `provider_files/*.yaml`; unknown keys are rejected. A file lists the pages that its facts
come from. `generic` represents all other servers, including the user's own.

Order of this file: the kinds of facts, in the order in which they appear in a file; `Provider`, which uses them to
make endpoints and spellings and to warn about fields without effect; loading and recognizing providers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, HttpUrl

from harness.client.address.endpoint import Endpoint
from harness.client.address.fields import leaving_out
from harness.client.apis.table import APIS, api_of
from harness.client.request_fields import Spelling, merge
from harness.core import plugins, yaml_file
from harness.core.errors import UsageError, near_names
from harness.core.literals import ApiName, LengthField, Thinking
from harness.core.sanitize import visible
from harness.core.secret import Secret, redacted_address
from harness.core.validation import validated
from harness.core.yaml_file import fits_any
from harness.core.yaml_mapping import Part
from server_launchers.engines import table as engines

GENERIC = "generic"
"""Name of the provider for every address that belongs to no other provider."""

_FOLDER = Path(__file__).parent / "provider_files"


class Address(Part):
    """Where the provider's endpoint is, and where the key goes.

    base_url: None if each customer has a separate address. hosts: patterns of host names by which an address is
    recognized. path: the end of the provider's base URLs. paths: API → the end of its base URLs, if it differs.
    key_variable: the environment variable of the key.
    key_header: "Authorization" sends `Authorization: Bearer KEY`; any other name sends the bare key in that header.
    """

    base_url: HttpUrl | None
    hosts: tuple[str, ...]
    path: str
    paths: dict[ApiName, str] = Field(default_factory=dict)
    key_variable: str
    key_header: Literal["Authorization", "api-key"] = "Authorization"


class ForModels(Part):
    """A fact about the models whose names match a pattern of `models` and no pattern of `but_not`, ignoring case.

    apis: the APIs to which the fact applies; empty: all.
    """

    models: tuple[str, ...] = ("*",)
    but_not: tuple[str, ...] = ()
    apis: tuple[ApiName, ...] = ()

    def covers(self, model: str, api: ApiName = "chat") -> bool:
        """Whether the fact applies to `model` when it is called through `api`."""
        return api in (self.apis or (api,)) and fits_any(model, self.models) and not fits_any(model, self.but_not)


class Length(ForModels):
    """The name of the field that limits a chat reply's new tokens, including thinking."""

    field: LengthField


class Seed(Part):
    """What a seed in a request does.

    support: "ignored" if a seed has no effect, "undocumented" if the provider's pages do not mention seeds. field: the
    seed's name in a request.
    """

    support: Literal["supported", "ignored", "undocumented"]
    field: str = "seed"


class ThinkingSwitch(ForModels):
    """How thinking is switched on, off, or to a level.

    levels: value of the option `thinking` → the fields to merge into the body; {} if the value needs no field.
    """

    levels: dict[Thinking, dict[str, Any]]


class ThinkingBudget(ForModels):
    """The field that limits thinking tokens.

    path: the keys that lead to the field from the top of the body. besides: additional fields that must be sent with
    it. engine: the engine whose servers recognize the field; None: all. least: the smallest accepted number of tokens.
    A field of one API is seldom recognized by another.
    """

    apis: tuple[ApiName, ...] = ("chat",)
    path: tuple[str, ...] = Field(min_length=1)
    besides: dict[str, Any] = Field(default_factory=dict)
    engine: str | None = None
    least: int = 1

    def body_fields(self, tokens: int) -> dict[str, Any]:
        """The fields to merge into the body so that thinking uses at most `tokens` tokens."""
        fields: Any = tokens
        for key in reversed(self.path):
            fields = {key: fields}
        return merge(self.besides, fields)


class Ignored(ForModels):
    """Request fields that the server silently ignores.

    parameters: the fields. thinking: the values of the option `thinking` for which the rule applies ("default": no
    value given); None: all.
    """

    parameters: tuple[str, ...] = Field(min_length=1)
    thinking: tuple[Thinking | Literal["default"], ...] | None = None

    def holds(self, model: str, api: ApiName, thinking: Thinking | None) -> bool:
        """Whether the rule applies to `model`, called through `api` with this value of the option `thinking`."""
        return self.covers(model, api) and (self.thinking is None or (thinking or "default") in self.thinking)


class RefusedField(Ignored):
    """Request fields that the server rejects. together_with: reject them only if one of these is sent as well."""

    together_with: tuple[str, ...] = ()


class Batches(Part):
    """The provider's batch API: files of requests (`/files`, `/batches`) that are answered within hours.

    most_requests, most_bytes: limits of one file. window: the time within which the batch is to be answered, as written
    in the request. prefix: the path before the API's own path, in the file's lines and in the batch.
    """

    most_requests: int = Field(50_000, ge=1)
    most_bytes: int = Field(200_000_000, ge=1)
    window: str = "24h"
    prefix: str = "/v1"


class Provider(Part):
    """A provider's facts. `load` finds it by name, `recognize` by its address.

    sources: the documentation pages that the facts come from. stream_usage: what makes a stream report its token
    counts: a request field, or nothing (the provider then rejects that field). models_list: whether `/models` lists all
    models that can be used.
    """

    name: str
    label: str
    sources: tuple[HttpUrl, ...]
    address: Address
    max_tokens: tuple[Length, ...] = Field(min_length=1)
    seed: Seed
    stream_usage: Literal["stream_options", "by itself"]
    thinking: tuple[ThinkingSwitch, ...] = ()
    thinking_tokens: tuple[ThinkingBudget, ...] = ()
    models_list: Literal["all", "partly"]
    ignored: tuple[Ignored, ...] = ()
    refused: tuple[RefusedField, ...] = ()
    batches: Batches | None = None

    @property
    def hosted(self) -> bool:
        """Whether this is a hosted service that we know, rather than `generic`."""
        return self.name != GENERIC

    def endpoint(
        self,
        url: str | None,
        key: str | Secret | None,
        headers: Iterable[tuple[str, str | Secret]] = (),
        *,
        api: ApiName = "chat",
    ) -> Endpoint:
        """The endpoint at `url`, or at the provider's own address if `url` is None. Raises `UsageError`.

        The key goes into the header that the provider reads. A URL without a path gets the provider's path for the API.
        """
        if url is None:
            if self.address.base_url is None:
                raise UsageError(
                    "this provider has no fixed address: set `base_url`"
                    + (f" (it ends in {self.address.path})" if self.hosted else ""),
                    field="provider",
                    value=self.name,
                )
            url = str(self.address.base_url).removesuffix(self.address.path)
        parsed = Endpoint.parse(url, key, headers)
        base_url = parsed.base_url
        path = urlsplit(url if "://" in url else f"http://{url}").path.rstrip("/")
        named = next((one.name for one in APIS if path.endswith(one.path)), api)
        if named != api and not url.startswith("unix:"):
            why = f"this address is for the {named} API, but `api` is {api}: set `api={named}`, or shorten the path"
            raise UsageError(why, field="base_url", value=redacted_address(url))
        if self.hosted and "://" not in url and not parsed.local:  # no scheme was given: http would expose the key
            base_url = base_url.replace("http://", "https://", 1)
        if not path:
            base_url = base_url.removesuffix("/v1") + self.address.paths.get(api, self.address.path)
        api_key, own = parsed.api_key, parsed.headers
        if api_key and self.address.key_header != "Authorization":
            own, api_key = (*own, (self.address.key_header, api_key)), None
        # Any page of a server may require the headers of its API, even the list of models.
        given = {name.lower() for name, _ in own}
        own += tuple((name, Secret(value)) for name, value in api_of(api).headers.items() if name not in given)
        return Endpoint(base_url, api_key, own, parsed.query)

    def require_key(self, endpoint: Endpoint, variable: str) -> None:
        """Raise `UsageError` if requests to a hosted service would have neither a key nor a header that can hold one.

        A local endpoint needs no key. variable: the environment variable that was read; the message names it.
        """
        sent = {name.lower() for name, _ in endpoint.headers}
        has_key = bool(endpoint.api_key or sent & {"authorization", self.address.key_header.lower()})
        if self.hosted and not endpoint.local and not has_key:
            why = f"{self.label} requires a key"
            raise UsageError(f"{why}: set {variable}, or specify another variable with `api_key_env`")

    def spelling(
        self,
        model: str,
        *,
        api: ApiName = "chat",
        thinking: Thinking | None = None,
        thinking_tokens: int | None = None,
        engine: str | None = None,
    ) -> Spelling:
        """How requests for `model` are written.

        thinking_tokens: limit on thinking tokens. engine: the servers' engine; None: unknown. Raises `UsageError` if
        the provider has no field for one of these options.
        """
        shape = api_of(api)
        for field, value in (("thinking", thinking), ("thinking_tokens", thinking_tokens)):
            if value is not None and not shape.templated:
                why = "it requires `api=chat`; in a raw prompt, use the model's own switch"
                raise UsageError(why, field=field, value=value)
        length = next((rule.field for rule in self.max_tokens if rule.covers(model)), "max_tokens")
        switch = self._thinking_fields(model, api, thinking)
        budget = self._budget_fields(model, api, thinking_tokens, engine)
        try:
            switched = shape.thinking(merge(switch, budget))
        except ValueError as error:
            raise UsageError(f"{error}", field="thinking", value=thinking) from error
        plain = Spelling(
            api_name=api,
            max_tokens_field=shape.bound or length,
            seed_field=self.seed.field,
            stream_usage=self.stream_usage == "stream_options",
        )
        return plain.with_fields(switched)

    def _thinking_fields(self, model: str, api: ApiName, thinking: Thinking | None) -> Mapping[str, Any]:
        """The request fields for a value of the option `thinking`.

        An effort that is not known for this model is sent in the form of a known effort, because a model and its
        efforts may be newer than this list. Raises `UsageError` for a switch for which the provider has no known field.
        """
        levels = self._levels(model, api)
        if thinking is None or thinking in levels:
            return levels[thinking] if thinking else {}
        if thinking in ("on", "off"):
            choices = f"expected {' or '.join(sorted(levels))}" if levels else "no supported value is known"
            why = f"{self.name} does not support this value for {visible(model, 80)}: {choices}; "
            raise UsageError(f"{why}use `extra_body` for other request fields", field="thinking", value=thinking)
        like = next((name for name in levels if name not in ("on", "off", "none")), None)
        return {"reasoning_effort": thinking} if like is None else _replaced(levels[like], like, thinking)

    def _levels(self, model: str, api: ApiName) -> dict[Thinking, dict[str, Any]]:
        """The values of the option `thinking` that are known for a model, with their fields."""
        levels: dict[Thinking, dict[str, Any]] = {}
        for rule in self.thinking:
            if rule.covers(model, api):
                # The first rule that names a level takes precedence.
                levels = {**rule.levels, **levels}
        # The value `none` means `off` unless the provider has a level named `none`.
        return {"none": levels["off"], **levels} if "off" in levels else levels

    def _budget_fields(self, model: str, api: ApiName, tokens: int | None, engine: str | None) -> dict[str, Any]:
        """The request fields for the option `thinking_tokens`.

        Raises `UsageError` if the provider has none for this model.
        """
        if tokens is None:
            return {}
        fitting = [rule for rule in self.thinking_tokens if rule.covers(model, api) and rule.engine in (None, engine)]
        if not fitting:
            raise UsageError(
                f"{self.name} has no known request field that limits thinking for {visible(model, 80)}; "
                "if you know one, set it in `extra_body`",
                field="thinking_tokens",
                value=tokens,
            )
        if tokens < fitting[0].least:
            raise UsageError(f"{self.name} requires at least {fitting[0].least}", field="thinking_tokens", value=tokens)
        return fitting[0].body_fields(tokens)

    def rejected_fields(
        self, model: str, api: ApiName, thinking: Thinking | None, sent: Mapping[str, bool]
    ) -> set[str]:
        """The fields in `sent` that the model rejects. sent: name → whether the user set it; of two fields that cannot
        be sent together, the user's is kept.
        """
        names = set[str]()
        for rule in self.refused:
            if rule.holds(model, api, thinking):
                pair = {*rule.together_with} & sent.keys()
                given = any(sent.get(name) for name in rule.parameters)
                if pair or not rule.together_with:
                    names.update(pair if given and pair and not any(map(sent.get, pair)) else rule.parameters)
        return names & sent.keys()

    def warnings(
        self, model: str, parameters: Collection[str], thinking: Thinking | None = None, api: ApiName = "chat"
    ) -> list[str]:
        """What the provider ignores in a request with these top-level fields, with advice on each.

        parameters: the names of the request's fields.
        """
        warnings = []
        for rule in self.ignored:
            names = [name for name in rule.parameters if name in parameters]
            if names and rule.holds(model, api, thinking):
                it = "them" if len(names) > 1 else "it"
                warnings.append(
                    f"{self.name}: {visible(model, 80)} ignores {', '.join(names)}; to omit {it}, set "
                    f"{leaving_out(names)}"
                )
        if self.seed.field in parameters and self.seed.support != "supported":
            does = "ignores seeds" if self.seed.support == "ignored" else "does not document a seed parameter"
            again = "a retried sample will differ; to send no seed, set `seed=None`"
            warnings.append(f"{self.name} {does}: {again}")
        if thinking not in (None, *(levels := self._levels(model, api))):
            known = f"known values: {', '.join(sorted(levels))}" if levels else "no known values"
            warnings.append(
                f"{self.name}: {visible(model, 80)} may reject or ignore thinking={thinking}; sending it anyway "
                f"({known})"
            )
        return warnings


def _replaced(fields: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """The fields with each value `old` replaced by `new`."""
    return {
        name: _replaced(value, old, new) if isinstance(value, dict) else new if value == old else value
        for name, value in fields.items()
    }


def names() -> list[str]:
    """The sorted names of the providers that ship with the harness."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> Provider:
    """The provider of that name, shipped or from a plug-in. Raises a `UsageError` that lists the names."""
    provider_names = names()
    if name not in provider_names and (provider := plugins.load("provider", name)) is not None:
        return plugins.record("provider", name, provider, Provider)
    if name not in provider_names:
        raise UsageError(
            f"unknown provider; expected one of {', '.join(provider_names)}.{near_names(name, provider_names)}"
            f" For any other OpenAI-compatible address, set only `base_url`.",
            field="provider",
            value=visible(name, 60),
        )
    path = _FOLDER / f"{name}.yaml"
    facts = yaml_file.read_mapping(path, "provider facts")
    if name == GENERIC:
        facts = merge(facts, _of_engines())
    return validated(Provider, {"name": name, **facts}, f"the provider file {path.name} is damaged")


def _of_engines() -> dict[str, Any]:
    """Facts about the engines, in the form of a provider's file, for `generic`: limits on thinking."""
    known = {profile.name: profile.thinking_budget for profile in engines.profiles()}
    return {"thinking_tokens": [{"engine": name, "path": path} for name, path in known.items() if path]}


def recognize(url: str) -> Provider:
    """The provider to whose hosts `url` belongs; `generic` if there is none.

    Raises `UsageError` if `url` is not a URL.
    """
    try:
        host = urlsplit(url if "://" in url else f"http://{url}").hostname or ""
    except ValueError as error:
        # urlsplit raises for an IPv6 address without its closing bracket.
        raise UsageError(visible(str(error), 80), field="base_url", value=visible(url, 80)) from error
    # A private address belongs to no hosted service, whatever its name.
    if not Endpoint(f"http://{host}").local:
        for name in names():
            if fits_any(host, load(name).address.hosts):
                return load(name)
    return load(GENERIC)


def choose(name: str | None, urls: Iterable[str]) -> Provider:
    """The provider of that name; without a name, the provider to which all the addresses belong.

    Raises `UsageError` for an unknown name and for addresses of several providers.
    """
    if name is not None:
        return load(name)
    recognized = {provider.name: provider for provider in map(recognize, urls)}
    if len(recognized) > 1:
        raise UsageError(f"the addresses belong to several providers ({', '.join(recognized)}): a run can use only one")
    return next(iter(recognized.values()), None) or load(GENERIC)
