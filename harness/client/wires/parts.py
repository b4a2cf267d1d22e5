"""Replies that are made of parts, each of which comes in pieces: what the readers of two dialects share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from harness.client.wires.wire import BadEvent, Call, Choice, Delta, Event
from harness.core import codec
from harness.core.records import Message

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

    def handed(self) -> tuple[tuple[Call, ...], tuple[Any, ...]]:
        """Nothing: no tool was offered."""
        return (), ()

    def plain(self, choice: Choice | None = None, usage: dict[str, Any] | None = None) -> Event:
        """An event of its own. choice: what it holds of the texts; None: nothing."""
        return Event(choices=[] if choice is None else [choice], usage=usage, id=self.id, model=self.model)


def whole(texts: Iterable[tuple[TextName, str]]) -> Delta:
    """The texts of a reply that came in one piece, joined as its pieces would be. texts: (name, text) of each part."""
    parts = dict[TextName, list[str]]()
    for name, text in texts:
        parts.setdefault(name, []).append(text)
    joined = {name: "\n\n".join(each) for name, each in parts.items()}
    return Delta(content=joined.get("content"), reasoning=joined.get("reasoning"))


def prompt_of(system: str, turns: str, messages: Sequence[Message]) -> dict[str, Any]:
    """The fields of a prompt: the first message, if it is the system's, as `system`, and all others as `turns`."""
    first = {system: messages[0].content} if messages[0].role == "system" else {}
    return {**first, turns: [{"role": each.role, "content": each.content} for each in messages[len(first) :]]}


def string_of(value: object, name: str) -> str:
    """`value`, which may be left out. Raises `BadEvent` if it is no string. name: of its field."""
    if value is not None and not isinstance(value, str):
        raise BadEvent(f"its {name} is no string")
    return value or ""


def call_of(call_id: object, name: object, arguments: object) -> Call:
    """The call of a tool with these three. Raises `BadEvent` if the id is missing or one of them is no string."""
    if not (call_id and isinstance(call_id, str)):
        raise BadEvent("a call of a tool has no id")
    return Call(call_id, string_of(name, "call's name"), string_of(arguments, "call's arguments"))


def sendable(arguments: str) -> str:
    """A call's arguments as a server takes them back: a JSON object; text that is none becomes the `code` of one."""
    value: Any = None
    with contextlib.suppress(codec.DecodeError):
        value = codec.decode(arguments.encode("utf-8", "surrogatepass"))
    if isinstance(value, dict) and "\\ud" not in arguments.lower():
        return arguments
    return codec.encode_strictly(value if isinstance(value, dict) else {"code": arguments}).decode()


def object_of(value: object) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
