"""How the body of a request is written: which fields it has and what they are called.

Spelling          the API, field names, extra fields; a run's identity and its record are also made from it
RequestTemplate   a spelling with the model, the sampling and the limit on new tokens; writes the bodies
most_prompt_tokens  the most tokens that a body's prompt can have, for budgets and replies that report no usage
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec

from harness.client.apis.api import API
from harness.client.apis.table import api_of
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.images import ImageFolder
from harness.core.literals import ApiName
from harness.core.records import Message, OfferedTool, Question
from harness.core.secret import Secret, reveal_secrets, seal_secrets, secrets_in


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """What all requests of a run share, apart from the model, the prompt and the sampling.

    max_tokens_field, seed_field: the server's names for the limit on new tokens and for the seed. stream_usage: whether
    a stream is asked to report its token counts; some providers reject the field. chat_template_kwargs: arguments of
    the model's chat template, such as a thinking switch. extra_body: additional top-level fields, which replace
    sampling fields of the same name. api_headers: the values of the headers that the API requires. API keys in
    `chat_template_kwargs` and `extra_body` become `Secret`s. Raises `UsageError` if `extra_body` has a field that only
    the harness sets.
    """

    api_name: ApiName = "chat"
    stream: bool = True
    stream_usage: bool = True
    max_tokens_field: str = "max_tokens"
    seed_field: str = "seed"
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    api_headers: Mapping[str, str] = field(default_factory=dict)
    calling: Mapping[str, Any] = field(default_factory=dict)
    """`tool_choice` and `parallel_tool_calls` for requests whose answer is a call, in the chat API's form."""

    def __post_init__(self) -> None:
        for name in ("chat_template_kwargs", "extra_body"):
            # The class is frozen. Sealing here hides a key from the very start.
            object.__setattr__(self, name, seal_secrets(getattr(self, name)))
        for name, instead in self.api.owned.items():
            if name in self.extra_body:
                raise UsageError(f"the field {name!r} is set by the harness; {instead}", field="extra_body")

    def with_fields(self, body: Mapping[str, Any]) -> Spelling:
        """A copy with these additional fields; a field `chat_template_kwargs` adds to the template's arguments.

        An object is merged into an object of the same name. Raises `UsageError` for a field that only the harness sets.
        """
        further = dict(body)
        template = further.pop("chat_template_kwargs", {})
        return replace(
            self,
            chat_template_kwargs={**self.chat_template_kwargs, **template},
            extra_body=merge(self.extra_body, further),
        )

    def for_api(self, api: API) -> Spelling:
        """How the same requests are spelled for another API; without template arguments if it has no chat template."""
        template = self.chat_template_kwargs if api.templated else {}
        length = api.bound or self.max_tokens_field
        return replace(self, api_name=api.name, max_tokens_field=length, chat_template_kwargs=template)

    @property
    def api(self) -> API:
        """The shape of the API that defines how requests are sent and replies are read."""
        return api_of(self.api_name)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The API keys in the fields: some services take a key in the body."""
        return tuple(secrets_in([self.chat_template_kwargs, self.extra_body]))

    def fields(self, model: str, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that all requests of a benchmark share: all but the prompt, the seed and the limit on new tokens.

        sampling: by the API's names, without max_tokens; a value of None is not sent.
        """
        api = self.api
        fields: dict[str, Any] = {"model": model, "stream": self.stream, **api.fixed}
        if self.stream and self.stream_usage and api.stream_usage:
            fields["stream_options"] = {"include_usage": True}
        fields.update((api.rename.get(name, name), value) for name, value in sampling.items() if value is not None)
        if self.chat_template_kwargs:
            fields["chat_template_kwargs"] = reveal_secrets(self.chat_template_kwargs)
        fields.update(reveal_secrets(self.extra_body))
        return fields


