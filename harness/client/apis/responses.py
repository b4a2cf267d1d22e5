"""Responses: the input is a list of items, and so is the reply: reasoning, messages, tool calls.

The status in the last event takes precedence over that event's name: vLLM up to 0.31 and for aborted requests, and
SGLang up to 0.5.17, send `response.completed` however a reply ended. Texts come as deltas, then whole when their item
is done, and again in the last event. The text is made of the deltas. A whole text of another length gets a note, but
if every whole text of the answer differs and one is longer, a delta was lost and the reply is rejected. Two equal whole
texts take precedence over deltas, one of which was repeated or out of order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from harness.client.apis.api import API, BadEvent, Call, Choice, Delta, Event, Parts, TextName, ToolForm, Turn
from harness.client.apis.parts import ReplyParts, call_of, delta_of, dense
from harness.client.apis.prompts import content_of, function_of, prompt_of, sendable
from harness.client.apis.values import (
    is_error,
    object_of,
    objects_of,
    place_of,
    text_in,
    text_of,
    thought_marks,
    unread,
)
from harness.core.contradictions import echoes
from harness.core.records import Message
from harness.core.reply_notes import LATE_TEXT, ODD_END

_TEXT = "response.output_text.delta"
_REASONING = "response.reasoning_text.delta"
_SUMMARY = "response.reasoning_summary_text.delta"
_COMMENTARY = "commentary"
_NAMES: dict[str, TextName] = {_TEXT: "content", _REASONING: "reasoning", _SUMMARY: "reasoning"}
"""Type of a text's events → the text that they are part of."""

_CALLS = ("function_call", "custom_tool_call")
_OF_PARTS = {"output_text": _TEXT, "reasoning_text": _REASONING, "summary_text": _SUMMARY}
"""Type of a part → the type of the events that deliver it in pieces."""

_UNFINISHED = ("created", "queued", "in_progress")
_ENDS = ("completed", "incomplete", "failed", "cancelled")


class _TextDelta(msgspec.Struct, gc=False):
    type: Literal[
        "response.output_text.delta", "response.reasoning_text.delta", "response.reasoning_summary_text.delta"
    ]
    delta: str
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0


_ARGUMENTS = "response.function_call_arguments.delta"


def _is_body(value: Mapping[str, Any]) -> bool:
    return value.get("object") == "response" or ("type" not in value and isinstance(value.get("output"), list))


