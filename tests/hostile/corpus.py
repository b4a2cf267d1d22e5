"""Hostile servers by name. A reply is the steps that answer one request; endless ones end when the client leaves."""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.faults.server import (
    CLOSE,
    DONE,
    END,
    HEAD,
    RESET,
    STALL,
    Pause,
    Request,
    Step,
    chunk,
    delta,
    event,
    http,
    models,
)
from tests.hostile.generated import mode

TRUE = "The answer is \\boxed{2}."
FALSE = "The answer is \\boxed{666}."
ESCAPES = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202e\u2066\r\x00\x08\u2028owned"
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
    yield from (chunk(one) for one in _whole(f"true-{number}"))
    yield chunk(DONE) + END
    yield from last


def _whole(name: str, text: str = TRUE) -> list[bytes]:
    said = json.loads(delta(text, finish="stop", usage=USAGE)[6:])
    return [event(said | {"id": name})]


def endless(piece: bytes, begin: bytes = b"") -> Reply:
    return lambda: itertools.chain([begin] if begin else [], itertools.repeat(piece * max(1, 65_536 // len(piece))))


def steps(*given: Step) -> Reply:
    return lambda: given


def body(*events: bytes, end: tuple[Step, ...] = (END,)) -> Reply:
    """A stream of these events, with nothing after them but `end`."""
    return steps(HEAD, *map(chunk, events), *end)


def lengths(headers: bytes, sent: bytes = b"".join(_whole("length")) + DONE) -> Reply:
    return steps(SSE + headers + b"\r\n\r\n" + sent, CLOSE)


def chunked(raw: bytes, *last: Step) -> Reply:
    return steps(HEAD, raw, *(last or (CLOSE,)))


def value(choice: Any = ..., **fields: Any) -> bytes:
    """An event that says FALSE in a shape that the protocol does not have."""
    first = {"index": 0, "delta": {"content": FALSE}, "finish_reason": "stop"} if choice is ... else choice
    return event({"id": "v", "object": "chat.completion.chunk", "model": "m", "choices": [first]} | fields)


@cache
def _compressed_zeros() -> bytes:
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


def _deflate(data: bytes) -> bytes:
    return zlib.compress(data, 9)


DEEP = b'{"a":' * 100_000
HEADS: dict[str, Reply] = {
    "status line without end": endless(b"a", b"HTTP/1.1 200 "),
    "status line of another protocol": steps(b"220 smtp.example ESMTP\r\n", CLOSE),
    "status line empty": steps(b"\r\n\r\n", CLOSE),
    "status line of HTTP 0.9": steps(b"The answer is \\boxed{666}.\n", CLOSE),
    "preface of HTTP 2": steps(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", CLOSE),
    "status 99": steps(b"HTTP/1.1 99 X\r\nContent-Length: 0\r\n\r\n"),
    "status 1000": steps(b"HTTP/1.1 1000 X\r\nContent-Length: 0\r\n\r\n"),
    "status with a letter": steps(b"HTTP/1.1 20O OK\r\nContent-Length: 0\r\n\r\n"),
    "status below zero": steps(b"HTTP/1.1 -200 OK\r\nContent-Length: 0\r\n\r\n"),
    "status of ten thousand digits": steps(b"HTTP/1.1 " + b"2" * 10_000 + b" OK\r\n\r\n", CLOSE),
    "status 204": steps(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "status 101": steps(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", STALL
    ),
    "status 200 without a body": steps(http(200)),
    "header lines without end": endless(b"X-More: yes\r\n", b"HTTP/1.1 200 OK\r\n"),
    "header line without end": endless(b"a", b"HTTP/1.1 200 OK\r\nX: "),
    "header of 9 MB": steps(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 9_000_000 + b"\r\nContent-Length: 0\r\n\r\n"),
    "header with NUL": steps(b"HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n"),
    "header without a colon": steps(b"HTTP/1.1 200 OK\r\nnothing here\r\nContent-Length: 0\r\n\r\n"),
    "header that is folded": steps(b"HTTP/1.1 200 OK\r\nX: a\r\n  b\r\nContent-Length: 0\r\n\r\n"),
    "headers end in bare CR": steps(b"HTTP/1.1 200 OK\rContent-Length: 0\r\r", STALL),
    "1xx without end": endless(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "1xx thousands in one read": steps(b"HTTP/1.1 100 Continue\r\n\r\n" * 3000, CLOSE),
    "head that comes a byte at a time": slow(b"HTTP/1.1 200 OK\r\nX: a"),
    "no head": steps(STALL),
    "half a head": steps(b"HTTP/1.1 200 OK\r\nContent-Ty", STALL),
    "random bytes": steps(bytes(range(256)) * 4000, CLOSE),
    "a TLS alert": steps(b"\x15\x03\x01\x00\x02\x02\x28", CLOSE),
    "reset at once": steps(RESET),
}
REDIRECTS: dict[str, Reply] = {
    f"redirect {code} to {name}": steps(http(code, b"", location=target))
    for code, name, target in (
        (301, "another host", "http://127.0.0.2:9/v1/chat/completions"),
        (302, "a file", "file:///etc/passwd"),
        (303, "itself", "/v1/chat/completions"),
        (307, "a name with escapes", "http://x\x1b[2J/"),
        (308, "nothing", ""),
        (307, "a megabyte", "http://" + "a" * 60_000),
    )
}
REDIRECTS["status 304"] = steps(b"HTTP/1.1 304 Not Modified\r\n\r\n")
LENGTHS: dict[str, Reply] = {
    "length larger than the body": lengths(b"Content-Length: 100000", b"".join(_whole("l", FALSE))[:-20]),
    "length smaller than the body": lengths(b"Content-Length: 30"),
    "length below zero": lengths(b"Content-Length: -1"),
    "length that is a word": lengths(b"Content-Length: many"),
    "length with a plus": lengths(b"Content-Length: +30"),
    "length in hexadecimal": lengths(b"Content-Length: 0x1e"),
    "length of ten thousand digits": lengths(b"Content-Length: " + b"9" * 10_000),
    "length beyond 64 bits": lengths(b"Content-Length: 99999999999999999999999999", b"data: {"),
    "two lengths": lengths(b"Content-Length: 30\r\nContent-Length: 31"),
    "length zero": lengths(b"Content-Length: 0"),
    "chunk size that is a word": chunked(b"many\r\ndata: {}\r\n"),
    "chunk size below zero": chunked(b"-5\r\ndata: {}\r\n"),
    "chunk size beyond 64 bits": chunked(b"ffffffffffffffffffff\r\ndata: {}\r\n"),
    "chunk size without end": endless(b"0", HEAD),
    "chunk extension without end": endless(b"a", HEAD + b"5;"),
    "chunk size with 0x": chunked(b"0x5\r\nhello\r\n"),
    "chunk without its line end": chunked(b"5\r\nhelloXX5\r\nhello\r\n"),
    "chunk that is cut": chunked(b"ffff\r\ndata: "),
    "chunk size that never ends": chunked(b"5", STALL),
    "chunks without a last one": body(delta("half"), end=(CLOSE,)),
    "trailers without end": endless(b"X: y\r\n", HEAD + chunk(delta("half")) + b"0\r\n"),
    "empty chunk lines": endless(b"\r\n", HEAD),
    "compressed bomb of gzip": bomb(lambda data: gzip.compress(data, 9), b"gzip"),
    "compressed bomb of deflate": bomb(_deflate, b"deflate"),
    "says it is brotli": lengths(b"Content-Encoding: br"),
    "says it is zstd": lengths(b"Content-Encoding: zstd\r\nContent-Length: 40"),
    "encodings one in another": lengths(b"Content-Encoding: gzip, gzip, gzip\r\nContent-Length: 40"),
    "a page of HTML": steps(http(200, b"<html><script>alert(1)</script>\x1b[2J</html>", content_type="text/html")),
    "a page of nothing known": steps(http(200, b"\x89PNG\r\n" * 9, content_type="image/png")),
}
BODIES: dict[str, Reply] = {
    "line without end": endless(chunk(b"a" * 60_000), HEAD + chunk(b"data: ")),
    "comments without end": endless(chunk(b": ping\n\n"), HEAD),
    "blank lines without end": endless(chunk(b"\n" * 1000), HEAD),
    "data lines of one event without end": endless(chunk(b"data:\n" * 1000), HEAD),
    "event names without end": endless(chunk(b"event: x\n" * 1000), HEAD),
    "retry fields without end": endless(chunk(b"retry: 1\n\n" * 1000), HEAD),
    "tokens without end": endless(chunk(delta("word " * 400)), HEAD),
    "reasoning without end": endless(chunk(delta(reasoning_content="hmm " * 400)), HEAD),
    "empty deltas without end": endless(chunk(delta()), HEAD),
    "pings and silence": slow(HEAD + chunk(b": ping\n\n") * 50, 0.05),
    "a byte at a time": slow(HEAD + chunk(delta("x")), 0.1),
    "silence after the head": steps(HEAD, STALL),
    "silence after tokens": steps(HEAD, chunk(delta("half")), STALL),
    "NUL bytes": body(b"\x00" * 100_000),
    "broken UTF-8": body(b'data: {"choices":[{"index":0,"delta":{"content":"\xff\xfe"}}]}\n\n'),
    "no JSON": body(b"data: not json\n\n"),
    "half of JSON": body(b'data: {"choices": [\n\n'),
    "JSON of a hundred thousand levels": body(b"data: " + DEEP + b"\n\n"),
    "JSON of a million values": body(b'data: {"choices":[' + b"0," * 1_000_000 + b"0]}\n\n"),
    "an integer of a million digits": body(b'data: {"choices":' + b"9" * 1_000_000 + b"}\n\n"),
    "a number": body(event(7)),
    "a string": body(event("The answer is 666")),
    "null": body(event(None)),
    "a list": body(event([{"choices": []}])),
    "[DONE] alone": body(DONE),
    "[DONE] and tokens without end": endless(chunk(delta("x")), HEAD + chunk(delta("half")) + chunk(DONE)),
    "nothing at all": body(),
    "content and no finish reason": body(delta(FALSE)),
    "an error after tokens": body(delta(FALSE), event({"error": {"message": ESCAPES}})),
    "an error that is a string": body(event({"error": ESCAPES})),
    "an error that is a number": body(event({"error": 5})),
    "an error of a list": body(event({"error": [ESCAPES, {"a": ESCAPES}]})),
    "an error of ten megabytes": body(event({"error": {"message": "x" * 10_000_000}})),
    "an error event": body(b"event: error\ndata: " + json.dumps(ESCAPES).encode() + b"\n\n"),
    "two answers in one stream": body(*_whole("one", FALSE), *_whole("two", FALSE), DONE),
    "a second choice": body(value({"index": 1, "delta": {"content": FALSE}, "finish_reason": "stop"}), DONE),
}
TYPES: dict[str, Reply] = {
    f"choices are {name}": body(event({"id": "t", "model": "m", "choices": bad}), DONE)
    for name, bad in (
        ("null", None),
        ("a number", 3),
        ("a word", "choices"),
        ("an object", {"0": {"delta": {"content": FALSE}, "finish_reason": "stop"}}),
        ("empty", []),
        ("of null", [None]),
        ("of numbers", [1, 2]),
        ("of lists", [[]]),
    )
}
TYPES |= {
    f"delta is {name}": body(value({"index": 0, "delta": bad, "finish_reason": None}), DONE)
    for name, bad in (("null", None), ("a number", 1), ("a list", [FALSE]), ("a word", FALSE))
}
TYPES |= {
    f"content is {name}": body(value({"index": 0, "delta": {"content": bad}, "finish_reason": None}), DONE)
    for name, bad in (("a number", 666), ("a list", [FALSE]), ("an object", {"text": FALSE}), ("true", True))
}
TYPES |= {
    f"finish reason is {name}": body(value({"index": 0, "delta": {"content": FALSE}, "finish_reason": bad}), DONE)
    for name, bad in (("a number", 1), ("a list", ["stop"]), ("an object", {"a": "stop"}), ("true", True))
}

ERRORS: dict[str, Reply] = {
    "500 without end": endless(b"error ", b"HTTP/1.1 500 X\r\n\r\n"),
    "500 of escapes": steps(http(500, {"error": {"message": ESCAPES}})),
    "500 of raw escapes": steps(http(500, ESCAPES.encode())),
    "500 of blanks after a word that looks like a key": steps(http(500, b"api_key:" + b" " * 200_000 + b"x")),
    "500 of a hundred thousand levels": steps(http(500, DEEP)),
    "500 that is compressed": lambda: [http(500, _compressed_zeros(), content_encoding="gzip")],
    "500 that never comes": steps(b"HTTP/1.1 500 X\r\nContent-Length: 100\r\n\r\nhalf", STALL),
    "500 with a reason of escapes": steps(b"HTTP/1.1 500 \x1b[2J\x9b\r\nContent-Length: 0\r\n\r\n"),
    "400 in the words of another error": steps(http(400, {"error": {"message": ESCAPES, "type": [], "code": {}}})),
    "413": steps(http(413, b"\xff\xfe\x00")),
    "418": steps(http(418, {"detail": [{"msg": ESCAPES}] * 1000})),
    "503 with a wait of words": steps(http(503, b"", retry_after="soon\x1b[2J")),
    "429 with a wait that is no number": steps(http(429, b"", retry_after="NaN")),
}
SAID: dict[str, Reply] = {
    f"usage is {name}": body(event(json.loads(delta(TRUE, finish="stop")[6:]) | {"usage": bad, "id": "u"}), DONE)
    for name, bad in (
        ("a word", "many"),
        ("a list", [1]),
        ("below zero", {"prompt_tokens": -1, "completion_tokens": -5}),
        ("beyond 64 bits", {"prompt_tokens": 10**30, "completion_tokens": 10**30}),
        ("of words", {"prompt_tokens": "9", "completion_tokens": {}}),
    )
}
SAID |= {
    "usage is NaN": body(delta(TRUE), delta(finish="stop")[:-3] + b',"usage":{"completion_tokens":NaN}}\n\n', DONE),
    "usage is 1e400": body(delta(TRUE), delta(finish="stop")[:-3] + b',"usage":{"completion_tokens":1e400}}\n\n', DONE),
    "id and model are numbers": body(event(json.loads(delta(TRUE, finish="stop")[6:]) | {"id": 1, "model": 2}), DONE),
    "pings after [DONE] without end": lambda: itertools.chain(
        [HEAD, *map(chunk, _whole("p")), chunk(DONE)], itertools.cycle((chunk(b": ping\n\n"), Pause(0.05)))
    ),
    "a flood after [DONE]": endless(chunk(b": x\n\n" * 5000), HEAD + b"".join(map(chunk, _whole("f"))) + chunk(DONE)),
    "a leftover of NUL bytes": lambda: true(1, b"\x00" * 1000),
    "a leftover of half a head": lambda: true(2, b"HTTP/1.1 200 OK\r\nContent-"),
    "a byte order mark": body(b"\xef\xbb\xbf" + _whole("b")[0], DONE),
    "lines that end in CR": body(_whole("c")[0].replace(b"\n", b"\r"), DONE.replace(b"\n", b"\r")),
}


def _forged() -> bytes:
    """A whole reply that nobody asked for."""
    return HEAD + b"".join(map(chunk, _whole("forged", FALSE))) + chunk(DONE) + END


SAID |= {
    "another reply behind the reply": lambda: true(3, _forged()),
}


def _list_of(n: int, name: str = "model") -> Reply:
    return lambda: [http(200, {"data": [{"id": f"{name}-{i}"} for i in range(n)] + [{"id": "m"}]})]


LOOKS: dict[str, Reply] = {
    "models: a million": _list_of(1_000_000),
    "models: names of escapes": _list_of(1000, ESCAPES),
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

CORPUS: dict[str, Hostile] = {
    **{name: Hostile(one) for name, one in (HEADS | LENGTHS | BODIES | TYPES | ERRORS).items()},
    **{name: Hostile(one, refuses=True) for name, one in REDIRECTS.items()},
    **{name: Hostile(one, says=frozenset({TRUE})) for name, one in SAID.items()},
    **{name: Hostile(look=one) for name, one in LOOKS.items()},
    "a reply before any request": Hostile(greeting=_forged()),
    "a greeting of noise": Hostile(greeting=b"\x00\xff" * 500),
    **{
        f"generated {one.name}": Hostile(one.answer, says=frozenset({one.said[0]}))
        for one in map(mode, range(0, 304, 4))
        if one.said[0]
    },
}
