"""Asking a server for the token ids of a text or a conversation, and for the text of token ids. All calls block.

The pages are /tokenize and /detokenize. The engine's profile (`TokenPages`) defines the form of their bodies and which
page applies the chat template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.core import codec
from harness.core.errors import ServerError
from harness.core.records import Message
from harness.core.secret import reveal_secrets
from server_launchers.engines import table as engines
from server_launchers.engines.engine import TokenPages

THINK, THINK_END = "<think>", "</think>"
"""Tags that most models put around their reasoning."""

_TOKENIZE = "/tokenize"

_TIMEOUT_S = 10.0
"""Timeout of one request."""


class Tokenizer:
    """The tokenizer of `model`, accessed through a server. Every method raises `ServerError`."""

    def __init__(self, endpoint: Endpoint, engine: str, model: str) -> None:
        self._endpoint = endpoint
        self._engine = engine
        self._pages = engines.profile(engine).tokens or TokenPages()
        self._model = model

    def render(self, messages: Sequence[Message], template_kwargs: Mapping[str, Any]) -> tuple[str, list[int]]:
        """Ask the server for the prompt that its chat template makes from messages: its text and its token ids.

        If an engine returns only ids, the text is made from them. template_kwargs: arguments of the chat template, such
        as its thinking switch.
        """
        body: dict[str, Any] = {"messages": messages, "add_generation_prompt": True}
        if template_kwargs:
            body["chat_template_kwargs"] = reveal_secrets(template_kwargs)
        if self._pages.template is not None:
            text: str = self._ask(self._pages.template, body, _Templated).prompt
            return text, self.tokens_of(text, special=True)
        ids = self._tokenize({"model": self._model, **body})
        return self.text_of(ids), ids

    def text_of(self, ids: Sequence[int]) -> str:
        """The text of token ids."""
        shown = self._ask("/detokenize", {"model": self._model, "tokens": list(ids)}, _Text)
        text: str = shown.prompt or shown.text or shown.content
        return text

    def tokens_of(self, text: str, *, special: bool = False) -> list[int]:
        """The token ids of a text.

        special: treat the text as a prompt: add the token that begins prompts, and turn tags into special tokens.
        """
        return self._tokenize(self._pages.of_text(self._model, text, special)) if text else []

    def _tokenize(self, body: Mapping[str, Any]) -> list[int]:
        """The token ids that the server's tokenizer returns. Raises `ServerError` if it returns none."""
        tokens: list[int] = self._ask(_TOKENIZE, body, _Tokens).tokens
        if not tokens:
            raise ServerError(
                f"{self._endpoint.base_url} returned no tokens for nonempty text, so it is not a {self._engine} server"
            )
        return tokens

    def _ask(self, path: str, body: Mapping[str, Any], kind: type[Any]) -> Any:
        """Post `body` to a page of the server and decode the reply as `kind`. Raises `ServerError`."""
        from harness.client.facts import page  # imports an HTTP library, so only when it is first needed

        url = self._endpoint.root + path
        answer = page.get(self._endpoint, url, timeout=_TIMEOUT_S, content=codec.encode(body))
        if answer.status != 200:
            raise ServerError(f"{url} returned HTTP {answer.status}")
        try:
            return codec.decode(answer.body, kind)
        except codec.DecodeError as error:
            raise ServerError(f"{url} does not respond like a {self._engine} server ({error})") from error


class _Templated(msgspec.Struct):
    prompt: str


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Text(msgspec.Struct):
    """The answer of /detokenize: vLLM calls the text `prompt`, SGLang `text`, llama.cpp `content`."""

    prompt: str = ""
    text: str = ""
    content: str = ""