class _ResponsesReader(ReplyParts):
    """Reads one reply."""

    index_field: str | None = "output_index"
    usual = staticmethod(msgspec.json.Decoder(_TextDelta).decode)
    is_body = staticmethod(_is_body)

    def __init__(self, *, calls: bool = False) -> None:
        super().__init__(calls=calls)
        self._lengths = dict.fromkeys(_NAMES, 0)  # type of a text's events → its length so far
        self._comments = set[int]()  # `output_index` of each message in the phase `commentary`
        self._n_commented = 0  # length of their pieces that came after the phase was known
        self._has_refused = False  # in pieces

    def piece(self, piece: _TextDelta) -> Event:
        """The event of a piece of a text."""
        kind, name = piece.type, _NAMES[piece.type]
        if self._comments and kind == _TEXT and piece.output_index in self._comments:
            name, self._n_commented = "reasoning", self._n_commented + _length(piece.delta)
        if kind in (_REASONING, _SUMMARY) and self._lengths[_SUMMARY if kind == _REASONING else _REASONING]:
            return self.plain()  # a summary in addition to the reasoning itself
        self._lengths[kind] += _length(piece.delta)
        return self.add_piece(name, piece.delta, (piece.output_index, piece.content_index, piece.summary_index))

    def event(self, value: dict[str, Any]) -> tuple[Event, list[str]]:
        """The event from JSON of any other form, with notes on what is not read. Raises `BadEvent`."""
        kind, item = str(value.get("type")), object_of(value.get("item"))
        if kind in _NAMES:
            if self.over:
                return self.plain(), [LATE_TEXT]
            places = (place_of(value.get(f"{of}_index")) or 0 for of in ("output", "content", "summary"))
            text, notes = text_in(value, "delta", _NAMES[kind])
            return self.piece(_TextDelta(kind, text, *places)), notes  # type: ignore[arg-type]
        if (response := _final_response(value)) and not self.over:
            return self._end(value, response)
        if begun := object_of(value.get("response")):
            self.set_ids(begun.get("id"), begun.get("model"))
        if item and not self.over:
            self.items[_place(value)] = item
            if item.get("phase") == _COMMENTARY:
                self._comments.add(_place(value))
        if kind == _ARGUMENTS and isinstance(delta := value.get("delta"), str):
            self.pieces[_place(value), "arguments"].append(delta)
        if kind == "response.refusal.delta":
            refusal = text_of(value.get("delta"))
            self._has_refused = self._has_refused or refusal is not None
            return self.plain(Choice(delta=Delta(refusal=refusal))), []
        name = kind.removeprefix("response.").split(".")[0]
        if not isinstance(value.get("delta"), str) or ("_call" in name and not name.startswith(_CALLS)):
            return self.plain(), [*_notes_of(item)]
        return self.plain(), ["tool call" if name.startswith(_CALLS) else unread(name)]

    def _end(self, value: Mapping[str, Any], response: Mapping[str, Any]) -> tuple[Event, list[str]]:
        """The event with the finish reason and the texts that no delta contained, and notes. Raises `BadEvent`."""
        items = objects_of(response.get("output"))
        last, done = _texts_of(items), _texts_of(self.items.values())
        if not any(text for _, text in last) and isinstance(text := response.get("output_text"), str):
            last = [(_TEXT, text)]
        odd, delta = self._compare_texts([last, done])
        names = (response.get("id"), response.get("model"))
        if odd and self.id and names[0] and self.id != names[0]:
            raise BadEvent("its last event differs in id and text from the preceding events")
        odd = odd or any(old and new and old != new for old, new in zip((self.id, self.model), names, strict=True))
        self.set_ids(self.id or names[0], self.model or names[1])
        if not self._has_refused:
            delta.refusal = "\n\n".join(text for item in items for text in _refusals_of(item)) or None
        if items and len(items) >= len(self.items):  # on a tie the last event: it has the newest encrypted reasoning
            self.items = dict(enumerate(items))
        self.over, self.echo = True, echoes(response)
        choice = Choice(delta=delta, finish_reason=_end_of(value, response))
        notes = [note for item in items for note in _notes_of(item)]
        return self.plain(choice, _usage(response.get("usage"))), [*notes, *([ODD_END] if odd else [])]

    def _compare_texts(self, wholes: Sequence[Sequence[tuple[str, str]]]) -> tuple[bool, Delta]:
        """Whether the versions of the texts differ, and the texts that no delta contained. Raises `BadEvent`.

        wholes: (type of the events that deliver it in pieces, text) of each part, first as the last event reports
        them, then as the items before it do.
        """
        came, sizes = self._lengths, [_lengths(each) for each in wholes if each]
        odd = False
        for kind, n in came.items():
            stated = [size[kind] for size in sizes if kind in size]
            odd = odd or len({*stated, *([n] if n else [])}) > 1
            if kind == _TEXT and n and stated and n not in stated and max(stated) > n:
                raise BadEvent(f"its chunks contain {n} characters, but its full content contains {max(stated)}")
        last, done = (_join_texts(each) for each in wholes)
        is_twice = dense(last.content or "") == dense(done.content or "")
        for each, parts in zip((done, last), reversed(wholes), strict=True):  # the last event takes precedence
            total, comments = _lengths(parts)[_TEXT], (text for kind, text in parts if kind == _COMMENTARY)
            late = _length(*comments) - self._n_commented  # above 0 if a phase was stated after its pieces
            # Two equal whole texts whose pieces were repeated or out of order; or pieces of unknown phase.
            if total <= came[_TEXT] <= 2 * total and (is_twice or (late > 0 and total == came[_TEXT])):
                self.said = {"text": each.content, **({"reasoning": each.reasoning} if late else {})}
        delta = max(last, done, key=lambda each: _length(each.content or "", each.reasoning or ""))
        answered = {**came, _TEXT: came[_TEXT] - self._n_commented}
        for name in {_NAMES[kind] for kind, n in answered.items() if n} | ({"reasoning"} if self._comments else set()):
            setattr(delta, name, None)
        return odd, delta

    def error(self, value: dict[str, Any]) -> object:
        """The error inside or outside the reply, including the error of a response that did not end normally."""
        if is_error(value):
            return value
        response = _final_response(value)
        status, reason = response.get("status"), object_of(response.get("incomplete_details")).get("reason")
        if not response or status == "completed" or reason:
            return None
        is_empty = not any(self._lengths.values()) and not _texts_of(objects_of(response.get("output")))
        if (_is_body(value) and status in _UNFINISHED) or (status == "incomplete" and is_empty):
            empty = {"message": f"the response is empty (status: {status})", "code": "server_error"}
            return response.get("error") or empty
        return response.get("error")

    def finished(self, index: int, item: dict[str, Any]) -> tuple[Call | None, dict[str, Any]]:
        """The call in an item, and the item as it is sent back. Raises `BadEvent`."""
        # vLLM rejects an item with a field for encrypted reasoning, even an empty one.
        item = {name: each for name, each in item.items() if each is not None}
        if item.get("type") != "function_call":
            return None, item
        if not item.get("arguments"):
            item["arguments"] = "".join(self.pieces[index, "arguments"])
        return call_of(*map(item.get, ("call_id", "name", "arguments"))), item


