"""Hosted providers as data: where they are, how a key travels, what a request may hold and how thinking is switched.

One file a provider in `provider_files/*.yaml`; unknown keys are refused. Every fact names the page of documentation it
was taken from, and whether it was read there (`checked`). An unchecked fact only warns, it never stops a run.
`generic` stands for everything else, the servers that one runs oneself among them.

Long: every kind of fact that a file may hold stands beside the one place that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, HttpUrl, ValidationError, model_validator

from harness.client.address.endpoint import Endpoint
from harness.client.spelling import Spelling
from harness.core import plugins, yaml_file
from harness.core.choices import Api, LengthField, Thinking
from harness.core.errors import UsageError, near_names
from harness.core.inert import visible
from harness.core.part import Part
from harness.core.secret import Secret
from harness.core.validation import first_problem
from harness.core.wording import option
from harness.core.yaml_file import fits_any
from harness.presets.sampling import sampling_fields
from server_launchers.engines import table as engines

GENERIC = "generic"
"""The provider of every address that no other one knows."""

MAX_MESSAGE_CHARS = 4000
"""Characters of a server's message that are searched for a rejected parameter."""

_FOLDER = Path(__file__).parent / "provider_files"


class Fact(Part):
    """page: name of the page (`Provider.pages`) that says so; checked: it was read there."""

    page: str
    checked: bool


class Address(Fact):
    """base_url: None where each customer has one of their own; path: what such an address ends in.

    hosts: patterns by which an address is recognised. key_header: the key goes as `Authorization: Bearer KEY`, or as
    it is in a header of that name.
    """

    base_url: HttpUrl | None
    hosts: tuple[str, ...]
    path: str
    key_variable: str
    key_header: Literal["Authorization", "api-key"] = "Authorization"


class ForModels(Fact):
    """A fact about models whose names fit a pattern of `models` and none of `but_not`, case ignored."""

    models: tuple[str, ...] = ("*",)
    but_not: tuple[str, ...] = ()

    def covers(self, model: str) -> bool:
        """Whether it is about `model`."""
        return fits_any(model, self.models) and not fits_any(model, self.but_not)


class Length(ForModels):
    """The field that bounds new tokens, thinking included, of a chat completion."""

    field: LengthField


class Seed(Fact):
    """refused: an error; ignored: taken without effect; undocumented: nothing is said of it."""

    support: Literal["supported", "ignored", "undocumented", "refused"]
    field: str = "seed"


class StreamUsage(Fact):
    """How a stream comes to state its usage: asked for by `stream_options`, or by itself, the field being refused."""

    how: Literal["stream_options", "by itself"]


class ThinkingSwitch(ForModels):
    """levels: what is merged into the body for a value of `thinking`; {} where the value needs no field."""

    levels: dict[Thinking, dict[str, Any]]


class ThinkingBudget(ForModels):
    """The field that bounds the tokens of thinking. path: keys from the body down to it; besides: what goes with it.

    engine: only on servers of this engine; None: on all. least: the smallest number that is taken.
    """

    path: tuple[str, ...] = Field(min_length=1)
    besides: dict[str, Any] = Field(default_factory=dict)
    engine: str | None = None
    least: int = 1

    def spelt(self, tokens: int) -> dict[str, Any]:
        """What is merged into the body."""
        fields: Any = tokens
        for key in reversed(self.path):
            fields = {key: fields}
        return merged(self.besides, fields)


class Reasoning(Fact):
    """Where the reasoning text is found in a reply; "content": inside the text; "hidden": nowhere."""

    field: Literal["reasoning_content", "reasoning", "content", "hidden"]


class ModelList(Fact):
    """all: `/models` holds every name that can be asked; partly: some other names, or none, work too."""

    lists: Literal["all", "partly"]


class Refusal(ForModels):
    """Parameters that a request had better not hold. thinking: only under these values ("default": none given)."""

    parameters: tuple[str, ...] = Field(min_length=1)
    effect: Literal["refused", "ignored"]
    thinking: tuple[Thinking | Literal["default"], ...] | None = None


class Prefill(Fact):
    """A begun message of the assistant is gone on with. fields: of that message; body: of the request; echoes: the
    reply begins with it. engine: only on servers of this engine; None: on all."""

    fields: dict[str, Any] = Field(default_factory=dict)
    body: dict[str, Any] = Field(default_factory=dict)
    echoes: bool = False
    engine: str | None = None


class Batches(Fact):
    """Requests taken by the file (`/files`, `/batches`), answered within hours.

    most_requests, most_bytes: of one file. window: of completion, as it is asked for. prefix: what stands before
    `/chat/completions` in the lines of the file and in the batch.
    """

    most_requests: int = Field(50_000, ge=1)
    most_bytes: int = Field(200_000_000, ge=1)
    window: str = "24h"
    prefix: str = "/v1"


