"""The requests of a probe and their replies: the same requests as in a run, changed only in the fields that a check
tests.

A run's client keeps text, usage and times. A probe also needs log-probabilities, so non-streamed replies are parsed
here, from the client for small requests. Streams are read by the same client as a run's streams. `probed_endpoint`
sends the requests.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from harness.client.apis.api import API, BadEvent, Delta
from harness.client.apis.chat import CHAT, Token, tokens_of
from harness.client.protocol.failures import FailureKind, RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.request_builder import Asker
from harness.core import codec
from harness.core.errors import ServerError
from harness.core.literals import ApiName
from harness.core.records import Message, OfferedTool, Usage
from harness.core.reply_notes import UNREAD_TEXT
from harness.core.sanitize import quoted
from harness.core.token_counts import stated_usage

AT_ONCE = 8
"""Maximum number of requests in flight in checks that send many."""

Fields = Mapping[str, Any]
"""Fields of a request body, by the API's names."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One request of a check.

    text: the message, or the raw prompt. fields: the request fields that the check tests, by the API's names; they
    override those of a run. tools: the tools offered. choice: the `tool_choice`, if one is sent. turns: the turns after
    the message, in the API's format.
    """

    text: str
    fields: Fields
    api: API = CHAT
    tools: Sequence[OfferedTool] = ()
    choice: str | None = None
    turns: Sequence[Any] = ()

    def body(self, asker: Asker, *, stream: bool = False) -> dict[str, Any]:
        """The request body that a run of this asker would send, changed only in the fields of the check.

        All differences between a probe's request and a run's are made here: the fields of the check replace the run's,
        and non-streamed replies are requested (unless `stream`), without token IDs, which a check would mistake for the
        model's own output.
        """
        own, fields = asker.spelling.for_api(self.api), dict(self.fields)
        model, seed = fields.pop("model", asker.model), fields.pop("seed", None)
        switches = fields.pop("chat_template_kwargs", {})
        overruled = {*fields, own.max_tokens_field} if "max_tokens" in fields else set(fields)
        spelling = replace(
            own,
            stream=stream,
            chat_template_kwargs={**own.chat_template_kwargs, **switches},
            # The run's extra fields would override the fields of the check, so those of the same name are left out.
            extra_body={name: value for name, value in own.extra_body.items() if name not in overruled},
            calling={} if self.choice is None else {"tool_choice": self.choice},
        )
        template = replace(asker, model=model, spelling=spelling).template(fields).offering(self.tools)
        body: dict[str, Any] = codec.decode(template.body_of_text(self.text, seed))
        if self.turns and self.api.tools is not None:
            body[self.api.tools.turns] += self.turns
        return body


class Refused(ServerError):
    """The server's response was not a completion."""

    def __init__(self, status: int, words: str, by: str = "the probed server") -> None:
        """status: HTTP status; 0 if there was no readable reply. words: the server's explanation, or ours if there was
        no reply.

        by: name of the server that rejected the request, for `whose`.
        """
        super().__init__(f"HTTP {status}: {words or 'no explanation'}" if status else words)
        self.status, self.words, self.by = status, words, by

    @property
    def whose(self) -> str:
        """The rejection with the server's name, for a check that queries two servers."""
        return f"{self.by}: {quoted(self.sentence)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReply:
    """A non-streamed reply.

    text: the final text, or empty. reasoning: the reasoning, if the server returns it in a separate field; otherwise
    empty. tokens: the tokens of both; empty without log-probabilities. usage: token counts, as reported by the server.
    """

    text: str
    reasoning: str
    finish_reason: str | None
    tokens: Sequence[Token]
    usage: Usage
    model: str | None

    @property
    def reasoning_and_text(self) -> str:
        """The reasoning followed by the text."""
        return self.reasoning + self.text


def read_reply(body: bytes, api: API) -> ProbeReply:
    """The reply in a response body, parsed as in a run, with its log-probabilities. Raises `Refused`."""
    try:
        value = codec.decode(body, dict)
        event, _ = api.reader().event(value)
        if not event.choices:
            raise BadEvent("it contains no choices")
        tokens = tokens_of(value["choices"][0])
    except (codec.DecodeError, BadEvent) as error:
        raise Refused(0, f"the reply is not a completion ({error})") from error
    (choice,) = event.choices
    message = choice.delta or Delta(content=choice.text)
    return ProbeReply(
        text=message.content or "",
        reasoning=message.reasoning or "",
        finish_reason=choice.finish_reason,
        tokens=tokens,
        usage=stated_usage(event.usage or {}),
        model=event.model,
    )