def _final_response(value: dict[str, Any]) -> dict[str, Any]:
    """The response that an event ends, or that a whole body represents; empty for other events.

    An event ends the response that it contains unless its name or status says that the response is unfinished.
    """
    if _is_body(value):
        return value
    response, name = object_of(value.get("response")), _name_of(value)
    is_end = name in _ENDS or not (name in _UNFINISHED or response.get("status") in _UNFINISHED)
    return response if is_end else {}


def _name_of(value: Mapping[str, Any]) -> str:
    return str(value.get("type")).removeprefix("response.")


def _end_of(value: Mapping[str, Any], response: Mapping[str, Any]) -> str:
    """The finish reason: the reason that a response states, or else its status, or else the name of its event."""
    stated = object_of(response.get("incomplete_details")).get("reason"), response.get("status")
    return next(filter(None, map(text_of, stated)), _name_of(value))


def _texts_of(items: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """(type of the events that deliver it in pieces, text) for each text of the items."""
    return [
        (
            _COMMENTARY if kind == _TEXT and item.get("phase") == _COMMENTARY else kind,
            text_of(part.get("text")) or "",
        )
        for item in items
        for part in (*objects_of(item.get("content")), *objects_of(item.get("summary")))
        if (kind := _OF_PARTS.get(str(part.get("type")))) is not None
    ]


def _join_texts(texts: Sequence[tuple[str, str]]) -> Delta:
    """The texts joined as those of a reply; a summary is used where the reasoning itself is missing."""
    is_summary = any(kind == _REASONING for kind, _ in texts)
    return delta_of(
        (_NAMES.get(kind, "reasoning"), text) for kind, text in texts if not (is_summary and kind == _SUMMARY)
    )


def _lengths(texts: Iterable[tuple[str, str]]) -> Counter[str]:
    """Type of a text's events → the length of its texts; a commentary counts as message text."""
    lengths = Counter[str]()
    for kind, text in texts:
        lengths[_TEXT if kind == _COMMENTARY else kind] += _length(text)
    return lengths


def _place(value: Mapping[str, Any]) -> int:
    """The position of an event's item; -1 if none is stated."""
    place = place_of(value.get("output_index"))
    return -1 if place is None else place


def _notes_of(item: Mapping[str, Any]) -> Iterator[str]:
    """Notes on what an item contains besides texts: a refusal, a call, a tool that the server ran."""
    kind = item.get("type")
    if kind in _CALLS:
        yield "tool call"
    elif item and kind not in ("message", "reasoning"):
        yield unread(str(kind))
    elif [*_refusals_of(item)]:
        yield "refusal"
    elif kind == "message":
        for part in (item, *objects_of(item.get("content"))):
            yield from thought_marks(part)


def _refusals_of(item: Mapping[str, Any]) -> Iterator[str]:
    """The text of each refusal in an item."""
    for part in objects_of(item.get("content")):
        if part.get("type") == "refusal":
            yield text_of(part.get("refusal")) or ""


def _length(*texts: str) -> int:
    """The length without white space, which vLLM's parsers strip from the ends of a whole text; in UTF-16 units, since
    the halves of a surrogate pair may come in two deltas.
    """
    text = dense("".join(texts))
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _usage(usage: object) -> dict[str, Any] | None:
    """The token counts under the chat API's names; None if there are none."""
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


_PARTS: Parts = {
    "text": lambda text: {"type": "input_text", "text": text},
    "image": lambda url: {"type": "input_image", "image_url": url},
}
_REPLY_PARTS: Parts = {"text": lambda text: {"type": "output_text", "text": text}}


def _turn(message: Message) -> list[dict[str, Any]]:
    """The items of a message: its content, its calls, or the result of one."""
    if message.call_id:
        return [{"type": "function_call_output", "call_id": message.call_id, "output": message.content}]
    content = content_of(message, _REPLY_PARTS if message.role == "assistant" else _PARTS)
    said = [{"role": message.role, "content": content}] if content or not message.calls else []
    calls = ((call, sendable(call.name, call.arguments)) for call in message.calls or ())
    return said + [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}
        for call, arguments in calls
    ]


