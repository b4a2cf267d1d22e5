"""The transport for plain http: sockets of its own, no task switch and no parse per token.

A read is put aside with its receive stamp; a batch of them is parsed at 16 KiB, after a second, or at the reply's
end (see `template`). On the loop of `streams` reads happen inside its selector; on any other loop by its readers.
Stamps are the kernel's receive stamps where the system gives them ("kernel"), so that timing is true when Python is
late; else the loop's clock at the read ("user").
Not covered: https and proxies (see `aio`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harness.client.endpoint import Endpoint
from harness.client.events import ReplyParser
from harness.client.failures import MAX_ERROR_BODY_BYTES, failed_status
from harness.client.http1 import BadResponse, ResponseReader, request_head
from harness.client.redact import host_and_port, redacted, secrets_of
from harness.client.reply import Reply, RequestFailed
from harness.client.streams import StreamLoop
from harness.client.template import END_OF_FRAME, Templates
from harness.client.transport import Deadlines, request_headers
from harness.core.inert import quoted

BATCH_BYTES = 16 * 1024
"""So much of a reply is put aside before it is parsed."""

MIN_BATCH_BYTES = 2048
"""Less (some eight events) is parsed the general way."""

BATCH_S = 1.0
"""So long it is put aside at most: deadlines count tokens, and only parsed events are tokens."""

LOOK_S = 0.25
"""How often deadlines are looked at."""

DRAIN_S = 1.0
"""How long the end of the body is awaited after `[DONE]`, so that the connection can be kept."""

ERROR_BODY_S = 10.0
"""How long the body of an error is read."""

RESOLVE_S = 60.0
"""How long a host's addresses are remembered."""

_OTHER_FRAMES = 4
"""So many frames in a row that fit no template: what follows is parsed the general way, and learnt from."""

_READ_BYTES = 64 * 1024
_LAST_CHUNK = b"0\r\n\r\n"
_LAST_BYTES = b"\r\n\r\n"
_SO_TIMESTAMPNS = 35
_STAMP_BYTES = 16  # struct timespec of a 64-bit system

_Address = tuple[int, tuple[str | int | bytes, ...]]
_Place = tuple[str, int]


class _Route(NamedTuple):
    """What all requests to one path of an endpoint share. head: up to the value of Content-Length."""

    place: _Place
    head: bytes
    secrets: tuple[str, ...]


