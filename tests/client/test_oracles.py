"""Whatever the makers' own packages read of a mutated stream, the client reads, with the same text; what they do not
read is read with a doubt, or refused by a sentence that is true of it. Events are those that httpx-sse finds.

For: harness.client.apis, harness.client.protocol.sse, harness.client.protocol.reply.

Streams of ../shared/dialects are mutated where that folder is there, else those made here and in `dialects`.
`HARNESS_FUZZ_EXAMPLES` sets the number of mutants of each API, `HARNESS_FUZZ_SEED` the seed, which changes every day.
"""

from __future__ import annotations

import copy
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
from tests.client.dialects import engine_messages, engine_responses, recordings
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
        "messages": [*engine_messages().values()],
        "responses": [*engine_responses().values()],
    }
    of = (case["file"] for case in CASES if (case["api"], case["outcome"]) == (api, "reply"))
    files = [(FOLDER / "streams" / name).read_bytes() for name in of if name[-3:] == "sse" and name != LATE]
    said = b"".join(Said("4∑2.").events(api))
    return {body: texts for body in (said, *mine[api], *files) if (texts := texts_of(api, body))}


# ---- mutants


Events = list[list[Any]]
"""Each event as its lines; a line with an object is that object."""

EMPTY = (None, "", [], {}, False)
OTHERS = (None, 0, 7, "", "x", [], {}, True, [{}], {"x": "y"})
BROKE = {"message": "upstream broke", "code": 502}
ERRORS: tuple[dict[str, Any], ...] = (
    {"error": BROKE}, {"error": "broke"}, {"object": "error", **BROKE}, {"type": "error", **BROKE},
    {"type": "error", "error": BROKE}, {"detail": "broke"}, {"status": "error", "msg": "broke"},
)  # fmt: skip
NEXT_TO: tuple[dict[str, Any], ...] = (
    *({name: {"content": "x"}} for name in ("message", "error", "detail", "warning")), {"message": {}},
    {"error": BROKE},
    {"text": ""}, {"text": None}, {"delta": {}}, {"reasoning": "x"}, {"reasoning": ["x"]}, {"reasoning_content": BROKE},
    {"thinking": "x"}, {"tool_calls": []}, {"tool_calls": None}, {"logprobs": None}, {"refusal": None},
)  # fmt: skip
"""Fields that gateways add to an event, a choice, a delta, a block."""

BLANKS = (
    b"data: null", b'data: ""', b"data: []", b"data: {}", b"data:", b"data:  ", b"data: 0", b"data: false", b":", b"",
    b"id: 3", b"retry: 9", b"ping", b"event: ping\ndata: {}", b"event: ping\ndata: null", b'event: alive\ndata: ""',
)  # fmt: skip
ENDS = (
    b"data: [done]", b"data: [DONE] ", b"data: [DONE]\n\ndata: [DONE]", b"data: DONE", b'data: "[DONE]"', b"[DONE]",
    b"event: done\ndata: {}", b"event: done\ndata: [DONE]", b"event: end\ndata: null",
)  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(object or list, its key or index) of each value inside."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def objects(events: Events) -> list[dict[str, Any]]:
    return [line for event in events for line in event if isinstance(line, dict)]


def a_field(events: Events, rng: random.Random) -> str:
    """Drop, retype or rename a field."""
    holder, key = rng.choice([*places(rng.choice(objects(events)))])
    kind = rng.choice(["drop", "retype", "rename"])
    if kind == "retype" or isinstance(holder, list):
        holder[key] = copy.deepcopy(rng.choice(OTHERS))
        return f"retype {key}"
    was = holder.pop(key)
    if kind == "rename":
        holder[f"{key}_x"] = was
    return f"{kind} {key}"


def a_type(events: Events, rng: random.Random) -> str:
    """Write a value in another type, in one event or in all, as a server in another language does."""
    event, seed, is_everywhere = rng.choice(objects(events)), rng.random(), rng.random() < 0.5
    name = rng.choice([key for _, key in places(event) if isinstance(key, str)])
    for each in objects(events) if is_everywhere else [event]:
        for holder, key in [*places(each)]:
            if key == name:
                holder[key] = spelled(holder[key], random.Random(seed))
    return f"spell {name} anew{' everywhere' if is_everywhere else ''}"


