"""A token has the time of the read that ended its event, however the reads split a reply.

For: harness.client.fast.connection, harness.client.fast.batches.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest

from harness.client.fast.acknowledging import Acknowledging
from harness.client.fast.batches import Templates
from harness.client.fast.connecting import SO_TIMESTAMPNS, ClockOffset
from harness.client.fast.connection import Connection
from harness.client.interface import Deadlines
from harness.client.protocol.http1 import Leftovers, ResponseReader
from harness.client.protocol.sse import ReplyParser
from harness.core.records import Timing

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
N_TOKENS = 40


def frame(text: str) -> bytes:
    """An event in a chunk of its own."""
    event = b"data: %b\n\n" % text.encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


def frames(reply_id: str) -> list[bytes]:
    """The events of a reply, then the end of its body."""
    start = f'{{"id":"{reply_id}","object":"chat.completion.chunk","created":17,"model":"m","choices":[{{"index":0,'
    tokens = [frame(start + f'"delta":{{"content":" {n % 7}"}},"finish_reason":null}}]}}') for n in range(N_TOKENS)]
    return [*tokens, frame(start + '"delta":{},"finish_reason":"stop"}]}'), frame("[DONE]"), b"0\r\n\r\n"]


def reads(pieces: Sequence[bytes], how: str) -> list[bytes]:
    """The tokens of `pieces` in as many reads as there are tokens, then the end in one more read."""
    tokens, end = pieces[:N_TOKENS], b"".join(pieces[N_TOKENS:])
    if how == "one event each":
        return [*tokens, end]
    if how == "two, then one in halves":
        split = [[a + b, c[:50], c[50:]] for a, b, c in zip(tokens[:36:3], tokens[1:36:3], tokens[2:36:3], strict=True)]
        return [*(read for three in split for read in three), *tokens[36:], end]
    whole, rng = b"".join(tokens), random.Random(5)
    cuts = sorted(rng.sample(range(1, len(whole)), N_TOKENS - 1))
    return [*(whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)), end]


class Played:
    """A socket that is read in the pieces of `script`, each with its kernel stamp."""

    def __init__(self, sock: socket.socket) -> None:
        self.fileno, self.close = sock.fileno, sock.close
        self.script: Iterator[tuple[bytes, list[tuple[int, int, bytes]], int, None]] = iter(())

    def setsockopt(self, *_: Any) -> None:
        """Nothing to set."""

    def send(self, request: bytes) -> int:
        return len(request)

    def recvmsg(self, *_: Any) -> tuple[bytes, list[tuple[int, int, bytes]], int, None]:
        return next(self.script)


class Owner:
    """A transport that keeps nothing."""

    def __init__(self) -> None:
        self.clock_offset = ClockOffset()

    def keep_idle(self, connection: Connection) -> None: ...
    def end_request(self, connection: Connection) -> None: ...
    def forget(self, connection: Connection) -> None: ...


@contextmanager
def pair() -> Iterator[socket.socket]:
    one, second = socket.socketpair()
    with one, second:
        yield one


def wall_clock_ahead() -> int:
    """Nanoseconds by which the wall clock is ahead of the monotonic clock: the pair of readings disturbed least."""
    readings = []
    for _ in range(50):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after - before, wall - (before + after) // 2))
    return min(readings)[1]


def stamp(at: float, ahead: int) -> bytes:
    """The kernel's stamp of the monotonic time `at`, by a wall clock `ahead` nanoseconds ahead."""
    nanoseconds = round(at * 1e9) + ahead
    return b"".join(part.to_bytes(8, "little") for part in divmod(nanoseconds, 1_000_000_000))


def parser_at(started: float) -> ReplyParser:
    return ReplyParser(started=started, started_utc=0.0, max_body_bytes=1 << 20, clock="kernel")


async def by_connection(pieces: Sequence[bytes], times: Sequence[float], templates: Templates) -> Timing:
    """The timing of a reply whose reads came at `times`."""
    with pair() as sock:
        played = Played(sock)
        connection = Connection(
            Owner(),
            ("server", 80),
            cast("socket.socket", played),
            templates,
            Leftovers(),
            Acknowledging(),
            kernel_stamps=True,
        )
        task = asyncio.ensure_future(connection.ask(b"POST", parser_at(times[0] - 0.01), Deadlines()))
        await asyncio.sleep(0)
        ahead = wall_clock_ahead()
        played.script = iter(
            [(p, [(1, SO_TIMESTAMPNS, stamp(at, ahead))], 0, None) for p, at in zip(pieces, times, strict=True)]
        )
        for _ in pieces:
            connection._drain()
        reply = await task
        connection.close()
        return reply.timing


def by_parser(pieces: Sequence[bytes], times: Sequence[float]) -> Timing:
    """The same by the general way: each read is parsed by itself."""
    http, parser = ResponseReader(), parser_at(times[0] - 0.01)
    for piece, at in zip(pieces, times, strict=True):
        parser.feed(http.feed(piece), at)
    return parser.finish(times[-1]).timing


@pytest.mark.parametrize("how", ["one event each", "two, then one in halves", "anywhere"])
def test_a_token_has_the_time_of_the_read_that_ended_its_event(how: str) -> None:
    templates = Templates()
    rng = random.Random(3)
    for reply_id in ("first", "second"):  # the first reply teaches the template
        pieces = [HEAD, *reads(frames(reply_id), how)]
        now = time.monotonic()
        times = sorted(now - 0.6 + 0.5 * rng.random() for _ in pieces)
        fast, general = asyncio.run(by_connection(pieces, times, templates)), by_parser(pieces, times)
        assert fast.events == general.events == N_TOKENS
        for field in ("first_token", "last_token", "gap_p50", "gap_p99"):
            assert getattr(fast, field) == pytest.approx(getattr(general, field), abs=2e-4), (reply_id, field)
