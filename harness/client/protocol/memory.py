"""What all replies under way take together, and which of them must go when that is too much."""

from __future__ import annotations

from typing import Protocol
from weakref import WeakSet

MAX_REPLIES_BYTES = 256 * 1024 * 1024
"""Bytes that all replies under way may hold; above that the long ones among them are given up."""

LONG_REPLY_BYTES = 4 * 1024 * 1024
"""Bytes from which a reply is long: an answer of 128k tokens and its stamps take a third of that."""

REPORT_BYTES = 16 * 1024
"""Bytes that come for one reply between two reports of it; a reply that stays below them is never counted."""

_LOOK_BYTES = 1024 * 1024
"""Bytes of all replies together after which their memory is added up anew."""


class Holder(Protocol):
    """A reply under way."""

    @property
    def held_bytes(self) -> int:
        """Bytes that it holds now."""
        ...


class Memory:
    """The replies of one transport. Each reports every `REPORT_BYTES`; a reply that is gone counts no more."""

    def __init__(self, limit: int = MAX_REPLIES_BYTES) -> None:
        self._limit = limit
        self._holders: WeakSet[Holder] = WeakSet()
        self._since = 0
        self._full = False

    def is_too_much(self, holder: Holder, n_bytes: int) -> bool:
        """`n_bytes` came for `holder` since its last report: whether it must be given up."""
        self._holders.add(holder)
        self._since += n_bytes
        if self._since >= _LOOK_BYTES:
            self._since = 0
            self._full = sum(one.held_bytes for one in self._holders) > self._limit
        return self._full and holder.held_bytes > LONG_REPLY_BYTES
