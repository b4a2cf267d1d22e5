"""Whatever the makers' own packages read of a mutated stream, the client reads, with the same text.

For: harness.client.wires, harness.client.protocol.sse, harness.client.protocol.reply.

Streams of ../shared/dialects are mutated where that folder is there, else those made here and in `dialects`.
`HARNESS_FUZZ_EXAMPLES` sets the number of mutants of each API, `HARNESS_FUZZ_SEED` the seed, which changes every day.
"""

from __future__ import annotations

import datetime
import json
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from harness.client.protocol.failures import RequestFailed
from harness.client.protocol.reply import Reply
from tests.budget import examples
from tests.client.dialects import recordings
from tests.client.test_wires import CASES, CHANGED, FOLDER, read, responses_stream

SEED = os.environ.get("HARNESS_FUZZ_SEED", datetime.datetime.now(datetime.UTC).date().isoformat())
MESSAGES: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant", "model": "m",
                                          "content": [], "stop_reason": None, "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": each}} for each in "4∑2."),
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]  # fmt: skip


LATE = "r26_text_after_completed.sse"
"""A stream with text behind its last event, which the packages append and the client drops."""


def streams(api: str) -> list[bytes]:
    """Streams of this API that are read."""
    mine = {
        "chat": [each.body for each in recordings() if each.failure is None and each.body[:1] not in (b"{", b"[")],
        "responses": [responses_stream({}, item="The answer is 4.")],
        "messages": [b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in MESSAGES)],
    }[api]
    of = (case["file"] for case in CASES if (case["api"], case["outcome"]) == (api, "reply"))
    return [
        *mine,
        *(
            (FOLDER / "streams" / name).read_bytes()
            for name in of
            if name[-3:] == "sse" and name not in {*CHANGED, LATE}
        ),
    ]


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
        lines = [json.loads(line[5:]) if line.startswith(b"data:") and b"{" in line else line
                 for line in events[at].split(b"\n")]  # fmt: skip
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


def answering(data: bytes) -> httpx2.Client:
    """A client to which every request is answered with these bytes."""
    head = {"content-type": "text/event-stream"}
    return httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, headers=head, content=data)))


def by_responses(data: bytes) -> tuple[str, ...]:
    """The texts that `openai` gives for a stream of Responses: its pieces and its last statement."""
    client = openai.OpenAI(api_key="k", base_url="http://h/v1", http_client=answering(data), max_retries=0)
    with client.responses.stream(model="m", input="q") as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert final.status in ("completed", "incomplete"), final.status
    return "".join(pieces), final.output_text


def by_chat(data: bytes) -> tuple[str, ...]:
    """The same of chat."""
    client = openai.OpenAI(api_key="k", base_url="http://h/v1", http_client=answering(data), max_retries=0)
    state: Any = ChatCompletionStreamState()
    for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
        state.handle_chunk(chunk)
    choice = state.current_completion_snapshot.choices[0]
    assert isinstance(choice.finish_reason, str)
    return (choice.message.content or "",)


def by_messages(data: bytes) -> tuple[str, ...]:
    """The same of Messages, by `anthropic`."""
    client = anthropic.Anthropic(api_key="k", base_url="http://h", http_client=answering(data), max_retries=0)
    with client.messages.stream(model="m", messages=[], max_tokens=9) as stream:
        final = stream.get_final_message()
    assert final.stop_reason
    assert isinstance(final.stop_reason, str)
    return ("".join(block.text for block in final.content if block.type == "text"),)


ORACLES: dict[str, Callable[[bytes], tuple[str, ...]]] = {
    "chat": by_chat, "responses": by_responses, "messages": by_messages,
}  # fmt: skip


# ---- the comparison


EXCEPTIONS = {
    " is no string": "the packages check no types and make something of anything",
    "its choices are no list but ": "the same",
    "a choice whose index is ": "the same",
    "its finish_reason is ": "the same",
    "a piece of its text has another form": "the same",
    "texts of two models in one stream": "a stream that mixes two replies is no reply",
    "a second reply, under another id": "the same",
    "a second finish reason": "the same",
    "is no field of an event": "the text of a damaged field would be lost in silence",
    "an event of the stream is no": "the same",
    "not an event stream": "with a damaged first line, a body is not taken for a stream",
    "for a block that has not begun": "a delta of another block would be joined to this one",
    "characters, the whole has": "a delta was lost, and which statement is right cannot be known",
}
"""Words of our refusal of what an oracle reads to its end → why."""

EMPTY_PARTS = b'"content": []'
"""A list of no parts is no text to the client; the package drops the reply's text with it."""


def dense(text: str | None) -> str:
    whole = (text or "").encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return "".join(whole.split())


def disagreement(api: str, base: bytes, data: bytes) -> str:
    """How our reading differs from the oracle's and from that of the stream without the change; empty if it agrees."""
    got = read(api, [data])  # raises what is no `RequestFailed`
    if data.count(EMPTY_PARTS) > base.count(EMPTY_PARTS):
        return ""
    try:
        texts = [dense(text) for text in ORACLES[api](data)]
        if isinstance(got, Reply) and dense(got.text) not in texts:  # what a package lost, and the client read
            texts += map(dense, ORACLES[api](base))
    except Exception:  # noqa: BLE001
        return ""
    if isinstance(got, RequestFailed):
        return "" if any(words in str(got) for words in EXCEPTIONS) else f"refused: {got}"
    return "" if dense(got.text) in texts else f"other text: {got.text!r}, not {texts}"


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("api", ORACLES)
def test_what_the_makers_packages_read_is_read(api: str) -> None:
    rng, found = random.Random(f"{SEED} {api}"), dict[str, str]()
    for base in (bases := streams(api)):
        assert isinstance(read(api, [base]), Reply)
    for _ in range(examples(600)):
        base = rng.choice(bases)
        how, data = mutant(base, rng)
        if why := disagreement(api, base, data):
            found.setdefault(f"{how}: {why}", data.decode("utf-8", "replace"))
    assert not found, "\n".join([f"HARNESS_FUZZ_SEED={SEED}", *found])


@pytest.mark.skipif(not CASES, reason="there is no ../shared/dialects")
def test_the_streams_of_the_folder_are_mutated() -> None:
    assert min(len(streams(api)) for api in ("responses", "messages")) > 10
