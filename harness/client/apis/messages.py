"""Messages: alternating user and assistant turns with a system text; the reply has blocks of thinking, text and calls.

An event is recognized by what it contains. A delta names the block that it belongs to, which must have begun: by the
index of its start, or else by its place among the blocks. A text in a block of another type is read all the same. Token
counts come with the first event and with the event that states why the reply ended; later counts replace earlier ones.
The prompt is the sum of three counts, because `input_tokens` alone excludes cached tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from harness.client.apis.api import API, BadEvent, Call, Choice, Delta, Event, Parts, TextName, ToolForm, Turn
from harness.client.apis.parts import ReplyParts, call_of, delta_of
from harness.client.apis.prompts import content_of, function_of, prompt_of, sendable
from harness.client.apis.values import (
    object_of,
    objects_in,
    objects_of,
    place_of,
    string_of,
    text_in,
    text_of,
    thought_marks,
    unread,
)
from harness.core import codec
from harness.core.records import Message
from harness.core.reply_notes import NO_PLACE

_NAMES: dict[str, TextName] = {"text": "content", "thinking": "reasoning"}
"""Type of a block → the text that it is part of. The block's own text is in a field named after the type."""

_SENT_BACK = {"signature_delta": "signature", "input_json_delta": "partial_json"}
"""Type of a delta that contains no part of the answer → its field, which is sent back if the reply has calls."""


class _TextBlock(msgspec.Struct, gc=False, tag_field="type", tag="text_delta"):
    text: str


class _ThinkingBlock(msgspec.Struct, gc=False, tag_field="type", tag="thinking_delta"):
    thinking: str


class _BlockDelta(msgspec.Struct, gc=False, tag_field="type", tag="content_block_delta"):
    index: int
    delta: _TextBlock | _ThinkingBlock