def first_top(answer: ProbeReply | Refused) -> dict[str, float]:
    """The likeliest first tokens of the reply, with their log-probabilities; empty if there are none."""
    tokens = [] if isinstance(answer, Refused) else answer.tokens
    return tokens[0].top if tokens else {}


MIN_ECHO = 12
"""Minimum length, in characters, of a reply that counts as a repetition of the prompt."""


def is_echo(text: str, prompt: str) -> bool:
    """Whether a reply repeats the beginning of its prompt and nothing else. A few characters may match by chance."""
    text = text.strip()
    return len(text) >= min(MIN_ECHO, len(prompt)) and prompt.strip().startswith(text)


def text_of(reply: Reply | RequestFailed) -> str:
    """Reasoning and text of a reply; empty for a failure."""
    return (reply.reasoning or "") + (reply.text or "") if isinstance(reply, Reply) else ""


Kind = Literal["reply", "blank", "echo", "stream", "cut", "refused"]
"""Kinds of replies that are counted: all replies, replies without text, and replies that repeat their prompt; streams
that were sent alone and not rejected, and those of them that ended without a finish reason; and rejected streams.
"""

REFUSALS: frozenset[FailureKind] = frozenset({"rejected", "refused", "too_long"})
"""Kinds of failures with which a server rejects a request; they are not evidence of faulty replies."""


