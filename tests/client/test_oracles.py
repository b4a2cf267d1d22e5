"""Whatever the makers' own packages read of a mutated stream, the client reads, with the same text; what they do not
read is read with a doubt, or refused by a sentence that is true of it. Events are those that httpx-sse finds.

For: harness.client.apis, harness.client.protocol.sse, harness.client.protocol.reply.

Streams of ../shared/dialects are mutated where that folder is there, else those made here and in `dialects`.
`HARNESS_FUZZ_EXAMPLES` sets the number of mutants of each API, `HARNESS_FUZZ_SEED` the seed, which changes every day.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import anthropic
import httpx
import httpx_sse
import msgspec
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from harness.client.apis.api import Event
from harness.client.apis.chat import CHAT, ChoicesReader
from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.core.reply_notes import DOUBTFUL
from harness.testing import Said
from tests.budget import SEED, examples
from tests.client.dialects import recordings
from tests.client.test_apis import CASES, FOLDER, read
from tests.client.test_events import facts

LATE = "r26_text_after_completed.sse"
"""A stream with text behind its last event, which the packages append and the client drops."""


@functools.cache
def streams(api: str) -> dict[bytes, set[str]]:
    """Streams of this API that are read, and what its package reads of them; without those that it does not read."""
    of_chat = [each for each in recordings() if each.failure is None and each.body[:1] not in (b"{", b"[")]
    mine = {
        "chat": [each.body for each in of_chat if each.case != "completions"],
        "completions": [each.body for each in of_chat if each.case == "completions"],
    }.get(api) or [b"".join(Said("4∑2.").events(api))]
    of = (case["file"] for case in CASES if (case["api"], case["outcome"]) == (api, "reply"))
    files = [(FOLDER / "streams" / name).read_bytes() for name in of if name[-3:] == "sse" and name != LATE]
    return {body: texts for body in (*mine, *files) if (texts := texts_of(api, body))}


# ---- mutants


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(object or list, its key or index) of each value inside."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def mutate_event(value: Any, rng: random.Random) -> str:
    """Drop, retype or rename one field of an event. Returns how."""
    holder, key = rng.choice([*places(value)])
    kind = rng.choice(["drop", "retype", "rename"])
    if kind == "retype" or isinstance(holder, list):
        holder[key] = rng.choice([None, 0, 7, "", "x", [], {}, True, [{}], {"x": "y"}])
        return f"retype {key}"
    was = holder.pop(key)
    if kind == "rename":
        holder[f"{key}_x"] = was
    return f"{kind} {key}"


def mutant(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """(how, the stream with one change)."""
    kind = rng.choice(["field"] * 6 + ["drop", "repeat", "swap", "cut", "damage", "rename"])
    if kind in ("cut", "damage"):
        place = rng.randrange(1, len(data))
        rest = b"" if kind == "cut" else bytes([rng.choice(b'\x00\x7f\xff"{}\\ \n\r,:0aZ')]) + data[place + 1 :]
        return kind, data[:place] + rest
    events = [event for event in data.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip()]
    at = rng.randrange(len(events))
    if kind == "drop":
        del events[at]
    elif kind == "repeat":
        events.insert(at, events[at])
    elif kind == "swap":
        at = min(at, len(events) - 2)
        events[at : at + 2] = events[at + 1], events[at]
    else:
        lines = [
            json.loads(line[5:]) if line.startswith(b"data:") and b"{" in line else line
            for line in events[at].split(b"\n")
        ]
        for value in (each for each in lines if isinstance(each, dict)):
            kind = mutate_event(value, rng) if kind == "field" else _renamed(value, rng)
        events[at] = b"\n".join(
            b"data: " + json.dumps(each).encode() if isinstance(each, dict) else each for each in lines
        )
    return kind, b"".join(event + b"\n\n" for event in events)


def _renamed(value: dict[str, Any], rng: random.Random) -> str:
    value["type"] = rng.choice(["response.done", "ping", "response.new", f"{value.get('type')}_x"])
    return f"rename event {value['type']}"


# ---- the oracles


def answering(data: bytes, package: ModuleType) -> Any:
    """A client for a package, to which every request is answered with these bytes; openai 2 takes one of httpx."""
    http = getattr(package._base_client, "httpx2", httpx)
    head = {"content-type": "text/event-stream"}
    return http.Client(transport=http.MockTransport(lambda _: http.Response(200, headers=head, content=data)))


def by_responses(data: bytes) -> list[str]:
    """What `openai` gives for a stream of Responses: the text of its pieces, of its finished items, of its last event.

    A message of the phase `commentary` is no part of the answer.
    """
    client = openai.OpenAI(api_key="k", base_url="http://h/v1", http_client=answering(data, openai), max_retries=0)
    pieces, items = list[tuple[int, str]](), dict[int, Any]()
    with client.responses.stream(model="m", input="q") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                pieces.append((event.output_index, event.delta))
            elif event.type == "response.output_item.done":
                items[event.output_index] = event.item
        final = stream.get_final_response()
    assert final.status in ("completed", "incomplete"), final.status
    wholes = [[*items.items()], [*enumerate(final.output)]]
    comments = {place for place, item in itertools.chain(*wholes) if getattr(item, "phase", "") == "commentary"}
    parts = [
        [
            (place, part.text)
            for place, item in whole
            if item.type == "message"
            for part in item.content
            if part.type == "output_text"
        ]
        for whole in wholes
    ]
    return ["".join(text for place, text in each if place not in comments) for each in (pieces, *parts)]


def by_chat(data: bytes) -> list[str]:
    """The same of chat."""
    client = openai.OpenAI(api_key="k", base_url="http://h/v1", http_client=answering(data, openai), max_retries=0)
    state: Any = ChatCompletionStreamState()
    for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
        state.handle_chunk(chunk)
    choice = state.current_completion_snapshot.choices[0]
    assert choice.finish_reason
    assert isinstance(choice.finish_reason, str)
    return [choice.message.content or ""]


def by_completions(data: bytes) -> list[str]:
    """The same of plain completions."""
    client = openai.OpenAI(api_key="k", base_url="http://h/v1", http_client=answering(data, openai), max_retries=0)
    chunks = client.completions.create(model="m", prompt="q", stream=True)
    choices = [choice for chunk in chunks for choice in chunk.choices if choice.index in (0, None)]
    assert any(choice.finish_reason and isinstance(choice.finish_reason, str) for choice in choices)
    return ["".join(choice.text or "" for choice in choices)]


def by_messages(data: bytes) -> list[str]:
    """The same of Messages, by `anthropic`."""
    client = anthropic.Anthropic(
        api_key="k", base_url="http://h", http_client=answering(data, anthropic), max_retries=0
    )
    with client.messages.stream(model="m", messages=[], max_tokens=9) as stream:
        final = stream.get_final_message()
    assert final.stop_reason
    assert isinstance(final.stop_reason, str)
    return ["".join(block.text for block in final.content if block.type == "text")]


ORACLES: dict[str, Callable[[bytes], list[str]]] = {
    "chat": by_chat,
    "completions": by_completions,
    "responses": by_responses,
    "messages": by_messages,
}


def dense(text: str | None) -> str:
    whole = (text or "").encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return "".join(whole.split())


def texts_of(api: str, data: bytes) -> set[str]:
    """What the package reads: the statement that is made twice, else each; empty if it does not read to the end."""
    try:
        said = Counter(map(dense, ORACLES[api](data)))
    except Exception:  # noqa: BLE001
        return set()
    said = Counter({text: n for text, n in said.items() if text}) or said
    return {text for text, n in said.items() if n > 1} or {*said}


def events_of(data: bytes) -> list[Any]:
    """The data of each event that httpx-sse finds, decoded where it is JSON."""
    response = httpx.Response(
        200, headers={"content-type": "text/event-stream"}, content=data.removeprefix(b"\xef\xbb\xbf")
    )
    return [_decoded(each.data) for each in httpx_sse.EventSource(response).iter_sse()]


def _decoded(data: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data


# ---- what may differ


Check = Callable[[list[Any], bytes], bool]
TRUE: Check = lambda events, data: True  # noqa: E731
NONE = type(None)
LINE = re.compile(rb"(?:data|event|id|retry)?(?::|\Z)|\Z")


def named(events: list[Any], name: str) -> list[Any]:
    """The value of every field of that name."""
    return [holder[key] for event in events for holder, key in places(event) if key == name]


def choices(events: list[Any]) -> list[Any]:
    """Each choice of a list of them."""
    return [one for each in named(events, "choices") if isinstance(each, list) for one in each]


def other(name: str, *types: type) -> Check:
    return lambda events, _: any(type(value) not in types for value in named(events, name))


def several(name: str) -> Check:
    return lambda events, _: len({str(value) for value in named(events, name)}) > 1


def lacks_deltas(events: list[Any], _: bytes) -> bool:
    """Whether a whole text of a Responses stream's answer is not among the deltas that have their name."""
    deltas = (each for each in events if isinstance(each, dict) and each.get("type") == "response.output_text.delta")
    pieces = dense("".join(str(each.get("delta")) for each in deltas))
    parts = (holder for each in events for holder, key in places(each) if key == "type")
    return any(dense(str(part.get("text"))) not in pieces for part in parts if part["type"] == "output_text")


