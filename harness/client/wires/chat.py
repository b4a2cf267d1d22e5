"""Chat: messages, which the server puts into its chat template; with a tool, calls come in fragments.

A fragment belongs to the call of its id, else of its index, else to the latest; a new id begins a new call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.client.wires.choice_replies import OWNED, READER, ChoicesReader
from harness.client.wires.parts import object_of, objects_of, sendable, string_of
from harness.client.wires.wire import BadEvent, Call, Event, ToolForm, Turn, Wire
from harness.core import codec

_decode = msgspec.json.Decoder(Event).decode


class _CallsReader(ChoicesReader):
    """Reads one reply that may hold calls, and remembers in which field its reasoning came."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._positions: dict[object, int] = {}  # an id, or an index → position of its latest call
        self._reasoning = ""

    def decode(self, data: bytes) -> Event:  # type: ignore[override]
        """As of any chat, and the field of the reasoning is noted."""
        event = _decode(data)
        for choice in event.choices:
            if choice.delta is not None and (choice.delta.reasoning_content or choice.delta.reasoning):
                self._reasoning = "reasoning_content" if choice.delta.reasoning_content else "reasoning"
        return event

    def event(self, value: dict[str, Any], begun: bool) -> tuple[Event, list[str]]:
        """As of any chat, and the calls are taken."""
        read = ChoicesReader.event(value, begun)
        for choice in objects_of(value.get("choices")):
            body = object_of(choice.get("delta")) or object_of(choice.get("message"))
            named = [name for name in ("reasoning_content", "reasoning") if body.get(name)]
            self._reasoning = named[0] if named else self._reasoning
            if not choice.get("index"):
                for piece in objects_of(body.get("tool_calls")):
                    self._take(piece)
        return read

    def _take(self, piece: dict[str, Any]) -> None:
        """Add a fragment to its call, or begin a call. Raises `BadEvent`."""
        call_id, function, index = string_of(piece.get("id"), "call's id"), object_of(piece.get("function")), None
        name, arguments = string_of(function.get("name"), "call's name"), function.get("arguments")
        if type(piece.get("index")) is int:
            index = piece["index"]
        if isinstance(arguments, dict):
            arguments = codec.encode(arguments).decode()
        arguments = string_of(arguments, "call's arguments")
        position = self._positions.get(call_id or index)
        if position is None and not (call_id or name or index is not None):
            position = len(self._calls) - 1  # of neither id nor index nor name: the latest call goes on
        if position is None:
            position = len(self._calls)
            self._calls.append(Call(call_id, name, arguments))
        elif position < 0:
            raise BadEvent("a fragment of a call that has not begun")
        else:
            call = self._calls[position]
            self._calls[position] = Call(call.id, call.name or name, call.arguments + arguments)
        self._positions |= {key: position for key in (call_id or None, index) if key is not None}

    def handed(self) -> tuple[tuple[Call, ...], tuple[Any, ...]]:
        """The calls, and the name of the field in which the reasoning came."""
        return tuple(self._calls), (self._reasoning,) if self._reasoning else ()


def _answered(turn: Turn, outputs: Sequence[str]) -> list[Any]:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": sendable(call.arguments)}}
        for call in turn.calls
    ]
    reasoning = {name: turn.reasoning for name in turn.carry if turn.reasoning}
    assistant = {"role": "assistant", "content": turn.text or "", **reasoning, "tool_calls": calls}
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": output}
        for call, output in zip(turn.calls, outputs, strict=True)
    ]
    return [assistant, *results]


CHAT = Wire(
    api="chat", path="/chat/completions", owned=OWNED, bound=None, reader=lambda: READER,
    prompt=lambda messages, _text: {"messages": messages},
    likeliest=lambda n: {"logprobs": True, "top_logprobs": n},
    tools=ToolForm(
        reader=_CallsReader,
        turns="messages",
        offer=lambda name, description, parameters: {"tools": [{"type": "function", "function": {
            "name": name, "description": description, "parameters": parameters,
        }}]},
        answered=_answered,
    ),
)  # fmt: skip
