"""From a host's name to a connected socket that does not block, and the kernel's receive stamps on the monotonic clock.

Many connects at once neither hold up the reading (a few are made in a turn of the loop, then sockets are read) nor
look a name up twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import struct
import time
from array import array
from collections import deque
from collections.abc import Sequence
from functools import partial

from harness.client.protocol.reply import RequestFailed
from harness.core.inert import quoted

RESOLVE_S = 60.0
"""Seconds for which a host's addresses are remembered."""

CONNECTS_A_TURN = 32
"""Connections begun before what came meanwhile is read: a connect takes some 40 µs of the loop."""

Peer = tuple[str, int]
"""Host and port that connections go to."""

_Address = tuple[int, tuple[str | int | bytes, ...]]
_NOT_BLOCKING = getattr(socket, "SOCK_NONBLOCK", 0)


class Connector:
    """Connects to the hosts of a run. Lives on one loop."""

    def __init__(self) -> None:
        self._addresses: dict[Peer, tuple[float, list[_Address]]] = {}
        self._lookups: dict[Peer, asyncio.Task[list[_Address]]] = {}
        self._left = CONNECTS_A_TURN
        self._turned = False  # the end of this turn is awaited
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def connect(self, peer: Peer, seconds: float) -> socket.socket:
        """A socket connected to `peer`. Raises `RequestFailed`, after `seconds` at the latest."""
        if not self._left or self._waiting:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._left -= 1
            if not self._turned:
                self._turned = True
                asyncio.get_running_loop().call_soon(self._next_turn)
        try:
            return await self._connected(peer, seconds)
        except TimeoutError:
            raise RequestFailed("timeout", f"no connection to {_shown(peer)} within {seconds:g} s") from None
        except OSError as error:
            cause = error.strerror or str(error)
            if error.errno in (errno.EMFILE, errno.ENFILE):
                cause += "; lower the concurrency or raise `ulimit -n`"
                message = f"cannot connect to {_shown(peer)}: {quoted(cause)}"
                raise RequestFailed("out_of_files", message) from None
            raise RequestFailed("connect", f"cannot connect to {_shown(peer)}: {quoted(cause)}") from None

    def close(self) -> None:
        """End the lookups under way."""
        for lookup in self._lookups.values():
            lookup.cancel()

    def _next_turn(self) -> None:
        """The loop has read what had come: so many more may connect."""
        self._left = CONNECTS_A_TURN
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        self._turned = self._left < CONNECTS_A_TURN
        if self._turned:
            asyncio.get_running_loop().call_soon(self._next_turn)

    async def _connected(self, peer: Peer, seconds: float) -> socket.socket:
        until, addresses = self._addresses.get(peer, (0.0, []))
        if time.monotonic() >= until:
            async with asyncio.timeout(seconds):
                addresses = await self._resolve(peer)
        for n, address in enumerate(addresses):
            try:
                # A dead first address (::1 of localhost, say) must not use up the whole deadline.
                sock = await _connected_to(address, seconds / len(addresses))
            except OSError:
                if n + 1 == len(addresses):
                    raise
            else:
                if n:
                    addresses.insert(0, addresses.pop(n))
                return sock
        raise OSError("the name has no address")

    async def _resolve(self, peer: Peer) -> list[_Address]:
        """The addresses of a host; all who ask meanwhile wait for one lookup."""
        lookup = self._lookups.get(peer)
        if lookup is None:
            lookup = self._lookups[peer] = asyncio.ensure_future(_lookup(peer))
            lookup.add_done_callback(lambda _: self._lookups.pop(peer, None))
        addresses = await asyncio.shield(lookup)
        self._addresses[peer] = (time.monotonic() + RESOLVE_S, addresses)
        return addresses


async def _lookup(peer: Peer) -> list[_Address]:
    loop = asyncio.get_running_loop()
    try:
        entries = socket.getaddrinfo(*peer, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        entries = await loop.getaddrinfo(*peer, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(entry[0]), entry[4]) for entry in entries))


async def _connected_to(address: _Address, seconds: float) -> socket.socket:
    """Raises `OSError` (`TimeoutError` after `seconds`)."""
    sock = socket.socket(address[0], socket.SOCK_STREAM | _NOT_BLOCKING)
    try:
        if not _NOT_BLOCKING:
            sock.setblocking(False)
        code = sock.connect_ex(address[1])
        if code == errno.EINPROGRESS and not _stands(sock):
            async with asyncio.timeout(seconds):
                await _writable(sock)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock


def _stands(sock: socket.socket) -> bool:
    """Over loopback a connection stands before the call that asks for it returns."""
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


async def _writable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    fd = sock.fileno()
    loop.add_writer(fd, partial(_set, ready))
    try:
        await ready
    finally:
        loop.remove_writer(fd)


def _set(future: asyncio.Future[None]) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):
        future.set_result(None)


def _shown(peer: Peer) -> str:
    return f"[{peer[0]}]:{peer[1]}" if ":" in peer[0] else f"{peer[0]}:{peer[1]}"


# ---- receive stamps


SO_TIMESTAMPNS = 35
"""Linux: a message brings a `struct timespec` of its receipt, by CLOCK_REALTIME."""


_TIMESPEC = struct.Struct("qq")


def stamp_now() -> bytes:
    """A stamp as the kernel's, of this moment."""
    return array("q", divmod(time.time_ns(), 1_000_000_000)).tobytes()


class ClockOffset:
    """Receive stamps (CLOCK_REALTIME) as seconds of the monotonic clock, whatever happens to the wall clock."""

    def __init__(self) -> None:
        self._seconds = 0
        self._nanoseconds = 0
        self._measure()

    def _measure(self) -> None:
        readings = []
        for _ in range(5):
            before = time.monotonic_ns()
            wall = time.time_ns()
            after = time.monotonic_ns()
            readings.append((after - before, wall - (before + after) // 2))
        self._seconds, self._nanoseconds = divmod(min(readings)[1], 1_000_000_000)
        self._measured = time.monotonic()

    def monotonic(self, stamps: list[bytes], since: float) -> Sequence[float]:
        """The stamps' times in order, all later than `since` or a little before it.

        Where one is not, or lies in the future, the wall clock was set meanwhile, and all are taken for now.
        """
        if not stamps:
            return ()
        now = time.monotonic()
        if now > self._measured + 1.0:
            self._measure()
        if len(stamps) == 1:
            second, nanosecond = _TIMESPEC.unpack(stamps[0])
            arrived = second - self._seconds + (nanosecond - self._nanoseconds) * 1e-9
            if since - 1.0 <= arrived <= now + 0.001:
                return (arrived,)
        seconds, offset = self._seconds, self._nanoseconds
        shift = seconds + offset * 1e-9  # rounded to a quarter of a microsecond, the same for all
        times = [second - shift + nanosecond * 1e-9 for second, nanosecond in _TIMESPEC.iter_unpack(b"".join(stamps))]
        if max(times) > now + 0.001 or min(times) < since - 1.0:
            self._measure()
            return [now] * len(times)
        times.sort()  # the wall clock is slewed while they come, and may go back by microseconds
        return times