class Note(Fact):
    """Something worth knowing that changes no request."""

    text: str


@dataclass(frozen=True, slots=True)
class Objection:
    """What is wrong with a request before it is sent. certain: the provider is known to refuse it."""

    sentence: str
    certain: bool


class Provider(Part):
    """One provider; `load` and `recognise` make it."""

    name: str
    label: str
    pages: dict[str, HttpUrl]
    address: Address
    max_tokens: tuple[Length, ...] = Field(min_length=1)
    seed: Seed
    stream_usage: StreamUsage
    thinking: tuple[ThinkingSwitch, ...] = ()
    thinking_tokens: tuple[ThinkingBudget, ...] = ()
    reasoning: Reasoning
    models_list: ModelList
    refused: tuple[Refusal, ...] = ()
    prefill: tuple[Prefill, ...] = ()
    batches: Batches | None = None
    notes: tuple[Note, ...] = ()

    @model_validator(mode="after")
    def _pages_are_known(self) -> Provider:
        named = {fact.page for fact in self.facts()}
        if unknown := named - self.pages.keys():
            raise ValueError(f"pages that are not listed under `pages`: {', '.join(sorted(unknown))}")
        return self

    @property
    def hosted(self) -> bool:
        """Somebody else's servers, of which the file knows more than the protocol."""
        return self.name != GENERIC

    def facts(self) -> list[Fact]:
        """Every fact of the file."""
        single = [self.address, self.seed, self.stream_usage, self.reasoning, self.models_list]
        lists = [*self.max_tokens, *self.thinking, *self.thinking_tokens, *self.refused, *self.prefill, *self.notes]
        return [*single, *lists, *([] if self.batches is None else [self.batches])]

    def prefill_on(self, engine: str | None) -> Prefill | None:
        """How a begun message is gone on with by servers of that engine; None where that is not known."""
        return next((prefill for prefill in self.prefill if prefill.engine in (None, engine)), None)

    def endpoint(
        self,
        url: str | None,
        key: str | Secret | None,
        headers: Iterable[tuple[str, str | Secret]] = (),
        weight: float = 1.0,
    ) -> Endpoint:
        """The endpoint at `url`, or the provider's own; the key where the provider looks for it. Raises `UsageError`.

        An address without a path gets the provider's.
        """
        if url is None:
            if self.address.base_url is None:
                raise UsageError(
                    f"it has no address of its own: give one with {option('base_url')}"
                    + (f" (it ends in {self.address.path})" if self.hosted else ""),
                    field="provider",
                    value=self.name,
                )
            url = str(self.address.base_url)
        parsed = Endpoint.parse(url, key, headers)
        base_url = parsed.base_url
        if not urlsplit(url if "://" in url else f"http://{url}").path.strip("/"):
            base_url = base_url.removesuffix("/v1") + self.address.path
        api_key, own = parsed.api_key, parsed.headers
        if api_key and self.address.key_header != "Authorization":
            own, api_key = (*own, (self.address.key_header, api_key)), None
        return Endpoint(base_url, api_key, own, weight)

    def spelling(
        self,
        model: str,
        *,
        api: Api = "chat",
        thinking: Thinking | None = None,
        thinking_tokens: int | None = None,
        prefill: str | None = None,
        engine: str | None = None,
    ) -> Spelling:
        """How requests for `model` are spelt. Raises `UsageError` for a thinking value that cannot be expressed.

        thinking_tokens: the most tokens of thinking. prefill: how every reply begins. engine: that of the servers,
        where it is known.
        """
        length = next((rule.field for rule in self.max_tokens if rule.covers(model)), "max_tokens")
        switched = merged(self._switched(model, api, thinking), self._bounded(model, api, thinking_tokens, engine))
        begun: dict[str, Any] | None = None
        if prefill is not None:
            begun = {"role": "assistant", "content": prefill}
            if api == "chat":
                how = self._begun(prefill, engine)
                begun, switched = {**begun, **how.fields}, merged(switched, how.body)
        template = switched.pop("chat_template_kwargs", {})
        return Spelling(
            api=api,
            max_tokens_field=length if api == "chat" else "max_tokens",
            seed_field=self.seed.field,
            stream_usage=self.stream_usage.how == "stream_options",
            prefill=begun,
            chat_template_kwargs=template,
            extra_body=switched,
        )

    def _begun(self, prefill: str, engine: str | None) -> Prefill:
        begun = self.prefill_on(engine)
        if begun is None:
            engine_names = sorted({begun_by.engine for begun_by in self.prefill if begun_by.engine})
            which = (
                f" (it is known of {', '.join(engine_names)}; the server does not tell that it is one)"
                if engine_names
                else ""
            )
            raise UsageError(
                f"no way to begin a chat reply is known of {self.name}{which}; {option('api', 'completions')} appends "
                "it to the prompt",
                field="prefill",
                value=prefill,
            )
        return begun

    def _switched(self, model: str, api: Api, thinking: Thinking | None) -> Mapping[str, Any]:
        if thinking is None:
            return {}
        if api != "chat":
            raise UsageError(
                f"it goes with {option('api', 'chat')}: a raw prompt holds its own switch",
                field="thinking",
                value=thinking,
            )
        levels: dict[Thinking, dict[str, Any]] = {}
        for rule in self.thinking:
            if rule.covers(model):
                levels = {**rule.levels, **levels}
        if thinking == "none":
            levels = {"none": levels["off"], **levels} if "off" in levels else levels
        if thinking in levels:
            return levels[thinking]
        choices = f"it knows {', '.join(sorted(levels))}" if levels else "no value of it is known there"
        raise UsageError(
            f"{self.name} cannot express it for {visible(model, 80)}: {choices}; "
            f"what it takes otherwise goes into {option('extra_body')}",
            field="thinking",
            value=thinking,
        )

    def _bounded(self, model: str, api: Api, tokens: int | None, engine: str | None) -> dict[str, Any]:
        if tokens is None:
            return {}
        if api != "chat":
            raise UsageError(f"it goes with {option('api', 'chat')}", field="thinking_tokens", value=tokens)
        fitting = [rule for rule in self.thinking_tokens if rule.covers(model) and rule.engine in (None, engine)]
        if not fitting:
            engine_names = sorted({rule.engine for rule in self.thinking_tokens if rule.engine})
            which = (
                f" (it is known of {', '.join(engine_names)}; the server does not tell that it is one)"
                if engine_names
                else ""
            )
            raise UsageError(
                f"no field of {self.name} is known that bounds the thinking of {visible(model, 80)}{which}; what it "
                f"takes otherwise goes into {option('extra_body')}",
                field="thinking_tokens",
                value=tokens,
            )
        if tokens < fitting[0].least:
            raise UsageError(f"{self.name} takes {fitting[0].least} at least", field="thinking_tokens", value=tokens)
        return fitting[0].spelt(tokens)

    def objections(self, model: str, parameters: Collection[str], thinking: Thinking | None = None) -> list[Objection]:
        """One sentence for each rule that a request with these top-level fields breaks, with what to do."""
        objections = []
        for rule in self.refused:
            broken = [name for name in rule.parameters if name in parameters]
            if not broken or not rule.covers(model):
                continue
            if rule.thinking is not None and (thinking or "default") not in rule.thinking:
                continue
            whose = f"{self.name}: {visible(model, 80)}"
            names = ", ".join(broken)
            page = f"({self.pages[rule.page]}{'' if rule.checked else ', not checked'})"
            if rule.effect == "refused":
                sentence = f"{whose} refuses {names} {page}; drop with {_drop(broken)}"
            else:
                sentence = f"{whose} takes {names} without effect {page}; keep out with {_drop(broken)}"
            objections.append(Objection(sentence, certain=rule.checked and rule.effect == "refused"))
        if self.seed.field in parameters and self.seed.support != "supported":
            objections.append(self._about_seed())
        return objections

    def _about_seed(self) -> Objection:
        page = f"({self.pages[self.seed.page]})"
        if self.seed.support == "refused":
            return Objection(
                f"{self.name} refuses seeds {page}; drop with {option('seed', None)}", certain=self.seed.checked
            )
        does = "ignores seeds" if self.seed.support == "ignored" else "documents no seed"
        return Objection(
            f"{self.name} {does} {page}: a sample that is asked again comes out otherwise; "
            f"{option('seed', None)} sends none",
            certain=False,
        )


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both, objects within objects joined; `over` wins."""
    both = {**base, **over}
    for name in base.keys() & over.keys():
        if isinstance(base[name], Mapping) and isinstance(over[name], Mapping):
            both[name] = merged(base[name], over[name])
    return both


def names() -> list[str]:
    """The providers there are."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> Provider:
    """The provider of that name. Raises `UsageError` with the near names."""
    provider_names = names()
    if name not in provider_names and (provider := plugins.load("provider", name)) is not None:
        return _of_plugin(name, provider)
    if name not in provider_names:
        raise UsageError(
            f"there are {', '.join(provider_names)}.{near_names(name, provider_names)}"
            f" Any other OpenAI-compatible address works with {option('base_url')} alone.",
            field="provider",
            value=visible(name, 60),
        )
    path = _FOLDER / f"{name}.yaml"
    facts = yaml_file.read_mapping(path, "a provider's facts")
    if name == GENERIC:
        facts = merged(facts, _of_engines())
    try:
        return Provider.model_validate({"name": name, **facts})
    except ValidationError as error:
        raise UsageError(f"the provider file {path.name} is damaged: {first_problem(error).sentence}") from None


