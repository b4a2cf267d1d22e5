"""What hostile servers send. A reply is the steps that answer one request; endless ones end when the client leaves."""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.testing import CLOSE, DONE, END, HEAD, STALL, Pause, Request, Step, chunk, delta, event, http, models

TRUE = "The answer is \\boxed{2}."
FALSE = "The answer is \\boxed{666}."
ESCAPES = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202e\u2066\r\x00\x08\u2028owned"
DEEP = b'{"a":' * 100_000
USAGE = {"prompt_tokens": 9, "completion_tokens": 3}
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

Reply = Callable[[], Iterable[Step]]


@dataclass(frozen=True)
class Hostile:
    """reply: to what is asked for hostile questions. look: to every GET. greeting: sent on a connection before any
    request. says: texts that may become samples of the hostile questions, since the server did say them whole.
    refuses: it tells that nothing can be asked here, which ends the run.
    """

    reply: Reply | None = None
    look: Reply | None = None
    greeting: bytes = b""
    says: frozenset[str] = frozenset()
    refuses: bool = False

    def answer(self, request: Request) -> Iterable[Step]:
        if request.method == "GET":
            return self.look() if self.look else [models("m", max_model_len=40_000)]
        hostile = b"hostile" in request.body and self.reply is not None
        return self.reply() if hostile and self.reply else true(request.number)


def true(number: int, *last: Step) -> Iterator[Step]:
    """A sound reply."""
    yield HEAD
    yield from (chunk(one) for one in whole(f"true-{number}"))
    yield chunk(DONE) + END
    yield from last


def whole(name: str, text: str = TRUE) -> list[bytes]:
    said = json.loads(delta(text, finish="stop", usage=USAGE)[6:])
    return [event(said | {"id": name})]


def endless(piece: bytes, begin: bytes = b"") -> Reply:
    return lambda: itertools.chain([begin] if begin else [], itertools.repeat(piece * max(1, 65_536 // len(piece))))


def steps(*given: Step) -> Reply:
    return lambda: given


def body(*events: bytes, end: tuple[Step, ...] = (END,)) -> Reply:
    """A stream of these events, with nothing after them but `end`."""
    return steps(HEAD, *map(chunk, events), *end)


def lengths(headers: bytes, sent: bytes = b"".join(whole("length")) + DONE) -> Reply:
    return steps(SSE + headers + b"\r\n\r\n" + sent, CLOSE)


def chunked(raw: bytes, *last: Step) -> Reply:
    return steps(HEAD, raw, *(last or (CLOSE,)))


def value(choice: Any = ..., **fields: Any) -> bytes:
    """An event that says FALSE in a shape that the protocol does not have."""
    first = {"index": 0, "delta": {"content": FALSE}, "finish_reason": "stop"} if choice is ... else choice
    return event({"id": "v", "object": "chat.completion.chunk", "model": "m", "choices": [first]} | fields)


@cache
def compressed_zeros() -> bytes:
    return gzip.compress(b"0" * 100_000_000)


def bomb(encode: Callable[[bytes], bytes], name: bytes) -> Reply:
    @cache  # two seconds each, which only a test that asks should pay
    def packed() -> bytes:
        return encode(b"data: " + b"0" * 200_000_000)

    def reply() -> Iterator[Step]:
        yield SSE + b"Content-Encoding: " + name + b"\r\nContent-Length: %d\r\n\r\n" % len(packed())
        yield packed()

    return reply


def slow(data: bytes, seconds: float = 0.2) -> Reply:
    """A byte now and then, for ever: the end of `data` is repeated."""

    def drip() -> Iterator[Step]:
        for byte in itertools.chain(data, itertools.repeat(data[-1])):
            yield bytes([byte])
            yield Pause(seconds)

    return drip


def deflate(data: bytes) -> bytes:
    return zlib.compress(data, 9)


def forged() -> bytes:
    """A whole reply that nobody asked for."""
    return HEAD + b"".join(map(chunk, whole("forged", FALSE))) + chunk(DONE) + END


def list_of(n: int, name: str = "model") -> Reply:
    return lambda: [http(200, {"data": [{"id": f"{name}-{i}"} for i in range(n)] + [{"id": "m"}]})]


LOOKS: dict[str, Reply] = {
    "models: a million": list_of(1_000_000),
    "models: names of escapes": list_of(1000, ESCAPES),
    "models: without end": endless(b'{"id": "x"},', b'HTTP/1.1 200 OK\r\n\r\n{"data": ['),
    "models: none": steps(http(200, {"data": []})),
    "models: names of a megabyte": steps(http(200, {"data": [{"id": "x" * 1_000_000}] * 5})),
    "models: a hundred thousand levels": steps(http(200, DEEP)),
    "models: a page of HTML": steps(http(200, b"<html>\x1b[2J</html>", content_type="text/html")),
    "models: 500 of escapes": steps(http(500, {"error": {"message": ESCAPES}})),
    "models: redirect": steps(http(302, b"", location="http://127.0.0.2:9/\x1b[2J")),
    "models: a line a second": slow(b"HTTP/1.1 200 OK\r\nX: y\r\n", 0.5),
    "models: 1xx without end": lambda: itertools.cycle((b"HTTP/1.1 103 X\r\n\r\n", Pause(0.01))),
    "models: silence": steps(STALL),
    "models: closed": steps(CLOSE),
    "models: compressed bomb": bomb(lambda data: gzip.compress(data, 9), b"gzip"),
    "models: lengths that lie": steps(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}", STALL),
}
LOOKS |= {
    f"models: {name}": steps(http(200, json.dumps(bad).encode()))
    for name, bad in (
        ("null", None),
        ("a number", 5),
        ("a list", ["m"]),
        ("data of null", {"data": None}),
        ("data of numbers", {"data": [1, 2]}),
        ("names of numbers", {"data": [{"id": 5}]}),
        ("context of words", {"data": [{"id": "m", "max_model_len": "many"}]}),
        ("context below zero", {"data": [{"id": "m", "max_model_len": -5}]}),
        ("context beyond 64 bits", {"data": [{"id": "m", "max_model_len": 10**400}]}),
        ("context that is infinite", {"data": [{"id": "m", "max_model_len": float("inf")}]}),
        ("meta of wrong types", {"data": [{"id": "m", "meta": [5], "root": {}, "permission": 3}]}),
    )
}