def is_damaged(events: list[Any], data: bytes) -> bool:
    """Whether a line is no field, or an event no object."""
    lines = re.split(rb"[\r\n]+", data)
    return (
        not all(isinstance(event, dict) for event in events if event != "[DONE]")
        or not all(LINE.match(line) for line in lines)
        or "\ufffd" in data.decode(errors="replace")
    )


REFUSALS: list[tuple[str, Check, str]] = [
    # what our sentence has; whether that is true of the events; why what a package reads may be refused so
    *(
        (f"its {name} is ", other(name, str, NONE), "the packages check no types")
        for name in ("content", "reasoning", "reasoning_content", "text")
    ),
    *(
        (f"its {name} is not a string", other(name, str, NONE), "the same")
        for name in ("thinking", "signature", "status", "reason", "stop_reason", "refusal", "partial_json", "delta")
    ),
    ("a part of its content is", other("content", str, NONE), "the same"),
    ("its choices are", other("choices", list, NONE), "the same"),
    ("a choice is", lambda events, _: any(type(one) is not dict for one in choices(events)), "the same"),
    ("the index of a choice is", other("index", int, NONE), "the same"),
    ("its message is", other("delta", dict, NONE), "the same"),
    ("its finish_reason is", other("finish_reason", str, NONE), "the same"),
    ("a chunk of its text has an unexpected format", TRUE, "the same"),
    ("its delta is not an object", TRUE, ""),
    ("text from two models", several("model"), "a stream that mixes two replies is no reply"),
    ("a second reply with a different id", several("id"), "the same"),
    ("differs in id and text", several("id"), "the same"),
    ("two different finish reasons", several("finish_reason"), "the same"),
    ("is not an event field", is_damaged, "the text of a damaged field would be lost in silence"),
    ("not an event stream", is_damaged, "with a damaged first line, a body is not taken for a stream"),
    ("an event in the stream is not", is_damaged, "the text of a damaged event would be lost in silence"),
    ("block that has not started", TRUE, "a delta of another block would be joined to this one"),
    (
        "characters, but its full content",
        lacks_deltas,
        "a delta was lost, and which statement is right cannot be known",
    ),
    ("ended in the middle of an event", TRUE, ""),
    ("ended without a finish reason", TRUE, ""),
    ("it contains no events", TRUE, ""),
]