def spelled(value: Any, rng: random.Random) -> Any:
    """The same in another type."""
    if type(value) in (int, float):
        return rng.choice([float(value), str(value), str(float(value)), [value]])
    if not value:
        return copy.deepcopy(rng.choice(EMPTY))
    if isinstance(value, str):
        number = [int(value)] * 3 if re.fullmatch("[1-9][0-9]{0,9}", value) else []
        return rng.choice([*number, [value], {"text": value}, [{"type": "text", "text": value}]])
    return rng.choice([[value], json.dumps(value), value])


def a_name(events: Events, rng: random.Random) -> str:
    """Change the id or the model of one event, of its rest, of each."""
    field, way = rng.choice(["id", "model"]), rng.choice(["one", "rest", "each", "two in turn", "none", "long"])
    chosen = rng.randrange(len(objects(events)))
    for n, each in enumerate(objects(events)):
        new = {"one": "x", "rest": "x", "each": f"n{n}", "two in turn": f"n{n % 2}", "long": "n" * 5000}.get(way)
        for holder in (each, each.get("message"), each.get("response")):
            if isinstance(holder, dict) and field in holder and way == "none":
                del holder[field]
            elif isinstance(holder, dict) and field in holder and n >= chosen and (n == chosen or way != "one"):
                holder[field] = new
    return f"{way} {field}"


def the_order(events: Events, rng: random.Random) -> str:
    """Drop, repeat, swap or move an event."""
    at, way = rng.randrange(len(events)), rng.choice(["drop", "repeat", "swap", "move"])
    event = events.pop(at)
    new = {"drop": [], "repeat": [at, at], "swap": [max(0, at - 1)], "move": [rng.randrange(len(events) + 1)]}[way]
    for place in new:
        events.insert(place, copy.deepcopy(event))
    return way


def a_blank(events: Events, rng: random.Random) -> str:
    """Put events without a value between the others, or another end behind the last."""
    if rng.random() < 0.3:
        events.append([end := rng.choice(ENDS)])
        return f"end {end!r}"
    blank = [rng.choice(BLANKS)]
    if rng.random() < 0.3:
        events[:] = [each for event in events for each in (blank, event)]
    else:
        events.insert(rng.randrange(len(events) + 1), blank)
    return f"blank {blank}"


def an_error(events: Events, rng: random.Random) -> str:
    """Put an error between the others."""
    error = copy.deepcopy(rng.choice(ERRORS))
    events.insert(rng.randrange(len(events) + 1), [b"event: error", error] if rng.random() < 0.3 else [error])
    return f"error {error}"


def a_neighbor(events: Events, rng: random.Random) -> str:
    """Add a field next to those that a reader knows, or say a text twice."""
    event = rng.choice(objects(events))
    holder = rng.choice([event, *(each[key] for each, key in places(event) if isinstance(each[key], dict))])
    said = holder.get("content") or holder.get("text")
    again: list[dict[str, Any]] = [{"text": said}, {"delta": {"content": said}}, {"message": {"content": said}}]
    new = copy.deepcopy(rng.choice([*NEXT_TO, *(again if isinstance(said, str) else [])]))
    holder |= {name: value for name, value in new.items() if name not in holder}
    return f"next to it {new}"


MUTATIONS: dict[Callable[[Events, random.Random], str], int] = {
    a_field: 6, a_type: 6, a_name: 2, the_order: 4, a_blank: 3, an_error: 2, a_neighbor: 2,
}  # fmt: skip
"""Each with its weight."""