class FastTransport:
    """See `harness.client.transport.Transport`. kernel_stamps: use the kernel's receive stamps where there are any."""

    def __init__(self, *, kernel_stamps: bool = True) -> None:
        self.kernel_stamps = kernel_stamps and sys.platform == "linux" and sys.maxsize > 2**32
        self.clock_offset = ClockOffset()
        self.active: set[_Connection] = set()
        self._idle: dict[_Place, list[_Connection]] = {}
        self._routes: dict[tuple[Endpoint, str], _Route] = {}
        self._templates: dict[_Place, Templates] = {}
        self._addresses: dict[_Place, tuple[float, list[_Address]]] = {}
        self._lookups: dict[_Place, asyncio.Task[list[_Address]]] = {}
        self._looking: asyncio.TimerHandle | None = None

    async def complete(
        self, endpoint: Endpoint, path: str, body: bytes, deadlines: Deadlines, max_body_bytes: int
    ) -> Reply:
        """POST `body` to `path` of `endpoint`; see `Transport.complete`."""
        route = self._routes.get((endpoint, path)) or self._route(endpoint, path)
        request = b"%b%d\r\n\r\n%b" % (route.head, len(body), body)
        while True:
            idle = self._idle.get(route.place)
            kept = idle.pop() if idle else None
            connection = kept or await self._connect(route.place, deadlines.connect)
            parser = ReplyParser(
                started=time.monotonic(),
                started_utc=time.time(),
                max_body_bytes=max_body_bytes,
                clock="kernel" if self.kernel_stamps else "user",
                secrets=route.secrets,
            )
            try:
                return await connection.ask(request, parser, deadlines)
            except RequestFailed as failure:
                if not (kept and failure.unanswered):
                    raise

    async def close(self) -> None:
        """Close all connections."""
        for connection in [*self.active, *(one for idle in self._idle.values() for one in idle)]:
            connection.close()
        self._idle.clear()
        for lookup in self._lookups.values():
            lookup.cancel()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def begun(self, connection: _Connection) -> None:
        """`connection` carries a request: its deadlines are looked at."""
        self.active.add(connection)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def freed(self, connection: _Connection) -> None:
        """`connection` may carry another request."""
        self._idle.setdefault(connection.place, []).append(connection)

    def dropped(self, connection: _Connection) -> None:
        """`connection` is closed."""
        self.active.discard(connection)
        idle = self._idle.get(connection.place)
        if idle and connection in idle:
            idle.remove(connection)

    def _look(self) -> None:
        now = time.monotonic()
        for connection in list(self.active):
            connection.look(now)
        loop = asyncio.get_running_loop()
        self._looking = loop.call_later(LOOK_S, self._look) if self.active else None

    def _route(self, endpoint: Endpoint, path: str) -> _Route:
        parts = urlsplit(endpoint.base_url)
        if parts.scheme != "http":
            raise RequestFailed("refused", f"{host_and_port(endpoint.base_url)}: this transport speaks plain http only")
        secrets = secrets_of(endpoint)
        try:
            head = request_head(endpoint.base_url + path, request_headers(endpoint))
        except ValueError as error:
            message = quoted(redacted(str(error), secrets))
            raise RequestFailed("refused", f"the request cannot be made: {message}") from None
        route = self._routes[endpoint, path] = _Route((parts.hostname or "", parts.port or 80), head, secrets)
        return route

    async def _connect(self, place: _Place, seconds: float) -> _Connection:
        name = f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"
        try:
            until, addresses = self._addresses.get(place, (0.0, []))
            if time.monotonic() >= until:
                async with asyncio.timeout(seconds):
                    addresses = await self._resolve(place)
            for n, address in enumerate(addresses):
                try:
                    # A dead first address (::1 of localhost, say) must not use up the whole deadline.
                    connected = await _connected(address, seconds / len(addresses))
                except OSError:
                    if n + 1 == len(addresses):
                        raise
                else:
                    if n:
                        addresses.insert(0, addresses.pop(n))
                    return _Connection(self, place, connected, self._templates.setdefault(place, Templates()))
        except TimeoutError:
            raise RequestFailed("timeout", f"no connection to {name} within {seconds:g} s") from None
        except OSError as error:
            cause = error.strerror or str(error)
            if error.errno in (errno.EMFILE, errno.ENFILE):
                cause += "; lower the concurrency or raise `ulimit -n`"
                raise RequestFailed("out_of_files", f"cannot connect to {name}: {quoted(cause)}") from None
            raise RequestFailed("connect", f"cannot connect to {name}: {quoted(cause)}") from None
        raise RequestFailed("connect", f"cannot connect to {name}: the name has no address")

    async def _resolve(self, place: _Place) -> list[_Address]:
        """The addresses of a host; all who ask meanwhile wait for one lookup."""
        lookup = self._lookups.get(place)
        if lookup is None:
            lookup = self._lookups[place] = asyncio.ensure_future(_lookup(place))
            lookup.add_done_callback(lambda _: self._lookups.pop(place, None))
        addresses = await asyncio.shield(lookup)
        self._addresses[place] = (time.monotonic() + RESOLVE_S, addresses)
        return addresses


