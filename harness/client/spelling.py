"""How the body of a request is written: which fields it has and what they are called.

Spelling          the API, names of fields, extra fields; a run's identity and its record are made from it too
RequestTemplate   a spelling with the model, the sampling and the bound on new tokens; writes the bodies
most_prompt_tokens  the most tokens that a body's prompt can have, for budgets and replies that state no usage
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
from harness.core.choices import ApiName
from harness.core.errors import UsageError
from harness.core.images import ImageFolder
from harness.core.records import Message, OfferedTool, Question
from harness.core.secret import Secret, reveal_secrets, seal_secrets, secrets_in


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """What all requests of a run share, apart from the model, the prompt and the sampling.

    max_tokens_field, seed_field: the server's names for the bound on new tokens and for the seed. stream_usage: whether
    a stream is asked to state its token counts; some providers refuse the field. token_ids: whether a stream is asked
    for the ids of its tokens, which vLLM and SGLang can state. chat_template_kwargs:
    arguments of the model's chat template, such as a thinking switch. extra_body: further top-level fields, which
    replace sampling fields of the same name. api_headers: the values of the headers that the API needs. API keys in
    `chat_template_kwargs` and `extra_body` become `Secret`s. Raises `UsageError` if `extra_body` has a field that only
    the harness sets.
    """

    api_name: ApiName = "chat"
    stream: bool = True
    stream_usage: bool = True
    token_ids: bool = False
    max_tokens_field: str = "max_tokens"
    seed_field: str = "seed"
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    api_headers: Mapping[str, str] = field(default_factory=dict)
    calling: Mapping[str, Any] = field(default_factory=dict)
    """`tool_choice` and `parallel_tool_calls` of requests whose answer is a call, as the chat API has them."""

    def __post_init__(self) -> None:
        for name in ("chat_template_kwargs", "extra_body"):
            # The class is frozen; sealed here, a key is hidden from the first moment on.
            object.__setattr__(self, name, seal_secrets(getattr(self, name)))
        for name, instead in self.api.owned.items():
            if name in self.extra_body:
                raise UsageError(f"the field {name!r} is set by the harness; {instead}", field="extra_body")

    def with_fields(self, body: Mapping[str, Any]) -> Spelling:
        """A copy with these further fields; a field `chat_template_kwargs` adds to the arguments of the template.

        An object adds to an object of the same name. Raises `UsageError` for a field that only the harness sets.
        """
        further = dict(body)
        template = further.pop("chat_template_kwargs", {})
        return replace(
            self,
            chat_template_kwargs={**self.chat_template_kwargs, **template},
            extra_body=merge(self.extra_body, further),
        )

    def over(self, name: ApiName) -> Spelling:
        """The spelling of the same requests for another API; without a chat template, they have no arguments for it."""
        api = api_of(name)
        template = self.chat_template_kwargs if api.templated else {}
        length = api.bound or self.max_tokens_field
        return replace(self, api_name=name, max_tokens_field=length, chat_template_kwargs=template)

    @property
    def api(self) -> API:
        """The shape of the API, by which requests are sent and replies read."""
        return api_of(self.api_name)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The API keys in the fields: some services take a key in the body."""
        return tuple(secrets_in([self.chat_template_kwargs, self.extra_body]))

    def fields(self, model: str, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that all requests of a benchmark share: all but the prompt, the seed and the bound on new tokens.

        sampling: by the API's names, without max_tokens; a value of None is not sent.
        """
        api = self.api
        fields: dict[str, Any] = {"model": model, "stream": self.stream, **api.fixed}
        if self.stream and self.stream_usage and api.stream_usage:
            fields["stream_options"] = {"include_usage": True}
        if self.stream and self.token_ids:
            fields["return_token_ids"] = True
        fields.update((api.rename.get(name, name), value) for name, value in sampling.items() if value is not None)
        if self.chat_template_kwargs:
            fields["chat_template_kwargs"] = reveal_secrets(self.chat_template_kwargs)
        fields.update(reveal_secrets(self.extra_body))
        return fields


@dataclass(frozen=True, kw_only=True)
class RequestTemplate:
    """Writes the bodies of all requests of a benchmark.

    sampling: temperature, top_p, top_k … by the API's names; a value of None is not sent. max_tokens: bound on new
    tokens; None: not sent. offer: the fields that offer tools; empty without any.
    """

    model: str
    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    spelling: Spelling = field(default_factory=Spelling)
    offer: Mapping[str, Any] = field(default_factory=dict)

    def offering(self, tools: Sequence[OfferedTool], calling: Mapping[str, Any] | None = None) -> RequestTemplate:
        """The same, for a request that offers these tools; itself without any.

        calling: the question's own fields, as in `Spelling`, which the run's replace.
        """
        form = self.spelling.api.tools
        if not tools or form is None:
            return self
        return replace(self, offer={**form.offer(tools), **form.calling({**(calling or {}), **self.spelling.calling})})

    def names(self, *, seed: bool) -> set[str]:
        """The names of a request's top-level fields, without the prompt's. seed: whether a seed is sent."""
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
        """The body of a request of a conversation that has these turns behind the question, replies and results, in
        which a server may have written half a character.
        """
        api = self.spelling.api
        assert api.tools is not None
        prompt = api.prompt(question.messages, question.prompt)
        prompt[api.tools.turns] = [*prompt[api.tools.turns], *turns]
        return self._head + codec.encode_strictly({**self._varying(seed, max_tokens), **prompt})[1:]

    def body_after_tokens(self, prompt: Sequence[int], seed: int | None, max_tokens: int | None) -> bytes:
        """The body of a request of the completions API that continues these token ids."""
        return self._body({"prompt": list(prompt)}, self._varying(seed, max_tokens))

    def _body(self, prompt: Mapping[str, Any], varying: Mapping[str, Any]) -> bytes:
        return self._head + codec.encode({**varying, **prompt})[1:]

    def _varying(self, seed: int | None, max_tokens: int | None = None) -> dict[str, Any]:
        """The fields that may differ between requests: seed and bound on new tokens, under the server's names."""
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
        # The shared fields are encoded once; each request appends its own. They end in a comma in place of the brace.
        return codec.encode(self._shared())[:-1] + b","


def loaded(question: Question, images: ImageFolder) -> Question:
    """The question with the bytes of its images, as its request needs it. Raises `StoreError`."""
    messages = []
    for message in question.messages:
        parts = tuple(msgspec.structs.replace(part, url=images.url(part.sha256)) for part in message.images or ())
        messages.append(msgspec.structs.replace(message, images=parts or msgspec.UNSET))
    return msgspec.structs.replace(question, messages=tuple(messages))


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two JSON objects, and the objects in them; if both have another value of one name, `over`'s counts."""
    both = {**base, **over}
    for name in base.keys() & over.keys():
        if isinstance(base[name], Mapping) and isinstance(over[name], Mapping):
            both[name] = merge(base[name], over[name])
    return both


def set_by_both(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that both JSON objects set; two objects of one name only if both set a field of them."""
    for name in one.keys() & other.keys():
        ours, theirs = one[name], other[name]
        if not (isinstance(ours, Mapping) and isinstance(theirs, Mapping)) or any(set_by_both(ours, theirs)):
            yield name


# ---- how many tokens a prompt can have


TEMPLATE_TOKENS = 64
"""Tokens that a chat template may add to a prompt beyond the marks of its messages."""


def prompt_bytes(body: Mapping[str, Any]) -> int:
    """Bytes of everything in a request that can become a part of the prompt: texts, lists and objects as JSON."""
    return sum(
        len(codec.encode(value))
        for name, value in body.items()
        if name != "model" and not isinstance(value, int | float)
    )


def most_prompt_tokens(n_bytes: int) -> int:
    """The most tokens that a prompt of `n_bytes` by `prompt_bytes` can have: no token is shorter than a byte of UTF-8.

    The server's chat template adds tokens of its own, which no request shows: `TEMPLATE_TOKENS` are counted for it.
    """
    return n_bytes + TEMPLATE_TOKENS
