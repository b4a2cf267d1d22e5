"""Connecting: host name → connected, non-blocking socket; and the kernel's receive stamps as monotonic times.

A run opens thousands of connections at once. So that reading goes on meanwhile, at most `CONNECTS_A_TURN` are begun in
a turn of the event loop; the others wait in a queue for the next turns. Each host name is looked up once.
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
"""Number of connections that are begun in one turn of the loop; each takes some 40 µs, during which nothing is read."""

Peer = tuple[str, int]
"""(host, port) of a server."""

_Address = tuple[int, tuple[str | int | bytes, ...]]
"""(address family, address), as `socket` takes them."""
_NOT_BLOCKING = getattr(socket, "SOCK_NONBLOCK", 0)


class Connector:
    """Opens the connections of a run. It belongs to one event loop."""

    def __init__(self) -> None:
        self._addresses: dict[Peer, tuple[float, list[_Address]]] = {}
        self._lookups: dict[Peer, asyncio.Task[list[_Address]]] = {}
        self._left = CONNECTS_A_TURN  # connections that may still be begun in this turn
        self._turned = False  # `_next_turn` is scheduled
        self._waiting: deque[asyncio.Future[None]] = deque()  # of callers that wait for a turn

    async def connect(self, peer: Peer, seconds: float) -> socket.socket:
        """A socket connected to `peer`. Raises `RequestFailed`, after `seconds` at the latest."""
        # Callers that already wait go first: else a busy run could starve them.
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
            return await self._connect(peer, seconds)
        except TimeoutError:
            raise RequestFailed("timeout", f"no connection to {_host_and_port(peer)} within {seconds:g} s") from None
        except OSError as error:
            cause = error.strerror or str(error)
            # Our own limit, so it gets a kind of its own: the server is not to blame.
            if error.errno in (errno.EMFILE, errno.ENFILE):
                cause += "; lower the concurrency or raise `ulimit -n`"
                message = f"cannot connect to {_host_and_port(peer)}: {quoted(cause)}"
                raise RequestFailed("out_of_files", message) from None
            raise RequestFailed("connect", f"cannot connect to {_host_and_port(peer)}: {quoted(cause)}") from None

    def close(self) -> None:
        """Cancel the lookups of host names that are not finished."""
        for lookup in self._lookups.values():
            lookup.cancel()

    def _next_turn(self) -> None:
        """Let the next `CONNECTS_A_TURN` waiting callers connect.

        It runs at most once in a turn of the event loop, so that the loop reads its sockets in between.
        """
        self._left = CONNECTS_A_TURN
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            # A cancelled caller does not count as one of the turn's connections.
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        # If nobody connected in this turn, no other turn has to be counted.
        self._turned = self._left < CONNECTS_A_TURN
        if self._turned:
            asyncio.get_running_loop().call_soon(self._next_turn)

    async def _connect(self, peer: Peer, seconds: float) -> socket.socket:
        """Connect to a host within `seconds`, trying its addresses in turn. Raises `OSError`."""
        until, addresses = self._addresses.get(peer, (0.0, []))
        if time.monotonic() >= until:
            async with asyncio.timeout(seconds):
                addresses = await self._resolve(peer)
        for n, address in enumerate(addresses):
            try:
                # Each address gets a share of the deadline: a dead first one (::1 of localhost) must not use up all.
                sock = await _connect_to(address, seconds / len(addresses))
            except OSError:
                if n + 1 == len(addresses):
                    raise
            else:
                if n:
                    # The address that answered comes first from now on, so a dead one costs its share of the deadline
                    # once.
                    addresses.insert(0, addresses.pop(n))
                return sock
        raise OSError("the name has no address")

    async def _resolve(self, peer: Peer) -> list[_Address]:
        """The addresses of a host. Callers that ask at the same time share one lookup."""
        lookup = self._lookups.get(peer)
        if lookup is None:
            lookup = self._lookups[peer] = asyncio.ensure_future(_lookup(peer))
            lookup.add_done_callback(lambda _: self._lookups.pop(peer, None))
        # Shielded: a caller that is cancelled must not end the lookup for the others.
        addresses = await asyncio.shield(lookup)
        self._addresses[peer] = (time.monotonic() + RESOLVE_S, addresses)
        return addresses


async def _lookup(peer: Peer) -> list[_Address]:
    """The addresses of a host, each once. Raises `OSError` if the name is unknown."""
    loop = asyncio.get_running_loop()
    try:
        # An address in figures needs no name server, and so no thread of the loop's executor.
        entries = socket.getaddrinfo(*peer, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        entries = await loop.getaddrinfo(*peer, type=socket.SOCK_STREAM)
    # An address listed twice would get two shares of the deadline.
    return list(dict.fromkeys((int(entry[0]), entry[4]) for entry in entries))


async def _connect_to(address: _Address, seconds: float) -> socket.socket:
    """A socket connected to `address`. Raises `OSError`, of which `TimeoutError` after `seconds`."""
    sock = socket.socket(address[0], socket.SOCK_STREAM | _NOT_BLOCKING)
    try:
        # macOS has no SOCK_NONBLOCK.
        if not _NOT_BLOCKING:
            sock.setblocking(False)
        code = sock.connect_ex(address[1])
        if code == errno.EINPROGRESS and not _is_connected(sock):
            async with asyncio.timeout(seconds):
                await _wait_writable(sock)
            # "Writable" only says that the attempt is over; this option says how it ended.
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock


def _is_connected(sock: socket.socket) -> bool:
    """Whether the socket is connected already: on loopback it is before `connect_ex` returns."""
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


async def _wait_writable(sock: socket.socket) -> None:
    """Wait until the socket can be written, which is when a connect has ended."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    fd = sock.fileno()
    loop.add_writer(fd, partial(_set_done, ready))
    try:
        await ready
    finally:
        loop.remove_writer(fd)


