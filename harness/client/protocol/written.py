"""A reply while it is being received: a bound on its memory, and a record of its tokens.

`Memory` bounds the bytes of all unfinished replies together. `WrittenTokens` records the tokens that have come, so that
another request can continue the reply after an interruption.

Memory:

    read of a socket ──▶ ReplyParser ──▶ Share.count(bytes that the reply takes) ──▶ Memory.held_bytes
    read that waits unparsed ─────────────────────────────────────────────────────▶ Memory.unparsed_bytes

A reply takes memory for its unfinished line or body, the data of the unfinished event, texts, stamps and token ids. The
parser knows the size of each, so a count costs a few additions per read. All else that a server sends (comments, names
of events, unknown fields) is dropped when its line ends.

Invariant: `held_bytes` is the sum over all existing shares, each at its latest count; a share goes when its request
has ended, in whatever way. While the sum is above the limit, each reply above `LONG_REPLY_BYTES` fails at its next
count. So n replies take at most the limit + n × `LONG_REPLY_BYTES`. In addition each request has buffers of a fixed
size, less than `FIXED_BYTES` (a head, a read, a chunk's size line, the beginning of an error's body).

Tokens: vLLM and SGLang state the ids of a reply's tokens when asked (`return_token_ids`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# ---- a bound on memory


MAX_REPLIES_BYTES = 256 * 1024 * 1024
"""Memory that all unfinished replies together may take; above this bound the long ones among them fail."""

LONG_REPLY_BYTES = 4 * 1024 * 1024
"""A reply of at most this many bytes never fails for want of memory. An answer of 128k tokens takes a third of it."""

FIXED_BYTES = 1024 * 1024
"""Bound on the fixed buffers of a request, those of an HTTP library included."""


class Memory:
    """Counts the bytes that all unfinished replies of one transport hold, or of several transports that share it.

    limit: bound in bytes; None: `MAX_REPLIES_BYTES`. unparsed_bytes: bytes that a transport has read and not yet
    parsed, counted at each of its looks.
    """

    __slots__ = ("held_bytes", "limit", "unparsed_bytes")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = MAX_REPLIES_BYTES if limit is None else limit
        self.held_bytes = 0
        self.unparsed_bytes = 0


class Share:
    """The part of one reply in a `Memory`. Its bytes are given back when nothing refers to the share any more."""

    __slots__ = ("_bytes", "_memory")

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._bytes = 0

    def count(self, n_bytes: int) -> bool:
        """Set the reply's memory to `n_bytes`. Returns whether the reply may go on: it is short, or memory is not."""
        memory = self._memory
        memory.held_bytes += n_bytes - self._bytes
        self._bytes = n_bytes
        return n_bytes <= LONG_REPLY_BYTES or memory.held_bytes + memory.unparsed_bytes <= memory.limit

    def __del__(self) -> None:
        # A reply can end well, fail, be cancelled, or go with its loop. In each case its memory is free exactly when
        # nothing refers to it any more.
        self._memory.held_bytes -= self._bytes


# ---- a record of the tokens


MAX_IDS = 1_000_000
"""Largest number of token ids of a reply, or of its prompt; a server that states more is not believed."""

_MAX_ID = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SoFar:
    """The part of a reply that has come so far.

    text, reasoning: as sent; None if nothing came. ids: ids of all tokens of the text and reasoning; None if the server
    did not state them all. prompt_ids: ids of the prompt's tokens; None if not stated. n_events: events with text.
    server_model, request_id: as in `Reply`.
    """

    text: str | None
    reasoning: str | None
    ids: Sequence[int] | None
    prompt_ids: Sequence[int] | None
    n_events: int
    server_model: str | None
    request_id: str | None = None


class WrittenTokens:
    """Records the token ids of a reply, event by event.

    If the server once states no ids, or something that is no id, the ids of the whole reply count as unknown.
    """

    __slots__ = ("_complete", "_ids", "_sure", "prompt_ids")

    def __init__(self) -> None:
        self.prompt_ids: array[int] | None = None
        self._ids = array("i")
        self._complete = True  # every event with text has stated its ids
        self._sure = 0  # number of ids whose text has come

    @property
    def held_bytes(self) -> int:
        """Memory that the record takes, in bytes, about."""
        return 4 * (len(self._ids) + (0 if self.prompt_ids is None else len(self.prompt_ids)))

    @property
    def ids(self) -> array[int] | None:
        """Ids of the tokens whose text has come; None if unknown.

        A token without a text of its own (a tag that the server removes, half a character) counts with the text after
        it.
        """
        return self._ids[: self._sure] if self._complete and self._sure else None

    def add_prompt(self, value: Any) -> None:
        """Record the prompt's token ids, which the server states in one of the events."""
        if value is not None and self.prompt_ids is None and _are_ids(value):
            self.prompt_ids = array("i", value)

    def add_event(self, n_chars: int, ids: Any) -> None:
        """Record an event with `n_chars` characters of text. ids: of its tokens; None: not stated."""
        if ids is not None and self._complete:
            self._complete = _are_ids(ids) and len(self._ids) + len(ids) <= MAX_IDS
            if self._complete:
                self._ids.extend(ids)
        if n_chars:
            self._complete = self._complete and ids is not None
            self._sure = len(self._ids)


def _are_ids(value: Any) -> bool:
    return type(value) is list and len(value) <= MAX_IDS and all(type(n) is int and 0 <= n <= _MAX_ID for n in value)
