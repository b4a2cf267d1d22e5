"""A reply that a connection carries though it answers no request of its own: what is left over from another request.

    request 1 ──▶            ◀── reply 1            a sound server
    request 1 ──▶            ◀── reply 1 ◀── reply 1 once more, or one that nobody asked for
    request 2 ──▶  its answer is taken from what is left over, and so on with every request after it

What is told, and where:
- bytes that come while no request is under way, or before the request was sent (`Connection`, `aio._Protocol`);
- bytes behind the end of a reply, in the same read;
- the id and the text of the reply before on this connection, or of one of the latest replies to another prompt (to the
  same prompt a cache may have answered). An id alone may be the time of day, which two short replies share: once
  two texts had one id, or one text came three times under one, ids prove nothing;
- another number of prompt tokens than this prompt has had, where a server's counts have proved steady: the same number
  for the same prompt. A number that comes twice against the known one is believed, and the server's counts no more.
Each is a doubt. After the first doubt about a server, no connection to it carries a second request, so that nothing
can be left over any more; and the next reply is noted with how many replies came over used connections before, since
those may be wrong.
Not covered: before the first doubt, a leftover under an id of its own, with the count that the prompt had before or
that was never known.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from harness.client.protocol.reply import Reply, RequestFailed
from harness.core.reply_notes import AFTER_LEFTOVER, AFTER_THE_END

STEADY_COUNTS = 3
"""Replies that must have repeated their prompt's count before one that differs is doubted."""

MAX_PROMPTS = 50_000
"""Prompts whose count is remembered; the one that was asked longest ago goes first."""

MAX_REPLIES = 4096
"""Replies of a server that are known again, the latest ones."""

REQUEST_TIMEOUT_HEAD = b"HTTP/1.1 408"
"""Head that proxies send on a connection that was idle for too long, before they close it; it answers no request."""


class Mark(NamedTuple):
    """By which a reply is known again. text: a hash of its text and reasoning; prompt: see `prompt_of`."""

    reply_id: str
    text: int
    prompt: int


class Leftovers:
    """What is known of the replies of one server. doubted: it has sent a reply that nobody asked for."""

    def __init__(self) -> None:
        self.doubted = False
        self._n_exposed = 0  # replies over connections that had carried another request
        self._untold = False  # the next reply is to be noted with that number
        self._latest: str | None = None
        self._ids_vary = False
        self._ids_shared = False  # two replies of different texts had the same one
        self._marks: OrderedDict[str, Mark] = OrderedDict()  # of the latest replies, by id
        self._counts: OrderedDict[int, int] = OrderedDict()  # prompt tokens by prompt
        self._doubted_counts: dict[int, int] = {}  # the count that was refused last, by prompt
        self._n_repeated = 0
        self._steady = True

    def doubt(self) -> None:
        """The server sent something that answers no request."""
        if not self.doubted:
            self.doubted = self._untold = True

    def came_unasked(self, data: bytes) -> None:
        """`data` came while no request was under way; empty where the connection was closed."""
        if data and not data.startswith(REQUEST_TIMEOUT_HEAD):
            self.doubt()

    def check(self, reply: Reply, before: Mark | None, prompt: int, *, used: bool) -> Mark | None:
        """The reply's mark. before: that of the reply before it on the same connection; prompt: see `prompt_of`; used:
        the connection had carried another request.

        Raises `RequestFailed` where it is a leftover; the connection must then be closed.
        """
        self._count(reply.usage.prompt_tokens, prompt, used)
        self._n_exposed += used
        reply_id = reply.request_id
        if reply_id is None:
            return None
        self._ids_vary = self._ids_vary or (self._latest is not None and self._latest != reply_id)
        self._latest = reply_id
        mark = Mark(reply_id, hash((reply.text, reply.reasoning)), prompt)
        earlier = self._marks.get(reply_id)
        if earlier is None:
            self._marks[reply_id] = mark
            if len(self._marks) > MAX_REPLIES:
                self._marks.popitem(last=False)
        elif earlier.text != mark.text:
            self._ids_shared = True
        elif self._ids_vary and not self._ids_shared and (mark == before or earlier.prompt != prompt):
            self._marks[reply_id] = Mark(reply_id, ~mark.text, prompt)  # a third time the reply is believed
            self.doubt()
            raise RequestFailed("malformed", "the reply is an earlier one of this server once more: a leftover")
        return mark

    def note(self) -> str | None:
        """What is to be noted of the next reply: once, after the first doubt."""
        if not self._untold:
            return None
        self._untold = False
        return f"{AFTER_LEFTOVER}; {self._n_exposed} before this one came over used connections and may be wrong"

    def may_be_one(self, reply_id: str | None, before: Mark | None) -> bool:
        """Whether a reply under way may be a leftover, which only its end would show for certain."""
        return self._ids_vary and before is not None and reply_id == before.reply_id

    def _count(self, tokens: int | None, prompt: int, used: bool) -> None:
        """Raises `RequestFailed` where the prompt is known to have another number of tokens."""
        if tokens is None or not self._steady:
            return
        expected = self._counts.setdefault(prompt, tokens)
        if expected == tokens:
            self._counts.move_to_end(prompt)
            self._doubted_counts.pop(prompt, None)
            self._n_repeated += len(self._counts) > 1  # a server that always states one number proves nothing
            while len(self._counts) > MAX_PROMPTS:
                self._counts.popitem(last=False)
            return
        if (
            not (used or self.doubted)
            or self._n_repeated < STEADY_COUNTS
            or self._doubted_counts.pop(prompt, None) == tokens
        ):
            self._steady = False
            return
        self._doubted_counts[prompt] = tokens
        self.doubt()
        raise RequestFailed(
            "malformed", f"the reply is to a prompt of {tokens} tokens, and this one has {expected}: a leftover"
        )


def prompt_of(body: bytes) -> int:
    """A hash of the prompt in the body of a request, by which equal prompts are known."""
    start = body.find(b',"messages":')  # either is the last field of a body
    if start < 0:
        start = body.find(b',"prompt":')
    return hash(body[max(start, 0) :])


def ended_exactly(reply: Reply) -> bool:
    """Nothing followed the reply's end; else its connection carries no other request."""
    return not reply.notes or AFTER_THE_END.isdisjoint(reply.notes)
