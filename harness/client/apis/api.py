"""One API's shape as one value: how a request is written, and how its reply, a stream or a whole body, is read.

    option api ─▶ Spelling ─▶ API ─┬─▶ RequestTemplate    path, fields of the prompt, name of the bound
                                    └─▶ ReplyParser ─▶ Reader ─▶ Event ─▶ Completion

A reader turns each event of its API into the same `Event`, so the code that adds up, checks and stores events is
independent of the API. To add an API, add a file next to `chat` with its value and its reader, an entry in `table`, and
a name in `core.literals.ApiName`. `parts` and `prompts` have what several APIs share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec

from harness.core.literals import ApiName
from harness.core.records import MediaKind, Message, OfferedTool, Question

MAX_NAME_CHARS = 1024
"""Length of the longest id, model name, fingerprint or finish reason; a longer one is truncated."""

_Empty = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=0)] | None
"""An empty list, or null: the field is present but empty."""


# These objects contain no cycles, so the garbage collector need not track thousands of them a second.
class Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What an event adds to the texts."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    role: str | None = None
    refusal: str | None = None
    tool_calls: _Empty = None
    function_call: None = None
    annotations: _Empty = None
    audio: None = None


class Choice(msgspec.Struct, gc=False):
    """The choice of index 0. text: used by the completions API, which sends no delta. Fields that can only be None
    mark a text as a thought, or contain one.
    """

    delta: Delta | None = None
    index: Literal[0] | None = None
    finish_reason: str | None = None
    text: str | None = None
    message: None = None
    error: None = None
    thought: None = None
    is_thinking: None = None
    reasoning: None = None
    reasoning_content: None = None


class Event(msgspec.Struct, gc=False):
    """An event other than an error, or a whole body, under the names of the chat API, also inside `usage`."""

    choices: Annotated[list[Choice], msgspec.Meta(max_length=1)]
    error: None = None
    usage: dict[str, Any] | None = None
    metrics: Any = None
    sglext: Any = None
    timings: Any = None
    model: str | None = None
    id: str | None = None
    system_fingerprint: str | None = None
    provider: str | None = None
    has_call: bool = False
    """Whether the event adds to a call, which adds no text but shows that the model is working."""
    is_whole: bool = False
    """Whether the event is a whole message, which must not differ from the texts before it."""


class BadEvent(ValueError):
    """An event that cannot be trusted, so that its reply fails. The message says what is wrong with the event."""


class Call(msgspec.Struct, frozen=True):
    """A model's request to run a tool. id: empty if the server states none. arguments: as sent, maybe not JSON."""

    id: str
    name: str
    arguments: str


TextName = Literal["content", "reasoning"]
"""Name of a text of a reply."""


class Turn(NamedTuple):
    """What the next request of a conversation sends back of a reply. carry: what the API requires back unchanged."""

    text: str | None
    reasoning: str | None
    calls: tuple[Call, ...]
    carry: tuple[Any, ...]


class Reader(Protocol):
    """Reads one reply: its events in order, or its whole body. A reader made for a single reply may keep state.

    index_field: the field in which an event says which part of the reply it belongs to; None for replies without parts.
    With it, an event without text shows that the model is working and extends the idle deadline, and the end of a reply
    says whether it is complete in spite of an error. over: whether the event that ends the reply (like
    `[DONE]`) has arrived. said: field of the reply → its text, where the final text differs from the pieces. echo: the
    settings that the reply repeats (`core.contradictions.echoes`).
    """

    index_field: str | None = None
    over: bool = False
    said: Mapping[str, str | None] = MappingProxyType({})
    echo: Mapping[str, Any] = MappingProxyType({})

    def decode(self, data: bytes, /) -> Event:
        """The event from JSON of the usual form, which nearly all events have.

        Raises `msgspec.DecodeError`, `UnicodeDecodeError` or `RecursionError` for any other form.
        """

    def event(self, value: dict[str, Any], /) -> tuple[Event, list[str]]:
        """The event in an object of any form, or in a whole body, with notes on its oddities. Raises `BadEvent`."""

    def error(self, value: dict[str, Any], /) -> object:
        """The error in an object, in a shape that `failure_of_event` reads; None if there is none."""

    def is_body(self, value: dict[str, Any], /) -> bool:
        """Whether an object is a whole reply of this API, not some unrelated page."""

    def calls_and_parts(self) -> tuple[tuple[Call, ...], tuple[Any, ...]]:
        """The reply's calls, and what the next request sends back of it; empty unless a tool was offered."""
        return (), ()