def _of_engines() -> dict[str, Any]:
    """What the servers of each engine take beside the protocol, as facts of `GENERIC`."""
    pages: dict[str, str] = {}
    facts: dict[str, list[dict[str, Any]]] = {"thinking_tokens": [], "prefill": []}
    for dialect in engines.dialects():
        for kind, what in (("thinking_tokens", dialect.thinking_budget), ("prefill", dialect.prefill)):
            if what is not None:
                page = f"{dialect.name}_{kind}"
                pages[page] = what.page
                how = {"path": what.path} if kind == "thinking_tokens" else {"body": dict(what.body)}
                facts[kind].append({"engine": dialect.name, "page": page, "checked": what.checked, **how})
    return {"pages": pages, **facts}


def _of_plugin(name: str, provider: object) -> Provider:
    if not isinstance(provider, Provider | Mapping):
        raise plugins.wrong_kind_error("provider", name, provider)
    try:
        return provider if isinstance(provider, Provider) else Provider.model_validate({"name": name, **provider})
    except ValidationError as error:
        raise UsageError(f"the provider {visible(name, 60)!r} of a plug-in: {first_problem(error).sentence}") from error


def recognise(url: str) -> Provider:
    """The provider whose address `url` is; `generic` where none claims it. Raises `UsageError` for what is no URL."""
    try:
        host = urlsplit(url if "://" in url else f"http://{url}").hostname or ""
    except ValueError as error:
        raise UsageError(visible(str(error), 80), field="base_url", value=visible(url, 80)) from error
    if not Endpoint(f"http://{host}").local:
        for name in names():
            if fits_any(host, load(name).address.hosts):
                return load(name)
    return load(GENERIC)


