"""What a server accepts of a probe's requests, and which of its replies are empty.

All requests of a probe pass through here, so that a refused field is met once and not by each check anew:

refused field     what the probe does
the seed          it sends the request again without a seed, and no further request has one
a user's field    it ends with the advice to leave the field out, if the server has answered no request with it yet
any other         the check that sent it is untested
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.client.address.providers import rejected_fields
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.spelling import Spelling
from harness.core.errors import HarnessError, option
from harness.core.inert import quoted
from harness.verbs.probe.asking import Fields, ProbeReply, Refused


class FieldRejected(HarnessError):
    """The server rejects a field that the user added to all requests, so no check can be made with it."""


@dataclass
class Acceptance:
    """What one server accepts, as its replies have shown so far.

    spelling: holds the user's fields and the name of the seed's field. no_seed: why no request has a seed; empty while
    the server takes seeds. answered: whether a request with the user's fields was answered. n_replies: number of
    replies with or without a text (see `_count`); n_empty: those without. empty: prompt → number of empty replies to
    it. with_text: the prompts that a text answered.
    """

    spelling: Spelling
    no_seed: str = ""
    answered: bool = False
    n_replies: int = 0
    empty: Counter[str] = field(default_factory=Counter)
    with_text: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def n_empty(self) -> int:
        """Number of all empty replies."""
        return self.empty.total()

    @property
    def n_lost(self) -> int:
        """Number of empty replies to prompts that a text answered at another time.

        A prompt that only empty replies answered does not count: there the model itself may have nothing to say.
        """
        return sum(n for prompt, n in self.empty.items() if prompt in self.with_text)

    def whole(self, body: Fields, send: Callable[[Fields], ProbeReply]) -> ProbeReply:
        """The reply to one request, sent by `send`; without a seed if the server rejects seeds.

        Raises `Refused`; `FieldRejected` if the server rejects a field of the user's.
        """
        name = self.spelling.seed_field
        try:
            reply = send(self._seedless(body) if self.no_seed else body)
        except Refused as refused:
            self._check_refusal(body, refused.sentence)
            if self.no_seed or name not in body or not rejected_fields(refused.sentence, [name]):
                raise
            reply = send(self._seedless(body))
            # Only the reply shows that the seed was the cause.
            cure = option("run.seed", None)
            self.no_seed = f"the server rejects {name}, so no request has one; a run of it needs {cure}"
        first = reply.first
        # Log-probabilities of a reply without text show that the model wrote tokens, which the server hides.
        hidden = bool(first.tokens) and not first.whole
        self._count(body, first.whole, "hidden" if hidden else first.finish_reason)
        return reply

    def streamed(self, body: Fields, reply: Reply | RequestFailed, *, alone: bool) -> None:
        """Note the streamed reply to one request. alone: no other request was sent beside it; what many requests at
        once do to replies is a finding of the load. Raises `FieldRejected` if the server rejects a field of the user's.
        """
        if isinstance(reply, RequestFailed):
            self._check_refusal(body, reply.message)
        elif alone:
            self._count(body, (reply.reasoning or "") + (reply.text or ""), reply.finish_reason)

    def _seedless(self, body: Fields) -> Fields:
        """The request without its seed."""
        return {name: value for name, value in body.items() if name != self.spelling.seed_field}

    def _check_refusal(self, body: Fields, words: str) -> None:
        """Note a refusal. Raises `FieldRejected` if it names a field of the user's, and no request was answered yet.

        A later refusal may come from what a check sends beside the user's fields, so it ends no probe.
        """
        own, switches = self.spelling.extra_body, self.spelling.chat_template_kwargs
        added = {name: "extra_body" for name, value in own.items() if body.get(name) == value}
        if switches:
            added |= dict.fromkeys(("chat_template_kwargs", *switches), "chat_template_kwargs")
        if not self.answered and (names := rejected_fields(words, added)):
            fields = ", ".join(names)
            raise FieldRejected(
                f"{option(added[names[0]])}: the server rejects {fields}: leave it out ({quoted(words)})"
            )

    def _count(self, body: Fields, text: str, reason: str | None) -> None:
        """Count the reply to a chat request as empty or as one with a text.

        Replies that may be empty for a good reason count as neither: those of one token, which may be the model's end
        of turn, those to a request with tools or stop texts, and those that max_tokens cut.
        """
        with self._lock:
            self.answered = True
            length = body.get(self.spelling.max_tokens_field) or 0
            if "messages" not in body or length == 1 or body.get("tools") or body.get("stop"):
                return
            prompt = repr(body["messages"])
            if text:
                self.with_text.add(prompt)
            elif reason != "stop":
                return
            else:
                self.empty[prompt] += 1
            self.n_replies += 1
