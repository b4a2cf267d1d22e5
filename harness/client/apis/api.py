"""One API's shape as one value: how a request is written, and how its reply, a stream or a whole body, is read.

    option api ─▶ Spelling ─▶ API ─┬─▶ RequestTemplate    path, fields of the prompt, name of the bound
                                    └─▶ ReplyParser ─▶ Reader ─▶ Event ─▶ Completion

A reader turns each event of its API into the same `Event`, so the code that adds up, checks and stores events is
independent of the API. To add an API, add a file next to `chat` with its value and its reader, an entry in `table`, and
a name in `core.choices.ApiName`. What the readers of several APIs share is at the end.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from harness.core import codec
from harness.core.choices import ApiName
from harness.core.records import Message, OfferedTool, Question
from harness.core.reply_notes import UNREAD_TEXT
from harness.tools.table import arguments_of

MAX_NAME_CHARS = 1024
"""Length of the longest id, model name, fingerprint or finish reason that is accepted."""

_T = TypeVar("_T")

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
    """The choice of index 0. text: used by the completions API, which sends no delta."""

    delta: Delta | None = None
    index: Literal[0] | None = None
    finish_reason: str | None = None
    text: str | None = None
    message: None = None
    error: None = None
    token_ids: Any = None
    prompt_token_ids: None = None


class Event(msgspec.Struct, gc=False):
    """An event other than an error, or a whole body, under the names of the chat API, also inside `usage`."""

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
    has_call: bool = False
    """Whether the event adds to a call, which adds no text but shows that the model is working."""


class BadEvent(ValueError):
    """An event that cannot be trusted, so that its reply fails. The message says what is wrong with the event."""


def checked_name(name: str, field: str) -> str:
    """`name` itself. Raises `BadEvent` if it is longer than `MAX_NAME_CHARS`. field: the field, for the message."""
    if len(name) > MAX_NAME_CHARS:
        raise BadEvent(f"its {field} has {len(name)} characters; the limit is {MAX_NAME_CHARS}")
    return name


class Call(msgspec.Struct, frozen=True):
    """A model's request to run a tool. id: empty if the server states none. arguments: as sent, maybe not JSON."""

    id: str
    name: str
    arguments: str


class Turn(NamedTuple):
    """What the next request of a conversation sends back of a reply. carry: what the API requires back unchanged."""

    text: str | None
    reasoning: str | None
    calls: tuple[Call, ...]
    carry: tuple[Any, ...]


class Reader(Protocol):
    """Reads one reply: its events in order, or its whole body. A reader made for a single reply may keep state.

    index_field: the field in which an event says which part of the reply it belongs to. With it, an event without text
    shows that the model is working and extends the idle deadline. over: whether the event that ends the reply (like
    `[DONE]`) has arrived. said: field of the reply → its text, where the final text differs from the pieces. echo: the
    settings that the reply repeats (`core.contradictions.echoes`).
    """

    index_field: str | None
    over: bool
    said: Mapping[str, str | None]
    echo: Mapping[str, Any]

    def decode(self, data: bytes, /) -> Event:
        """The event from JSON of the usual form, which nearly all events have.

        Raises `msgspec.DecodeError`, `UnicodeDecodeError` or `RecursionError` for any other form.
        """
        ...

    def event(self, value: dict[str, Any], begun: bool, /) -> tuple[Event, list[str]]:
        """The event in an object of any form, or in a whole body, with notes on its oddities. Raises `BadEvent`.

        begun: whether texts came before it.
        """
        ...

    def error(self, value: dict[str, Any], /) -> object:
        """The error in an object, in a shape that `failure_of_event` reads; None if there is none."""
        ...

    def is_body(self, value: dict[str, Any], /) -> bool:
        """Whether an object is a whole reply of this API, not some unrelated page."""
        ...

    def handed(self) -> tuple[tuple[Call, ...], tuple[Any, ...]]:
        """The reply's calls, and what the next request sends back of it; empty unless a tool was offered."""
        ...


