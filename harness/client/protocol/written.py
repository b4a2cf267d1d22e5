"""What a reply under way holds: its bytes, counted in one place for all transports, and what it is made of.

    read of a socket ──▶ ReplyParser ──▶ Share.count(bytes it holds now) ──▶ Memory.held_bytes
    read put aside (fast transport) ──────────────────────────────────────▶ Memory.unparsed_bytes

A reply holds what it has not given back: the unfinished line or body, the data of the event under way, texts, stamps,
token ids. The parser keeps each of them in one buffer whose size it knows, so a count is a few additions, once a read.
Whatever else a server sends (comments, names of events, unknown fields) is dropped when its line ends.

Invariant: `held_bytes` is the sum over all shares that exist, at their latest count. A share that is gone, however its
request ended, counts no more. While the sum exceeds the limit, each reply above `LONG_REPLY_BYTES` fails at its next
count. So n replies hold at most the limit + n × `LONG_REPLY_BYTES`; beside it a request has fixed buffers (one head,
one read, one chunk's size, the beginning of an error's body) of less than `FIXED_BYTES`.

`Written` keeps what may have to be continued: token ids, and where events end. vLLM and SGLang send ids when asked
(`return_token_ids`); other servers send one token's text an event, as a rule.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# ---- how many bytes it holds


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


# ---- what it is made of


MAX_IDS = 1_000_000
"""Ids of one reply, or of its prompt, that are kept; more are no ids of a real one."""

KEPT_LOGPROBS = 16
"""Log-probabilities that are kept, of the last tokens: what is compared at a seam."""

_MAX_PENDING = 256
"""Log-probabilities in memory: those, and of tokens whose text is still to come."""

_MAX_ID = (1 << 31) - 1
_MAX_EVENT_CHARS = (1 << 16) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SoFar:
    """A reply under way. text, reasoning: as sent, None = nothing came.

    ids: of the tokens that say this, all of them; None where the server did not state them. prompt_ids: likewise.
    lengths: characters of each event's text, in order; the last one is `_MAX_EVENT_CHARS` where an event is longer.
    n_events: token events. server_model, request_id: as in `Reply`. logprobs: of the last of `ids`, in order, at most
    `KEPT_LOGPROBS`; empty where the server did not state them.
    """

    text: str | None
    reasoning: str | None
    ids: Sequence[int] | None
    prompt_ids: Sequence[int] | None
    lengths: Sequence[int]
    n_events: int
    server_model: str | None
    request_id: str | None = None
    logprobs: tuple[float, ...] = ()


class Written:
    """Told of each event of one reply; see the module. What a server sends in place of ids makes them unknown."""

    __slots__ = ("_complete", "_ids", "_logprobs", "_sure", "lengths", "prompt_ids")

    def __init__(self) -> None:
        self.prompt_ids: array[int] | None = None
        self.lengths = array("H")
        self._ids = array("i")
        self._complete = True
        self._sure = 0
        self._logprobs: list[float] = []  # of the last of `_ids`, without a gap

    @property
    def held_bytes(self) -> int:
        """Bytes that it takes, about."""
        n_numbers = len(self._ids) + (0 if self.prompt_ids is None else len(self.prompt_ids))
        return 4 * n_numbers + 2 * len(self.lengths) + 32 * len(self._logprobs)

    @property
    def ids(self) -> array[int] | None:
        """Of the tokens whose text has come. A token without a text (a swallowed tag, half a character) belongs to the
        text after it."""
        return self._ids[: self._sure] if self._complete and self._sure else None

    @property
    def logprobs(self) -> tuple[float, ...]:
        """See `SoFar`."""
        end = len(self._logprobs) - (len(self._ids) - self._sure) if self._complete else 0
        return tuple(round(value, 6) for value in self._logprobs[max(0, end - KEPT_LOGPROBS) : max(0, end)])

    def prompt(self, value: Any) -> None:
        """The server states the prompt's ids."""
        if value is not None and self.prompt_ids is None and _are_ids(value):
            self.prompt_ids = array("i", value)

    def events(self, texts: Sequence[str], ids: Sequence[list[int]] | None) -> None:
        """Several events at once, as `event` would take them; ids: whole numbers of them all."""
        lengths = list(map(len, texts))
        if not all(lengths) or max(lengths) > _MAX_EVENT_CHARS:
            for n, length in enumerate(lengths):
                self.event(length, None if ids is None else ids[n])
            return
        self.lengths.extend(lengths)
        self._logprobs.clear()
        if ids is None or not self._complete:
            self._complete = False
            return
        try:
            self._ids.extend([number for event_ids in ids for number in event_ids])
        except OverflowError:
            self._complete = False
        self._complete = self._complete and len(self._ids) <= MAX_IDS
        self._sure = len(self._ids)

    def event(self, n_chars: int, ids: Any, logprobs: Sequence[object] = ()) -> None:
        """An event brought so many characters, and (or None) these ids, and log-probabilities."""
        if ids is not None and self._complete:
            self._complete = _are_ids(ids) and len(self._ids) + len(ids) <= MAX_IDS
            if self._complete:
                self._ids.extend(ids)
                if logprobs or self._logprobs:
                    self._likely(len(ids), logprobs)
        if n_chars:
            self._complete = self._complete and ids is not None
            self._sure = len(self._ids)
            self.lengths.append(min(n_chars, _MAX_EVENT_CHARS))

    def _likely(self, n_ids: int, logprobs: Sequence[object]) -> None:
        numbers = [value for value in logprobs if isinstance(value, int | float) and math.isfinite(value)]
        if len(numbers) != n_ids or len(logprobs) != n_ids:
            self._logprobs.clear()
            return
        self._logprobs.extend(numbers)
        if len(self._logprobs) > 2 * _MAX_PENDING:
            del self._logprobs[:-_MAX_PENDING]


def _are_ids(value: Any) -> bool:
    return type(value) is list and len(value) <= MAX_IDS and all(type(n) is int and 0 <= n <= _MAX_ID for n in value)
