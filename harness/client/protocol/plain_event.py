"""An event as nearly all are, decoded to the fields that are read: a third of the time of decoding all of it.

What decodes here is a whole positive statement of what an event may say: one choice of index 0, texts that are strings,
no field of a delta that is unknown. Anything else (an error, a tool call, a second choice, a type that is not the usual
one) does not decode, and `Completion.add` decides about it field by field; both make the same of what decodes.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from harness.client.protocol.usage import StatedUsage

_NoneOfThem = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=0)] | None


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
    """A chunk of a chat completion."""

    choices: Annotated[list[_Choice], msgspec.Meta(max_length=1)]
    error: None = None
    usage: StatedUsage | None = None
    prompt_token_ids: list[int] | None = None
    model: str | None = None
    id: str | None = None
    system_fingerprint: str | None = None


decode_plain_event = msgspec.json.Decoder(PlainEvent).decode
"""Raises `msgspec.DecodeError`, `UnicodeDecodeError`, `RecursionError`."""
