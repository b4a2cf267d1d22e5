"""Chat: messages, which the server puts into its chat template; with a tool, calls come in fragments.

A fragment belongs to the call with its id, or else with its index, or else to the latest call. A new id begins a call.

The completions API uses this reader, too: replies of both are lists of choices, and either API's replies may have the
other's form, since gateways answer a chat with `text`, and a completion with a message. Nearly all events have the
usual form: at most one choice, of index 0, with texts that are strings and no unknown fields. They decode straight into
`Event`, in a third of the time of plain JSON. `event_of` makes the same value from any other form, or says why the
event cannot be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Annotated, Any

import msgspec

from harness.client.apis.api import API, BadEvent, Call, Choice, Delta, Event, Parts, Reader, ToolForm, Turn
from harness.client.apis.prompts import content_of, function_of, sendable
from harness.client.apis.values import (
    is_error,
    object_of,
    objects_in,
    objects_of,
    place_of,
    string_of,
    text_of,
    thought_marks,
    unread,
)
from harness.core import codec
from harness.core.records import Message, SentCall
from harness.core.reply_notes import MORE_CHOICES, NO_PLACE

OWNED = {
    "model": "use `model`",
    "messages": "the benchmark card defines the prompt",
    "prompt": "the benchmark card defines the prompt",
    "stream": "use `drop=stream`",
    "seed": "use `seed`",
    "n": "each sample is a separate request; use `samples`",
}
"""Request field that only the harness sets → what the user can do instead."""

_THOUGHTS = ("reasoning_content", "reasoning")
"""Message fields with the reasoning. If both are strings, the first that is not empty is read."""

_SILENT_FIELDS = frozenset(("content", "role", "name", "annotations", "provider_specific_fields"))
"""Message fields that are read elsewhere, and those that never contain a part of the answer."""


def event_of(value: dict[str, Any]) -> tuple[Event, list[str]]:
    """The event in `value`, and notes on its oddities. Raises `BadEvent`."""
    usage, choices = value.get("usage"), value.get("choices")
    # Usage may come alone, and what is written in Go may send null in place of an empty list.
    is_empty = type(choices) is not list and not (usage and "choices" in value)
    is_named = value.get("id") or value.get("model") or "completion" in str(value.get("object"))
    notes = [NO_PLACE] if is_empty and is_named else []
    every = objects_in(choices, "choices")
    ours = [choice for choice in every if _is_ours(choice)]
    if len(ours) < len(every):
        notes.append(MORE_CHOICES)
    if len(ours) > 1:
        raise BadEvent(f"one event contains {len(ours)} choices with index 0; expected one")
    event = Event(
        choices=[_choice(choice, notes) for choice in ours],
        usage=usage if type(usage) is dict else None,
        metrics=value.get("metrics"),
        sglext=value.get("sglext"),
        timings=value.get("timings"),
        model=text_of(value.get("model")),
        id=text_of(value.get("id")),
        system_fingerprint=text_of(value.get("system_fingerprint")),
        provider=text_of(value.get("provider")),
        is_whole=any(choice.get("message") and choice.get("delta") is choice.get("text") is None for choice in ours),
    )
    return event, notes


def _error_in(value: dict[str, Any]) -> object:
    """The error in `value`, or in its first choice that has one: gateways put upstream failures there."""
    if value.get("error") or (value.get("choices") is None and is_error(value)):
        return value
    return next((choice["error"] for choice in objects_of(value.get("choices")) if choice.get("error")), None)


def _is_ours(choice: dict[str, Any]) -> bool:
    """Whether the choice has index 0, or none. Others belong to requests with `n` > 1, which are never sent."""
    return (place_of(choice.get("index")) or 0) <= 0


def _choice(choice: dict[str, Any], notes: list[str]) -> Choice:
    """The choice of an event or a whole body; adds what is not read to `notes`. Raises `BadEvent`."""
    delta, message, text = choice.get("delta"), choice.get("message"), choice.get("text")
    if message and (delta is not None or text is not None):
        notes.append(unread("message"))
    notes += [*thought_marks(choice), *(unread(name) for name in _THOUGHTS if choice.get(name) not in (None, "", True))]
    body = message if delta is text is None else delta
    return Choice(
        delta=None if body is None else _delta(objects_in([body], "messages")[0], notes),
        finish_reason=text_of(choice.get("finish_reason")),
        text=None if text is None else string_of(text, "text"),
    )


def _delta(body: dict[str, Any], notes: list[str]) -> Delta:
    """The texts of a delta or a message; adds what is not read to `notes`."""
    content = body.get("content")
    thoughts = [thought for name in _THOUGHTS if isinstance(thought := body.get(name), str)]
    if type(content) is list:
        parts = [*_parts(content, notes)]
        content = "".join(text for kind, text in parts if kind == "text") or None
        thoughts[:0] = filter(None, ["".join(text for kind, text in parts if kind == "thinking")])
    # Some servers send the same reasoning in two fields, or leave one empty: use the first that is not empty.
    reasoning = next(filter(None, thoughts), "" if thoughts else None)
    for name, value in body.items():
        if not value or name in _SILENT_FIELDS:
            continue
        if name == "refusal":
            notes.append("refusal")
        elif name in ("tool_calls", "function_call"):
            notes.append("tool call")
        # `reasoning_details`, `thinking_blocks` and similar fields repeat the reasoning, with a signature.
        elif reasoning and ("reason" in name or "think" in name):
            pass
        elif type(value) in (str, list, dict) or name in _THOUGHTS:
            notes.append(unread(name))
    notes += [] if reasoning else thought_marks(body)
    content = None if content is None else string_of(content, "content")
    return Delta(content=content, reasoning=reasoning, refusal=text_of(body.get("refusal")))


def _parts(content: list[Any], notes: list[str]) -> Iterator[tuple[str, str]]:
    """("text" or "thinking", its text) for each part of a content that is a list, as Mistral's is."""
    for part in objects_in(content, "parts"):
        thinking, text = part.get("thinking"), part.get("text")
        if type(thinking) is list:
            thinking = "".join(string_of(each.get("text"), "thinking") for each in objects_in(thinking, "thoughts"))
        for kind, value in (("thinking", thinking), ("text", text)):
            if value is not None:
                yield kind, string_of(value, kind)
        if thinking is None and text is None:
            notes.append(unread(str(part.get("type"))))
        notes += thought_marks(part)


