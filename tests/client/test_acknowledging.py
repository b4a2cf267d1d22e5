"""An acknowledgement waits only where the wait holds no token of the server back.

For: harness.client.fast.acknowledging, harness.client.fast.connection.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import pytest

from harness.client.fast.acknowledging import HELD_S, Acknowledging
from harness.client.fast.batches import END_OF_FRAME, Templates
from harness.client.fast.connecting import ClockOffset
from harness.client.fast.connection import Connection
from harness.client.interface import Deadlines
from harness.client.protocol.http1 import Leftovers
from harness.client.protocol.sse import ReplyParser

EVENT = b"5\r\ndata:" + END_OF_FRAME


def judged(first_gap: float, gap: float, *, fresh: bool = True, first: bytes = EVENT, double: int = 0) -> bool:
    """Whether acknowledgements wait after a batch of ten reads, of which `double` hold two events."""
    acknowledging = Acknowledging()
    pieces = [first] + [EVENT] * (8 - double) + [2 * EVENT] * double + [3 * EVENT]
    acknowledging.judge(pieces, list(accumulate([first_gap] + [gap] * 8, initial=100.0)), fresh=fresh)
    return acknowledging.late


def test_a_server_that_sends_within_the_wait_is_proven_to_collect_no_packets() -> None:
    assert judged(0.02, 0.02)
    assert not judged(0.041, 0.02)
    assert not judged(0.0, 0.02), "the wall clock was set, so the stamps say nothing"
    assert not judged(0.02, 0.02, fresh=False), "no wait was on, so the packet says nothing"
    assert not judged(0.02, 0.02, first=bytes(3000)), "several packets are acknowledged at once"


def test_a_slow_reply_is_never_held_back() -> None:
    assert judged(0.08, 0.08)
    assert not judged(0.08, 0.045)
    assert judged(0.08, 0.08, double=1), "a client that reads late joins a few events"
    assert not judged(0.08, 0.08, double=2), "a server that collects joins many"
    assert not judged(0.08, 0.08, first=b"half an event"), "packets that end inside an event say nothing"


@pytest.mark.parametrize("gap", [0.004, 0.5])
def test_the_mode_is_not_set_where_it_saves_nothing(gap: float) -> None:
    assert not judged(0.02, gap)


def test_a_server_that_was_slow_is_judged_again_and_a_proven_one_stays_proven() -> None:
    slow, fast = ([100 + n * gap for n in range(10)] for gap in (0.08, 0.04))
    acknowledging = Acknowledging()
    for stamps, late in ((slow, True), (fast, False)):
        acknowledging.judge([EVENT] * 10, stamps, fresh=False)
        assert acknowledging.late is late
    acknowledging.judge([EVENT] * 2, [100.0, 100.02], fresh=True)
    assert not acknowledging.late, "two reads are too few"
    acknowledging.judge([EVENT] * 10, fast, fresh=False)
    assert acknowledging.late


class Owner:
    """A transport that keeps nothing."""

    def __init__(self) -> None:
        self.clock_offset = ClockOffset()

    def keep_idle(self, connection: Connection) -> None: ...
    def end_request(self, connection: Connection) -> None: ...
    def forget(self, connection: Connection) -> None: ...


class Stream(NamedTuple):
    """A connection with a request under way, its socket, and the server's socket."""

    connection: Connection
    sock: socket.socket
    server: socket.socket

    def read(self, event: bytes = EVENT) -> int:
        """Send an event and read it; the number of packets that the server then waits for."""
        self.server.send(event)
        select.select([self.sock], [], [], 5)
        self.connection._drain()
        unacknowledged: int = struct.unpack_from(
            "I", self.server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 64), 24
        )[0]
        return unacknowledged


@contextmanager
def stream(acknowledging: Acknowledging, *, collects: bool) -> Iterator[Stream]:
    """A stream over loopback, whose head and first event have been read. collects: the server has Nagle's algorithm."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    with server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not collects)
        sock.setblocking(False)
        connection = Connection(
            Owner(), ("server", 80), sock, Templates(), Leftovers(), acknowledging, kernel_stamps=True
        )
        parser = ReplyParser(started=time.monotonic(), started_utc=0.0, max_body_bytes=1 << 20, clock="kernel")
        asking = asyncio.ensure_future(connection.ask(b"POST", parser, Deadlines()))
        yield Stream(connection, sock, server)
        asking.cancel()
        connection.close()


def with_a_stream(play: Any, *, collects: bool = False, late: bool = False) -> Any:
    """What `play` returns for a stream."""

    async def inside() -> Any:
        acknowledging = Acknowledging()
        with stream(acknowledging, collects=collects) as its:
            await asyncio.sleep(0)
            its.read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + EVENT)
            acknowledging.late = late
            return play(its)

    return asyncio.run(inside())


@pytest.mark.skipif(sys.platform != "linux", reason="receive stamps and TCP_QUICKACK are Linux's")
@pytest.mark.parametrize("late", [True, False])
def test_a_read_acknowledges_unless_it_is_late(late: bool) -> None:
    def play(its: Stream) -> int:
        # As after a wait that ran out; a new connection may acknowledge 16 packets before they are read.
        for _ in range(20):
            its.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            left = its.read()
        return left

    assert with_a_stream(play, late=late) == late


@pytest.mark.skipif(sys.platform != "linux", reason="receive stamps and TCP_QUICKACK are Linux's")
@pytest.mark.parametrize("collects", [True, False])
def test_only_a_server_that_collects_packets_is_held_back(collects: bool) -> None:
    def play(its: Stream) -> float:
        begun = time.monotonic()
        its.read()
        return time.monotonic() - begun

    assert (with_a_stream(play, collects=collects) >= HELD_S) == collects