def _set_done(future: asyncio.Future[None]) -> None:
    # The waiting task may have been cancelled in the same turn of the loop.
    with contextlib.suppress(asyncio.InvalidStateError):
        future.set_result(None)


def _host_and_port(peer: Peer) -> str:
    return f"[{peer[0]}]:{peer[1]}" if ":" in peer[0] else f"{peer[0]}:{peer[1]}"


# ---- receive stamps


SO_TIMESTAMPNS = 35
"""Linux's socket option by which each read brings the time of its receipt, a `struct timespec` by CLOCK_REALTIME."""


_TIMESPEC = struct.Struct("qq")
"""(seconds, nanoseconds)."""


def stamp_now() -> bytes:
    """The current time (CLOCK_REALTIME), packed as the kernel packs its receive stamps: seconds, nanoseconds."""
    return array("q", divmod(time.time_ns(), 1_000_000_000)).tobytes()


class ClockOffset:
    """Converts receive stamps (CLOCK_REALTIME) to seconds of the monotonic clock.

    The difference of the two clocks is measured again each second, and whenever a stamp shows that somebody has set the
    wall clock.
    """

    def __init__(self) -> None:
        self._seconds = 0
        self._nanoseconds = 0
        self._measure()

    def _measure(self) -> None:
        """Measure by how much the wall clock is ahead of the monotonic clock."""
        readings = []
        for _ in range(5):
            before = time.monotonic_ns()
            wall = time.time_ns()
            after = time.monotonic_ns()
            readings.append((after - before, wall - (before + after) // 2))
        # The pair of readings with the least time between them was disturbed least.
        self._seconds, self._nanoseconds = divmod(min(readings)[1], 1_000_000_000)
        self._measured = time.monotonic()

    def monotonic(self, stamps: list[bytes], since: float) -> Sequence[float]:
        """Convert the kernel's stamps, which are times of the wall clock, into times of the monotonic clock, ascending.

        since: a time before which none of the bytes can have come.

        If a stamp lies more than a second before `since`, or in the future, somebody set the wall clock after the last
        measurement. Then every time returned is the present moment.
        """
        if not stamps:
            return ()
        now = time.monotonic()
        if now > self._measured + 1.0:
            self._measure()
        # A read of a slow stream mostly brings one stamp; the lists and the sort below would take longer than all the
        # rest of what is done for its token.
        if len(stamps) == 1:
            second, nanosecond = _TIMESPEC.unpack(stamps[0])
            arrived = second - self._seconds + (nanosecond - self._nanoseconds) * 1e-9
            if since - 1.0 <= arrived <= now + 0.001:
                return (arrived,)
        seconds, offset = self._seconds, self._nanoseconds
        shift = seconds + offset * 1e-9  # a float is exact to a quarter of a microsecond here, equally for all stamps
        times = [second - shift + nanosecond * 1e-9 for second, nanosecond in _TIMESPEC.iter_unpack(b"".join(stamps))]
        times.sort()  # time synchronisation adjusts the wall clock, which may so go back by microseconds
        if times[-1] > now + 0.001 or times[0] < since - 1.0:
            self._measure()
            return [now] * len(times)
        return times
