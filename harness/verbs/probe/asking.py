"""The requests of a probe and their replies: the request of a run, changed only in the fields that a check is about.

The client of a run keeps text, usage and times. A probe also needs log-probabilities and further choices, so whole
replies are read here, from the client for small requests. Streams are read by the same client that reads a run's
streams. `probed_endpoint` sends the requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from harness.client.asker import Asker
from harness.client.protocol.reply import Reply, RequestFailed
from harness.core import codec
from harness.core.errors import ServerError
from harness.core.inert import quoted
from harness.core.records import Message

CHAT, COMPLETIONS = "/chat/completions", "/completions"

SECONDS = 120.0
"""Seconds to wait for one whole reply. A CPU takes about a minute for a prompt as long as the context."""

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

    @property
    def total(self) -> int | None:
        """Tokens of the prompt and the reply together; None if one of the counts is missing."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


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


def first_top(answer: ProbeReply | Refused) -> dict[str, float]:
    """The likeliest first tokens of the reply with their log-probabilities; empty if it has none."""
    tokens = [] if isinstance(answer, Refused) else answer.first.tokens
    return tokens[0].top if tokens else {}


class AcceptedRequests(Protocol):
    """What a server accepts, as its replies have shown so far; see `acceptance.Acceptance`."""

    rejected: set[str]
    answered: bool
    n_replies: int

    @property
    def no_seed(self) -> str: ...

    @property
    def n_empty(self) -> int: ...

    @property
    def n_lost(self) -> int: ...


class ProbedServer(Protocol):
    """A server that a probe can ask.

    asker: makes the requests. engine: the engine that the server names. context: the most tokens of prompt and reply
    together, as the server states. deterministic: the server promises that a reply does not depend on the other
    requests of its batch. n_requests: requests sent so far; n_refused: those of them that the server refused because of
    its limits; refused_for_good: those refused that were not sent again, by status. n_tokens: tokens that the replies
    cost so far, as the server counts; n_bounded: replies without stated usage, which count with the most tokens
    possible. seconds_waited: seconds in which the server's limits kept requests back. ended: why the server is asked no
    more (its limit on requests, an empty account, nothing at its address); each request then raises `Refused` unsent.
    Empty while it answers. n_unsent: requests that were not sent, or not sent again, because of that.
    acceptance: what the server accepts, as its replies have shown so far.
    A request that could exceed the budget raises `OverBudget` unsent.
    """

    asker: Asker
    engine: str | None
    context: int | None
    deterministic: bool
    n_requests: int

    @property
    def n_tokens(self) -> int: ...

    @property
    def n_bounded(self) -> int: ...

    @property
    def n_refused(self) -> int: ...

    @property
    def refused_for_good(self) -> Mapping[str, int]: ...

    @property
    def seconds_waited(self) -> float: ...

    @property
    def ended(self) -> str: ...

    @property
    def n_unsent(self) -> int: ...

    @property
    def acceptance(self) -> AcceptedRequests: ...

    def whole(self, body: Fields, path: str = CHAT) -> ProbeReply:
        """The reply to one request, not streamed. Raises `Refused`."""
        ...

    def many(self, bodies: Sequence[Fields], path: str = CHAT) -> list[ProbeReply | Refused]:
        """The replies to several requests, in order; at most `pacing.AT_ONCE` are in flight."""
        ...

    def streamed(self, bodies: Sequence[Fields], at_once: int = 1) -> list[Reply | RequestFailed]:
        """The replies to chat requests as streams, in order, read as a run reads them. A failure stands in place of its
        reply. at_once: largest number of requests in flight; above 1 the requests test the server's load, so they are
        sent whatever its limits are, and each only once.
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
