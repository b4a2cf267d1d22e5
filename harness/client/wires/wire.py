"""One API's shape as one value: how a request is written, and how its reply, a stream or a whole body, is read.

    option api ─▶ Spelling ─▶ Wire ─┬─▶ RequestTemplate    path, fields of the prompt, name of the bound
                                    └─▶ ReplyParser ─▶ Reader ─▶ Event ─▶ Completion

A reader turns each event of its API into the same `Event`, so what adds them up, checks and stores them knows no API.
A further API is a file beside `chat` with its value and its reader, its name in `table`, and its word in
`core.choices.Api`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec

from harness.core.choices import Api
from harness.core.records import Message
from harness.core.reply_notes import UNREAD_TEXT

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
    metrics: Any = None
    sglext: Any = None
    timings: Any = None
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


class Call(msgspec.Struct, frozen=True):
    """A model's request to run a tool. id: empty if the server states none. arguments: as sent, perhaps no JSON."""

    id: str
    name: str
    arguments: str


class Turn(NamedTuple):
    """What the next request of a conversation hands back of a reply. carry: what its API wants back unchanged."""

    text: str | None
    reasoning: str | None
    calls: tuple[Call, ...]
    carry: tuple[Any, ...]


class Reader(Protocol):
    """Reads one reply: its events in their order, or its whole body. A reader of its own for each reply may keep state.

    index_field: the field by which an event says to which part of the reply it belongs; with it, an event without
    text shows that the model works, and moves the idle deadline. over: whether the event that ends the reply has
    come, as `[DONE]` does.
    """

    index_field: str | None
    over: bool

    def decode(self, data: bytes, /) -> Event:
        """The event of JSON that has the usual form, as nearly all have.

        Raises `msgspec.DecodeError`, `UnicodeDecodeError` or `RecursionError` for any other form.
        """
        ...

    def event(self, value: dict[str, Any], begun: bool, /) -> tuple[Event, list[str]]:
        """The event that an object of any form, or a whole body, is, with notes on its oddities. Raises `BadEvent`.

        begun: whether texts came before it.
        """
        ...

    def error(self, value: dict[str, Any], /) -> object:
        """The error that such an object states, of a shape that `failure_of_event` reads; None without one."""
        ...

    def is_whole(self, value: dict[str, Any], /) -> bool:
        """Whether an object is a reply, or an error, of this API in one piece, and no stranger's page."""
        ...

    def handed(self) -> tuple[tuple[Call, ...], tuple[Any, ...]]:
        """The reply's calls, and what of it the next request hands back; empty unless a tool was offered."""
        ...


def is_error(value: Mapping[str, Any]) -> bool:
    """Whether an object is an error in place of a reply or of its event: with `error`, of the type or the kind `error`
    (SGLang's), or with FastAPI's `detail`.
    """
    return bool(value.get("error") or value.get("detail")) or "error" in (value.get("object"), value.get("type"))


def string_or_none(value: object) -> str | None:
    """`value` if it is a string that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def unread(name: str) -> str:
    """The note on something called `name` that is not read."""
    return f"{UNREAD_TEXT}: {name}" if _FIELD_NAME.match(name) else UNREAD_TEXT


_FIELD_NAME = re.compile(r"[A-Za-z_]{1,40}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolForm:
    """How an API offers a tool and takes its results.

    reader: makes the reader of a reply that may hold calls. turns: field of the prompt that holds the turns. offer: the
    fields that offer a tool of this name, description and JSON schema. answered: the turns that follow a reply: the
    reply itself, and the output of each of its calls.
    """

    reader: Callable[[], Reader]
    turns: str
    offer: Callable[[str, str, dict[str, Any]], dict[str, Any]]
    answered: Callable[[Turn, Sequence[str]], list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One API's shape.

    api: its word as an option. path: of its requests, below the base URL. owned: field of a request that only the
    harness sets → what the user can do instead. prompt: the fields that hold a prompt, of its messages and its text, of
    which one is empty. bound: the field that bounds new tokens; None: the provider's. templated: whether the server
    puts the prompt into its chat template; without one, a request has no switch for thinking and no arguments for the
    template. reader: makes the reader of a reply. likeliest: the fields that ask for the n likeliest tokens.

    takes: the sampling fields, `seed` and `chat_template_kwargs` among them, that every server of the API obeys;
    some engines obey more (`Dialect.obeys`); None: all. fixed: fields of every request. rename: our name of a
    sampling field → this API's. thinking: turns the fields by which a provider's chat switches thinking into this
    API's; raises `ValueError` with the end of a sentence for what has no field. states_ids: whether a server may
    state token ids, so that replies can be continued. stream_usage: whether a stream has to be asked to state its
    token counts. bound_required: whether a request must bound its new tokens. headers: of every request, unless the
    user gives one of the same name; their values are a part of the run's identity. in_batches: whether providers'
    batches take its requests. idle: seconds from one sign of life to the next. tools: None: the API offers none.
    """

    api: Api
    path: str
    owned: Mapping[str, str]
    prompt: Callable[[Sequence[Message], str], dict[str, Any]]
    bound: str | None
    reader: Callable[[], Reader]
    likeliest: Callable[[int], dict[str, Any]] = lambda _n: {}
    templated: bool = True
    takes: frozenset[str] | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    thinking: Callable[[dict[str, Any]], dict[str, Any]] = lambda fields: fields
    states_ids: bool = True
    stream_usage: bool = True
    bound_required: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    in_batches: bool = True
    idle: float = 120.0
    tools: ToolForm | None = None

    @property
    def with_calls(self) -> Wire:
        """The same, for requests that offer a tool: calls are read, which costs time at each token."""
        return self if self.tools is None else replace(self, reader=self.tools.reader)
