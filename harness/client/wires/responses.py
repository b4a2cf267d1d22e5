"""Responses: items of input, and a reply that is a list of items: reasoning, messages, calls of tools.

The status in the last event counts, never that event's name: vLLM up to 0.31 and for aborted requests, and SGLang up to
0.5.17, send `response.completed` for replies of every end. Texts come as deltas, then whole in their part's own event
and once more in the last one: the deltas are the text, and the whole is held against them by its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from harness.client.wires.parts import ReplyParts, TextName, object_of, objects_of, string_of
from harness.client.wires.wire import BadEvent, Choice, Delta, Event, Wire, is_error, unread
from harness.core.records import Message
from harness.core.reply_notes import LATE_TEXT

_TEXT = "response.output_text.delta"
_REASONING = "response.reasoning_text.delta"
_SUMMARY = "response.reasoning_summary_text.delta"
_NAMES: dict[str, TextName] = {_TEXT: "content", _REASONING: "reasoning", _SUMMARY: "reasoning"}
_OF_PARTS = {"output_text": _TEXT, "reasoning_text": _REASONING, "summary_text": _SUMMARY}
"""Type of a part → the type of the events that bring it in pieces."""

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class _TextDelta(msgspec.Struct, gc=False):
    type: Literal[
        "response.output_text.delta", "response.reasoning_text.delta", "response.reasoning_summary_text.delta"
    ]
    delta: str
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0


_decode = msgspec.json.Decoder(_TextDelta).decode


class _Length:
    """How much of a text has come. Blanks at its ends do not count: vLLM's parsers leave some out of the whole.

    units: all. lead: of the blanks before its first other character. blank: of the blank pieces after `last`, the
    latest piece with another character.
    """

    __slots__ = ("blank", "last", "lead", "units")

    def __init__(self) -> None:
        self.units = self.lead = self.blank = 0
        self.last = ""

    @property
    def stripped(self) -> int:
        """Length without the blanks at both ends."""
        return self.units - self.lead - self.blank - _units(self.last) + _units(self.last.rstrip())


class _ResponsesReader(ReplyParts):
    """Reads one reply."""

    place = "output_index"

    def __init__(self) -> None:
        super().__init__()
        self._lengths = {kind: _Length() for kind in _NAMES}  # type of a text's events → what has come of it
        self._whole = dict[str, list[str]]()  # the same → the whole texts of its parts, as their own events state them

    def decode(self, data: bytes) -> Event:
        """The event of a piece of text. Raises `msgspec.DecodeError`, also after the end."""
        if self.over:
            raise msgspec.DecodeError
        return self._piece(_decode(data))

    def _piece(self, piece: _TextDelta) -> Event:
        kind, text = piece.type, piece.delta
        if kind != _TEXT and self._lengths[_SUMMARY if kind == _REASONING else _REASONING].units:
            return self.plain()  # a summary beside the reasoning itself
        length, units = self._lengths[kind], len(text) if text.isascii() else _units(text)
        length.units += units
        if text.isspace():
            length.blank += units
        elif text:
            length.lead = length.blank + units - _units(text.lstrip()) if not length.last else length.lead
            length.last, length.blank = text, 0
        return self.added(_NAMES[kind], text, (piece.output_index, piece.content_index, piece.summary_index))

    def event(self, value: dict[str, Any], _begun: bool) -> tuple[Event, list[str]]:
        """The event of any other form, and notes on what is not read. Raises `BadEvent`."""
        kind = str(value.get("type"))
        if kind in _NAMES:
            if self.over:
                return self.plain(), [LATE_TEXT]
            try:
                return self._piece(msgspec.convert(value, _TextDelta)), []
            except msgspec.ValidationError as error:
                raise BadEvent(f"a piece of its text has another form ({error})") from error
        response = value if _is_body(value) else object_of(value.get("response"))
        if response:
            self.named(response.get("id"), response.get("model"))
        if kind in _ENDS or _is_body(value):
            return self._end(response)
        item, name = object_of(value.get("item")), kind.removeprefix("response.").split(".")[0]
        for of_part, text in _texts_of(item) if kind == "response.output_item.done" else ():
            self._whole.setdefault(of_part, []).append(text)
        if kind == "response.refusal.delta":
            return self.plain(), ["refusal"]
        is_lost = kind.endswith(".delta") and isinstance(value.get("delta"), str) and "_call" not in name
        return self.plain(), [*_notes_of(item), *([unread(name)] if is_lost else [])]

    def _end(self, response: Mapping[str, Any]) -> tuple[Event, list[str]]:
        """The event with the finish reason, and with the texts that no delta brought. Raises `BadEvent`."""
        items, whole = objects_of(response.get("output")), dict[str, list[str]]()
        for item in items:
            for kind, text in _texts_of(item):
                whole.setdefault(kind, []).append(text)
        delta = Delta()
        has_reasoning = self._lengths[_REASONING].units or self._lengths[_SUMMARY].units
        for kind, texts in (self._whole | whole).items():
            came, units = self._lengths[kind], _units("".join(texts).strip())
            if came.last and units != came.stripped:
                raise BadEvent(f"its pieces add up to {came.stripped} characters of {kind}, its whole has {units}")
            if kind == _TEXT:
                delta.content = None if came.units else "\n\n".join(texts)
            elif not has_reasoning and (kind == _REASONING or delta.reasoning is None):
                delta.reasoning = "\n\n".join(texts)
        reason = object_of(response.get("incomplete_details")).get("reason")
        finish = string_of(reason, "reason") or str(response.get("status"))
        self.over = True
        notes = [note for item in items for note in _notes_of(item)]
        return self.plain(Choice(delta=delta, finish_reason=finish), _usage(response.get("usage"))), notes

    def error(self, value: dict[str, Any]) -> object:
        """An error in or outside the reply: also the end of a reply whose status is no end of a model's."""
        if value.get("error") or value.get("type") == "error" or is_error(value):
            return value
        response = object_of(value.get("response")) if value.get("type") in _ENDS else value
        if not response or not (_is_body(value) or value.get("type") in _ENDS):
            return None
        status, reason = response.get("status"), object_of(response.get("incomplete_details")).get("reason")
        if status == "completed" or (status == "incomplete" and reason):
            return None
        said = f"the response ended with the status {status}" + (" and no reason" if status == "incomplete" else "")
        return response.get("error") or {"message": said, "code": "server_error"}

    def is_whole(self, value: dict[str, Any]) -> bool:
        """Whether an object is a response or an error."""
        return _is_body(value) or bool(value.get("error")) or is_error(value)