@dataclass(kw_only=True)
class ProbedServer:
    """A server that a probe can query, and counts of its replies so far. Subclasses send the requests by implementing
    `send`, `send_streams` and `render`.

    asker: builds the requests. engine: the engine that the server reports. context: the maximum number of tokens of
    prompt and reply together, as the server reports it. at_once: maximum number of requests in flight in `send_many`.
    calls_api: the API through which function calls are checked.

    n_requests: number of requests sent. n_tokens: number of tokens used, as reported in the replies. answered: whether
    any completion was received. tally: counts of non-streamed replies and of streams that were sent one at a time.
    unread: the client's note on a field of the replies that it does not read, or empty. refusal: the server's message
    for the last stream that it rejected, or empty. n_replies: number of chat replies with or without text (see
    `_count`). empty: prompt → number of empty replies to it. with_text: the prompts that got a reply with text.
    """

    asker: Asker
    engine: str | None = None
    context: int | None = None
    at_once: int = AT_ONCE
    calls_api: ApiName = "chat"
    n_requests: int = 0
    n_tokens: int = 0
    answered: bool = False
    tally: Counter[Kind] = field(default_factory=Counter)
    unread: str = ""
    refusal: str = ""
    n_replies: int = 0
    empty: Counter[str] = field(default_factory=Counter)
    with_text: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def send(self, body: Fields, api: API) -> ProbeReply:
        """Send one request as it is; return its reply. Raises `Refused`."""
        raise NotImplementedError

    def send_streams(self, bodies: Sequence[Fields], api: API = CHAT) -> list[Reply | RequestFailed]:
        """Send requests as they are, one by one; return their replies in order, parsed as in a run. A failure takes the
        place of its reply.
        """
        raise NotImplementedError

    def render(self, messages: Sequence[Message]) -> tuple[str, list[int]] | None:
        """The prompt that the server's template makes from messages, as text and as token IDs; None if the server does
        not reveal it. Raises `ServerError`.
        """
        del messages
        return None

    @property
    def no_seed(self) -> str:
        """Why no request has a seed; empty if requests have one."""
        name = self.asker.spelling.seed_field
        return f"`drop` removes the field {name} from all requests" if name in self.asker.left_out else ""

    @property
    def n_lost(self) -> int:
        """Number of empty replies to prompts that got a reply with text at another time.

        A prompt that got only empty replies does not count: the model itself may have nothing to say.
        """
        return sum(n for prompt, n in self.empty.items() if prompt in self.with_text)

    def unstreamed(self, body: Fields, api: API = CHAT) -> ProbeReply:
        """The non-streamed reply to one request, without the optional fields that `drop` names. Raises `Refused`."""
        reply = self.send(self._without_dropped(body), api)
        self._add_cost(reply)
        # If a reply has log-probabilities but no text, the model wrote tokens that the server hides.
        hidden = bool(reply.tokens) and not reply.reasoning_and_text
        self._count(body, reply.reasoning_and_text, "hidden" if hidden else reply.finish_reason)
        return reply

    def send_many(self, bodies: Sequence[Fields], api: API) -> list[ProbeReply | Refused]:
        """The replies to several requests, in order, with `at_once` in flight; a rejection takes the place of its
        reply.
        """

        def ask(body: Fields) -> ProbeReply | Refused:
            try:
                return self.unstreamed(body, api)
            except Refused as refused:
                return refused

        pool = ThreadPoolExecutor(self.at_once, "probe")
        try:
            return list(pool.map(ask, bodies))
        finally:
            # After Ctrl-C, nobody waits for the pending replies.
            pool.shutdown(wait=not isinstance(sys.exception(), KeyboardInterrupt), cancel_futures=True)

    def send_all(self, bodies: Sequence[Fields]) -> list[ProbeReply]:
        """The replies to several chat requests, in order, as in `send_many`. Raises the first `Refused` among them."""
        replies = []
        for answer in self.send_many(bodies, CHAT):
            if isinstance(answer, Refused):
                raise answer
            replies.append(answer)
        return replies

    def streamed(self, bodies: Sequence[Fields]) -> list[Reply | RequestFailed]:
        """The streamed replies to chat requests, sent one by one and parsed as in a run; a failure takes the place of a
        reply.
        """
        replies = self.send_streams([self._without_dropped(body) for body in bodies])
        for body, reply in zip(bodies, replies, strict=True):
            self._add_cost(reply)
            if isinstance(reply, RequestFailed) and reply.kind in REFUSALS:
                self.tally["refused"] += 1
                self.refusal = reply.message
                continue
            self.tally["stream"] += 1
            self.tally["cut"] += isinstance(reply, RequestFailed) and reply.kind == "cut"
            if isinstance(reply, Reply):
                self._count(body, text_of(reply), reply.finish_reason)
                self.unread = self.unread or next((note for note in reply.notes if note.startswith(UNREAD_TEXT)), "")
        return replies

    def called(self, body: Fields, api: API) -> Reply | RequestFailed:
        """The reply to a request that offers tools, streamed or not according to its body."""
        (reply,) = self.send_streams([self._without_dropped(body)], api.with_calls)
        self._add_cost(reply)
        return reply

    def _add_cost(self, reply: ProbeReply | Reply | RequestFailed) -> None:
        if not isinstance(reply, RequestFailed):
            self.answered = True
            with self._lock:
                self.n_tokens += (reply.usage.prompt_tokens or 0) + (reply.usage.completion_tokens or 0)

    def _without_dropped(self, body: Fields) -> Fields:
        """The body without the fields that `drop` names, except fields that a check tests with these values."""
        off, spelling = {"top_p": 1.0, **self.asker.neutral_fields({})}, self.asker.spelling
        spare = {spelling.seed_field, *(name for name in off.keys() & body.keys() if body[name] == off[name])}
        dropped = (spare & self.asker.left_out) - spelling.extra_body.keys()
        return {name: value for name, value in body.items() if name not in dropped}

    def _count(self, body: Fields, text: str, reason: str | None) -> None:
        """Add a reply to the tally and, if it answers a chat request, to the counts of replies with and without text.

        Replies that may be empty for a good reason count as neither: replies of one token, which may be the model's end
        of turn, replies to a request with stop sequences, and replies that max_tokens cut.
        """
        shown = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
        with self._lock:
            self.tally["reply"] += 1
            self.tally["blank"] += not text.strip()
            self.tally["echo"] += is_echo(text, shown)
            length = body.get(self.asker.spelling.max_tokens_field) or 0
            if "messages" not in body or length == 1 or body.get("stop") or (not text and reason != "stop"):
                return
            prompt = repr(body["messages"])
            if text:
                self.with_text.add(prompt)
            else:
                self.empty[prompt] += 1
            self.n_replies += 1
