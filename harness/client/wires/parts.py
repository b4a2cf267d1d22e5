"""Replies that are made of parts, each of which comes in pieces: what the readers of two dialects share."""

from __future__ import annotations

from typing import Any, Literal

from harness.client.wires.wire import BadEvent, Choice, Delta, Event

TextName = Literal["content", "reasoning"]


class ReplyParts:
    """The texts of one reply, and the ids that its events do not repeat.

    id, model: of the reply, once they have come. over: whether the reply's last event has come.

    Two parts of a text are joined by a blank line, so that neither is glued onto the other. An event is used again for
    the next piece, since making one takes as long as reading it.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.over = False
        self._last: dict[TextName, object] = {}  # name of a text → the latest part of it that had characters
        self._content, self._reasoning = Delta(), Delta()
        self._of_content = Event(choices=[Choice(delta=self._content)])
        self._of_reasoning = Event(choices=[Choice(delta=self._reasoning)])

    def named(self, reply_id: object, model: object) -> None:
        """Take the reply's own id and model, where they are stated."""
        self.id = reply_id if isinstance(reply_id, str) and reply_id else self.id
        self.model = model if isinstance(model, str) and model else self.model
        for event in (self._of_content, self._of_reasoning):
            event.id, event.model = self.id, self.model

    def added(self, name: TextName, piece: str, part: object) -> Event:
        """The event of a piece of a text. part: which part of the reply it belongs to."""
        if piece and self._last.get(name) != part:
            if name in self._last:
                piece = f"\n\n{piece}"
            self._last[name] = part
        if name == "content":
            self._content.content = piece
            return self._of_content
        self._reasoning.reasoning = piece
        return self._of_reasoning

    def plain(self, choice: Choice | None = None, usage: dict[str, Any] | None = None) -> Event:
        """An event of its own. choice: what it holds of the texts; None: nothing."""
        return Event(choices=[] if choice is None else [choice], usage=usage, id=self.id, model=self.model)


def string_of(value: object, name: str) -> str:
    """`value`, which may be left out. Raises `BadEvent` if it is no string. name: of its field."""
    if value is not None and not isinstance(value, str):
        raise BadEvent(f"its {name} is no string")
    return value or ""


def object_of(value: object) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