def _is_body(value: Mapping[str, Any]) -> bool:
    return value.get("object") == "response"


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


def _units(text: str) -> int:
    """Length in units of UTF-16: a pair that came in two deltas counts two there, and in the whole, too."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _usage(usage: object) -> dict[str, Any] | None:
    """The counts in the names of the chat API; None without any."""
    return None if not isinstance(usage, dict) else {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "total_tokens": usage.get("total_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }  # fmt: skip


# ---- requests

_PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty")
_SINCE: dict[str, dict[str, tuple[int, ...]]] = {
    "vllm": {"top_k": (0, 14), "seed": (0, 17), "stop": (0, 17), "chat_template_kwargs": (0, 24), "min_p": (0, 33)},
    "sglang": {
        **dict.fromkeys((*_PENALTIES, "top_k", "min_p", "stop"), (0,)),
        "chat_template_kwargs": (0, 5, 20),
    },
}
"""Engine → field → the version from which its servers obey the field; before, they drop it without a word. Read in the
request classes of their packages.
"""


def _takes(engine: str | None, version: str) -> frozenset[str]:
    """A version that is not stated counts as the newest."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3]) or (99,)
    more = {name for name, since in _SINCE.get(engine or "", {}).items() if numbers >= since}
    return frozenset({"temperature", "top_p", "max_tokens", *more})


def _prompt(messages: Sequence[Message], text: str) -> dict[str, Any]:
    """The first system message as instructions, all others as items; a status of one would make vLLM go on with it."""
    if not messages:
        return {"input": text}
    system = {"instructions": messages[0].content} if messages[0].role == "system" else {}
    rest = messages[len(system) :]
    return {**system, "input": [{"role": each.role, "content": each.content} for each in rest]}


def _thinking(fields: dict[str, Any]) -> dict[str, Any]:
    """`reasoning_effort` as `reasoning.effort`; a switch of DeepSeek's as an effort."""
    fields = dict(fields)
    effort, switch = fields.pop("reasoning_effort", None), object_of(fields.pop("thinking", None))
    if switch.get("type") == "disabled":
        effort = "none"
    return fields if effort is None else {**fields, "reasoning": {"effort": effort}}


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
    prompt=_prompt,
    bound="max_output_tokens",
    templated=True,
    reader=_ResponsesReader,
    takes=_takes,
    fixed={"store": False},
    thinking=_thinking,
    states_ids=False,
    stream_usage=False,
    idle=600.0,
)
