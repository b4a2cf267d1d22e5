"""Sends the requests of a probe: the request of a run, changed only in the fields that a check is about.

The client of a run keeps text, usage and times. A probe also needs log-probabilities and further choices, so this
module reads whole replies by the client for small requests. Streams are read by the same client that reads a run's
streams.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import msgspec

from harness.client.address.endpoint import Endpoint, quote_safely, secrets_of
from harness.client.asker import Asker
from harness.client.chooser import open_transport
from harness.client.facts import page
from harness.client.facts.tokens import Tokenizer, has_token_pages
from harness.client.interface import Deadlines
from harness.client.protocol.failures import error_words
from harness.client.protocol.reply import Reply, RequestFailed
from harness.core import codec
from harness.core.errors import ServerError
from harness.core.inert import quoted
from harness.core.records import Message

CHAT, COMPLETIONS = "/chat/completions", "/completions"

AT_ONCE = 8
"""Largest number of requests in flight in checks that send many; behaviour under load has a check of its own."""

SECONDS = 120.0
"""Seconds to wait for one whole reply. A CPU takes about a minute for a prompt as long as the context."""

MAX_BYTES = 16 * 1024 * 1024
"""Longest body of a streamed reply, in bytes."""

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One request of a check.

    text: the message, or the raw prompt. fields: request fields that the check is about, by the API's names; they
    override those of a run.
    """

    text: str
    fields: Fields
    path: str = CHAT

    def body(self, asker: Asker, *, stream: bool = False) -> dict[str, Any]:
        """The request body that a run of this asker would send, changed only in the fields of the check.

        All differences between a probe's request and a run's are made here: the fields of the check replace the run's,
        whole replies are asked for (unless `stream`), and a prefilled reply and token ids, which a check would mistake
        for the model's own output, are left out.
        """
        own, chat = asker.spelling, self.path == CHAT
        fields = dict(self.fields)
        model, seed = fields.pop("model", asker.model), fields.pop("seed", None)
        switches = {**own.chat_template_kwargs, **fields.pop("chat_template_kwargs", {})} if chat else {}
        length = own.max_tokens_field if chat else "max_tokens"
        overruled = set(fields)
        if "max_tokens" in fields:
            overruled.add(length)
        spelling = replace(
            own,
            api="chat" if chat else "completions",
            stream=stream,
            token_ids=False,
            max_tokens_field=length,
            prefill=None,
            chat_template_kwargs=switches,
            # The run's extra fields would override the fields of the check, so those of the same name are left out.
            extra_body={name: value for name, value in own.extra_body.items() if name not in overruled},
        )
        request = replace(asker, model=model, spelling=spelling).template(fields).body_of_text(self.text, seed)
        body: dict[str, Any] = codec.decode(request)
        return body


class _Likely(msgspec.Struct):
    token: str = ""
    logprob: float | None = None


class Token(msgspec.Struct):
    """One token of a reply. logprob: natural logarithm of its probability. top_logprobs: the likeliest tokens at its
    position.
    """

    token: str = ""
    logprob: float | None = None
    top_logprobs: list[_Likely] = []

    @property
    def top(self) -> dict[str, float]:
        """Token → log-probability, of the likeliest tokens whose probability is a number."""
        return {likely.token: likely.logprob for likely in self.top_logprobs or () if likely.logprob is not None}


class _ReplyLogprobs(msgspec.Struct):
    """Log-probabilities of a reply: `content` in chat completions, the other three fields in completions."""

    content: list[Token] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float | None] | None] | None = None

    def each(self) -> list[Token]:
        """The tokens of either form as one list."""
        if self.content is not None:
            return self.content
        if not self.tokens:
            return []
        n = len(self.tokens)
        # Servers may state fewer entries than tokens.
        own = [*(self.token_logprobs or []), *[None] * n]
        tops = [*(self.top_logprobs or []), *[None] * n]
        return [
            Token(text, own[i], [_Likely(name, value) for name, value in (tops[i] or {}).items()])
            for i, text in enumerate(self.tokens)
        ]