class ChoicesReader(Reader):
    """The reader for every reply of both APIs: it keeps no state between events."""

    decode = staticmethod(msgspec.json.Decoder(Event).decode)
    event = staticmethod(event_of)
    error = staticmethod(_error_in)
    is_body = staticmethod(lambda value: bool(value.get("choices")))


READER = ChoicesReader()
"""The single reader of choices, used for all replies."""


# ---- log-probabilities, which both APIs report with a choice


class _Likely(msgspec.Struct):
    token: str = ""
    logprob: float | None = None


class Token(msgspec.Struct):
    """One token of a reply. logprob: natural logarithm of its probability. top_logprobs: the most likely tokens at its
    position.
    """

    token: str = ""
    logprob: float | None = None
    top_logprobs: list[_Likely] = []

    @property
    def top(self) -> dict[str, float]:
        """Token → log-probability of the most likely tokens whose probability is a number."""
        return {likely.token: likely.logprob for likely in self.top_logprobs or () if likely.logprob is not None}


class _Logprobs(msgspec.Struct):
    """`content` of chat; the other three fields of completions."""

    content: list[Token] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float | None] | None] | None = None


def tokens_of(choice: dict[str, Any]) -> list[Token]:
    """The tokens for which a choice of either API reports log-probabilities, if any. Raises `BadEvent`."""
    try:
        stated = msgspec.convert(choice.get("logprobs"), _Logprobs | None) or _Logprobs()
    except msgspec.ValidationError as error:
        raise BadEvent(str(error)) from error
    if stated.content is not None:
        return stated.content
    tokens = stated.tokens or []
    # Servers may report fewer or more entries than tokens.
    rows = islice(zip_longest(tokens, stated.token_logprobs or (), stated.top_logprobs or ()), len(tokens))
    return [Token(text, own, [_Likely(*pair) for pair in (top or {}).items()]) for text, own, top in rows]


# ---- the API: messages and tool calls


class _Function(msgspec.Struct, gc=False):
    arguments: str
    name: str | None = None


class _CallPiece(msgspec.Struct, gc=False):
    function: _Function
    id: str | None = None
    index: int | None = None


class _CallDelta(Delta, gc=False):
    tool_calls: list[_CallPiece] | None = None  # type: ignore[assignment]  # not an empty list


class _CallChoice(Choice, gc=False):
    delta: _CallDelta | None = None


class _CallEvent(Event, gc=False):
    choices: Annotated[list[_CallChoice], msgspec.Meta(max_length=1)]  # type: ignore[assignment]


_decode = msgspec.json.Decoder(_CallEvent).decode


