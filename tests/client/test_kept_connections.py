"""A server may close a connection that was kept: the next request goes out on another one, unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines, Transport
from harness.client.protocol.reply import RequestFailed
from harness.client.transport import Transport as HttpTransport

BODY = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(BODY)


class Fickle:
    """Answers `per_connection` requests on each connection, then hangs up on the next one."""

    def __init__(self, per_connection: int) -> None:
        self.per_connection = per_connection
        self.connections = self.answered = self.hung_up = 0
        self.handlers: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        handler = asyncio.current_task()
        assert handler is not None
        self.handlers.add(handler)
        for nth in range(self.per_connection + 1):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            if nth == self.per_connection:
                self.hung_up += 1
                break
            self.answered += 1
            writer.write(HEAD + BODY)
            await writer.drain()
        writer.close()
        await writer.wait_closed()


async def ask(transport: Transport, port: int, times: int) -> list[str | None]:
    """The texts of `times` requests, one after another."""
    endpoint = Endpoint.parse(f"http://127.0.0.1:{port}")
    texts = []
    try:
        for _ in range(times):
            reply = await transport.complete(endpoint, "/chat/completions", b"{}", Deadlines(), 1 << 20)
            texts.append(reply.text)
    finally:
        await transport.close()
    return texts


@pytest.mark.parametrize("make", [HttpTransport])
def test_a_kept_connection_that_was_closed_costs_no_failure(make: Callable[[], Transport]) -> None:
    async def run() -> Fickle:
        fickle = Fickle(per_connection=2)
        server = await asyncio.start_server(fickle.serve, "127.0.0.1", 0)
        async with server:
            texts = await ask(make(), server.sockets[0].getsockname()[1], 7)
            await asyncio.gather(*fickle.handlers)
        assert texts == ["hi"] * 7
        return fickle

    fickle = asyncio.run(run())
    assert fickle.answered == 7
    assert fickle.hung_up == 3
    assert fickle.connections == 4


@pytest.mark.parametrize("make", [HttpTransport])
def test_a_fresh_connection_that_is_closed_unanswered_is_a_failure(make: Callable[[], Transport]) -> None:
    async def run() -> Fickle:
        fickle = Fickle(per_connection=0)
        server = await asyncio.start_server(fickle.serve, "127.0.0.1", 0)
        async with server:
            with pytest.raises(RequestFailed) as caught:
                await ask(make(), server.sockets[0].getsockname()[1], 1)
            await asyncio.gather(*fickle.handlers)
        assert caught.value.kind == "connect"
        assert caught.value.retryable
        return fickle

    assert asyncio.run(run()).hung_up == 1