class CalledFunction(msgspec.Struct):
    """A tool's name, and its arguments as JSON text."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct):
    """One call of a tool, or a part of one in a stream. index: of the call that the part belongs to."""

    index: int = 0
    function: CalledFunction = msgspec.field(default_factory=CalledFunction)


class _Message(msgspec.Struct):
    content: str | None = None
    tool_calls: list[ToolCall] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class Choice(msgspec.Struct):
    """One completion of a whole reply."""

    finish_reason: str | None = None
    text: str | None = None
    message: _Message | None = None
    logprobs: _ReplyLogprobs | None = None

    @property
    def first_logprob(self) -> float | None:
        """The log-probability of the first token; None where the server states none."""
        return self.tokens[0].logprob if self.tokens else None

    @property
    def content(self) -> str:
        """The final text; empty for none."""
        return (self.message.content if self.message else self.text) or ""

    @property
    def calls(self) -> list[ToolCall]:
        """The calls of tools."""
        return (self.message.tool_calls or []) if self.message else []

    @property
    def thought(self) -> str:
        """The reasoning, if the server returns it in a field of its own; empty for none."""
        return (self.message.reasoning_content or self.message.reasoning or "") if self.message else ""

    @property
    def whole(self) -> str:
        """The reasoning followed by the text."""
        return self.thought + self.content

    @property
    def tokens(self) -> list[Token]:
        """The tokens of the completion; empty where no log-probabilities came."""
        return self.logprobs.each() if self.logprobs else []


class ReplyUsage(msgspec.Struct):
    """Numbers of tokens, as the server counts them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _WithUsage(msgspec.Struct):
    """The part of a whole reply, or of an event of a stream, that states its usage."""

    usage: ReplyUsage | None = None


def stated_usage(reply: bytes) -> ReplyUsage | None:
    """The usage that a whole reply states, or the last usage that an event of a stream states; None without any."""
    lines = [line.removeprefix(b"data:") for line in reply.splitlines() if b'"usage"' in line]
    for text in (reply, *reversed(lines)):
        try:
            stated = codec.decode(text, _WithUsage).usage
        except codec.DecodeError:
            continue
        if stated is not None:
            return stated
    return None


class ProbeReply(msgspec.Struct):
    """A whole reply with at least one choice."""

    choices: list[Choice]
    usage: ReplyUsage | None = None
    model: str | None = None

    @property
    def first(self) -> Choice:
        """The first choice."""
        return self.choices[0]

    @property
    def n_shown(self) -> int:
        """Number of new tokens of all choices, as far as their log-probabilities came. The usage may count the tokens
        of one choice alone.
        """
        return sum(len(choice.tokens) for choice in self.choices)


class Refused(ServerError):
    """The server did not answer with a completion. status: of HTTP; 0 if no readable reply came. by: the server's name
    in `whose`.
    """

    def __init__(self, status: int, words: str, by: str = "the probed server") -> None:
        super().__init__(f"HTTP {status}: {words or 'no explanation'}" if status else words)
        self.status = status
        self.words = words
        self.by = by

    @property
    def whose(self) -> str:
        """The refusal with the server's name, for a check that asks two servers."""
        return f"{self.by}: {quoted(self.sentence)}"


class ProbedServer(Protocol):
    """A server that a probe can ask.

    asker: makes the requests. engine: the engine that the server names. context: the most tokens of prompt and reply
    together, as the server states. deterministic: the server promises that a reply does not depend on the other
    requests of its batch. n_requests: requests sent so far. n_tokens: tokens that the server has counted so far.
    """

    asker: Asker
    engine: str | None
    context: int | None
    deterministic: bool
    n_requests: int
    n_tokens: int

    def whole(self, body: Fields, path: str = CHAT) -> ProbeReply:
        """The reply to one request, not streamed. Raises `Refused`."""
        ...

    def many(self, bodies: Sequence[Fields], path: str = CHAT) -> list[ProbeReply | Refused]:
        """The replies to several requests, in order; at most `AT_ONCE` are in flight."""
        ...

    def streamed(self, bodies: Sequence[Fields], at_once: int = 1) -> list[Reply | RequestFailed]:
        """The replies to chat requests as streams, in order, read as a run reads them. A failure stands in place of its
        reply. at_once: largest number of requests in flight.
        """
        ...

    def posted(self, content: bytes) -> tuple[int, bytes]:
        """HTTP status and body of the reply to these bytes, whatever they are. Raises `ServerError`."""
        ...

    def render(self, messages: Sequence[Message], kwargs: Fields) -> tuple[str, list[int]] | None:
        """The prompt that the server's template makes of messages, as text and as token ids; None where the server
        hides it.
        """
        ...

    def tokens(self, text: str) -> list[int] | None:
        """The token ids that the server makes of a text; None where the server hides them. Raises `ServerError`."""
        ...

    def text_of(self, ids: Sequence[int]) -> str:
        """The text that token ids spell; empty if the server hides it. Raises `ServerError`."""
        ...


