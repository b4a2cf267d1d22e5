"""A record of a reply's tokens while it is being received, so that another request can continue it after a break.

vLLM and SGLang state the ids of a reply's tokens when asked (`return_token_ids`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MAX_IDS = 1_000_000
"""Largest number of token ids of a reply, or of its prompt; a server that states more is not believed."""

_MAX_ID = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SoFar:
    """The part of a reply that has come so far.

    text, reasoning: as sent; None if nothing came. ids: ids of all tokens of the text and reasoning; None if the server
    did not state them all. prompt_ids: ids of the prompt's tokens; None if not stated. n_events: events with text.
    server_model: as in `Reply`.
    """

    text: str | None
    reasoning: str | None
    ids: Sequence[int] | None
    prompt_ids: Sequence[int] | None
    n_events: int
    server_model: str | None


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
