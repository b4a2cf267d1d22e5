"""Responses: items of input, and a reply that is a list of items: reasoning, messages, calls of tools.

The status in the last event counts, never that event's name: vLLM up to 0.31 and for aborted requests, and SGLang up to
0.5.17, send `response.completed` for replies of every end. Texts come as deltas, then whole in their part's own event
and once more in the last one: the deltas are the text, and the whole is held against them by its length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from harness.client.wires.wire import (
    BadEvent,
    Call,
    Choice,
    Event,
    ReplyParts,
    TextName,
    ToolForm,
    Turn,
    Wire,
    call_of,
    is_error,
    object_of,
    objects_of,
    prompt_of,
    sendable,
    string_of,
    unread,
    whole,
)
from harness.core.reply_notes import LATE_TEXT

_TEXT = "response.output_text.delta"
_REASONING = "response.reasoning_text.delta"
_SUMMARY = "response.reasoning_summary_text.delta"
_NAMES: dict[str, TextName] = {_TEXT: "content", _REASONING: "reasoning", _SUMMARY: "reasoning"}
_OF_PARTS = {"output_text": _TEXT, "reasoning_text": _REASONING, "summary_text": _SUMMARY}
"""Type of a part → the type of the events that bring it in pieces."""

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


class _TextDelta(msgspec.Struct, gc=False):
    type: Literal[
        "response.output_text.delta", "response.reasoning_text.delta", "response.reasoning_summary_text.delta"
    ]
    delta: str
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0


_decode = msgspec.json.Decoder(_TextDelta).decode


class _ResponsesReader(ReplyParts):
    """Reads one reply."""

    index_field: str | None = "output_index"

    def __init__(self) -> None:
        super().__init__()
        self._lengths = dict.fromkeys(_NAMES, 0)  # type of a text's events → its length until now
        self._whole = dict[str, list[str]]()  # the same → the whole texts of its parts, as their own events state them

    def decode(self, data: bytes) -> Event:
        """The event of a piece of text. Raises `msgspec.DecodeError`, also after the end."""
        if self.over:
            raise msgspec.DecodeError
        return self._piece(_decode(data))

    def _piece(self, piece: _TextDelta) -> Event:
        kind = piece.type
        if kind != _TEXT and self._lengths[_SUMMARY if kind == _REASONING else _REASONING]:
            return self.plain()  # a summary beside the reasoning itself
        self._lengths[kind] += _length(piece.delta)
        return self.added(_NAMES[kind], piece.delta, (piece.output_index, piece.content_index, piece.summary_index))

    def event(self, value: dict[str, Any], _begun: bool) -> tuple[Event, list[str]]:
        """The event of any other form, and notes on what is not read. Raises `BadEvent`."""
        kind, item = str(value.get("type")), object_of(value.get("item"))
        if kind in _NAMES:
            if self.over:
                return self.plain(), [LATE_TEXT]
            try:
                return self._piece(msgspec.convert(value, _TextDelta)), []
            except msgspec.ValidationError as error:
                raise BadEvent(f"a piece of its text has another form ({error})") from error
        if response := value if _is_body(value) else object_of(value.get("response")):
            self.named(response.get("id"), response.get("model"))
        if _ended(value):
            return self._end(response)
        if kind == "response.output_item.done":
            for of_part, text in _texts_of(item):
                self._whole.setdefault(of_part, []).append(text)
        name = kind.removeprefix("response.").split(".")[0]
        is_lost = isinstance(value.get("delta"), str) and "_call" not in name
        return self.plain(), [*_notes_of(item), *([name if name == "refusal" else unread(name)] if is_lost else [])]

    def _end(self, response: Mapping[str, Any]) -> tuple[Event, list[str]]:
        """The event with the finish reason, and with the texts that no delta brought. Raises `BadEvent`."""
        items, stated = objects_of(response.get("output")), dict[str, list[str]]()
        for kind, text in (pair for item in items for pair in _texts_of(item)):
            stated.setdefault(kind, []).append(text)
        stated = self._whole | stated
        for kind, texts in stated.items():
            if (came := self._lengths[kind]) and came != (length := sum(map(_length, texts))):
                raise BadEvent(f"the pieces of its {_NAMES[kind]} have {came} characters, the whole has {length}")
        if _REASONING in stated:
            stated.pop(_SUMMARY, None)
        came_whole = {_NAMES[kind] for kind, length in self._lengths.items() if length}
        pairs = ((_NAMES[kind], text) for kind, texts in stated.items() for text in texts)
        delta = whole(pair for pair in pairs if pair[0] not in came_whole)
        reason = string_of(object_of(response.get("incomplete_details")).get("reason"), "reason")
        self.over = True
        choice = Choice(delta=delta, finish_reason=reason or str(response.get("status")))
        return self.plain(choice, _usage(response.get("usage"))), [note for item in items for note in _notes_of(item)]

    def error(self, value: dict[str, Any]) -> object:
        """An error in or outside the reply: also the end of a reply whose status is no end of a model's."""
        if is_error(value):
            return value
        response = _ended(value)
        status, reason = response.get("status"), object_of(response.get("incomplete_details")).get("reason")
        if not response or status == "completed" or (status == "incomplete" and reason):
            return None
        message = f"the response ended with the status {status}" + (" and no reason" if status == "incomplete" else "")
        return response.get("error") or {"message": message, "code": "server_error"}

    def is_whole(self, value: dict[str, Any]) -> bool:
        """Whether an object is a response or an error."""
        return _is_body(value) or is_error(value)