@dataclass(kw_only=True)
class ProbedEndpoint:
    """A server reached over HTTP; see `ProbedServer`."""

    endpoint: Endpoint
    asker: Asker
    engine: str | None = None
    context: int | None = None
    deterministic: bool = False
    ca_file: Path | None = None
    n_requests: int = 0
    n_tokens: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def whole(self, body: Fields, path: str = CHAT) -> ProbeReply:
        """The reply to one request, not streamed. Raises `Refused`."""
        status, content = self._post(path, codec.encode(body))
        if status != 200:
            raise Refused(status, self._shown(error_words(content)))
        try:
            answer: ProbeReply = codec.decode(content, ProbeReply)
        except codec.DecodeError as error:
            raise Refused(0, f"the reply is no completion ({error})") from error
        if not answer.choices:
            raise Refused(0, "the reply holds no choice")
        if answer.usage is not None:
            self._bill(answer.usage.prompt_tokens, max(answer.usage.completion_tokens or 0, answer.n_shown))
        return answer

    def many(self, bodies: Sequence[Fields], path: str = CHAT) -> list[ProbeReply | Refused]:
        """The replies in the order of `bodies`, read by `AT_ONCE` threads; a refusal stands in place of its reply."""

        def ask(body: Fields) -> ProbeReply | Refused:
            try:
                return self.whole(body, path)
            except Refused as refused:
                return refused

        with ThreadPoolExecutor(AT_ONCE, "probe") as pool:
            return list(pool.map(ask, bodies))

    def streamed(self, bodies: Sequence[Fields], at_once: int = 1) -> list[Reply | RequestFailed]:
        """The replies to chat requests as streams, read by a run's client; a failure stands in place of its reply."""
        replies: list[Reply | RequestFailed] = []
        # A thread of its own, because the caller may run an event loop already.
        thread = threading.Thread(target=lambda: replies.extend(asyncio.run(self._streams(bodies, at_once))))
        thread.start()
        thread.join()
        return replies

    def posted(self, content: bytes) -> tuple[int, bytes]:
        """HTTP status and body of the reply to these bytes. Raises `ServerError`."""
        status, reply = self._post(CHAT, content)
        usage = stated_usage(reply) if status == 200 else None
        if usage is not None:
            self._bill(usage.prompt_tokens, usage.completion_tokens)
        return status, reply

    def render(self, messages: Sequence[Message], kwargs: Fields) -> tuple[str, list[int]] | None:
        """The prompt of these messages as text and token ids; None where the engine shows no prompts."""
        tokenizer = self._tokenizer
        switches = {**self.asker.spelling.chat_template_kwargs, **kwargs}
        return None if tokenizer is None else tokenizer.render(messages, switches)

    def tokens(self, text: str) -> list[int] | None:
        """The token ids of a text; None where the engine shows none. Raises `ServerError`."""
        tokenizer = self._tokenizer
        return None if tokenizer is None else tokenizer.tokens_of(text)

    def text_of(self, ids: Sequence[int]) -> str:
        """The text of token ids; empty where the engine shows none. Raises `ServerError`."""
        tokenizer = self._tokenizer
        return "" if tokenizer is None else tokenizer.text_of(ids)

    @property
    def _tokenizer(self) -> Tokenizer | None:
        if self.engine is None or not has_token_pages(self.engine):
            return None
        return Tokenizer(self.endpoint, self.engine, self.asker.model, self.ca_file)

    async def _streams(self, bodies: Sequence[Fields], at_once: int) -> list[Reply | RequestFailed]:
        """Open the client of a run, and read the streams of all bodies with it, in order; a failure stands in place of
        its reply. at_once: largest number of requests in flight.
        """
        transport = open_transport(ca_file=self.ca_file)
        gate = asyncio.Semaphore(at_once)
        patience = Deadlines(connect=10, first_token=SECONDS, idle=60)

        async def ask(body: Fields) -> Reply | RequestFailed:
            """Send one body as a stream; a failure is returned instead of the reply."""
            async with gate:
                try:
                    reply = await transport.complete(self.endpoint, CHAT, codec.encode(body), patience, MAX_BYTES)
                except RequestFailed as failed:
                    return failed
            self.n_requests += 1
            self._bill(reply.usage.prompt_tokens, reply.usage.completion_tokens)
            return reply

        try:
            return list(await asyncio.gather(*map(ask, bodies)))
        finally:
            await transport.close()

    def _post(self, path: str, content: bytes) -> tuple[int, bytes]:
        """Send bytes as they are and return HTTP status and body. Raises `ServerError`."""
        # The lock is needed because `many` calls this method in several threads.
        with self._lock:
            self.n_requests += 1
        # A base URL may have a query (Azure's api-version), and the path goes before it.
        base = urlsplit(self.endpoint.base_url)
        url = urlunsplit((base.scheme, base.netloc, base.path + path, base.query, ""))
        answer = page.get(self.endpoint, url, timeout=SECONDS, ca_file=self.ca_file, content=content)
        return answer.status, answer.body

    def _bill(self, *counts: int | None) -> None:
        """Add these numbers of tokens, as far as they are stated, to the cost of the probe."""
        with self._lock:
            self.n_tokens += sum(n for n in counts if n)

    def _shown(self, words: str) -> str:
        """The server's words, safe to show: without the key and other secrets of the endpoint."""
        return quote_safely(words, secrets_of(self.endpoint))