def types(events: list[Any]) -> list[str]:
    return sorted(map(str, named(events, "type")))


OTHER_TYPES: tuple[Callable[[list[Any], list[Any]], bool], str] = (
    lambda events, base: types(events) != types(base),
    "the package skips what has another type, the client knows it by what it holds",
)
READINGS: dict[str, list[tuple[Callable[[list[Any], list[Any]], bool], str]]] = {
    # where our text may be that of the stream before its change, though the package reads another; why
    "chat": [],
    "completions": [],
    "responses": [OTHER_TYPES],
    "messages": [
        OTHER_TYPES,
        (
            lambda events, base: types(events) == types(base + [b for a, b in itertools.pairwise(events) if a == b]),
            "the package begins anew a block that is begun twice",
        ),
    ],
}
LOSSES: list[tuple[Check, str]] = [
    # where a part of the text may be lost without a doubt, though the package fails; why
    (lambda events, _: [] in named(events, "delta"), "gateways in PHP make [] of an empty object"),
    (
        lambda events, _: any(
            each.get("choices") is None for each in events if isinstance(each, dict) and "usage" in each
        ),
        "usage may come alone",
    ),
    (
        lambda events, _: any(
            "delta" not in one for one in choices(events) if isinstance(one, dict) and one.get("finish_reason")
        ),
        "the reason may come alone",
    ),
]


