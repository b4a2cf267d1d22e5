"""The requests of a probe and their replies: the request of a run, changed only in the fields that a check is about.

The client of a run keeps text, usage and times. A probe also needs log-probabilities, so whole replies are read here,
from the client for small requests. Streams are read by the same client that reads a run's streams. `probed_endpoint`
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
from harness.client.asker import Asker
from harness.client.protocol.failures import FailureKind, RequestFailed
from harness.client.protocol.reply import Reply
from harness.core import codec
from harness.core.choices import ApiName
from harness.core.errors import ServerError
from harness.core.inert import quoted
from harness.core.records import Message, OfferedTool, Usage
from harness.core.reply_notes import UNREAD_TEXT
from harness.core.token_counts import stated_usage

SECONDS = 120.0
"""Seconds to wait for one whole reply. A CPU takes about a minute for a prompt as long as the context."""

AT_ONCE = 8
"""Largest number of requests in flight in checks that send many; behavior under load has a check of its own."""

Fields = Mapping[str, Any]
"""Fields of a request body, by the names of the API."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One request of a check.

    text: the message, or the raw prompt. fields: request fields that the check is about, by the API's names; they
    override those of a run. tools: those that are offered, and choice the `tool_choice`, if it is sent. turns: the
    turns of the API that follow the message.
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
        whole replies are asked for (unless `stream`), without token ids, which a check would mistake for the model's
        own output.
        """
        own, fields = asker.spelling.over(self.api.name), dict(self.fields)
        model, seed = fields.pop("model", asker.model), fields.pop("seed", None)
        switches = fields.pop("chat_template_kwargs", {})
        overruled = {*fields, own.max_tokens_field} if "max_tokens" in fields else set(fields)
        spelling = replace(
            own,
            stream=stream,
            token_ids=False,
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
    """The server did not answer with a completion."""

    def __init__(self, status: int, words: str, by: str = "the probed server") -> None:
        """status: of HTTP; 0 if no readable reply came. words: the server's explanation, or ours without a reply.

        by: the name of the server that refused, for `whose`.
        """
        super().__init__(f"HTTP {status}: {words or 'no explanation'}" if status else words)
        self.status, self.words, self.by = status, words, by

    @property
    def whose(self) -> str:
        """The refusal with the server's name, for a check that asks two servers."""
        return f"{self.by}: {quoted(self.sentence)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReply:
    """A whole reply.

    text: the final text; reasoning: if the server returns it in a field of its own; both are empty for none. tokens: of
    both; empty where no log-probabilities came. usage: numbers of tokens, as the server states them.
    """

    text: str
    reasoning: str
    finish_reason: str | None
    tokens: Sequence[Token]
    usage: Usage
    model: str | None

    @property
    def whole(self) -> str:
        """The reasoning followed by the text."""
        return self.reasoning + self.text


def read_reply(body: bytes, api: API) -> ProbeReply:
    """The whole reply that a body holds, read as a run reads it, with its log-probabilities. Raises `Refused`."""
    try:
        value = codec.decode(body, dict)
        event, _ = api.reader().event(value, False)
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
    """The likeliest first tokens of the reply with their log-probabilities; empty if it has none."""
    tokens = [] if isinstance(answer, Refused) else answer.tokens
    return tokens[0].top if tokens else {}


MIN_ECHO = 12
"""Smallest number of characters of a reply that counts as a repetition of the prompt."""


def is_echo(text: str, prompt: str) -> bool:
    """Whether a reply repeats the beginning of its prompt and nothing else. A few characters may do so by chance."""
    text = text.strip()
    return len(text) >= min(MIN_ECHO, len(prompt)) and prompt.strip().startswith(text)


def text_of(reply: Reply | RequestFailed) -> str:
    """Reasoning and text of a reply; empty for a failure."""
    return (reply.reasoning or "") + (reply.text or "") if isinstance(reply, Reply) else ""


Kind = Literal["reply", "blank", "echo", "stream", "cut", "refused"]
"""Kinds of replies that are counted: all, those without text, those that are their prompt; the streams that were sent
alone and not refused, and those of them that ended without a finish reason; the streams that were refused.
"""

REFUSALS: frozenset[FailureKind] = frozenset({"rejected", "refused", "too_long"})
"""Kinds of failures by which a server says that it does not take a request; they show no fault of its replies."""