class _Connection:
    """One socket, and the request that it carries."""

    __slots__ = (
        "_batch_at", "_deadlines", "_detach", "_drained_by", "_error_body", "_future", "_lazy", "_owner", "_parser",
        "_pieces", "_reader", "_size", "_sock", "_stamps", "_templates", "place",
    )  # fmt: skip

    def __init__(self, owner: FastTransport, place: _Place, sock: socket.socket, templates: Templates) -> None:
        self.place = place
        self._owner = owner
        self._sock = sock
        self._templates = templates
        self._future: asyncio.Future[Reply] | None = None
        self._pieces: list[bytes] = []
        self._stamps: list[
            bytes
        ] = []  # each a struct timespec; in user mode too, so that there is one way to read them
        self._size = 0
        if owner.kernel_stamps:
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._attach()

    # -- the request ---------------------------------------------------------------------------------------------

    async def ask(self, request: bytes, parser: ReplyParser, deadlines: Deadlines) -> Reply:
        """Send `request`, return its reply. Raises `RequestFailed`."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._future = future
        self._parser = parser
        self._reader = ResponseReader()
        self._deadlines = deadlines
        self._lazy = False
        self._error_body: bytearray | None = None
        self._drained_by: float | None = None
        self._batch_at = parser.started
        self._owner.begun(self)
        try:
            try:
                sent = self._sock.send(request)
            except BlockingIOError:
                sent = 0
            except OSError:
                sent = len(request)  # the reader finds out why: an early refusal, or the end of the connection
            if sent < len(request):
                await self._send_rest(memoryview(request)[sent:])
            return await future
        finally:
            if not future.done() or future.cancelled():
                future.cancel()
                self.close()

    async def _send_rest(self, rest: memoryview) -> None:
        """Send what did not fit the socket's buffer, while replies are read: a refusal may come before the end."""
        assert self._future is not None
        with socket.socket(fileno=os.dup(self._sock.fileno())) as twin:
            sending = asyncio.ensure_future(asyncio.get_running_loop().sock_sendall(twin, rest))
            either: set[asyncio.Future[Any]] = {sending, self._future}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                sending.cancel()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await sending

    def _attach(self) -> None:
        loop = asyncio.get_running_loop()
        fd = self._sock.fileno()
        drain = self._drain if self._owner.kernel_stamps else self._drain_plainly
        self._detach: Callable[[], object]
        if isinstance(loop, StreamLoop):
            loop.streams.attach(fd, drain)
            self._detach = partial(loop.streams.detach, fd)
        else:
            loop.add_reader(fd, drain)
            self._detach = partial(loop.remove_reader, fd)

    def close(self) -> None:
        """Drop the connection; a request under way fails."""
        if self._sock.fileno() >= 0:
            self._detach()
            self._sock.close()
        self._owner.dropped(self)
        if self._future is not None and not self._future.done():
            self._future.set_exception(self._parser.failed("cut", "the connection was closed on our side"))

    # -- reading -------------------------------------------------------------------------------------------------

    def _drain(self) -> bool:
        """Read what is there, put it aside; True when the request is over. Called by the selector: never raises."""
        try:
            data, extra, _, _ = self._sock.recvmsg(_READ_BYTES, 64)
        except BlockingIOError:
            return False
        except OSError as error:
            return self._ended(error.strerror or str(error))
        if not data:
            return self._ended("")
        self._pieces.append(data)
        self._stamps.append(extra[0][2] if extra else self._stamp_now())
        self._size += len(data)
        # A last chunk (with or without trailers) ends so; if it is split over reads, the last of them is short.
        if self._lazy and self._size < BATCH_BYTES and len(data) > 4 and data[-4:] != _LAST_BYTES:
            return False
        return self._parse()

    def _drain_plainly(self) -> bool:
        """`_drain` without the kernel's stamps."""
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            return self._ended(error.strerror or str(error))
        if not data:
            return self._ended("")
        self._pieces.append(data)
        self._stamps.append(self._stamp_now())
        self._size += len(data)
        if self._lazy and self._size < BATCH_BYTES and len(data) > 4 and data[-4:] != _LAST_BYTES:
            return False
        return self._parse()

    def _stamp_now(self) -> bytes:
        if self._future is not None:
            self._parser.clock = "user"
        return array("q", divmod(time.time_ns(), 1_000_000_000)).tobytes()

    def _ended(self, cause: str) -> bool:
        """The connection ended."""
        if self._future is None or self._future.done():
            self.close()
            return False
        if self._parse(all_of_it=True):
            return True
        why = self._reader.eof()
        if not self._reader.status:
            place = f"{self.place[0]}:{self.place[1]}"
            message = f"{place} closed the connection before replying {cause}".strip()
            return self._over(RequestFailed("connect", message, unanswered=not self._reader.started))
        if self._error_body is not None:
            return self._over(self._refusal())
        return self._finish(why and (cause or why))

    def _parse(self, all_of_it: bool = False) -> bool:
        """Parse what was put aside, whole frames only unless `all_of_it`; True when the request is over."""
        if self._future is None or self._future.done():
            if self._pieces:  # bytes that nobody asked for
                self.close()
            return False
        pieces, raw_stamps = self._pieces, self._stamps
        stamps = self._owner.clock_offset.monotonic(raw_stamps, self._batch_at)
        self._pieces, self._stamps, self._size = [], [], 0
        self._batch_at = time.monotonic()
        try:
            rest = self._take(pieces, stamps, all_of_it) if pieces else b""
            if rest:
                self._pieces, self._stamps, self._size = [rest], raw_stamps[-1:], len(rest)
            return self._after_parse()
        except RequestFailed as failure:
            return self._over(failure)
        except BadResponse as error:
            if self._reader.status:
                return self._finish(str(error))
            return self._over(self._parser.failed("malformed", f"no reply in HTTP: {error}"))
        except Exception as error:  # noqa: BLE001 - a bug must end its request, never the loop whose selector runs this
            return self._over(error)

    def _take(self, pieces: list[bytes], stamps: Sequence[float], all_of_it: bool) -> bytes:
        """Read many pieces: by a template where they fit one, else the general way. Returns an unfinished frame."""
        raw = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        reader, parser = self._reader, self._parser
        at, whole = 0, len(raw)
        if whole >= MIN_BATCH_BYTES and not reader.status:
            at = raw.find(b"\r\n\r\n") + 4
            at = at if at >= 4 else whole
            self._feed(pieces, stamps, 0, at)
        if reader.chunked and self._error_body is None and whole - at >= MIN_BATCH_BYTES:
            border = raw.rfind(END_OF_FRAME, at) + len(END_OF_FRAME)
            if not all_of_it and border > at and whole - border < BATCH_BYTES:
                rest = raw[border:]
                if rest and not rest.startswith(b"0\r\n") and not rest.endswith(_LAST_CHUNK):
                    whole = border
            others = 0  # frames in a row that are no token events
            while others < _OTHER_FRAMES and reader.at_chunk_border and parser.at_event_border:
                template = self._templates.find(raw, at)
                batch = template.batch(raw, at) if template is not None else None
                if template is not None and batch is not None:
                    end, texts = batch
                    times = _times_of_events(raw, pieces, stamps, at, end, len(texts))
                    parser.feed_tokens(texts, times, reasoning=template.reasoning, n_bytes=end - at)
                    at, others = end, 0
                    continue
                end = raw.find(END_OF_FRAME, at, whole) + len(END_OF_FRAME)
                if end < len(END_OF_FRAME):
                    break
                self._feed(pieces, stamps, at, end)
                at = end
                others += 1
            if others == _OTHER_FRAMES:
                self._templates.learn(raw[at:whole])
        self._feed(pieces, stamps, at, whole)
        self._lazy = reader.chunked and parser.last_token_at is not None and parser.is_event_stream
        return raw[whole:]

    def _feed(self, pieces: list[bytes], stamps: Sequence[float], start: int, end: int) -> None:
        """Read bytes `start` to `end` of the joined pieces the general way, each piece with its own stamp."""
        reader = self._reader
        at = 0
        for piece, stamp in zip(pieces, stamps, strict=True):
            first, last = max(start - at, 0), min(end - at, len(piece))
            at += len(piece)
            if first >= last:
                continue
            headless = not reader.status
            body = reader.feed(piece if last - first == len(piece) else piece[first:last])
            if headless and reader.status:
                self._begin_body()
            if self._error_body is not None:
                self._error_body += body
            elif body:
                self._parser.feed(body, stamp)

    def _begin_body(self) -> None:
        reader = self._reader
        if reader.status != 200:
            self._error_body = bytearray()
            self._drained_by = time.monotonic() + ERROR_BODY_S
            return
        encoding = reader.headers.get("content-encoding", "identity").lower()
        if encoding != "identity":
            raise self._parser.failed("malformed", f"the reply is compressed ({encoding}) though identity was asked")
        self._parser.request_id = reader.headers.get("x-request-id")

    # -- the end of the request --------------------------------------------------------------------------------------

    def _after_parse(self) -> bool:
        if self._error_body is not None:
            whole = self._reader.ended or len(self._error_body) >= MAX_ERROR_BODY_BYTES
            return whole and self._over(self._refusal())
        if self._reader.ended:
            return self._finish("")
        if self._parser.done and self._drained_by is None:
            self._drained_by = time.monotonic() + DRAIN_S
        return False

    def look(self, now: float) -> None:
        """Parse what waits too long; end the request if a deadline passed."""
        parser = self._parser
        last = parser.last_token_at
        due = parser.started + self._deadlines.first_token if last is None else last + self._deadlines.idle
        if self._pieces and (now >= self._batch_at + BATCH_S or now >= due) and self._parse(all_of_it=True):
            return
        if self._drained_by is not None and now >= self._drained_by:
            if self._error_body is not None:
                self._over(self._refusal())
            else:
                self._finish("")
            return
        last = parser.last_token_at
        if last is None:
            if now >= parser.started + self._deadlines.first_token:
                why = f"no token within {self._deadlines.first_token:g} s of the request"
                self._over(parser.failed("timeout", why))
        elif now >= last + self._deadlines.idle:
            if parser.finished:
                self._finish("no end of the body")
            else:
                self._over(parser.failed("timeout", f"no token for {self._deadlines.idle:g} s"))

    def _finish(self, cut: str) -> bool:
        try:
            return self._over(self._parser.finish(time.monotonic(), cut))
        except RequestFailed as failure:
            return self._over(failure)

    def _refusal(self) -> RequestFailed:
        headers = self._reader.headers
        return failed_status(
            self._reader.status,
            bytes(self._error_body or b"")[:MAX_ERROR_BODY_BYTES],
            content_encoding=headers.get("content-encoding", ""),
            retry_after=headers.get("retry-after"),
            retry_after_ms=headers.get("retry-after-ms"),
            location=headers.get("location"),
            secrets=self._parser.secrets,
        )

    def _over(self, outcome: Reply | Exception) -> bool:
        """Hand the outcome to the waiting request; keep the connection if it can carry another."""
        future, self._future = self._future, None
        self._owner.active.discard(self)
        if self._reader.reusable and not self._pieces:
            self._owner.freed(self)
        else:
            self.close()
        self._pieces, self._stamps, self._size = [], [], 0
        if future is not None and not future.done():
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        return True