@dataclass(frozen=True, kw_only=True)
class RequestTemplate:
    """Writes the bodies of all requests of a benchmark.

    sampling: temperature, top_p, top_k … by the API's names; a value of None is not sent. max_tokens: limit on new
    tokens; None: not sent. offer: the fields that offer tools; empty if there are none.
    """

    model: str
    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    spelling: Spelling = field(default_factory=Spelling)
    offer: Mapping[str, Any] = field(default_factory=dict)

    def offering(self, tools: Sequence[OfferedTool], calling: Mapping[str, Any] | None = None) -> RequestTemplate:
        """The same template for a request that offers these tools; the template itself if there are none.

        calling: the question's own fields, as in `Spelling`; the run's fields replace them.
        """
        form = self.spelling.api.tools
        if not tools or form is None:
            return self
        return replace(self, offer={**form.offer(tools), **form.calling({**(calling or {}), **self.spelling.calling})})

    def names(self, *, seed: bool) -> set[str]:
        """The names of a request's top-level fields other than the prompt. seed: whether a seed is sent."""
        return {*self._shared(), *self._varying(0 if seed else None)}

    def body(self, question: Question, seed: int | None = None) -> bytes:
        """The body of the request for a sample."""
        return self._body(self.spelling.api.prompt(question.messages, question.prompt), self._varying(seed))

    def body_of_text(self, text: str, seed: int | None = None) -> bytes:
        """The body of a request whose prompt is `text`: the only user message, or the plain prompt."""
        prompt = self.spelling.api.prompt([Message(role="user", content=text)], text)
        return self._body(prompt, self._varying(seed))

    def body_after_turns(
        self, question: Question, turns: Sequence[Any], seed: int | None, max_tokens: int | None
    ) -> bytes:
        """The body of a request that continues a conversation: the question, then these turns (replies and results), in
        which a server may have written half a character.
        """
        api = self.spelling.api
        assert api.tools is not None
        prompt = api.prompt(question.messages, question.prompt)
        prompt[api.tools.turns] = [*prompt[api.tools.turns], *turns]
        return self._head + codec.encode_strictly({**self._varying(seed, max_tokens), **prompt})[1:]

    def _body(self, prompt: Mapping[str, Any], varying: Mapping[str, Any]) -> bytes:
        return self._head + codec.encode({**varying, **prompt})[1:]

    def _varying(self, seed: int | None, max_tokens: int | None = None) -> dict[str, Any]:
        """The fields that may differ between requests: seed and limit on new tokens, under the server's names."""
        bound, spelling = self.max_tokens if max_tokens is None else max_tokens, self.spelling
        fields: dict[str, Any] = {}
        if bound is not None and spelling.max_tokens_field not in spelling.extra_body:
            fields[spelling.max_tokens_field] = bound
        if seed is not None:
            fields[spelling.seed_field] = seed
        return fields

    def _shared(self) -> dict[str, Any]:
        return {**self.spelling.fields(self.model, self.sampling), **self.offer}

    @cached_property
    def _head(self) -> bytes:
        # The shared fields are encoded once, and each request appends its own. They end in a comma instead of a brace.
        return codec.encode(self._shared())[:-1] + b","


def loaded(question: Question, images: ImageFolder) -> Question:
    """The question with the bytes of its images, as required for its request. Raises `StoreError`."""
    messages = []
    for message in question.messages:
        parts = tuple(msgspec.structs.replace(part, url=images.url(part.sha256)) for part in message.media or ())
        messages.append(msgspec.structs.replace(message, media=parts or msgspec.UNSET))
    return msgspec.structs.replace(question, messages=tuple(messages))


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two JSON objects and the objects in them; if two values of one name conflict, the one in `over` wins."""
    both = {**base, **over}
    for name in base.keys() & over.keys():
        if isinstance(base[name], Mapping) and isinstance(over[name], Mapping):
            both[name] = merge(base[name], over[name])
    return both


def conflicting_fields(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that both JSON objects set; for two objects of one name, only if both set a field in them."""
    for name in one.keys() & other.keys():
        ours, theirs = one[name], other[name]
        if not (isinstance(ours, Mapping) and isinstance(theirs, Mapping)) or any(conflicting_fields(ours, theirs)):
            yield name


# ---- how many tokens a prompt can have


TEMPLATE_TOKENS = 64
"""Tokens that a chat template may add to a prompt in addition to the markers of its messages."""


def prompt_bytes(body: Mapping[str, Any]) -> int:
    """The bytes of everything in a request that can become part of the prompt: texts, and lists and objects as JSON."""
    return sum(
        len(codec.encode(value))
        for name, value in body.items()
        if name != "model" and not isinstance(value, int | float)
    )


def most_prompt_tokens(n_bytes: int) -> int:
    """The most tokens that a prompt of `n_bytes` by `prompt_bytes` can have: no token is shorter than a byte of UTF-8.

    The server's chat template adds tokens that are not in the request: `TEMPLATE_TOKENS` are counted for it.
    """
    return n_bytes + TEMPLATE_TOKENS
