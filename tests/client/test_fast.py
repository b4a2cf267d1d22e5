"""What is the fast transport's own: batches equal single events, true stamps, its loop.

For: harness.client.fast.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
import threading
import time
from array import array
from collections.abc import Iterable, Iterator

import pytest

from harness.client.address.endpoint import Endpoint
from harness.client.chooser import open_transport
from harness.client.fast.connecting import SO_TIMESTAMPNS, ClockOffset
from harness.client.fast.event_loop import StreamSelector, new_event_loop
from harness.client.fast.transport import FastTransport
from harness.client.interface import Deadlines, Transport
from harness.client.libraries.aio import AiohttpTransport
from harness.client.protocol.reply import Reply, RequestFailed
from tests.faults.server import (
    DONE,
    END,
    HEAD,
    STALL,
    FaultServer,
    Pause,
    Request,
    Step,
    chunk,
    completion,
    delta,
    event,
)
from tests.patience import PATIENCE_SECONDS

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


@pytest.mark.parametrize("seed", range(12))
def test_long_streams_in_any_segments_are_read_alike_by_all_transports(seed: int) -> None:
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

    with FaultServer(answer) as server:
        fast = complete(FastTransport(), server.base_url)
        slow = complete(AiohttpTransport(), server.base_url)
    extra = "" if seed != 3 else "ABCD"
    assert (fast.text or "").replace("ABCD", "") == "".join(tokens[reasoning:]).replace(extra, "")
    assert (fast.text, fast.reasoning, fast.usage, fast.notes) == (slow.text, slow.reasoning, slow.usage, slow.notes)
    assert fast.timing.events == slow.timing.events


def test_an_error_in_the_middle_of_a_batch_is_found() -> None:
    many = [chunk(delta("token"))] * 200
    error = chunk(event({"error": {"message": "EngineCore died", "code": 500}}))
    stream = HEAD + b"".join([*many, error, *many, chunk(delta(finish="stop")), chunk(DONE), END])
    with FaultServer(lambda _: [stream]) as server:
        for _ in range(3):
            with pytest.raises(RequestFailed, match="EngineCore") as caught:
                complete(FastTransport(), server.base_url)
            assert caught.value.kind == "server"


@pytest.fixture
def stamping() -> Iterator[None]:
    """The kernel stamps what it receives: a moment after the first socket asks for it, and as long as one does."""
    with socket.socket() as asking, FaultServer(lambda _: completion()) as server:
        asking.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        end = time.monotonic() + PATIENCE_SECONDS
        while complete(FastTransport(), server.base_url).timing.clock != "kernel":
            assert time.monotonic() < end
        yield


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps what it receives")
@pytest.mark.usefixtures("stamping")
def test_stamps_are_true_though_the_loop_was_busy() -> None:
    all_is_sent = threading.Event()

    def answer(_: Request) -> Iterable[Step]:
        yield HEAD + chunk(delta(role="assistant"))
        for _n in range(3):
            yield chunk(delta("x"))
            yield Pause(0.03)
        yield chunk(delta(finish="stop") + DONE) + END
        all_is_sent.set()

    async def main(url: str) -> tuple[Reply, float]:
        transport = FastTransport()
        asking = asyncio.create_task(one(transport, url))
        await asyncio.to_thread(server.wait_for, lambda: bool(server.requests))
        # The loop is busy on purpose while all tokens come, and for a while after.
        assert all_is_sent.wait(PATIENCE_SECONDS)
        time.sleep(0.1)
        read_at = time.time()
        return await asking, read_at

    with FaultServer(answer) as server, asyncio.Runner(loop_factory=new_event_loop) as runner:
        reply, read_at = runner.run(main(server.base_url))
    assert reply.timing.clock == "kernel"
    assert reply.timing.last_token is not None
    assert reply.timing.started + reply.timing.last_token < read_at


def test_a_wall_clock_that_was_set_does_not_reach_the_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    offset = ClockOffset()
    wall = time.time_ns()
    now = time.monotonic()
    for jump_s in (-3600, 3600):
        stamp = (wall // 10**9 + jump_s).to_bytes(8, "little") + (wall % 10**9).to_bytes(8, "little")
        (at,) = offset.monotonic([stamp], now)
        assert abs(at - time.monotonic()) < 5


def test_stamps_of_a_wall_clock_that_went_back_a_little_are_in_order() -> None:
    offset = ClockOffset()
    wall = time.time_ns()
    now = time.monotonic()
    stamps = [array("q", divmod(wall + microseconds * 1000, 10**9)).tobytes() for microseconds in (0, 9, 5, 12, 11)]
    times = offset.monotonic(stamps, now)
    assert list(times) == sorted(times)
    assert times[-1] - times[0] == pytest.approx(12e-6, abs=1e-6)


def test_a_prompt_larger_than_all_socket_buffers_is_sent_whole() -> None:
    with FaultServer(lambda request: completion(str(len(request.body)))) as server:
        body = json.dumps({"model": "m", "messages": "x" * 20_000_000, "stream": True}).encode()
        assert complete(FastTransport(), server.base_url, body).text == str(len(body))


def test_an_early_refusal_of_a_large_prompt_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        async def refuse() -> None:
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            connection.recv(1000)
            connection.sendall(b'HTTP/1.1 413 X\r\nContent-Length: 19\r\n\r\n{"error":"too big"}')
            await asyncio.sleep(0.3)
            connection.close()

        async def main() -> None:
            listener.setblocking(False)
            refusing = asyncio.create_task(refuse())
            with pytest.raises(RequestFailed, match="too big") as caught:
                await one(FastTransport(), url, b"x" * 50_000_000)
            assert caught.value.status == 413
            await refusing

        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(main())


def test_closing_the_transport_fails_what_is_under_way() -> None:
    with FaultServer(lambda _: [HEAD, chunk(delta("x")), STALL]) as server:

        async def main() -> None:
            transport = FastTransport()
            asking = asyncio.create_task(one(transport, server.base_url))
            await asyncio.to_thread(server.wait_for, lambda: bool(server.requests))
            await transport.close()
            with pytest.raises(RequestFailed):
                await asking

        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(main())


def test_the_stream_loop_is_an_ordinary_loop_for_everything_else() -> None:
    async def main() -> list[str]:
        order: list[str] = []
        loop = asyncio.get_running_loop()
        loop.call_later(0.02, order.append, "timer")
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
        order.append(await asyncio.to_thread(lambda: "thread"))
        process = await asyncio.create_subprocess_exec("true")
        assert await process.wait() == 0
        await asyncio.sleep(0.03)
        server.close()
        await server.wait_closed()
        return order

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert sorted(runner.run(main())) == ["thread", "timer"]


def test_a_stream_is_drained_to_its_end_though_that_came_with_its_last_bytes() -> None:
    selector = StreamSelector()
    ours, theirs = socket.socketpair()
    theirs.sendall(b"abcdef")
    theirs.close()
    reads: list[bytes] = []

    def drain() -> bool:
        reads.append(ours.recv(4))
        if len(reads[-1]) == 4:
            selector.again(ours.fileno())
        elif not reads[-1]:
            selector.detach(ours.fileno())
        return True

    selector.attach(ours.fileno(), drain)
    for _ in range(3):
        assert selector.select(5) == []
    assert reads == [b"abcd", b"ef", b""]
    selector.close()
    ours.close()


def test_the_selector_refuses_what_it_has_and_forgets_what_is_closed() -> None:
    selector = StreamSelector()
    left, right = socket.socketpair()
    with left, right:
        selector.register(left, 1)
        with pytest.raises(KeyError):
            selector.register(left, 1)
        right.send(b"x")
        assert [key.fileobj for key, _ in selector.select(1)] == [left]
        selector.unregister(left)
        with pytest.raises(KeyError):
            selector.unregister(left)
        assert selector.select(0) == []
    selector.close()


@pytest.mark.usefixtures("stamping")
def test_auto_takes_the_fast_transport_for_plain_http_and_aiohttp_behind_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FaultServer(lambda _: completion()) as server:
        assert complete(open_transport("auto"), server.base_url).timing.clock == "kernel"
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        assert complete(open_transport("auto"), "http://api.example.com/v1").timing.clock == "user"
        assert server.requests[-1].path.startswith("http://api.example.com/")


def test_the_fast_transport_refuses_https() -> None:
    with pytest.raises(RequestFailed) as caught:
        complete(FastTransport(), "https://127.0.0.1:1")
    assert caught.value.kind == "refused"