@dataclass(kw_only=True)
class ProbedServer:
    """A server that a probe can ask, and counts of its replies so far. A subclass sends the requests: `send`,
    `send_streams` and `render`.

    asker: makes the requests. engine: the engine that the server names. context: the most tokens of prompt and reply
    together, as the server states. at_once: largest number of requests in flight in `many`. calls_api: the API by which
    function calls are checked.

    n_requests: requests sent; n_tokens: tokens that the replies state as their cost. answered: whether any completion
    came. tally: of whole replies, and of the streams that were sent one at a time. unread: the client's note on a field
    of the replies that it does not read; refusal: the server's words for the last stream that it refused; both are
    empty without one. n_replies: chat replies with or without a text (see `_count`); empty: prompt → number of empty
    replies to it; with_text: the prompts that a text answered.
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

    def send_streams(self, bodies: Sequence[Fields], at_once: int, api: API = CHAT) -> list[Reply | RequestFailed]:
        """Send requests as they are; return their replies in order, read as a run reads them. A failure stands in place
        of its reply.
        """
        raise NotImplementedError

    def render(self, messages: Sequence[Message]) -> tuple[str, list[int]] | None:
        """The prompt that the server's template makes of messages, as text and as token ids; None where the server
        hides it. Raises `ServerError`.
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
        """Number of empty replies to prompts that a text answered at another time.

        A prompt that only empty replies answered does not count: there the model itself may have nothing to say.
        """
        return sum(n for prompt, n in self.empty.items() if prompt in self.with_text)

    def whole(self, body: Fields, api: API = CHAT) -> ProbeReply:
        """The reply to one request, not streamed, sent without the spare fields that `drop` names. Raises `Refused`."""
        reply = self.send(self._without_dropped(body), api)
        self.answered = True
        with self._lock:
            self.n_tokens += (reply.usage.prompt_tokens or 0) + (reply.usage.completion_tokens or 0)
        # Log-probabilities of a reply without text show that the model wrote tokens, which the server hides.
        hidden = bool(reply.tokens) and not reply.whole
        self._count(body, reply.whole, "hidden" if hidden else reply.finish_reason)
        return reply

    def many(self, bodies: Sequence[Fields], api: API = CHAT) -> list[ProbeReply | Refused]:
        """The replies to several requests, in order, `at_once` at a time; a refusal stands in place of its reply."""

        def ask(body: Fields) -> ProbeReply | Refused:
            try:
                return self.whole(body, api)
            except Refused as refused:
                return refused

        pool = ThreadPoolExecutor(self.at_once, "probe")
        try:
            return list(pool.map(ask, bodies))
        finally:
            # After Ctrl-C nobody waits for the replies under way.
            pool.shutdown(wait=not isinstance(sys.exception(), KeyboardInterrupt), cancel_futures=True)

    def every(self, bodies: Sequence[Fields], api: API = CHAT) -> list[ProbeReply]:
        """The replies to several requests, in order, as of `many`. Raises the first `Refused` among them."""
        replies = []
        for answer in self.many(bodies, api):
            if isinstance(answer, Refused):
                raise answer
            replies.append(answer)
        return replies

    def streamed(self, bodies: Sequence[Fields], at_once: int = 1) -> list[Reply | RequestFailed]:
        """The replies to chat requests as streams, in order, read as a run reads them. A failure stands in place of its
        reply. at_once: largest number of requests in flight; above 1 the requests test the server's load, so they are
        sent whatever its limits are, and each only once.
        """
        replies = self.send_streams([self._without_dropped(body) for body in bodies], at_once)
        for body, reply in zip(bodies, replies, strict=True):
            self._add_cost(reply)
            if isinstance(reply, RequestFailed) and reply.kind in REFUSALS:
                self.tally["refused"] += 1
                self.refusal = reply.message
                continue
            if at_once > 1:
                continue  # What many requests at once do to replies is a finding of the load.
            self.tally["stream"] += 1
            self.tally["cut"] += isinstance(reply, RequestFailed) and reply.kind == "cut"
            if isinstance(reply, Reply):
                self._count(body, text_of(reply), reply.finish_reason)
                self.unread = self.unread or next((note for note in reply.notes if note.startswith(UNREAD_TEXT)), "")
        return replies

    def called(self, body: Fields, api: API) -> Reply | RequestFailed:
        """The reply to a request that offers tools, streamed or whole as its body says."""
        (reply,) = self.send_streams([self._without_dropped(body)], 1, api.with_calls)
        self._add_cost(reply)
        return reply

    def _add_cost(self, reply: Reply | RequestFailed) -> None:
        if isinstance(reply, Reply):
            self.answered = True
            self.n_tokens += (reply.usage.prompt_tokens or 0) + (reply.usage.completion_tokens or 0)

    def _without_dropped(self, body: Fields) -> Fields:
        """The body without the fields that `drop` names, as far as no check is about them with these values."""
        off, spelling = {"top_p": 1.0, **self.asker.neutral_fields({})}, self.asker.spelling
        spare = {spelling.seed_field, *(name for name in off.keys() & body.keys() if body[name] == off[name])}
        dropped = (spare & self.asker.left_out) - spelling.extra_body.keys()
        return {name: value for name, value in body.items() if name not in dropped}

    def _count(self, body: Fields, text: str, reason: str | None) -> None:
        """Add a reply to the tally, and that to a chat request to those with a text or without.

        Replies that may be empty for a good reason count as neither: those of one token, which may be the model's end
        of turn, those to a request with stop sequences, and those that max_tokens cut.
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