def mutant(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """(how, the stream with one change)."""
    if rng.random() < 0.08:
        place, is_cut = rng.randrange(1, len(data)), rng.random() < 0.5
        rest = b"" if is_cut else bytes([rng.choice(b'\x00\x7f\xff"{}\\ \n\r,:0aZ')]) + data[place + 1 :]
        return "cut" if is_cut else "damage", data[:place] + rest
    events = split(data)
    (mutation,) = rng.choices([*MUTATIONS], [*MUTATIONS.values()])
    return mutation(events, rng), written(events)


def split(data: bytes) -> Events:
    """The events of a stream of JSON objects; what is not JSON stays as it is."""
    lines = (event.split(b"\n") for event in data.replace(b"\r\n", b"\n").split(b"\n\n") if event.strip())
    return [[value if isinstance(value := _decoded(each[5:]), dict) else each for each in event] for event in lines]


def written(events: Events) -> bytes:
    lines = [[b"data: " + json.dumps(line).encode() if isinstance(line, dict) else line for line in e] for e in events]
    return b"".join(b"\n".join(event) + b"\n\n" for event in lines)


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
    every = [(choice.index, choice.text, choice.finish_reason) for chunk in chunks for choice in chunk.choices]
    ours = [(text, finish) for index, text, finish in every if float(index or 0) <= 0]
    assert any(finish and isinstance(finish, str) for _, finish in ours)
    return ["".join(text or "" for text, _ in ours)]


def by_messages(data: bytes) -> list[str]:
    """The same of Messages, by `anthropic`: the text of its blocks, and of its pieces if they come in another order."""
    client = anthropic.Anthropic(
        api_key="k", base_url="http://h", http_client=answering(data, anthropic), max_retries=0
    )
    with client.messages.stream(model="m", messages=[], max_tokens=9) as stream:
        came, final = "".join(stream.text_stream), stream.get_final_message()
    assert final.stop_reason
    assert isinstance(final.stop_reason, str)
    text = "".join(block.text for block in final.content if block.type == "text")
    return [text, came] if sorted(came) == sorted(text) else [text]


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
    """The data of each event that httpx-sse finds behind blank lines and a mark, decoded where it is JSON."""
    data = data.lstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf")
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=data)
    return [_decoded(each.data) for each in httpx_sse.EventSource(response).iter_sse()]


