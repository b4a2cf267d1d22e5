"""Reading replies that are made of parts, each of which is sent in pieces, as those of Responses and Messages are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from harness.client.apis.api import BadEvent, Call, Choice, Delta, Event, Reader, TextName
from harness.client.apis.values import is_error, string_of


class ReplyParts(Reader):
    """The parts of one reply: their texts, and the ids that events do not repeat.

    index_field, over, said, echo: as in any reader. usual: decodes a piece of a text. id, model: those of the reply,
    once they have arrived. calls: whether a tool was offered, so that calls are read. items: index → the latest version
    of the part. pieces: (index, field) → the pieces of that field, for fields that are sent back.

    Two parts of a text are joined by a blank line, so that they do not run together. An event object is reused for the
    next piece, since making one takes as long as reading it.
    """

    usual: Callable[[bytes], Any]

    def __init__(self, *, calls: bool = False) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.calls = calls
        self.items: dict[int, dict[str, Any]] = {}
        self.pieces: defaultdict[tuple[object, str], list[str]] = defaultdict(list)
        self._last: dict[TextName, object] = {}  # name of a text → the latest part of it that had characters
        self._content, self._reasoning = Delta(), Delta()
        self._of_content = Event(choices=[Choice(delta=self._content)])
        self._of_reasoning = Event(choices=[Choice(delta=self._reasoning)])

    def decode(self, data: bytes) -> Event:
        """The event of a piece of a text. Raises `BadEvent`, and `msgspec.DecodeError`, also after the end."""
        if self.over:
            raise msgspec.DecodeError
        return self.piece(self.usual(data))

    def piece(self, piece: Any) -> Event:
        """The event of a decoded piece of a text. Raises `BadEvent`."""
        raise NotImplementedError

    def set_ids(self, reply_id: object, model: object) -> None:
        """Store the reply's id and model, if they are stated."""
        self.id = reply_id if isinstance(reply_id, str) and reply_id else self.id
        self.model = model if isinstance(model, str) and model else self.model
        for event in (self._of_content, self._of_reasoning):
            event.id, event.model = self.id, self.model

    def add_piece(self, name: TextName, piece: str, part: object) -> Event:
        """The event for a piece of a text. part: the part of the reply that it belongs to."""
        if piece and self._last.get(name) != part:
            if name in self._last:
                piece = f"\n\n{piece}"
            self._last[name] = part
        if name == "content":
            self._content.content = piece
            return self._of_content
        self._reasoning.reasoning = piece
        return self._of_reasoning

    def error(self, value: dict[str, Any]) -> object:
        """The error inside or outside the reply."""
        return value if is_error(value) else None

    def calls_and_parts(self) -> tuple[tuple[Call, ...], tuple[Any, ...]]:
        """The calls, and all parts in order; empty unless a tool was offered. Raises `BadEvent`."""
        if not self.calls:
            return (), ()
        finished = [self.finished(index, item) for index, item in self.items.items()]
        return tuple(call for call, _ in finished if call), tuple(item for _, item in finished if item)

    def finished(self, index: int, item: dict[str, Any]) -> tuple[Call | None, dict[str, Any]]:
        """The call in a part, if any, and the part as it is sent back, or {} if it is not. Raises `BadEvent`."""
        raise NotImplementedError

    def plain(self, choice: Choice | None = None, usage: dict[str, Any] | None = None) -> Event:
        """A new event. choice: its part of the texts; None: nothing."""
        return Event(choices=[] if choice is None else [choice], usage=usage, id=self.id, model=self.model)


def delta_of(texts: Iterable[tuple[TextName, str]]) -> Delta:
    """The texts of a reply that came in one piece, joined as pieces would be. texts: (name, text) of each part."""
    parts = dict[TextName, list[str]]()
    for name, text in texts:
        parts.setdefault(name, []).append(text)
    joined = {name: "\n\n".join(each) for name, each in parts.items()}
    return Delta(content=joined.get("content"), reasoning=joined.get("reasoning"))


def dense(text: str) -> str:
    """The text without white space, which vLLM's parsers strip from the ends of a whole text."""
    return "".join(text.split())


NO_CALL_ID = "a tool call has no id"


def call_of(call_id: object, name: object, arguments: object) -> Call:
    """The tool call with these values. Raises `BadEvent` if the id is missing or any of them is not a string."""
    if not (call_id and isinstance(call_id, str)):
        raise BadEvent(NO_CALL_ID)
    return Call(call_id, string_of(name, "call's name"), string_of(arguments, "call's arguments"))
