"""What a server makes of a conversation and of a text before the model sees it: token ids. Blocking, like `discovery`.

POST /tokenize and /detokenize; how their bodies are written, and which page applies the template, says the engine's
dialect (`TokenPages`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from harness.client.address.endpoint import Endpoint
from harness.core import codec
from harness.core.errors import ServerError
from harness.core.records import Message, Question
from harness.core.secret import reveal_secrets
from server_launchers.engines import table as engines
from server_launchers.engines.dialect import TokenPages

THINK, THINK_END = "<think>", "</think>"
"""Marks around the reasoning in the text of most models."""

_TOKENIZE = "/tokenize"

_TAIL_TOKENS = 8
"""Last tokens of a prompt that are looked at; an opened reasoning fits into them."""

_TIMEOUT_S = 10.0


def has_pages(engine: str | None) -> bool:
    """Whether the pages about tokens are known of servers of that engine."""
    return engines.dialect(engine).tokens is not None


class Rendered(msgspec.Struct, frozen=True):
    """A prompt as the model gets it. ends_open: it ends inside a reasoning block that the template opened."""

    ids: list[int]
    ends_open: bool


class Tokenizer:
    """What one server says of tokens of `model`. Raises `ServerError` where it does not."""

    def __init__(self, endpoint: Endpoint, engine: str, model: str, ca_file: Path | None = None) -> None:
        self._endpoint = endpoint
        self._engine = engine
        self._pages = engines.dialect(engine).tokens or TokenPages()
        self._model = model
        self._ca_file = ca_file

    def prompt(self, question: Question, template_kwargs: Mapping[str, Any]) -> Rendered:
        """The tokens of what is asked, template applied."""
        if not question.messages:
            return Rendered(self.text(question.prompt, special=True), False)
        text, ids = self.rendered(question.messages, template_kwargs, tail=_TAIL_TOKENS)
        return Rendered(ids, text.rstrip().endswith(THINK))

    def rendered(
        self, messages: Sequence[Message], template_kwargs: Mapping[str, Any], tail: int = 0
    ) -> tuple[str, list[int]]:
        """The prompt that messages become, as text and as tokens. tail: the text of so many last tokens is enough."""
        body: dict[str, Any] = {"messages": messages, "add_generation_prompt": True}
        if template_kwargs:
            body["chat_template_kwargs"] = reveal_secrets(template_kwargs)
        if self._pages.template is not None:
            text: str = self._ask(self._pages.template, body, _Templated).prompt
            return text, self.text(text, special=True)
        ids = self._some({"model": self._model, **body})
        return self.spelt(ids[-tail:]), ids

    def spelt(self, ids: Sequence[int]) -> str:
        """The text of tokens."""
        shown = self._ask("/detokenize", {"model": self._model, "tokens": list(ids)}, _Text)
        text: str = shown.prompt or shown.text or shown.content
        return text

    def text(self, text: str, *, special: bool = False) -> list[int]:
        """The tokens that the server makes of a text. special: it begins a prompt, and tags in it are meant."""
        return self._some(self._pages.of_text(self._model, text, special)) if text else []

    def pieces(self, pieces: Sequence[str]) -> list[int] | None:
        """The tokens that were streamed as `pieces`, one each; None where that cannot be told for certain.

        A piece is one token if the token of its text is that text, no more and no less. Characters that were held back
        until they were whole are several.
        """
        if self._pages.of_pieces is None:
            return None
        tokens = iter(self._ask(_TOKENIZE, self._pages.of_pieces(pieces), _Pieces).tokens)
        ids: list[int] = []
        for piece in pieces:
            rest = piece.encode("utf-8", "surrogatepass")
            n_before = len(ids)
            while rest:
                token = next(tokens, None)
                if token is None or not (spelt := token.bytes) or not rest.startswith(spelt):
                    return None
                ids.append(token.id)
                rest = rest[len(spelt) :]
            if len(ids) - n_before > 1 and piece.isascii():
                return None
        return None if next(tokens, None) is not None else ids

    def _some(self, body: Mapping[str, Any]) -> list[int]:
        tokens: list[int] = self._ask(_TOKENIZE, body, _Tokens).tokens
        if not tokens:
            raise ServerError(f"{self._endpoint.base_url} makes no tokens of a text: it is no {self._engine}")
        return tokens

    def _ask(self, path: str, body: Mapping[str, Any], kind: type[Any]) -> Any:
        from harness.client.facts import page  # with its HTTP library, when it is first needed

        parts = urlsplit(self._endpoint.base_url)
        url = urlunsplit((parts.scheme, parts.netloc, parts.path.removesuffix("/v1") + path, "", ""))
        content = codec.encode(body)
        answer = page.get(self._endpoint, url, timeout=_TIMEOUT_S, ca_file=self._ca_file, content=content)
        if answer.status != 200:
            raise ServerError(f"{url} answers HTTP {answer.status}")
        try:
            return codec.decode(answer.body, kind)
        except codec.DecodeError as error:
            raise ServerError(f"{url} answers otherwise than {self._engine} does ({error})") from error


class _Templated(msgspec.Struct):
    prompt: str


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Text(msgspec.Struct):
    """vLLM calls it `prompt`, SGLang `text`, llama.cpp `content`."""

    prompt: str = ""
    text: str = ""
    content: str = ""


class _Piece(msgspec.Struct):
    """piece: a text, or the bytes of what is no whole character."""

    id: int
    piece: str | list[int]

    @property
    def bytes(self) -> bytes:
        if isinstance(self.piece, str):
            return self.piece.encode("utf-8", "surrogatepass")
        return b"" if any(not 0 <= n < 256 for n in self.piece) else bytes(self.piece)


class _Pieces(msgspec.Struct):
    tokens: list[_Piece]