class ClockOffset:
    """Receive stamps (CLOCK_REALTIME) as seconds of the monotonic clock, whatever happens to the wall clock."""

    def __init__(self) -> None:
        self._offset_ns = 0
        self._measure()

    def _measure(self) -> None:
        readings = []
        for _ in range(5):
            before = time.monotonic_ns()
            wall = time.time_ns()
            after = time.monotonic_ns()
            readings.append((after - before, wall - (before + after) // 2))
        self._offset_ns = min(readings)[1]
        self._measured = time.monotonic()

    def monotonic(self, stamps: list[bytes], since: float) -> Sequence[float]:
        """The stamps' times, all later than `since` or a little before it.

        Where one is not, or lies in the future, the wall clock was set meanwhile, and all are taken for now.
        """
        if not stamps:
            return ()
        now = time.monotonic()
        if now > self._measured + 1.0:
            self._measure()
        parts = array("q", b"".join(stamps))
        seconds, offset = divmod(self._offset_ns, 1_000_000_000)
        times = [s - seconds + (ns - offset) * 1e-9 for s, ns in zip(parts[::2], parts[1::2], strict=True)]
        if max(times) > now + 0.001 or min(times) < since - 1.0:
            self._measure()
            return [now] * len(times)
        return times


def _times_of_events(
    raw: bytes, pieces: list[bytes], stamps: Sequence[float], start: int, end: int, n_events: int
) -> Sequence[float]:
    """When each of the events in `raw[start:end]` came: the stamp of the read that held the end of its blank line."""
    if len(pieces) == 1:
        return [stamps[0]] * n_events
    times: list[float] = []
    at = 0
    for piece, stamp in zip(pieces, stamps, strict=True):
        first, last = max(at - 1, start), min(at + len(piece), end)
        at += len(piece)
        if first < last:
            n = raw.count(b"\n\n", first, last)
            times += [stamp] * n if n != 1 else (stamp,)
    return times if len(times) == n_events else [stamps[-1]] * n_events


async def _lookup(place: _Place) -> list[_Address]:
    loop = asyncio.get_running_loop()
    try:
        found = socket.getaddrinfo(*place, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await loop.getaddrinfo(*place, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(entry[0]), entry[4]) for entry in found))


async def _connected(address: _Address, seconds: float) -> socket.socket:
    """A connected socket that does not block. Raises `OSError` (`TimeoutError` after `seconds`)."""
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
    if not future.done():
        future.set_result(None)
