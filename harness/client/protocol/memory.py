"""How many bytes the replies under way hold, counted in one place for all transports.

    read of a socket ──▶ ReplyParser ──▶ Share.count(bytes it holds now) ──▶ Memory.held_bytes
    read put aside (fast transport) ──────────────────────────────────────▶ Memory.unparsed_bytes

A reply holds what it has not given back: the unfinished line or body, the data of the event under way, texts, stamps,
token ids. The parser keeps each of them in one buffer whose size it knows, so a count is a few additions, once a read.
Whatever else a server sends (comments, names of events, unknown fields) is dropped when its line ends.

Invariant: `held_bytes` is the sum over all shares that exist, at their latest count. A share that is gone, however its
request ended, counts no more. While the sum exceeds the limit, each reply above `LONG_REPLY_BYTES` fails at its next
count. So n replies hold at most the limit + n × `LONG_REPLY_BYTES`; beside it a request has fixed buffers (one head,
one read, one chunk's size, the beginning of an error's body) of less than `FIXED_BYTES`.
"""

from __future__ import annotations

MAX_REPLIES_BYTES = 256 * 1024 * 1024
"""Bytes that all replies under way may hold; above that the long ones among them are given up."""

LONG_REPLY_BYTES = 4 * 1024 * 1024
"""A reply of at most this many bytes is never given up; an answer of 128k tokens and its stamps take a third of it."""

FIXED_BYTES = 1024 * 1024
"""Bytes that a request's buffers take at most, whatever its server sends: a library's among them."""


class Memory:
    """The bytes of all replies of one transport, or of several that share it. limit: see `MAX_REPLIES_BYTES`.

    unparsed_bytes: reads that the fast transport has put aside, as of its latest look (four times a second).
    """

    __slots__ = ("held_bytes", "limit", "unparsed_bytes")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = MAX_REPLIES_BYTES if limit is None else limit
        self.held_bytes = 0
        self.unparsed_bytes = 0


class Share:
    """The bytes of one reply in a `Memory`, until the share is gone."""

    __slots__ = ("_bytes", "_memory")

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._bytes = 0

    def count(self, n_bytes: int) -> bool:
        """The reply holds `n_bytes` now. Returns whether it may go on: it is short, or memory is not short."""
        memory = self._memory
        memory.held_bytes += n_bytes - self._bytes
        self._bytes = n_bytes
        return n_bytes <= LONG_REPLY_BYTES or memory.held_bytes + memory.unparsed_bytes <= memory.limit

    def __del__(self) -> None:
        # A reply ends by its end, a failure, a cancelled task or a closed loop; its memory is free when nothing refers
        # to it any more, and at no other time.
        self._memory.held_bytes -= self._bytes
