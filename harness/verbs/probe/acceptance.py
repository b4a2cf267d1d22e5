"""What a server accepts of a probe's requests, and which of its replies are empty.

All requests of a probe pass through here, so that a refused field is met once and not by each check anew:

refused field        what the probe does
a spare one          it sends the request again without the field, and no further request has it; the report names it
a user's field       it ends with the advice to leave the field out, if the server has answered no request with it yet
any other            the check that sent it is untested

Spare are the seed, and each value that switches a sampling field off (`top_k: -1`): no check is about them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from harness.client.address.providers import rejected_fields
from harness.client.asker import Asker
from harness.client.protocol.failures import error_words
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.spelling import Spelling
from harness.core.errors import HarnessError, option
from harness.core.inert import quoted
from harness.verbs.probe.asking import Fields, ProbeReply, Refused


class FieldRejected(HarnessError):
    """The server rejects a field that the user added to all requests, so no check can be made with it."""


class Attempt:
    """One request, which is sent without the spare fields that the server rejects. body: the request to send next."""

    def __init__(self, acceptance: Acceptance, body: Fields) -> None:
        self._acceptance = acceptance
        self._spare = acceptance.spare(body)
        self._rejected: set[str] = set()
        self.body = body
        self._leave_out(self._spare & {*acceptance.rejected, *acceptance.asker.left_out})

    def refused(self, words: str) -> bool:
        """Note a refusal of `body`; return whether the request is to be sent again, without the field that it names.

        Raises `FieldRejected` if it names a field of the user's.
        """
        self._acceptance.check_refusal(self.body, words)
        names = rejected_fields(words, self._spare & self.body.keys())
        self._leave_out(names)
        self._rejected.update(names)
        return bool(names)

    def answered(self) -> None:
        """Note that `body` was answered: only this shows that the fields left out were the cause of the refusals."""
        self._acceptance.rejected |= self._rejected

    def _leave_out(self, names: Collection[str]) -> None:
        self.body = {name: value for name, value in self.body.items() if name not in names}


@dataclass
class Acceptance:
    """What one server accepts, as its replies have shown so far.

    asker: holds the user's fields, the name of the seed's field and the values that switch a field off. rejected: the
    spare fields that the server rejects. answered: whether a request with the user's fields was answered. n_replies:
    number of replies with or without a text (see `_count`); n_empty: those without. empty: prompt → number of empty
    replies to it. with_text: the prompts that a text answered.
    """

    asker: Asker
    rejected: set[str] = field(default_factory=set)
    answered: bool = False
    n_replies: int = 0
    empty: Counter[str] = field(default_factory=Counter)
    with_text: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def spelling(self) -> Spelling:
        """How a request is written."""
        return self.asker.spelling

    @property
    def no_seed(self) -> str:
        """Why no request has a seed; empty while the server takes seeds."""
        name = self.spelling.seed_field
        if name not in self.rejected:
            return ""
        return f"the server rejects {name}, so no request has one; a run of it needs {option('run.seed', None)}"

    def spare(self, body: Fields) -> set[str]:
        """The fields of a request that can be left out, because no check is about them with these values."""
        off = {"top_p": 1.0, **self.asker.neutral_fields({})}
        added = {name for name in off.keys() & body.keys() if body[name] == off[name]}
        return ({self.spelling.seed_field, *added} & body.keys()) - self.spelling.extra_body.keys()

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
        """The reply to one request, sent by `send`; without the spare fields that the server rejects.

        Raises `Refused`; `FieldRejected` if the server rejects a field of the user's.
        """
        attempt = Attempt(self, body)
        while True:
            try:
                reply = send(attempt.body)
                break
            except Refused as refused:
                if not attempt.refused(refused.sentence):
                    raise
        attempt.answered()
        first = reply.first
        # Log-probabilities of a reply without text show that the model wrote tokens, which the server hides.
        hidden = bool(first.tokens) and not first.whole
        self._count(body, first.whole, "hidden" if hidden else first.finish_reason)
        return reply

    def streamed(self, attempt: Attempt, reply: Reply | RequestFailed, *, alone: bool) -> bool:
        """Note the streamed reply to `attempt.body`; return whether to send the request again, without a spare field.

        alone: no other request was sent beside it; what many requests at once do to replies is a finding of the load.
        Raises `FieldRejected` if the server rejects a field of the user's.
        """
        if isinstance(reply, RequestFailed):
            return attempt.refused(reply.message)
        attempt.answered()
        if alone:
            self._count(attempt.body, (reply.reasoning or "") + (reply.text or ""), reply.finish_reason)
        return False

    def posted(self, body: Fields, send: Callable[[Fields], tuple[int, bytes]]) -> tuple[int, bytes]:
        """HTTP status and body of the reply to one request, sent by `send`; as in `whole`."""
        attempt = Attempt(self, body)
        while True:
            status, content = send(attempt.body)
            if status == 200:
                attempt.answered()
            if status == 200 or not attempt.refused(f"HTTP {status}: {error_words(content)}"):
                return status, content

    def check_refusal(self, body: Fields, words: str) -> None:
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