class _ItemsReader(_ResponsesReader):
    """Reads one reply that may hold calls, and keeps its items as they came."""

    def __init__(self) -> None:
        super().__init__()
        self._items: list[dict[str, Any]] = []

    def event(self, value: dict[str, Any], begun: bool) -> tuple[Event, list[str]]:
        """As of any response, and its whole items are kept."""
        read = super().event(value, begun)
        if value.get("type") == "response.output_item.done":
            self._items.append(object_of(value.get("item")))
        self._items = max(self._items, objects_of(_ended(value).get("output")), key=len)
        return read

    def handed(self) -> tuple[tuple[Call, ...], tuple[Any, ...]]:
        """The calls, and all items in their order. Raises `BadEvent`."""
        calls = [item for item in self._items if item.get("type") == "function_call"]
        # vLLM refuses an item with a field for encrypted reasoning, also an empty one.
        items = ({name: value for name, value in item.items() if value is not None} for item in self._items)
        return tuple(call_of(*map(each.get, ("call_id", "name", "arguments"))) for each in calls), tuple(items)


def _is_body(value: Mapping[str, Any]) -> bool:
    return value.get("object") == "response"


def _ended(value: dict[str, Any]) -> dict[str, Any]:
    """The response that an event ends, or that a whole body is; empty for other events."""
    if _is_body(value):
        return value
    return object_of(value.get("response")) if value.get("type") in _ENDS else {}


def _texts_of(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(type of the events that bring it in pieces, text) of each text of an item. Raises `BadEvent`."""
    for part in (*objects_of(item.get("content")), *objects_of(item.get("summary"))):
        if (kind := _OF_PARTS.get(str(part.get("type")))) is not None:
            yield kind, string_of(part.get("text"), "text")


def _notes_of(item: Mapping[str, Any]) -> Iterator[str]:
    """Notes on what an item has beside texts: a refusal, a call, a tool that the server ran."""
    kind = item.get("type")
    if kind in ("function_call", "custom_tool_call"):
        yield "tool call"
    elif item and kind not in ("message", "reasoning"):
        yield unread(str(kind))
    elif any(part.get("type") == "refusal" for part in objects_of(item.get("content"))):
        yield "refusal"


def _length(text: str) -> int:
    """Characters but blanks, which vLLM's parsers leave out at the ends of a whole text; in units of UTF-16, since a
    pair that came in two deltas counts two.
    """
    units = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return units - text.count(" ") - text.count("\n")


def _usage(usage: object) -> dict[str, Any] | None:
    """The counts in names that are read of the chat API; None without any."""
    if not isinstance(usage, dict):
        return None
    read, written = object_of(usage.get("input_tokens_details")), object_of(usage.get("output_tokens_details"))
    counts = {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")}
    details = {"prompt_tokens_details": read, "completion_tokens_details": written}
    return {**counts, **details, "total_tokens": usage.get("total_tokens")}


# ---- requests


def _thinking(fields: dict[str, Any]) -> dict[str, Any]:
    """`reasoning_effort` as `reasoning.effort`; a switch of DeepSeek's as an effort."""
    fields = dict(fields)
    effort, switch = fields.pop("reasoning_effort", None), object_of(fields.pop("thinking", None))
    effort = "none" if switch.get("type") == "disabled" else effort
    return fields if effort is None else {**fields, "reasoning": {"effort": effort}}


def _answered(turn: Turn, outputs: Sequence[str]) -> list[Any]:
    called = zip(turn.calls, outputs, strict=True)
    results = ({"type": "function_call_output", "call_id": call.id, "output": output} for call, output in called)
    carried = [
        item | {"arguments": sendable(item.get("arguments", ""))} if item.get("type") == "function_call" else item
        for item in turn.carry
    ]
    return [*carried, *results]


RESPONSES = Wire(
    api="responses",
    path="/responses",
    owned={
        "model": "use `model`",
        "stream": "use `drop=stream`",
        "store": "no reply is kept at the maker",
        **dict.fromkeys(("input", "instructions", "prompt", "messages"), "the benchmark's card makes the prompt"),
        **dict.fromkeys(("background", "previous_response_id", "conversation"), "each request stands alone"),
    },
    # No item has a status: vLLM would go on writing one.
    prompt=lambda messages, _text: prompt_of("instructions", "input", messages),
    bound="max_output_tokens",
    reader=_ResponsesReader,
    takes=frozenset({"temperature", "top_p", "max_tokens"}),
    fixed={"store": False},
    thinking=_thinking,
    states_ids=False,
    stream_usage=False,
    idle=600.0,
    tools=ToolForm(
        reader=_ItemsReader,
        turns="input",
        offer=lambda name, description, parameters: {
            "tools": [{"type": "function", "name": name, "description": description, "parameters": parameters}],
            # Nothing is kept at the maker, so the reasoning has to travel with the request.
            "include": ["reasoning.encrypted_content"],
        },
        answered=_answered,
    ),
)