_NO_THINKING = option("thinking", None)

_CURES: Mapping[str, str] = {
    "max_completion_tokens": option("max_tokens_field", "max_tokens"),
    "seed": option("seed", None),
    "random_seed": option("seed", None),
    "stream": option("stream", False),
    "enable_thinking": _NO_THINKING,
    "reasoning_effort": _NO_THINKING,
    "chat_template_kwargs": f"{_NO_THINKING} and {option('chat_template_kwargs', None)}",
    "thinking": _NO_THINKING,
    "reasoning": _NO_THINKING,
}
"""Field of a request → the option that changes it, where the option `drop` does not reach the field."""

DROPPABLE = (*sampling_fields(), "stream_options")
"""Fields that the option `drop` keeps out of a request."""

_REJECTS = re.compile(
    r"unsupported|not supported|does not support|doesn't support|not permitted|not allowed|unrecogni[sz]ed|unknown"
    r"|unexpected|extra_forbidden|cannot (both )?be|can't be|invalid|deprecated|must be|must not|only the default",
    re.IGNORECASE,
)
_CLIENT_ERROR = re.compile(r"\bHTTP 4(00|22)\b")
_ORDINARY_WORDS = frozenset({"stop", "stream", "thinking", "reasoning"})
"""Fields whose names are words of the language too: they count only where they are marked as names."""


def suggestion(message: str) -> str | None:
    """What to change when a server's refusal (HTTP 400, 422) names a field of the request; None if it names none."""
    message = message[:MAX_MESSAGE_CHARS]
    if not _CLIENT_ERROR.search(message) or not _REJECTS.search(message):
        return None
    if re.search(r"\bmax_tokens\b", message) and re.search(r"\bmax_completion_tokens\b", message):
        first = min(("max_tokens", "max_completion_tokens"), key=message.index)
        second = "max_completion_tokens" if first == "max_tokens" else "max_tokens"
        return f"the server rejects {first}: try {option('max_tokens_field', second)}"
    named = [name for name in dict.fromkeys((*DROPPABLE, *_CURES)) if _names(message, name)]
    if not named:
        return None
    return f"the server rejects {', '.join(named)}: try another value, or {_drop(named)}"


def _names(message: str, name: str) -> bool:
    if name not in _ORDINARY_WORDS:
        return re.search(rf"(?<!\w){name}(?!\w)", message) is not None
    return (
        re.search(rf"['\"`.]{name}['\"`]|\.{name}\b|(argument|parameter|field)s?( supplied)?: {name}\b", message)
        is not None
    )


def _drop(parameters: Collection[str]) -> str:
    """The options that keep `parameters` out of a request."""
    droppable = [name for name in parameters if name in DROPPABLE]
    cures = [option("drop", droppable)] if droppable else []
    others = (name for name in parameters if name not in DROPPABLE)
    cures += [_CURES.get(name, f"no {name} in {option('extra_body')}") for name in others]
    return ", ".join(dict.fromkeys(cures))