Parts = Mapping[Literal["text"] | MediaKind, Callable[[str], dict[str, Any]]]
"""Kind of part of a message → the function that makes it from its text, or from the URL with its data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolForm:
    """How an API offers a tool and accepts its results.

    reader: makes the reader of a reply that may contain calls. turns: the field of the prompt that contains the turns.
    offer: the fields that offer tools. answered: the turns to append after a reply: the reply itself, and the output of
    each of its calls.
    """

    reader: Callable[[], Reader]
    turns: str
    offer: Callable[[Sequence[OfferedTool]], dict[str, Any]]
    calling: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    """Turns the chat API's fields for whether and how often the model calls tools into this API's."""
    answered: Callable[[Turn, Sequence[str]], list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class API:
    """One API's shape.

    name: the value of the option `api`. path: the path of its requests, below the base URL. owned: a field that only
    the harness sets → what the user can do instead. prompt: makes the fields of a prompt from its messages and its
    text, one of which is empty. bound: the field that limits new tokens; None: the provider's. templated: whether the
    prompt is messages, which the server puts into its chat template; otherwise it is one text, and a request has no
    switch for thinking and no template arguments. parts: how the parts of a message are sent. reader: makes the
    reader of a reply. likeliest: the fields that ask for the n most likely tokens. by_schema: makes the fields that ask
    for a reply that follows a JSON schema, from its name and the schema; None: there are none.

    takes: the sampling fields, including `seed` and `chat_template_kwargs`, that every server of the API obeys; some
    engines obey more (`EngineProfile.obeys`); None: all. fixed: fields of every request. rename: our name of a sampling
    field → this API's. thinking: turns the fields with which a provider's chat API switches thinking into this API's;
    raises `ValueError` with the end of a sentence for what has no field. stream_usage: whether a stream must be asked
    to report its token counts. bound_required: whether a request must limit its new tokens. headers: headers of every
    request, unless the user sets one of the same name; their values are part of the run's identity. in_batches: whether
    providers' batches accept its requests. idle: the longest time between two signs of life, in seconds. tools: how
    tools are offered; None: not at all.
    """

    name: ApiName
    path: str
    owned: Mapping[str, str]
    prompt: Callable[[Sequence[Message], str], dict[str, Any]]
    bound: str | None
    reader: Callable[[], Reader]
    likeliest: Callable[[int], dict[str, Any]] = lambda _n: {}
    by_schema: Callable[[str, Mapping[str, Any]], dict[str, Any]] | None = None
    templated: bool = True
    parts: Parts = field(default_factory=dict)
    takes: frozenset[str] | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    thinking: Callable[[dict[str, Any]], dict[str, Any]] = lambda fields: fields
    stream_usage: bool = True
    bound_required: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    in_batches: bool = True
    idle: float = 120.0
    tools: ToolForm | None = None

    def check(self, question: Question) -> None:
        """Raise `ValueError`, with the end of a sentence, if the API cannot send the question."""
        for part in question.media:
            if part.kind not in self.parts:
                raise ValueError(f"has {part.kind}s, which api={self.name} cannot send")
        if self.tools is None and any(message.calls or message.call_id for message in question.messages):
            raise ValueError(f"has tool calls, which api={self.name} cannot send")
        self.prompt(question.messages, question.prompt)

    @property
    def with_calls(self) -> API:
        """The same API, for requests that offer a tool: it also reads calls, which costs time at each token."""
        return self if self.tools is None else replace(self, reader=self.tools.reader)
