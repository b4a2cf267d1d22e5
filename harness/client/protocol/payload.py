"""The JSON body of a request, encoded once but for what differs between samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.core import codec
from harness.core.errors import UsageError
from harness.core.records import Api, Question

_OWNED = {
    "model": "use --model",
    "messages": "the benchmark's card makes the prompt",
    "prompt": "the benchmark's card makes the prompt",
    "stream": "use --no-stream",
    "seed": "use --seed",
    "n": "each sample is a request of its own; use --samples",
}


def request_path(api: Api) -> str:
    """Path below the base URL."""
    return "/chat/completions" if api == "chat" else "/completions"


@dataclass(frozen=True, kw_only=True)
class RequestTemplate:
    """What all requests of a benchmark have in common.

    sampling: temperature, top_p, top_k … by the API's names; None = not sent, the server's default holds.
    max_tokens_field: "max_tokens", or "max_completion_tokens" where the provider wants that; seed_field likewise.
    stream_usage: ask a stream for its usage; False where a provider refuses the field.
    extra_body: further top-level fields; they replace sampling fields of the same name.
    """

    model: str
    api: Api = "chat"
    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    max_tokens_field: str = "max_tokens"
    stream: bool = True
    seed_field: str = "seed"
    stream_usage: bool = True
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, instead in _OWNED.items():
            if name in self.extra_body:
                raise UsageError(f"--extra-body: the field {name!r} is set by the harness; {instead}")

    @property
    def path(self) -> str:
        """Path below the base URL."""
        return request_path(self.api)

    def fields(self) -> dict[str, Any]:
        """The constant fields as they are sent, without the prompt, the seed and max_tokens."""
        fields: dict[str, Any] = {"model": self.model, "stream": self.stream}
        if self.stream and self.stream_usage:
            fields["stream_options"] = {"include_usage": True}
        fields.update((name, value) for name, value in self.sampling.items() if value is not None)
        if self.chat_template_kwargs:
            fields["chat_template_kwargs"] = dict(self.chat_template_kwargs)
        fields.update(self.extra_body)
        return fields

    def body(self, question: Question, seed: int | None = None, max_tokens: int | None = None) -> bytes:
        """The request for one sample. max_tokens: for this request, instead of the template's."""
        varying: dict[str, Any] = {}
        budget = self.max_tokens if max_tokens is None else max_tokens
        if budget is not None and self.max_tokens_field not in self.extra_body:
            varying[self.max_tokens_field] = budget
        if seed is not None:
            varying[self.seed_field] = seed
        if self.api == "chat":
            varying["messages"] = question.messages
        else:
            varying["prompt"] = question.prompt
        return self._head + codec.encode(varying)[1:]

    @cached_property
    def _head(self) -> bytes:
        return codec.encode(self.fields())[:-1] + b","
