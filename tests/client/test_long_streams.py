"""Long streams, read in batches: the same reply however their bytes are split.

For: harness.client.transport.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import Iterable

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.interface import Deadlines, Transport
from harness.client.loop import new_event_loop
from harness.client.openai_sdk import OpenaiTransport
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.transport import Transport as HttpTransport
from harness.testing import (
    DONE,
    END,
    HEAD,
    FakeServer,
    Request,
    Step,
    chunk,
    completion,
    delta,
)

BODY = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
DEADLINES = Deadlines(connect=10, first_token=20, idle=20)
TOKENS = ["∑", "🌱", '"', "\\", "\n", " data: {", "[DONE]", "a", " the", '"}}]}', "\u2028", "x" * 40]


def complete(transport: Transport, url: str, body: bytes = BODY) -> Reply:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(one(transport, url, body))


async def one(transport: Transport, url: str, body: bytes = BODY) -> Reply:
    try:
        return await asyncio.wait_for(
            transport.complete(Endpoint.parse(url), "/chat/completions", body, DEADLINES, 10**8), 30
        )
    finally:
        await transport.close()


def facts(reply: Reply) -> tuple[object, ...]:
    return reply.text, reply.reasoning, reply.usage, reply.notes, reply.timing.events


@pytest.mark.parametrize("seed", range(4))
def test_long_streams_in_any_segments_are_read_alike_by_both_transports(seed: int) -> None:
    rng = random.Random(seed)
    tokens = [rng.choice(TOKENS) for _ in range(3000)]
    reasoning = rng.choice([0, 1500])
    frames = [chunk(delta(role="assistant", content=""))]
    for n, token in enumerate(tokens):
        frames.append(chunk(delta(reasoning=token) if n < reasoning else delta(token)))
        if rng.random() < (0.002 if seed % 2 else 0):
            frames.append(chunk(b": ping\n\n"))
        if seed == 3 and n % 500 == 0:  # several events in a chunk, an event over several chunks
            frames.append(chunk(delta("A") + delta("B")) + chunk(delta("CD")[:60]) + chunk(delta("CD")[60:]))
    frames.append(chunk(delta(finish="stop", usage={"completion_tokens": 3000})) + chunk(DONE) + END)
    stream = b"".join(frames)

    def answer(_: Request) -> Iterable[Step]:
        yield HEAD
        at = 0
        while at < len(stream):
            size = rng.choice([1, 7, 300, 5000, 70_000])
            yield stream[at : at + size]
            at += size

    with FakeServer(answer) as server:
        ours = complete(HttpTransport(), server.base_url)
        theirs = complete(OpenaiTransport(), server.base_url)
    extra = "" if seed != 3 else "ABCD"
    assert (ours.text or "").replace("ABCD", "") == "".join(tokens[reasoning:]).replace(extra, "")
    assert [facts(reply) for reply in (ours, theirs)] == [facts(ours)] * 2


def test_a_prompt_larger_than_all_socket_buffers_is_sent_whole() -> None:
    with FakeServer(lambda request: completion(str(len(request.body)))) as server:
        body = json.dumps({"model": "m", "messages": "x" * 20_000_000, "stream": True}).encode()
        assert complete(HttpTransport(), server.base_url, body).text == str(len(body))


def test_an_early_refusal_of_a_large_prompt_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        async def refuse() -> None:
            loop = asyncio.get_running_loop()
            connection, _ = await loop.sock_accept(listener)
            await loop.sock_recv(connection, 1000)
            await loop.sock_sendall(connection, b'HTTP/1.1 413 X\r\nContent-Length: 19\r\n\r\n{"error":"too big"}')
            await asyncio.sleep(0.3)
            connection.close()

        async def main() -> None:
            listener.setblocking(False)
            refusing = asyncio.create_task(refuse())
            with pytest.raises(RequestFailed, match="too big") as caught:
                await one(HttpTransport(), url, b"x" * 50_000_000)
            assert caught.value.status == 413
            await refusing

        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(main())
