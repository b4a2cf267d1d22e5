"""A reply that a connection carries though it answers no request of its own: what is left over from another request.

Two signs, each looked at only where the server has shown that it can be trusted in it:
- the id and the text of the reply before on this connection, where a server's ids differ: an id alone may be the time
  of day, which two short replies share;
- another number of prompt tokens than this prompt has had, where a server's counts have proved steady: the same number
  for the same prompt. A number that comes twice against the known one is believed, and the server's counts no more.
Not covered: a leftover of a request with the same prompt, or with one that was not counted before, under an id of
its own.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from harness.client.protocol.reply import AFTER_THE_END, Reply, RequestFailed

STEADY_COUNTS = 3
"""Replies that must have repeated their prompt's count before one that differs is doubted."""

MAX_PROMPTS = 50_000
"""Prompts whose count is kept; the one that was asked longest ago goes first."""


class Mark(NamedTuple):
    """By which a reply is known again. content: a hash of its text and reasoning."""

    request_id: str
    content: int


class Leftovers:
    """What is known of the replies of one server."""

    def __init__(self) -> None:
        self._latest: str | None = None
        self._ids_vary = False
        self._counts: OrderedDict[int, int] = OrderedDict()  # prompt tokens by prompt
        self._doubted: dict[int, int] = {}  # the count that was refused last, by prompt
        self._n_repeated = 0
        self._steady = True

    def check(self, reply: Reply, before: Mark | None, prompt: int, *, kept: bool) -> Mark | None:
        """The reply's mark. before: that of the reply before it on the same connection; prompt: see `prompt_of`;
        kept: the connection had carried another request.

        Raises `RequestFailed` where it is a leftover; the connection must then be closed.
        """
        self._count(reply.usage.prompt_tokens, prompt, kept)
        given = reply.request_id
        if given is None:
            return None
        self._ids_vary |= self._latest is not None and self._latest != given
        self._latest = given
        mark = Mark(given, hash((reply.text, reply.reasoning)))
        if self._ids_vary and mark == before:
            raise RequestFailed("malformed", "the reply is the one before on this connection once more: a leftover")
        return mark

    def may_be_one(self, request_id: str | None, before: Mark | None) -> bool:
        """Whether a reply under way may be a leftover, which only its end would show for certain."""
        return self._ids_vary and before is not None and request_id == before.request_id

    def _count(self, tokens: int | None, prompt: int, kept: bool) -> None:
        """Raises `RequestFailed` where the prompt is known to have another number of tokens."""
        if tokens is None or not self._steady:
            return
        known = self._counts.setdefault(prompt, tokens)
        if known == tokens:
            self._counts.move_to_end(prompt)
            self._doubted.pop(prompt, None)
            self._n_repeated += len(self._counts) > 1  # a server that always states one number proves nothing
            while len(self._counts) > MAX_PROMPTS:
                self._counts.popitem(last=False)
            return
        if not kept or self._n_repeated < STEADY_COUNTS or self._doubted.pop(prompt, None) == tokens:
            self._steady = False
            return
        self._doubted[prompt] = tokens
        raise RequestFailed(
            "malformed", f"the reply is to a prompt of {tokens} tokens, and this one has {known}: a leftover"
        )


def prompt_of(body: bytes) -> int:
    """A hash of the prompt in the body of a request, by which equal prompts are known."""
    at = body.find(b',"messages":')  # either is the last field of a body
    if at < 0:
        at = body.find(b',"prompt":')
    return hash(body[max(at, 0) :])


def ended_exactly(reply: Reply) -> bool:
    """Nothing followed the reply's end; else its connection carries no other request."""
    return not any(note in AFTER_THE_END for note in reply.notes)