def is_error(value: Mapping[str, Any]) -> bool:
    """Whether an object is an error in place of a reply or an event: with `error`, of type or kind `error` (SGLang), or
    with FastAPI's `detail`.
    """
    return bool(value.get("error") or value.get("detail")) or "error" in (value.get("object"), value.get("type"))


def string_or_none(value: object) -> str | None:
    """`value` if it is a non-empty string, otherwise None."""
    return value if isinstance(value, str) and value else None


def unread(name: str) -> str:
    """The note that something called `name` is not read."""
    return f"{UNREAD_TEXT}: {name}" if _FIELD_NAME.match(name) else UNREAD_TEXT


_FIELD_NAME = re.compile(r"[A-Za-z_]{1,40}\Z")


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
    switch for thinking and no template arguments. images: whether its messages can contain images. reader: makes the
    reader of a reply. likeliest: the fields that ask for the n most likely tokens. by_schema: makes the fields that ask
    for a reply that follows a JSON schema, from its name and the schema; None: there are none.

    takes: the sampling fields, including `seed` and `chat_template_kwargs`, that every server of the API obeys; some
    engines obey more (`EngineProfile.obeys`); None: all. fixed: fields of every request. rename: our name of a sampling
    field → this API's. thinking: turns the fields with which a provider's chat API switches thinking into this API's;
    raises `ValueError` with the end of a sentence for what has no field. states_ids: whether a server may return token
    ids, so that replies can be continued. stream_usage: whether a stream must be asked to report its token counts.
    bound_required: whether a request must limit its new tokens. headers: headers of every request, unless the user sets
    one of the same name; their values are part of the run's identity. in_batches: whether providers' batches accept its
    requests. idle: the longest time between two signs of life, in seconds. tools: how tools are offered; None: not at
    all.
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
    images: bool = False
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

    def check(self, question: Question) -> None:
        """Raise `ValueError`, with the end of a sentence, if the API cannot send the question."""
        if question.images and not self.images:
            raise ValueError(f"has images, which api={self.name} cannot send")
        if self.tools is None and any(message.calls or message.call_id for message in question.messages):
            raise ValueError(f"has tool calls, which api={self.name} cannot send")
        self.prompt(question.messages, question.prompt)

    @property
    def with_calls(self) -> API:
        """The same API, for requests that offer a tool: it also reads calls, which costs time at each token."""
        return self if self.tools is None else replace(self, reader=self.tools.reader)


# ---- replies made of parts, each of which is sent in pieces


TextName = Literal["content", "reasoning"]


class ReplyParts:
    """The texts of one reply, and the ids that its events do not repeat.

    id, model: those of the reply, once they have arrived. over, said, echo: as in any reader.

    Two parts of a text are joined by a blank line, so that they do not run together. An event object is reused for the
    next piece, since making one takes as long as reading it.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.over = False
        self.said: Mapping[str, str | None] = {}
        self.echo: Mapping[str, Any] = {}
        self._last: dict[TextName, object] = {}  # name of a text → the latest part of it that had characters
        self._content, self._reasoning = Delta(), Delta()
        self._of_content = Event(choices=[Choice(delta=self._content)])
        self._of_reasoning = Event(choices=[Choice(delta=self._reasoning)])
        self._of_call = Event(choices=[], has_call=True)

    def named(self, reply_id: object, model: object) -> None:
        """Store the reply's id and model, if they are stated."""
        self.id = reply_id if isinstance(reply_id, str) and reply_id else self.id
        self.model = model if isinstance(model, str) and model else self.model
        for event in (self._of_content, self._of_reasoning, self._of_call):
            event.id, event.model = self.id, self.model

    def added(self, name: TextName, piece: str, part: object) -> Event:
        """The event for a piece of a text. part: the part of the reply that it belongs to."""
        if piece and self._last.get(name) != part:
            if name in self._last:
                piece = f"\n\n{piece}"
            self._last[name] = part
        if name == "content":
            self._content.content = piece
            return self._of_content
        self._reasoning.reasoning = piece
        return self._of_reasoning

    def handed(self) -> tuple[tuple[Call, ...], tuple[Any, ...]]:
        """Nothing: no tool was offered."""
        return (), ()

    def plain(self, choice: Choice | None = None, usage: dict[str, Any] | None = None) -> Event:
        """A new event. choice: its part of the texts; None: nothing."""
        return Event(choices=[] if choice is None else [choice], usage=usage, id=self.id, model=self.model)


