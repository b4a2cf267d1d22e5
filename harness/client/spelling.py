"""How a request is spelt, and its body.

`Spelling` is the one value from which the body, a run's identity and a run's record are made. `RequestTemplate` adds
the model, the sampling and the bound on new tokens, and writes the body for each sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.core import codec
from harness.core.choices import Api
from harness.core.errors import UsageError
from harness.core.records import Message, Question
from harness.core.secret import Secret, reveal_secrets, seal_secrets, secrets_in
from harness.core.wording import option

_OWNED = {
    "model": f"use {option('model')}",
    "messages": "the benchmark's card makes the prompt",
    "prompt": "the benchmark's card makes the prompt",
    "stream": f"use {option('stream', False)}",
    "seed": f"use {option('seed')}",
    "n": f"each sample is a request of its own; use {option('samples')}",
}


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """What all requests of a run have in common beside the model, the prompt and the sampling.

    max_tokens_field: "max_tokens", or "max_completion_tokens" where the server wants that; seed_field likewise.
    stream_usage: a stream is asked for its usage; False where a provider refuses the field. token_ids: so it is for the
    ids of its tokens, which vLLM and SGLang state.
    prefill: the begun message of the assistant in which each conversation ends, and that the reply goes on with; of a
    raw prompt its content. chat_template_kwargs: the thinking switch and its like. extra_body: further top-level
    fields, which replace sampling fields of the same name. The keys in both are sealed. Raises `UsageError` for a field
    that the harness sets.
    """

    api: Api = "chat"
    stream: bool = True
    stream_usage: bool = True
    token_ids: bool = False
    max_tokens_field: str = "max_tokens"
    seed_field: str = "seed"
    prefill: Mapping[str, Any] | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in ("chat_template_kwargs", "extra_body"):
            object.__setattr__(self, name, seal_secrets(getattr(self, name)))
        for name, instead in _OWNED.items():
            if name in self.extra_body:
                raise UsageError(f"the field {name!r} is set by the harness; {instead}", field="extra_body")

    @property
    def path(self) -> str:
        """Path of a request below the base URL."""
        return "/chat/completions" if self.api == "chat" else "/completions"

    @property
    def prefill_marks(self) -> dict[str, Any]:
        """What the provider wants in the begun message beside its role and content."""
        return {name: value for name, value in (self.prefill or {}).items() if name not in ("role", "content")}

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """Values of its fields that nobody should read: keys that a service takes in the body."""
        return tuple(secrets_in([self.chat_template_kwargs, self.extra_body]))

    def fields(self, model: str, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that are the same in all requests of a benchmark: all but the prompt, the seed and the bound.

        sampling: by the API's names, without max_tokens; None = not sent.
        """
        fields: dict[str, Any] = {"model": model, "stream": self.stream}
        if self.stream and self.stream_usage:
            fields["stream_options"] = {"include_usage": True}
        if self.stream and self.token_ids:
            fields["return_token_ids"] = True
        fields.update((name, value) for name, value in sampling.items() if value is not None)
        if self.chat_template_kwargs:
            fields["chat_template_kwargs"] = reveal_secrets(self.chat_template_kwargs)
        fields.update(reveal_secrets(self.extra_body))
        return fields

    def varying(self, max_tokens: int | None, seed: int | None) -> dict[str, Any]:
        """The seed and the bound on new tokens, under the names that the server wants."""
        fields: dict[str, Any] = {}
        if max_tokens is not None and self.max_tokens_field not in self.extra_body:
            fields[self.max_tokens_field] = max_tokens
        if seed is not None:
            fields[self.seed_field] = seed
        return fields


@dataclass(frozen=True, kw_only=True)
class RequestTemplate:
    """What all requests of a benchmark have in common.

    sampling: temperature, top_p, top_k … by the API's names; None = not sent, the server's default holds.
    """

    model: str
    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    spelling: Spelling = field(default_factory=Spelling)

    @property
    def path(self) -> str:
        """Path below the base URL."""
        return self.spelling.path

    def names(self, *, seed: bool) -> set[str]:
        """The top-level fields of a request, without the prompt; seed: whether one is sent."""
        return {*self.spelling.fields(self.model, self.sampling), *self._varying(0 if seed else None)}

    def body(self, question: Question, seed: int | None = None, max_tokens: int | None = None) -> bytes:
        """The request for one sample. max_tokens: for this request, instead of the template's."""
        return self._body(question.messages, question.prompt, self._varying(seed, max_tokens))

    def of_text(self, text: str, seed: int | None = None) -> bytes:
        """The request for `text` alone: as the one message of a user, or as the raw prompt."""
        return self._body([Message(role="user", content=text)], text, self._varying(seed))

    def with_prompt(self, prompt: Sequence[int], seed: int | None, max_tokens: int | None) -> bytes:
        """The request for what follows these tokens; of the completions API."""
        return self._head + codec.encode({**self._varying(seed, max_tokens), "prompt": list(prompt)})[1:]

    def with_answer(
        self,
        question: Question,
        begun: Mapping[str, Any],
        fields: Mapping[str, Any],
        seed: int | None,
        max_tokens: int | None,
    ) -> bytes:
        """The request for what follows the begun message of the assistant; of the chat API. fields: sent beside it."""
        varying = {**self._varying(seed, max_tokens), **fields, "messages": [*question.messages, begun]}
        return self._head + codec.encode(varying)[1:]

    def _body(self, messages: Sequence[Message], prompt: str, varying: dict[str, Any]) -> bytes:
        begun = self.spelling.prefill
        if self.spelling.api == "chat":
            varying["messages"] = messages if begun is None else [*messages, begun]
        else:
            varying["prompt"] = prompt if begun is None else prompt + begun["content"]
        return self._head + codec.encode(varying)[1:]

    def _varying(self, seed: int | None, max_tokens: int | None = None) -> dict[str, Any]:
        return self.spelling.varying(self.max_tokens if max_tokens is None else max_tokens, seed)

    @cached_property
    def _head(self) -> bytes:
        return codec.encode(self.spelling.fields(self.model, self.sampling))[:-1] + b","