def _calling(fields: Mapping[str, Any]) -> dict[str, Any]:
    named = object_of(fields.get("tool_choice")).get("function")
    return {**fields, **({"tool_choice": {"type": "function", **named}} if named else {})}


def _answered(turn: Turn, outputs: Sequence[str]) -> list[Any]:
    called = zip(turn.calls, outputs, strict=True)
    results = ({"type": "function_call_output", "call_id": call.id, "output": output} for call, output in called)
    carried = [
        item | {"arguments": sendable(item.get("name", ""), item.get("arguments", ""))}
        if item.get("type") == "function_call"
        else item
        for item in turn.carry
    ]
    return [*carried, *results]


RESPONSES = API(
    name="responses",
    path="/responses",
    owned={
        "model": "use `model`",
        "stream": "use `drop=stream`",
        "store": "replies are not stored by the provider",
        **dict.fromkeys(("input", "instructions", "prompt", "messages"), "the benchmark card defines the prompt"),
        **dict.fromkeys(("background", "previous_response_id", "conversation"), "each request is independent"),
    },
    # No item has a status: vLLM would continue an item that has one.
    prompt=lambda messages, _text: prompt_of("instructions", "input", messages, _turn),
    bound="max_output_tokens",
    parts=_PARTS,
    reader=_ResponsesReader,
    takes=frozenset({"temperature", "top_p", "max_tokens"}),
    fixed={"store": False},
    thinking=_thinking,
    stream_usage=False,
    idle=600.0,
    tools=ToolForm(
        reader=partial(_ResponsesReader, calls=True),
        turns="input",
        offer=lambda tools: {
            "tools": [{"type": "function", **function_of(tool)} for tool in tools],
            # The provider stores nothing, so the reasoning has to be sent with the request.
            "include": ["reasoning.encrypted_content"],
        },
        calling=_calling,
        answered=_answered,
    ),
)
