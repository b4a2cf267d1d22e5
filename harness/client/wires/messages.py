"""Messages: user and assistant in turn with a system text, and a reply that is a list of blocks: thinking, text, calls.

A delta names the block that it belongs to, which must be open. Counts come with the first event and with the one that
states why the reply ended; the later ones replace the earlier. Three counts add up to the prompt: `input_tokens` alone
leaves out what a cache held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.client.wires.parts import ReplyParts, TextName, object_of, objects_of, string_of
from harness.client.wires.wire import BadEvent, Choice, Delta, Event, Wire, is_error, unread
from harness.core.records import Message
from harness.core.reply_notes import LATE_TEXT

_NAMES: dict[str, TextName] = {"text": "content", "thinking": "reasoning"}
"""Type of a block → the text that it is a part of; its own text stands in a field of the same name."""

_SILENT = frozenset({"signature_delta", "input_json_delta", "citations_delta"})
"""Types of deltas that hold no part of the answer."""


class _TextBlock(msgspec.Struct, gc=False, tag_field="type", tag="text_delta"):
    text: str


class _Thinking(msgspec.Struct, gc=False, tag_field="type", tag="thinking_delta"):
    thinking: str


class _BlockDelta(msgspec.Struct, gc=False, tag_field="type", tag="content_block_delta"):
    index: int
    delta: _TextBlock | _Thinking


_decode = msgspec.json.Decoder(_BlockDelta).decode


class _MessagesReader(ReplyParts):
    """Reads one reply."""

    place = "index"

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[int, str] = {}  # index of a block that has begun and not ended → its type
        self._usage: dict[str, Any] = {}

    def decode(self, data: bytes) -> Event:
        """The event of a piece of text. Raises `msgspec.DecodeError`, also after the end; and `BadEvent`."""
        if self.over:
            raise msgspec.DecodeError
        value = _decode(data)
        delta = value.delta
        if isinstance(delta, _TextBlock):
            return self._piece("text", delta.text, value.index)
        return self._piece("thinking", delta.thinking, value.index)

    def _piece(self, kind: str, text: str, index: int) -> Event:
        if self._open.get(index) != kind:
            raise BadEvent(f"a piece of {kind} for a block that is not open")
        return self.added(_NAMES[kind], text, index)

    def event(self, value: dict[str, Any], _begun: bool) -> tuple[Event, list[str]]:
        """The event of any other form, and notes on what is not read. Raises `BadEvent`."""
        index = value.get("index")
        if type(index) is not int:
            index = -1
        match value.get("type"):
            case "message":
                return self._body(value)
            case "message_start":
                message = object_of(value.get("message"))
                self.named(message.get("id"), message.get("model"))
                self._usage = object_of(message.get("usage")) | {"output_tokens": None}  # those of the end count
                return self.plain(), []
            case "content_block_start":
                block = object_of(value.get("content_block"))
                kind = str(block.get("type"))
                if index < 0 or index in self._open:
                    raise BadEvent("a block begins without an index of its own")
                self._open[index] = kind
                return (self._piece(kind, string_of(block.get(kind), kind), index), []) if kind in _NAMES else (
                    self.plain(), _notes_of(kind)
                )  # fmt: skip
            case "content_block_delta":
                delta = object_of(value.get("delta"))
                kind = str(delta.get("type")).removesuffix("_delta")
                if kind in _NAMES and self.over:
                    return self.plain(), [LATE_TEXT]
                if kind in _NAMES:
                    return self._piece(kind, string_of(delta.get(kind), kind), index), []
                return self.plain(), [] if delta.get("type") in _SILENT else [unread(str(delta.get("type")))]
            case "content_block_stop":
                self._open.pop(index, None)
            case "message_delta":
                reason = string_of(object_of(value.get("delta")).get("stop_reason"), "stop_reason")
                return self._end(reason, value.get("usage"), Delta())
            case "message_stop":
                self.over = True
        return self.plain(), []

    def _body(self, message: Mapping[str, Any]) -> tuple[Event, list[str]]:
        """The event of a whole message."""
        self.named(message.get("id"), message.get("model"))
        blocks = objects_of(message.get("content"))
        texts = {
            name: [string_of(block.get(kind), kind) for block in blocks if block.get("type") == kind]
            for kind, name in _NAMES.items()
        }
        content, reasoning = ("\n\n".join(texts[name]) if texts[name] else None for name in ("content", "reasoning"))
        reason = string_of(message.get("stop_reason"), "stop_reason")
        event, _ = self._end(reason, message.get("usage"), Delta(content=content, reasoning=reasoning))
        notes = [note for block in blocks if block.get("type") not in _NAMES for note in _notes_of(block.get("type"))]
        return event, notes

    def _end(self, reason: str, usage: object, delta: Delta) -> tuple[Event, list[str]]:
        self._usage |= {name: count for name, count in object_of(usage).items() if count is not None}
        stated, prompt = self._usage, ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        counts = [stated[name] for name in prompt if type(stated.get(name)) is int]
        details = object_of(stated.get("output_tokens_details"))
        return self.plain(Choice(delta=delta, finish_reason=reason or None), {
            "prompt_tokens": sum(counts) if counts else None,
            "completion_tokens": stated.get("output_tokens"),
            "prompt_tokens_details": {"cached_tokens": stated.get("cache_read_input_tokens")},
            "completion_tokens_details": {"reasoning_tokens": details.get("thinking_tokens")},
        }), []  # fmt: skip

    def error(self, value: dict[str, Any]) -> object:
        """An error in or outside the reply."""
        return value if value.get("type") == "error" or value.get("error") or is_error(value) else None

    def is_whole(self, value: dict[str, Any]) -> bool:
        """Whether an object is a message or an error."""
        return value.get("type") == "message" or self.error(value) is not None


def _notes_of(kind: object) -> list[str]:
    """Notes on a block that is no text: a call, or what is not known; thinking that is kept secret needs none."""
    return {"tool_use": ["tool call"], "redacted_thinking": []}.get(str(kind), [unread(str(kind))])


# ---- requests


def _takes(_engine: str | None, _version: str) -> frozenset[str]:
    """No server of this API obeys more, and vLLM and SGLang drop what they do not know without a word."""
    return frozenset({"temperature", "top_p", "top_k", "stop", "max_tokens"})


def _prompt(messages: Sequence[Message], text: str) -> dict[str, Any]:
    """The system message as `system`. Raises `ValueError` for a prompt that this API cannot carry."""
    if not messages:
        return {"messages": [{"role": "user", "content": text}]}
    system = {"system": messages[0].content} if messages[0].role == "system" else {}
    rest = messages[len(system) :]
    if odd := next((each.role for each in rest if each.role not in ("user", "assistant")), None):
        raise ValueError(f"has a message of the role {odd} that is not the first, which api=messages cannot carry")
    return {**system, "messages": [{"role": each.role, "content": each.content} for each in rest]}


def _thinking(fields: dict[str, Any]) -> dict[str, Any]:
    """An effort as `output_config.effort`, a switch as `thinking`. Raises `ValueError` for arguments of a template."""
    fields = dict(fields)
    if fields.pop("chat_template_kwargs", None):
        raise ValueError("api=messages has no arguments for a chat template; api=chat has")
    reasoning, switch = object_of(fields.pop("reasoning", None)), object_of(fields.get("thinking"))
    effort = fields.pop("reasoning_effort", None) or reasoning.get("effort")
    if effort == "none":
        return {**fields, "thinking": {"type": "disabled"}}
    if reasoning.get("enabled") or switch == {"type": "enabled"}:
        fields["thinking"] = {"type": "adaptive"}
    return fields if effort is None else {**fields, "output_config": {"effort": effort}}


MESSAGES = Wire(
    api="messages",
    path="/messages",
    owned={
        "model": "use `model`",
        "stream": "use `drop=stream`",
        **dict.fromkeys(("messages", "system", "prompt"), "the benchmark's card makes the prompt"),
    },
    prompt=_prompt,
    bound="max_tokens",
    templated=True,
    reader=_MessagesReader,
    takes=_takes,
    rename={"stop": "stop_sequences"},
    thinking=_thinking,
    states_ids=False,
    stream_usage=False,
    bound_required=True,
    # The version that takes sampling fields; the newer one refuses them.
    headers={"anthropic-version": "2023-06-01"},
    in_batches=False,
    idle=600.0,
)
