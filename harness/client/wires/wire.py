"""One API's shape as one value: how a request is written, and how its reply, a stream or a whole body, is read.

    option api ─▶ Spelling ─▶ Wire ─┬─▶ RequestTemplate    path, fields of the prompt, name of the bound
                                    └─▶ ReplyParser ─▶ Reader ─▶ Event ─▶ Completion

A reader turns each event of its API into the same `Event`, so what adds them up, checks and stores them knows no API.
A further API is a file beside `chat` with its value and its reader, its name in `table`, and its word in
`core.choices.Api`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from harness.core.choices import Api, LengthField
from harness.core.records import Message

MAX_NAME_CHARS = 1024
"""Longest id, model name, fingerprint or finish reason that is accepted."""

_Empty = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=0)] | None
"""An empty list, or null: the field is there and holds nothing."""


# These objects hold no cycles, so the garbage collector need not track thousands of them a second.
class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What an event adds to the texts."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    role: str | None = None
    refusal: None = None
    tool_calls: _Empty = None
    function_call: None = None
    annotations: _Empty = None
    audio: None = None


class Choice(msgspec.Struct, gc=False):
    """The choice of index 0. text: of the completions API, which sends no delta."""

    delta: Delta | None = None
    index: Literal[0] | None = None
    finish_reason: str | None = None
    text: str | None = None
    message: None = None
    error: None = None
    token_ids: Any = None
    prompt_token_ids: None = None


class Event(msgspec.Struct, gc=False):
    """An event that is no error, or a whole body, in the names of the chat API; `usage`, too, has its names."""

    choices: Annotated[list[Choice], msgspec.Meta(max_length=1)]
    error: None = None
    usage: dict[str, Any] | None = None
    prompt_token_ids: Any = None
    model: str | None = None
    id: str | None = None
    system_fingerprint: str | None = None
    provider: str | None = None


class BadEvent(ValueError):
    """An event that cannot be believed, so that its reply fails. The message says what is wrong with the event."""


def checked_name(name: str, field: str) -> str:
    """`name` itself. Raises `BadEvent` if it is longer than `MAX_NAME_CHARS`. field: its field, for the message."""
    if len(name) > MAX_NAME_CHARS:
        raise BadEvent(f"its {field} has {len(name)} characters, more than {MAX_NAME_CHARS}")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads one reply: its events in their order, or its whole body. A reader of its own for each reply may keep state.

    decode: makes the event of JSON that has the usual form, as nearly all have; raises `msgspec.DecodeError`,
    `UnicodeDecodeError` or `RecursionError` for any other form. event: takes the object that an event of any form, or a
    whole body, is, and whether texts came before it; returns the event with notes on its oddities, or raises
    `BadEvent`. error: the error that such an object states, of a shape that `failure_of_event` reads; None without one.
    is_whole: whether an object is a reply, or an error, of this API in one piece, and no stranger's page.
    """

    decode: Callable[[bytes], Event]
    event: Callable[[dict[str, Any], bool], tuple[Event, list[str]]]
    error: Callable[[dict[str, Any]], object]
    is_whole: Callable[[dict[str, Any]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One API's shape.

    api: its word as an option. path: of its requests, below the base URL. owned: field of a request that only the
    harness sets → what the user can do instead. prompt: the fields that hold a prompt, of its messages and its text, of
    which one is empty. bound: the field that bounds new tokens; None: the provider's. templated: whether the server
    puts the prompt into its chat template; without one, a request has no switch for thinking and no arguments for the
    template. likeliest: the fields that ask for the n likeliest tokens. reader: makes the reader of a reply.
    """

    api: Api
    path: str
    owned: Mapping[str, str]
    prompt: Callable[[Sequence[Message], str], dict[str, Any]]
    bound: LengthField | None
    templated: bool
    likeliest: Callable[[int], dict[str, Any]]
    reader: Callable[[], Reader]
