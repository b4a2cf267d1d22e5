"""The JSON body of a request, encoded once but for what differs between samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.client.spelling import Spelling
from harness.core import codec
from harness.core.records import Message, Question


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
