"""A reply that is left over on a kept connection is never taken for the reply to the next request."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines, Transport
from harness.client.openai_sdk import OpenaiTransport
from harness.client.protocol.reply import RequestFailed
from harness.client.transport import Transport as HttpTransport
from tests.faults.server import CLOSE, STALL, FaultServer, Pause, Request, Step, http
from tests.patience import PATIENCE_SECONDS

Answer = Callable[[Request], Iterable[Step]]


def reply(word: str, reply_id: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "message": {"content": word}, "finish_reason": "stop"}
    return http(200, {"id": reply_id or f"id-{word}", "model": "m", "choices": [choice], **more})


def word_of(request: Request) -> str:
    return str(request.json["messages"])


def texts(
    transport_of: Callable[[], Transport], answer: Answer, n: int = 12, pause: float = 0.0, turns: int = 1000
) -> list[str | None]:
    """What `n` requests came to, one after another, each asking for its own word or for that of its turn; None where
    one failed."""

    async def main(url: str) -> list[str | None]:
        transport = transport_of()
        got: list[str | None] = []
        for number in range(n):
            body = json.dumps({"model": "m", "messages": f"w{number % turns}"}).encode()
            try:
                done = await transport.complete(Endpoint.parse(url), "/chat/completions", body, Deadlines(), 1 << 20)
                got.append(done.text)
            except RequestFailed:
                got.append(None)
            await asyncio.sleep(pause)
        await transport.close()
        return got

    with FaultServer(answer) as server:
        return asyncio.run(main(server.base_url))


ALL = [HttpTransport, OpenaiTransport]
KEEPING = [HttpTransport]
"""The SDK's uses a connection once, so that nothing can be left over on it."""
OWN = [f"w{n}" for n in range(12)]


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("same_id", [True, False])
def test_a_reply_that_came_before_the_request_was_sent(make: Callable[[], Transport], same_id: bool) -> None:
    def answer(request: Request) -> Iterable[Step]:
        word = word_of(request)
        yield reply(word)
        yield Pause(0.01)
        yield reply(word, None if same_id else "another")

    got = texts(make, answer, pause=0.05)
    assert got == OWN


@pytest.mark.parametrize("make", ALL)
def test_a_connection_that_brought_a_reply_that_cannot_be_believed_carries_no_other(
    make: Callable[[], Transport],
) -> None:
    """Its server may say nothing on it any more, which would cost the next request its patience."""
    spoilt = http(200, {"id": "x", "choices": [{"index": 0, "message": {"content": 5}, "finish_reason": "stop"}]})

    def answer(request: Request) -> Iterable[Step]:
        if word_of(request) == "w0":
            yield spoilt
            yield STALL
        yield reply(word_of(request))

    begun = time.monotonic()
    assert texts(make, answer, n=4) == [None, "w1", "w2", "w3"]
    assert time.monotonic() - begun < Deadlines().idle, "nobody waited"


def counted(word: str, tokens: int) -> bytes:
    """A reply under an id of its own."""
    return reply(word, f"id-{time.monotonic_ns()}", usage={"prompt_tokens": tokens, "completion_tokens": 1})


@pytest.mark.parametrize("make", ALL)
def test_a_reply_that_something_follows_is_noted_and_its_connection_not_used_again(
    make: Callable[[], Transport],
) -> None:
    event = b'data: {"id":"%d","model":"m","choices":[{"delta":{"content":"w"},"finish_reason":"stop"}]}\n\n'
    ends = [b"data: [DONE]\n\n", b"data: [DONE]\n\ndata: more\n\n", b"\0\0\0\n\ndata: [DONE]\n\n"]
    notes: list[tuple[str, ...]] = []
    connections: list[str] = []

    def answer(request: Request) -> Iterable[Step]:
        connections.append(threading.current_thread().name)
        return [http(200, event % request.number + ends[request.number - 1], content_type="text/event-stream")]

    async def main(url: str) -> None:
        transport = make()
        for _ in ends:
            body = b'{"model":"m","messages":"w"}'
            done = await transport.complete(Endpoint.parse(url), "/chat/completions", body, Deadlines(), 1 << 20)
            assert done.text == "w"
            notes.append(done.notes)
        await transport.close()

    with FaultServer(answer) as server:
        asyncio.run(main(server.base_url))
    assert notes == [(), ("bytes after [DONE]",), ("bytes after the finish reason that are no events",)]
    assert len(set(connections)) == (3 if make is OpenaiTransport else 2)


@pytest.mark.parametrize("make", KEEPING)
@pytest.mark.parametrize("late", [0.0, 0.002, 0.03])
def test_after_the_first_doubt_a_connection_carries_one_request_and_the_next_reply_says_so(
    make: Callable[[], Transport], late: float
) -> None:
    connections: list[str] = []

    def answer(request: Request) -> Iterable[Step]:
        """Whatever was asked, another reply follows: under an id of its own, with the same count."""
        connections.append(threading.current_thread().name)
        own = counted(word_of(request), 10)
        if not late:
            return [own + counted("of nobody", 10)]
        return [own, Pause(late), counted("of nobody", 10)]

    notes: list[str] = []

    async def main(url: str) -> list[str | None]:
        transport, got = make(), list[str | None]()
        for number in range(12):
            body = json.dumps({"model": "m", "messages": f"w{number}"}).encode()
            try:
                done = await transport.complete(Endpoint.parse(url), "/chat/completions", body, Deadlines(), 1 << 20)
                notes.extend(done.notes)
                got.append(done.text)
            except RequestFailed:
                got.append(None)
            if number == 3:
                await asyncio.sleep(0.1)  # what nobody asked for has come by now
        await transport.close()
        return got

    with FaultServer(answer) as server:
        got = asyncio.run(main(server.base_url))
    assert got[5:] == OWN[5:]
    assert [note.partition(";")[0] for note in notes] == ["its server has sent replies that nobody asked for"]
    assert len(set(connections[-6:])) == 6


@pytest.mark.parametrize("make", KEEPING)
def test_a_server_that_closes_or_times_out_idle_connections_is_not_doubted(make: Callable[[], Transport]) -> None:
    closed = threading.Event()

    def answer(request: Request) -> Iterable[Step]:
        try:
            yield reply(word_of(request))
            yield Pause(0.01)
            if request.number % 2:
                yield b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            yield CLOSE
        finally:
            closed.set()

    async def main(url: str) -> list[tuple[str, ...]]:
        transport, notes = make(), list[tuple[str, ...]]()
        for word in OWN[:6]:
            body = json.dumps({"model": "m", "messages": word}).encode()
            done = await transport.complete(Endpoint.parse(url), "/chat/completions", body, Deadlines(), 1 << 20)
            assert done.text == word
            notes.append(done.notes)
            assert closed.wait(PATIENCE_SECONDS)
            closed.clear()
            await asyncio.sleep(0.05)
        await transport.close()
        return notes

    with FaultServer(answer) as server:
        assert asyncio.run(main(server.base_url)) == [()] * 6
