"""Nothing of a reply is held uncounted: whatever a server sends, by every transport.

For: harness.client.protocol.written.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import itertools
import json
import time
import tracemalloc
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest

from harness.client import transport as http_transport
from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines
from harness.client.loop import new_event_loop
from harness.client.protocol import sse, written
from harness.client.protocol.reply import RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.client.protocol.written import FIXED_BYTES, Memory, WrittenTokens
from harness.client.transport import open_transport
from harness.core.limits import MAX_ERROR_BODY_BYTES
from tests.budget import thinned
from tests.faults.server import HEAD, STALL, FaultServer, Request, Step, chunk, http

pytestmark = pytest.mark.slow

KIB = 1024
FED_BYTES = 128 * KIB
"""Fed to one parser of each kind of line. What is held uncounted would be twice the slack."""

SLACK_BYTES = 64 * KIB
"""Memory of a parser beside what it counts: itself, a snippet, notes, the read in which it failed."""

NUMBERED = "…"
"""Stands for a number that differs from piece to piece, so that no two pieces share their memory."""


@pytest.fixture(scope="module", autouse=True)
def _what_other_tests_left_is_not_looked_through() -> None:
    """Late in a process, a look for garbage takes half a second, and each test here asks for two."""
    gc.collect()
    gc.freeze()


def lines() -> dict[str, bytes]:
    """A piece of each kind of line, whole lines and unfinished ones; it is repeated without end."""
    kinds = {
        "data of one event": b"data: \xe2\x80\xa6 yes\n",
        "data that is empty": b"data:\n",
        "data without a colon": b"data\n",
        "error of one event": b"error: \xe2\x80\xa6 yes\n",
        "error that is empty": b"error:\n",
        "event": b"event: \xe2\x80\xa6\n",
        "event of a long name": b"event: " + b"x" * 3000 + b"\xe2\x80\xa6\n",
        "id": b"id: \xe2\x80\xa6\n",
        "retry": b"retry: \xe2\x80\xa6\n",
        "comment": b": \xe2\x80\xa6\n",
        "unknown": b"other: \xe2\x80\xa6\n",
        "no field": b"\xe2\x80\xa6\n",
        "blank": b"\n",
        "carriage returns": b"\r\n",
        "NUL": b"\0",
    }
    unfinished = {f"{name}, no line end": kinds[name].strip(b"\n") or b" " for name in ("no field", "comment", "blank")}
    return kinds | unfinished


def events() -> dict[str, Any]:
    """An event that fills each field of the protocol, and some that it does not have, with much."""

    def of(choice: object = None, **fields: object) -> dict[str, Any]:
        return {"choices": [] if choice is None else [choice]} | fields

    def delta(**fields: object) -> dict[str, Any]:
        return of({"index": 0, "delta": fields})

    words = [f"{NUMBERED}{n}" for n in range(20)]
    one = {"token": NUMBERED, "logprob": -0.5, "bytes": [1, 2], "top_logprobs": [{"token": NUMBERED, "logprob": -1}]}
    return {
        "content": delta(content=NUMBERED),
        "content of wide characters": delta(content=f"{NUMBERED}🌱"),
        "content of many characters": delta(content=NUMBERED + "x" * 5000),
        "content of a few hundred characters": delta(content=NUMBERED + "x" * 300),
        "content as parts": delta(content=[{"type": "text", "text": NUMBERED}, {"thinking": NUMBERED}]),
        "reasoning_content": delta(reasoning_content=NUMBERED),
        "reasoning": delta(reasoning=NUMBERED),
        "both": delta(reasoning=NUMBERED, content=NUMBERED),
        "role": delta(role=NUMBERED),
        "refusal": delta(refusal=NUMBERED),
        "tool_calls": delta(tool_calls=[{"function": {"arguments": words}}]),
        "an unknown field": delta(thinking=NUMBERED),
        "unknown fields": delta(**{f"x{NUMBERED}": words}),
        "text": of({"index": 0, "text": NUMBERED}),
        "another choice": of({"index": 1, "delta": {"content": NUMBERED}}),
        "logprobs": of({"delta": {"content": "x"}, "logprobs": {"content": [one] * 5}}),
        "logprobs of text": of({"text": "x", "logprobs": {"token_logprobs": [-1.5], "top_logprobs": [{NUMBERED: -1}]}}),
        "token_ids": of({"delta": {"content": "x"}, "token_ids": [*range(300, 330)]}),
        "token_ids without a text": of({"delta": {}, "token_ids": [*range(300, 330)]}),
        "prompt_token_ids": of(prompt_token_ids=[*range(300, 330)]),
        "usage": of(usage={"completion_tokens": 3, "x": words, "prompt_tokens_details": {"y": words}}),
        "usage of odd counts": of(usage={"completion_tokens": "3", "x": words}),
        "id": delta() | {"id": NUMBERED},
        "id with a text": delta(content="x") | {"id": NUMBERED},
        "model": delta() | {"model": NUMBERED},
        "system_fingerprint": delta() | {"system_fingerprint": NUMBERED},
        "names of a thousand characters": delta() | dict.fromkeys(("id", "model", "system_fingerprint"), "x" * 1000),
        "an unknown field of the event": of(other=words),
        "no choices": {"x": NUMBERED},
    }  # fmt: skip


def block_of(piece: bytes, n_bytes: int) -> bytes:
    """The piece again and again, each time with another number."""
    return b"".join(piece.replace(NUMBERED.encode(), b"%d" % n) for n in range(max(1, n_bytes // len(piece))))


def event_of(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


STREAMS = {
    **{f"line: {name}": piece for name, piece in lines().items()},
    **{f"event: {name}": event_of(value) for name, value in events().items()},
    "json: an endless body": b'{"x": "\xe2\x80\xa6"}, ',
    "json: values": b"[],",
}


def held_by(name: str, size: int) -> tuple[int, int]:
    """(bytes that a parser holds after reads of `size` bytes of the stream, by Python's allocator; what it counts)."""
    begin = b"[" if name.startswith("json") else b": a stream\n\n"
    stream = begin + block_of(STREAMS[name], FED_BYTES)
    parser = ReplyParser(started=0.0, started_utc=0.0, max_body_bytes=1 << 30, memory=Memory(), written=WrittenTokens())
    gc.collect()
    tracemalloc.start()
    try:
        for at in range(0, len(stream), size):
            parser.feed(stream[at : at + size], 1.0)
    except RequestFailed:
        pass
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held, parser.held_bytes


@pytest.mark.parametrize(
    ("name", "size"),
    thinned([(name, 16 * KIB) for name in STREAMS] + [(name, 61) for name in STREAMS if not name.startswith("event")]),
)
def test_what_a_parser_holds_is_counted(name: str, size: int) -> None:
    held, counted = held_by(name, size)
    assert held <= 1.5 * counted + SLACK_BYTES, f"{held} bytes are held, {counted} counted"


def test_a_line_that_was_held_uncounted_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    monkeypatch.setattr(ReplyParser, "_add_data", lambda _, data: held.append(data))
    got, counted = held_by("line: error of one event", 16 * KIB)
    assert got > 1.5 * counted + SLACK_BYTES


def test_a_reply_of_a_few_bytes_is_counted_and_one_that_is_gone_is_not() -> None:
    shared = Memory()
    begun = event_of({"choices": [{"delta": {"content": "x" * 100}}]}) + b"data: begun"
    parsers = [ReplyParser(started=0.0, started_utc=0.0, max_body_bytes=1 << 20, memory=shared) for _ in range(100)]
    for parser in parsers:
        parser.feed(begun, 1.0)
    assert shared.held_bytes == sum(parser.held_bytes for parser in parsers) > 100 * 100
    del parser, parsers[50:]
    assert shared.held_bytes == sum(parser.held_bytes for parser in parsers)
    with pytest.raises(RequestFailed):
        parsers[0].feed(b"\n\n", 2.0)
    parsers.clear()
    gc.collect()  # the failure refers to its parser
    assert shared.held_bytes == 0


# -- whole transports ----------------------------------------------------------------------------------------------

LIMIT_BYTES = 128 * KIB
LONG_BYTES = 16 * KIB
IN_FLIGHT = 4
MAX_BODY_BYTES = 4 * 1024 * KIB
MAX_HELD_BYTES = LIMIT_BYTES + IN_FLIGHT * (LONG_BYTES + FIXED_BYTES)


def stream_of(piece: bytes) -> Callable[[Request], Iterable[Step]]:
    block = chunk(block_of(piece, 128 * KIB))
    return lambda _: itertools.chain([HEAD], itertools.repeat(block))


def heads(piece: bytes, begin: bytes = b"") -> Callable[[Request], Iterable[Step]]:
    block = block_of(piece, 128 * KIB)
    return lambda _: itertools.chain([begin], itertools.repeat(block))


@cache
def zeros() -> bytes:
    """Twenty million bytes, compressed."""
    return gzip.compress(b"data: " + b"0" * 20_000_000)


def packed(status: int) -> Callable[[Request], Iterable[Step]]:
    data = zeros()
    return lambda _: [http(status, data, content_encoding="gzip"), STALL]


FLOODS: dict[str, Callable[[Request], Iterable[Step]]] = {
    "error lines": stream_of(b"error: \xe2\x80\xa6 yes\n"),
    "data lines": stream_of(b"data: \xe2\x80\xa6\n"),
    "event names": stream_of(b"event: " + b"x" * 9000 + b"\xe2\x80\xa6\n"),
    "a line without end": stream_of(b"x"),
    "a body without end": stream_of(b"[\xe2\x80\xa6],"),
    "texts": stream_of(event_of(events()["content of a few hundred characters"])),
    "tokens": stream_of(event_of(events()["content"] | {"id": "i", "model": "m"})),
    "chunks of one byte": heads(chunk(b"x"), HEAD),
    "headers": heads(b"X-\xe2\x80\xa6: y\r\n", b"HTTP/1.1 200 OK\r\n"),
    "interim heads": heads(b"HTTP/1.1 103 X\r\nX-\xe2\x80\xa6: y\r\n\r\n"),
    "trailers": heads(b"X-\xe2\x80\xa6: y\r\n", HEAD + chunk(b": x\n\n") + b"0\r\n"),
    "a compressed stream": packed(200),
    "a compressed error": packed(500),
    "an error without end": heads(b"wrong \xe2\x80\xa6", b"HTTP/1.1 500 X\r\n\r\n"),
}


async def four(url: str) -> list[str]:
    transport, endpoint = open_transport("http"), Endpoint.parse(url)

    async def outcome() -> str:
        body = b'{"model":"m","messages":[],"stream":true}'
        deadlines = Deadlines(connect=10.0, first_token=2.0, idle=2.0)
        try:
            await transport.complete(endpoint, "/chat/completions", body, deadlines, MAX_BODY_BYTES)
        except RequestFailed as failure:
            return failure.kind
        return "a reply"

    try:
        return await asyncio.gather(*(outcome() for _ in range(IN_FLIGHT)))
    finally:
        await transport.close()


@pytest.mark.parametrize("flood", thinned(FLOODS))
def test_four_floods_at_once_hold_no_more_than_the_bound(flood: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the transport of ours: the library below the openai package reads ahead by some megabytes a stream."""
    monkeypatch.setattr(written, "MAX_REPLIES_BYTES", LIMIT_BYTES)
    monkeypatch.setattr(written, "LONG_REPLY_BYTES", LONG_BYTES)
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 64 * 1024 * KIB)  # only the bound of all replies is to act
    monkeypatch.setattr(http_transport, "LOOK_S", 0.02)
    open_transport("http")  # imports are not measured
    with FaultServer(FLOODS[flood]) as server, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(four("http://127.0.0.1:9/v1"))
        peaks = [MAX_HELD_BYTES]
        while (
            len(peaks) < 4 and peaks[-1] >= MAX_HELD_BYTES
        ):  # reads of a busy machine pile up by chance, a leak always
            tracemalloc.start()
            kinds = runner.run(four(server.base_url))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert "a reply" not in kinds
    assert peaks[-1] < MAX_HELD_BYTES, peaks


def test_interim_heads_without_end_end_when_there_are_a_hundred() -> None:
    def answer(_: Request) -> Iterable[Step]:
        return itertools.repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n")

    async def main(url: str) -> str:
        transport = open_transport("http")
        try:
            await transport.complete(Endpoint.parse(url), "/chat/completions", b"{}", Deadlines(), 1 << 20)
        except RequestFailed as failure:
            return failure.message
        finally:
            await transport.close()
        return "a reply"

    with FaultServer(answer) as server:
        began = time.monotonic()
        assert "interim replies" in asyncio.run(main(server.base_url))
        assert time.monotonic() - began < 30.0


def test_a_few_interim_heads_are_passed_over() -> None:
    whole_reply = {"choices": [{"index": 0, "message": {"content": "42"}, "finish_reason": "stop"}]}

    async def main(url: str) -> list[str | None]:
        texts = []
        for name in ("http", "openai"):
            transport = open_transport(name)
            for _ in range(2):
                body = b'{"model":"m","messages":[]}'
                reply = await transport.complete(Endpoint.parse(url), "/chat/completions", body, Deadlines(), 1 << 20)
                texts.append(reply.text)
            await transport.close()
        return texts

    with FaultServer(lambda _: [b"HTTP/1.1 103 X\r\n\r\n" * 60, http(200, whole_reply)]) as server:
        assert asyncio.run(main(server.base_url)) == ["42"] * 4


def test_the_fixed_buffers_of_a_request_are_less_than_they_are_said_to_be() -> None:
    read_bytes = 256 * KIB  # by uvloop and asyncio alike
    buffers = http_transport.BATCH_BYTES + read_bytes + http_transport.MAX_HEAD_BYTES + MAX_ERROR_BODY_BYTES
    assert 2 * buffers < FIXED_BYTES