def _decoded(data: str | bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data


# ---- what may differ


FIELD = re.compile(rb"(?:data|event|id|retry)?(?::|\Z)|\Z")


def named(events: list[Any], *names: str) -> list[Any]:
    """The value of every field of these names."""
    return [holder[key] for event in events for holder, key in places(event) if key in names]


def is_damaged(events: list[Any], data: bytes, _: bool) -> bool:
    """Whether a line is not a field, or an event neither an object nor empty."""
    odd = (event for event in events if event and not isinstance(event, dict) and event != "[DONE]")
    return any(odd) or not all(FIELD.match(line) for line in re.split(rb"[\r\n]+", data))


def lacks_deltas(events: list[Any], _: bytes, __: bool) -> bool:
    """Whether a whole text of a Responses stream's answer is not among the deltas with their name before the end."""
    last = next((n for n, each in enumerate(events) if any(named([each], "output"))), None)
    deltas = (each for each in objects([events[:last]]) if each.get("type") == "response.output_text.delta")
    pieces = dense("".join(str(each.get("delta")) for each in deltas))
    parts = (holder for each in events for holder, key in places(each) if key == "type")
    return any(dense(str(part.get("text"))) not in pieces for part in parts if part["type"] == "output_text")


def are_two(events: list[Any], _: bytes, __: bool) -> bool:
    """Whether two ids, or two models, have several events each."""
    of = [Counter(str(each[name]) for each in events if isinstance(each, dict) and name in each) for name in NAMES]
    return any(sum(n > 1 for n in counts.values()) > 1 for counts in of)


NAMES = ("id", "model")


def is_lost(events: list[Any], _: bytes, loses: bool) -> bool:
    """Whether the package loses a text, or one is not a string."""
    found = ((holder, key) for event in events for holder, key in places(event) if key in ("content", "text", "delta"))
    return loses or not all(is_text(holder[key], key) for holder, key in found)


def is_text(value: Any, name: str) -> bool:
    """Whether this is a text, none, or what holds one: a delta may be an object, a content a list of them."""
    if isinstance(value, list):
        return name == "content" and all(isinstance(each, dict) for each in value)
    return isinstance(value, str | None) or (name == "delta" and isinstance(value, dict))


EXCUSES: dict[str, tuple[Callable[[list[Any], bytes, bool], bool], str]] = {
    # What our sentence says → whether that is true of the events (`loses`: the package's text is not the one sent), and
    # a public case, in which reading on stores a wrong answer in silence.
    "is not an event field|not an event stream|an event in the stream is not": (
        is_damaged,
        "github.com/openai/openai-python/pull/3819: a decoder skips the line and loses the event in it",
    ),
    "is .*, not a string|are not a list of objects|block that has not started": (
        is_lost,
        "github.com/cloudflare/ai/issues/651: a token 6 comes as a number, so [1] becomes []; "
        "github.com/router-for-me/CLIProxyAPI/issues/3720: pieces of a block that was not opened",
    ),
    "characters, but its full content": (
        lacks_deltas,
        "github.com/vllm-project/vllm/issues/30099: deltas are lost, and which statement is right cannot be known",
    ),
    "contains two replies": (
        are_two,
        "github.com/BerriAI/litellm/issues/18229: after a fault another model goes on in the same stream",
    ),
}


def with_own_types(api: str, data: bytes) -> bytes:
    """The stream with the empty values of chat in their own types, which its package needs, and we do not.

    What is written in Go has null for an empty list (and usage next to it), in PHP [] for an empty object; a finish
    reason may come alone: github.com/QwenLM/qwen-code/pull/1448.
    """
    events = split(data)
    for event in objects(events) if api in ("chat", "completions") else ():
        if "choices" in event and (event["choices"] is not None or event.get("usage")):
            event["choices"] = event["choices"] or []
        for choice in objects([event["choices"]]) if isinstance(event.get("choices"), list) else ():
            if choice.get("finish_reason") or not choice.get("delta", True):
                choice |= {"delta": choice.get("delta") or {}, "text": choice.get("text") or ""}
            if isinstance(delta := choice.get("delta"), dict) and not delta.get("content", True):
                delta["content"] = ""
    return written(events)


def disagreement(api: str, base: bytes, data: bytes) -> str:
    """What is wrong with our reading of a mutant of the stream `base`; empty for nothing."""
    got, theirs, before = read(api, [data]), texts_of(api, data), streams(api)[base]  # `read` raises what is no failure
    if isinstance(got, RequestFailed):
        case = events_of(data), data, theirs.isdisjoint(before)
        excuses = (is_true for words, (is_true, _) in EXCUSES.items() if re.search(words, str(got)))
        return f"refused: {got}" if theirs - {""} and not any(is_true(*case) for is_true in excuses) else ""
    text, is_noted = dense(got.text), any(note.startswith(tuple(DOUBTFUL)) for note in got.notes)
    if text in theirs | before or (theirs <= {""} and (is_noted or text in texts_of(api, with_own_types(api, data)))):
        return ""
    return f"other text: {got.text!r}, not {theirs or before}"


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

    def event(self, value: dict[str, Any]) -> tuple[Event, list[str]]:  # type: ignore[override]
        self.events.append(value)
        return Event(choices=[]), []

    def error(self, _: dict[str, Any]) -> None:  # type: ignore[override]
        return None


FRAMES = (
    "data: ", "data:", "data:  ", "data", "\n", "\n\n", "\r", "\r\n", "\r\n\r\n", ":", ": ping\n", "event: x\n",
    "id: 1\n", "retry: 9\n", "foo: bar\n", "foo\n", '{"choices": "∑"}', '{"b":', " 2}", "[]", "\ufeff", "\0", "\x85",
)  # fmt: skip
"""Parts of a stream's lines."""


def _values(event: Any) -> list[Any]:
    """The JSON values that the text of an event consists of; a text that does not is one event."""
    if not isinstance(event, str):
        return [event]
    decoder, values, rest = json.JSONDecoder(strict=False), [], event
    while rest := rest.lstrip(" \t\r\n"):
        try:
            value, end = decoder.raw_decode(rest)
        except ValueError:
            return [event]
        values.append(value)
        rest = rest[end:]
    return values


def _fed(parser: ReplyParser, pieces: list[bytes]) -> None:
    for piece in pieces:
        parser.feed(piece, 1.0)
    parser.finish(1.0)


def test_events_are_those_that_httpx_sse_finds_however_the_bytes_are_split() -> None:
    rng = random.Random(SEED)
    for _ in range(examples(4000)):
        data = "".join(rng.choices(FRAMES, k=rng.randrange(1, 12))).encode() + b'\n\ndata: {"choices": 1}\n\n'
        recorder = Recorder()
        theirs = [each for of in events_of(data) for each in _values(of) if each and str(each).strip(" \n")]
        parser = ReplyParser(
            replace(CHAT, reader=lambda of=recorder: of), started=0.0, started_utc=0.0, max_body_bytes=1 << 20
        )
        with pytest.raises(RequestFailed) as refusal:
            _fed(parser, cut_up(data, rng))
        ours = [*filter(None, recorder.events)]
        if "finish reason" not in str(refusal.value):  # refused at an event or a line, before which all were read
            assert is_damaged(theirs, data, False), (data, refusal.value)
            theirs = theirs[: len(ours)]
        assert ours == theirs, data


@pytest.mark.skipif(not CASES, reason="there is no ../shared/dialects")
def test_the_streams_of_the_folder_are_mutated() -> None:
    assert min(len(streams(api)) for api in ("responses", "messages")) > 10