def _is_body(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "message" or ("type" not in value and isinstance(value.get("content"), list))


class _MessagesReader(ReplyParts):
    """Reads one reply."""

    index_field: str | None = "index"
    usual = staticmethod(msgspec.json.Decoder(_BlockDelta).decode)
    is_body = staticmethod(_is_body)

    def __init__(self, *, calls: bool = False) -> None:
        super().__init__(calls=calls)
        self._begun: dict[int, str] = {}  # index of a block that has begun → its type
        self._open: tuple[int, dict[str, Any]] | None = None  # the latest block that has begun, until it stops
        self._usage: dict[str, Any] = {}

    def piece(self, piece: _BlockDelta) -> Event:
        """The event of a piece of a text. Raises `BadEvent`."""
        delta, index = piece.delta, piece.index
        kind, text = ("text", delta.text) if isinstance(delta, _TextBlock) else ("thinking", delta.thinking)
        if self._begun.get(index) != kind:
            index = self._started(index, kind)
        if self.calls:
            self.pieces[index, kind].append(text)
        return self.add_piece(_NAMES[kind], text, index)

    def _started(self, index: int | None, kind: str) -> int:
        """The index of the block that an event names: by the index of its start, or by its place. Raises `BadEvent`."""
        begun, place = [*self._begun], -1 if index is None else index
        if place not in begun and -len(begun) <= place < len(begun):
            return begun[place]
        if place not in begun and kind != "thinking":  # which is not part of the answer
            raise BadEvent(f"it continues a {kind} block that has not started")
        return place

    def event(self, value: dict[str, Any]) -> tuple[Event, list[str]]:
        """The event from JSON of any other form, with notes on what is not read. Raises `BadEvent`."""
        kind, block = value.get("type"), object_of(value.get("content_block"))
        delta = objects_in([value["delta"]], "deltas")[0] if "delta" in value else {}
        if _is_body(value):
            return self._message(value)
        if kind == "message_start":
            message = object_of(value.get("message"))
            self.set_ids(message.get("id"), message.get("model"))
            self._usage = object_of(message.get("usage")) | {"output_tokens": None}  # the final count is used
        elif block:
            index = place_of(value.get("index"))
            if index is None or (index in self.items and self._open != (index, block)):  # a repeated start begins none
                index = max(self.items, default=-1) + 1
            self._begun[index], self.items[index], self._open = str(block.get("type")), block, (index, block)
            begun = self.add_piece(*_text_of(block), index) if self._begun[index] in _NAMES else self.plain()
            return begun, _notes_of(block)
        elif kind == "message_delta" or "stop_reason" in delta:
            return self._end(delta, value.get("usage"), Delta()), []
        elif kind == "message_stop":
            self.over = True
        elif (of_delta := str(delta.get("type"))) in ("text_delta", "thinking_delta"):
            name = of_delta.removesuffix("_delta")
            index, (text, notes) = self._started(place_of(value.get("index")), name), text_in(delta, name, _NAMES[name])
            return self.piece(_BlockDelta(index, _TextBlock(text) if name == "text" else _ThinkingBlock(text))), notes
        elif kind == "content_block_delta" and not delta:
            return self.plain(), [NO_PLACE]
        elif "delta" in value:
            if self.calls and (name := _SENT_BACK.get(of_delta, "")):
                index = self._started(place_of(value.get("index")), name)
                self.pieces[index, name].append(string_of(delta.get(name), name))
            silent = kind == "content_block_delta" and of_delta in (*_SENT_BACK, "citations_delta")
            return self.plain(), [] if silent else [unread(of_delta if delta else str(kind))]
        elif kind == "content_block_stop":
            self._open = None
        return self.plain(), []

    def _message(self, value: dict[str, Any]) -> tuple[Event, list[str]]:
        """The event for a whole message."""
        self.set_ids(value.get("id"), value.get("model"))
        content = value.get("content")
        blocks = objects_of([{"type": "text", "text": content}] if isinstance(content, str) else content)
        self.items = dict(enumerate(blocks))
        texts = (_text_of(block) for block in blocks if str(block.get("type")) in _NAMES)
        event = self._end(value, value.get("usage"), delta_of(texts))
        return event, [note for block in blocks for note in _notes_of(block)]

    def _end(self, end: Mapping[str, Any], usage: object, delta: Delta) -> Event:
        self._usage |= {name: count for name, count in object_of(usage).items() if count is not None}
        prompt = (self._usage.get(f"{kind}input_tokens") for kind in ("", "cache_read_", "cache_creation_"))
        counts = [count for count in prompt if type(count) is int]
        thinking = object_of(self._usage.get("output_tokens_details")).get("thinking_tokens")
        return self.plain(
            Choice(delta=delta, finish_reason=text_of(end.get("stop_reason"))),
            {
                "prompt_tokens": sum(counts) if counts else None,
                "completion_tokens": self._usage.get("output_tokens"),
                "reasoning_tokens": thinking,
                "prompt_tokens_details": {"cached_tokens": self._usage.get("cache_read_input_tokens")},
            },
        )

    def finished(self, index: int, item: dict[str, Any]) -> tuple[Call | None, dict[str, Any]]:
        """The call in a block, and the block as it is sent back; an empty text is not. Raises `BadEvent`."""
        block, call = dict(item), None
        for field in ("text", "thinking", "signature"):
            if (index, field) in self.pieces:
                block[field] = string_of(block.get(field), field) + "".join(self.pieces[index, field])
        if block.get("type") == "tool_use":
            written = "".join(self.pieces[index, "partial_json"])
            written = written or codec.encode(block.get("input") or {}).decode()
            call = call_of(block.get("id"), block.get("name"), written)
            block["input"] = codec.decode_loosely(sendable(call.name, written).encode())
        return call, {} if block.get("text") == "" else block


def _text_of(block: Mapping[str, Any]) -> tuple[TextName, str]:
    """(the text that a block is part of, the block's own text). Raises `BadEvent`."""
    kind = str(block.get("type"))
    return _NAMES[kind], text_in(block, kind, _NAMES[kind])[0]


def _notes_of(block: Mapping[str, Any]) -> list[str]:
    """Notes on what is not read: a call, an unknown type, a mark of a text; redacted thinking needs no note."""
    kind = str(block.get("type"))
    unread_thought = [] if isinstance(block.get("thinking") or "", str) else [unread("thinking")]
    notes = {"text": thought_marks(block), "thinking": unread_thought, "redacted_thinking": []}
    return ["tool call"] if kind == "tool_use" else notes.get(kind, [unread(kind)])


# ---- requests


def _prompt(messages: Sequence[Message], _text: str) -> dict[str, Any]:
    """The fields of a prompt. Raises `ValueError` for a prompt that this API cannot represent."""
    prompt = prompt_of("system", "messages", messages, _turn)
    if odd := {each["role"] for each in prompt["messages"]} - {"user", "assistant"}:
        raise ValueError(f"has a {min(odd)} message that is not first; api=messages cannot send such a prompt")
    return prompt


def _image(url: str) -> dict[str, Any]:
    head, _, data = url.partition(",")
    media_type = head.removeprefix("data:").partition(";")[0]
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


_PARTS: Parts = {"text": lambda text: {"type": "text", "text": text}, "image": _image}


def _turn(message: Message) -> list[dict[str, Any]]:
    """The turn of a message; the result of a call is a user's."""
    content = content_of(message, _PARTS)
    if message.call_id:
        result = {"type": "tool_result", "tool_use_id": message.call_id, "content": content}
        return [{"role": "user", "content": [result]}]
    if message.calls:
        content = [_PARTS["text"](text) for text in message.texts] if message.content else []
        for call in message.calls:
            given = codec.decode_loosely(sendable(call.name, call.arguments).encode())
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
    return [{"role": message.role, "content": content}]


def _calling(fields: Mapping[str, Any]) -> dict[str, Any]:
    choice = fields.get("tool_choice", "auto")
    word = {"type": _CHOICES[choice]} if isinstance(choice, str) else {"type": "tool", **choice["function"]}
    single = {"disable_parallel_tool_use": not fields["parallel_tool_calls"]} if "parallel_tool_calls" in fields else {}
    return {"tool_choice": {**word, **single}} if fields else {}


_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


def _thinking(fields: dict[str, Any]) -> dict[str, Any]:
    """An effort as `output_config.effort`, a switch as `thinking`. Raises `ValueError` for template arguments."""
    fields = dict(fields)
    if fields.pop("chat_template_kwargs", None):
        raise ValueError("api=messages cannot send chat template arguments; use `api=chat`")
    reasoning, switch = object_of(fields.pop("reasoning", None)), object_of(fields.get("thinking"))
    effort = fields.pop("reasoning_effort", None) or reasoning.get("effort")
    if effort == "none":
        return {**fields, "thinking": {"type": "disabled"}}
    if reasoning.get("enabled") or switch == {"type": "enabled"}:
        fields["thinking"] = {"type": "adaptive"}
    return fields if effort is None else {**fields, "output_config": {"effort": effort}}


def _answered(turn: Turn, outputs: Sequence[str]) -> list[Any]:
    called = zip(turn.calls, outputs, strict=True)
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": output} for call, output in called]
    assistant = {"role": "assistant", "content": [*turn.carry]}
    return [assistant, {"role": "user", "content": results}] if results else [assistant]


MESSAGES = API(
    name="messages",
    path="/messages",
    owned={
        "model": "use `model`",
        "stream": "use `drop=stream`",
        **dict.fromkeys(("messages", "system", "prompt"), "the benchmark card defines the prompt"),
    },
    prompt=_prompt,
    bound="max_tokens",
    parts=_PARTS,
    reader=_MessagesReader,
    # vLLM and SGLang obey no other fields, and silently drop unknown ones.
    takes=frozenset({"temperature", "top_p", "top_k", "stop", "max_tokens"}),
    rename={"stop": "stop_sequences"},
    thinking=_thinking,
    stream_usage=False,
    bound_required=True,
    # The version that accepts sampling fields; the newer one rejects them.
    headers={"anthropic-version": "2023-06-01"},
    in_batches=False,
    idle=600.0,
    tools=ToolForm(
        reader=partial(_MessagesReader, calls=True),
        turns="messages",
        offer=lambda tools: {
            "tools": [
                {"input_schema" if name == "parameters" else name: value for name, value in function_of(tool).items()}
                for tool in tools
            ]
        },
        calling=_calling,
        answered=_answered,
    ),
)
