"""Events of the usual form, as nearly all are, decoded into typed fields; that takes a third of the time of plain JSON.

An event decodes here only if it has at most one choice, of index 0, its texts are strings, and its delta has no unknown
field. Any other event (an error, a tool call, a second choice, an unusual type) fails to decode, and `Completion.add`
reads it field by field. An event that decodes gives the same reply either way.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from harness.client.protocol.usage import StatedUsage

_NoneOfThem = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=0)] | None
"""An empty list, or null: the field is there and holds nothing."""


# These objects hold no cycles, so the garbage collector need not track thousands of them a second.
class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    role: str | None = None
    refusal: None = None
    tool_calls: _NoneOfThem = None
    function_call: None = None
    annotations: _NoneOfThem = None
    audio: None = None


class _Token(msgspec.Struct, gc=False):
    logprob: float | None = None


class _Logprobs(msgspec.Struct, gc=False):
    content: list[_Token] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    index: Literal[0] | None = None
    finish_reason: str | None = None
    text: None = None
    message: None = None
    error: None = None
    token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None


class PlainEvent(msgspec.Struct, gc=False):
    """An event of a streamed chat completion, of the usual form."""

    choices: Annotated[list[_Choice], msgspec.Meta(max_length=1)]
    error: None = None
    usage: StatedUsage | None = None
    prompt_token_ids: list[int] | None = None
    model: str | None = None
    id: str | None = None
    system_fingerprint: str | None = None


decode_plain_event = msgspec.json.Decoder(PlainEvent).decode
"""Decodes the JSON of an event.

Raises `msgspec.DecodeError`, `UnicodeDecodeError` or `RecursionError` if the event is not of the usual form.
"""