def disagreement(api: str, base: bytes, data: bytes) -> str:
    """What is wrong with our reading of a mutant of the stream `base`; empty for nothing."""
    got, theirs, events = read(api, [data]), texts_of(api, data), events_of(data)  # `read` raises what is no failure
    if isinstance(got, RequestFailed):
        excuses = [why for words, is_true, why in REFUSALS if words in str(got) and is_true(events, data)]
        return "" if excuses and (any(excuses) or not theirs) else f"refused: {got}"
    text, before = dense(got.text), streams(api)[base]
    if text in (theirs or before):
        return ""
    if theirs:
        excused = text in before and any(may(events, events_of(base)) for may, _ in READINGS[api])
    else:
        excused = any(note.startswith(tuple(DOUBTFUL)) for note in got.notes) or (
            api in ("chat", "completions") and any(may(events, data) for may, _ in LOSSES)
        )
    return "" if excused else f"other text: {got.text!r}, not {theirs or before}"


def cut_up(data: bytes, rng: random.Random) -> list[bytes]:
    """The bytes in a few pieces, cut inside a character where there is one."""
    inside = [at for at, byte in enumerate(data) if byte & 0xC0 == 0x80]
    cuts = sorted({rng.choice(inside or [0]), *(rng.randrange(len(data) + 1) for _ in range(rng.randrange(4)))})
    return [data[a:b] for a, b in itertools.pairwise([0, *cuts, len(data)])]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("api", ORACLES)
def test_what_the_official_packages_read_is_read_and_the_rest_is_refused(api: str) -> None:
    rng, found = random.Random(f"{SEED} {api}"), dict[str, str]()
    bases = [*streams(api)]
    for _ in range(examples(600)):
        base = rng.choice(bases)
        how, data = mutant(base, rng)
        why = disagreement(api, base, data)
        if facts(read(api, cut_up(data, rng))) != facts(read(api, [data])):
            why = f"other in pieces; {why}"
        if why:
            found.setdefault(f"{how}: {why}", data.decode("utf-8", "replace"))
    assert not found, "\n".join([f"HARNESS_FUZZ_SEED={SEED}", *found])


# ---- lines and events


class Recorder(ChoicesReader):
    """A reader that keeps every event."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def decode(self, _: bytes) -> Event:  # type: ignore[override]
        raise msgspec.DecodeError

    def event(self, value: dict[str, Any], _begun: bool) -> tuple[Event, list[str]]:  # type: ignore[override]
        self.events.append(value)
        return Event(choices=[]), []

    def error(self, _: dict[str, Any]) -> None:  # type: ignore[override]
        return None


FRAMES = (
    "data: ", "data:", "data:  ", "data", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n", ":", ": ping\n", "event: x\n",
    "id: 1\n", "retry: 9\n", "foo: bar\n", "foo\n", '{"a": "∑"}', '{"b":', " 2}", "[]", "\ufeff", "\0", "\x85",
)  # fmt: skip
"""Parts of a stream's lines."""


def _fed(parser: ReplyParser, pieces: list[bytes]) -> None:
    for piece in pieces:
        parser.feed(piece, 1.0)
    parser.finish(1.0)


def test_events_are_those_that_httpx_sse_finds_however_the_bytes_are_split() -> None:
    rng = random.Random(SEED)
    for _ in range(examples(4000)):
        data = "".join(rng.choices(FRAMES, k=rng.randrange(1, 12))).encode() + b'\n\ndata: {"a": 1}\n\n'
        recorder, theirs = Recorder(), [each for each in events_of(data) if str(each).strip(" \n")]
        parser = ReplyParser(
            replace(CHAT, reader=lambda of=recorder: of), started=0.0, started_utc=0.0, max_body_bytes=1 << 20
        )
        with pytest.raises(RequestFailed) as refusal:
            _fed(parser, cut_up(data, rng))
        ours = [*filter(None, recorder.events)]
        if "finish reason" not in str(refusal.value):  # refused at an event or a line, before which all were read
            assert is_damaged(theirs, data), (data, refusal.value)
            theirs = theirs[: len(ours)]
        assert ours == theirs, data


@pytest.mark.skipif(not CASES, reason="there is no ../shared/dialects")
def test_the_streams_of_the_folder_are_mutated() -> None:
    assert min(len(streams(api)) for api in ("responses", "messages")) > 10