class _CallsReader(ChoicesReader):
    """Reads one reply that may contain calls, and remembers which field contained its reasoning."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, str, list[str]]] = []  # id, name, pieces of the arguments
        self._positions: dict[object, int] = {}  # an id, or an index → position of its latest call
        self._reasoning = ""

    def decode(self, data: bytes) -> Event:  # type: ignore[override]
        """The event as for any chat, or of a piece of a call that has begun; remembers the field of the reasoning."""
        event = _decode(data)
        for choice in event.choices:
            delta = choice.delta
            if delta is None:
                continue
            if delta.reasoning_content or delta.reasoning:
                self._reasoning = "reasoning_content" if delta.reasoning_content else "reasoning"
            if delta.tool_calls:
                piece = delta.tool_calls[0]
                position = self._positions.get(piece.index)
                if position is None or piece.id or piece.function.name or len(delta.tool_calls) > 1:
                    raise msgspec.DecodeError  # not the usual form of a piece: left to `_take`
                self._calls[position][2].append(piece.function.arguments)
                event.has_call = True
        return event

    def event(self, value: dict[str, Any]) -> tuple[Event, list[str]]:
        """The event as for any chat; the calls are also stored."""
        read = ChoicesReader.event(value)
        for choice in objects_of(value.get("choices")):
            body = object_of(choice.get("delta")) or object_of(choice.get("message"))
            self._reasoning = next(filter(body.get, _THOUGHTS), self._reasoning)
            if _is_ours(choice):
                pieces, begins = objects_of(body.get("tool_calls")), not choice.get("delta")
                if pieces and begins:  # a whole message has all calls
                    self._calls, self._positions = [], {}
                for piece in pieces:
                    self._take(piece, begins=begins)
                    read[0].has_call = True
        return read

    def _take(self, piece: dict[str, Any], *, begins: bool) -> None:
        """Add a fragment to its call, or begin a call. Raises `BadEvent`.

        begins: whether each piece is a separate call, as in a whole message. In a stream, a name at a new index begins
        a call, even if an earlier call has the same id.
        """
        call_id, function = string_of(piece.get("id"), "call's id"), object_of(piece.get("function"))
        name, arguments = string_of(function.get("name"), "call's name"), function.get("arguments")
        index = place_of(piece.get("index"))
        if isinstance(arguments, dict):
            arguments = codec.encode(arguments).decode()
        arguments = string_of(arguments, "call's arguments")
        position = self._positions.get(call_id or index)
        if begins or (name and index is not None and index not in self._positions):
            position = None
        elif position is None and not (call_id or name or index is not None):
            position = len(self._calls) - 1  # without id, index and name it continues the latest call
        if position is None:
            position = len(self._calls)
            self._calls.append((call_id, name, [arguments]))
        elif position < 0:
            raise BadEvent("it continues a tool call that has not started")
        else:
            first_id, first_name, pieces = self._calls[position]
            pieces.append(arguments)
            self._calls[position] = first_id, first_name or name, pieces
        self._positions |= {key: position for key in (call_id or None, index) if key is not None}

    def calls_and_parts(self) -> tuple[tuple[Call, ...], tuple[Any, ...]]:
        """The calls, and the name of the field that contained the reasoning."""
        calls = tuple(Call(call_id, name, "".join(pieces)) for call_id, name, pieces in self._calls)
        return calls, (self._reasoning,) if self._reasoning else ()


def _called(calls: Iterable[Call | SentCall]) -> list[Any]:
    functions = ((call.id, {"name": call.name, "arguments": sendable(call.name, call.arguments)}) for call in calls)
    return [{"id": call_id, "type": "function", "function": function} for call_id, function in functions]


_PARTS: Parts = {
    "text": lambda text: {"type": "text", "text": text},
    "image": lambda url: {"type": "image_url", "image_url": {"url": url}},
}


def _turn(message: Message) -> dict[str, Any]:
    """A message as it is sent; its parts, its calls, or the call that it answers get the API's names."""
    content = content_of(message, _PARTS)
    if message.calls:
        return {"role": message.role, "content": content or None, "tool_calls": _called(message.calls)}
    if message.call_id:
        return {"role": message.role, "tool_call_id": message.call_id, "content": content}
    return {"role": message.role, "content": content}


def _answered(turn: Turn, outputs: Sequence[str]) -> list[Any]:
    calls = _called(turn.calls)
    reasoning = {name: turn.reasoning for name in turn.carry if turn.reasoning}
    assistant: dict[str, Any] = {"role": "assistant", "content": turn.text or "", **reasoning}
    if calls:
        assistant["tool_calls"] = calls
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": output}
        for call, output in zip(turn.calls, outputs, strict=True)
    ]
    return [assistant, *results]


CHAT = API(
    name="chat", path="/chat/completions", owned=OWNED, bound=None, reader=lambda: READER,
    prompt=lambda messages, _text: {"messages": [*map(_turn, messages)]},
    likeliest=lambda n: {"logprobs": True, "top_logprobs": n},
    by_schema=lambda name, schema: {"response_format": {
        "type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True},
    }},
    parts=_PARTS,
    tools=ToolForm(
        reader=_CallsReader,
        turns="messages",
        offer=lambda tools: {"tools": [{"type": "function", "function": function_of(tool)} for tool in tools]},
        answered=_answered,
    ),
)  # fmt: skip