def piece_of(value: dict[str, Any], form: type[_T]) -> _T:
    """A piece of a text as a struct of its usual form. Raises `BadEvent`."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise BadEvent(f"a chunk of its text has an unexpected format ({error})") from error


def whole(texts: Iterable[tuple[TextName, str]]) -> Delta:
    """The texts of a reply that came in one piece, joined as pieces would be. texts: (name, text) of each part."""
    parts = dict[TextName, list[str]]()
    for name, text in texts:
        parts.setdefault(name, []).append(text)
    joined = {name: "\n\n".join(each) for name, each in parts.items()}
    return Delta(content=joined.get("content"), reasoning=joined.get("reasoning"))


def dense(text: str) -> str:
    """The text without white space, which vLLM's parsers strip from the ends of a whole text."""
    return "".join(text.split())


def content_of(message: Message, kind: str = "text") -> str | list[dict[str, Any]]:
    """The content of a message as it is sent: a text, or a list of texts, whose entries have type `kind`."""
    return [{"type": kind, "text": text} for text in message.texts] if message.breaks else message.content


def prompt_of(
    system: str, turns: str, messages: Sequence[Message], turn: Callable[[Message], list[dict[str, Any]]]
) -> dict[str, Any]:
    """The fields of a prompt: the first message, if it is a system message, as `system`, and all others as `turns`.

    turn: makes the turns of a message with calls, with the result of a call, with a list of texts, or with images.
    """
    first = {system: messages[0].content} if messages[0].role == "system" else {}
    said = (
        turn(each)
        if each.calls or each.call_id or each.breaks or each.images
        else [{"role": each.role, "content": each.content}]
        for each in messages[len(first) :]
    )
    return {**first, turns: [*chain.from_iterable(said)]}


def parts_of(message: Message, text: str, image: Callable[[str], dict[str, Any]]) -> list[dict[str, Any]]:
    """The content of a message with images. text: the type of a text part. image: makes the part of an image from its
    URL; an image that is not loaded has its checksum in place of the URL.
    """
    return [
        {"type": text, "text": part} if isinstance(part, str) else image(part.url or f"sha256:{part.sha256}")
        for part in message.parts
    ]


def string_of(value: object, name: str) -> str:
    """`value`, or an empty text if it is missing. Raises `BadEvent` if it is not a string. name: its field's name."""
    if value is not None and not isinstance(value, str):
        raise BadEvent(f"its {name} is not a string")
    return value or ""


NO_CALL_ID = "a tool call has no id"


def call_of(call_id: object, name: object, arguments: object) -> Call:
    """The tool call with these values. Raises `BadEvent` if the id is missing or any of them is not a string."""
    if not (call_id and isinstance(call_id, str)):
        raise BadEvent(NO_CALL_ID)
    return Call(call_id, string_of(name, "call's name"), string_of(arguments, "call's arguments"))


def sendable(name: str, arguments: str) -> str:
    """A call's arguments as a server accepts them back: a JSON object (`arguments_of`). name: the tool's."""
    with contextlib.suppress(codec.DecodeError):
        value: Any = codec.decode(arguments.encode("utf-8", "surrogatepass"))
        if isinstance(value, dict) and "\\ud" not in arguments.lower():
            return arguments
    return codec.encode_strictly(arguments_of(name, arguments)).decode()


def object_of(value: object) -> dict[str, Any]:
    """`value` if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
