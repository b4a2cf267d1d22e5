"""The transport: http, https, proxies and Unix sockets, over asyncio's own connections.

    Transport   routes, idle connections, one timer that checks all requests four times a second
    Server      what the connections to one server share
    Connection  a socket; it hands each read to its request
    Request     a reply in progress: stored reads → `Response` → body → `ReplyParser` → the future of the reply

Reading: the event loop (uvloop, where it is installed) hands each read to `Connection.data_received`, which stores it
with its time. A read that ends in a JSON event at the end of its chunk, as a token's does, may wait unparsed until
32 KiB have arrived, two seconds have passed, or a read of another kind arrives. So a token costs two appends and a
share of a batch, with no task switch and no timer. However the end of a reply is split, it is read at once.

Guarantees: each read is parsed once, in order, with its own time. The future of a reply is set once. No redirect is
followed except a ticket (`failures.SEE_OTHER`), and the key is sent only to the endpoint's own host. If bytes arrive
that answer no request, the server is doubted: from then on each of its connections carries one request. If a reused
connection turns out to be closed, the request is sent again on another one. Not covered: HTTP/2, compressed replies,
proxies other than http://.

Long: a request, its connection and its server share a lifetime, and each changes the state of the others.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohappyeyeballs
import msgspec

from harness.client import interface
from harness.client.address.endpoint import Endpoint, host_and_port, proxy_for, quote_safely, secrets_of
from harness.client.apis.api import API
from harness.client.interface import ERROR_BODY_S, Deadlines, Post, request_head, request_headers
from harness.client.protocol.failures import RequestFailed, failure_of_status, failure_to_connect, refuse_compressed
from harness.client.protocol.reply import Reply
from harness.client.protocol.response import Response
from harness.client.protocol.sse import ReplyParser
from harness.core.literals import TransportName
from harness.core.reply_notes import AFTER_LEFTOVER, AFTER_THE_END
from harness.core.sanitize import MAX_ERROR_BODY_BYTES, quoted
from harness.core.secret import Secret

BATCH_BYTES = 32 * 1024
"""Stored reads are parsed when they reach this many bytes."""

BATCH_S = 2.0
"""Stored reads are parsed after this many seconds, however few they are."""

CHECK_S = 0.25
"""Seconds between two checks of the requests in flight: for passed deadlines and unparsed reads."""

MAX_OPENING = 128
"""Largest number of connections to one server that are opened at the same time: the shortest common listen queue."""

MAX_UNSENT_BYTES = 128 * 1024 * 1024
"""Limit on the bytes of requests that wait in this process for their connections; at the limit, long bodies wait."""

RESOLVE_S = 60.0
"""Seconds for which a host's addresses are cached."""

NEXT_ADDRESS_S = 0.25
"""Seconds after which a host's next address is tried in parallel with one that has not answered (RFC 8305)."""

_MAY_WAIT = b"}\n\n\r\n"
"""How a read of a chunked body must end so that it may wait: with a JSON event, then with its chunk."""

_REQUEST_TIMEOUT = b"HTTP/1.1 408"
"""How proxies end an idle connection: unsolicited bytes that cast no doubt on any reply."""

_Addresses = list[tuple[int, int, int, str, tuple[Any, ...]]]
"""Entries of `socket.getaddrinfo`."""


class Server:
    """What the connections to one server share.

    address: host and port for messages, with the proxy. proxy: its URL, or None. tls: whether the server speaks https.
    idle: connections that wait for a request, most recently used last. opening: held while a connection is opened.
    alive_at: when a connection was last opened or a reply last began, on the monotonic clock. doubted: whether the
    server has sent bytes that answer no request.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.proxy = endpoint, proxy_for(endpoint)
        self.tls = endpoint.base_url.startswith("https://")
        self.address = host_and_port(endpoint.base_url)
        if self.proxy is not None:
            self.address += f" through the proxy {host_and_port(self.proxy)}"
        self.idle: list[Connection] = []
        self.doubted = False
        self.opening = asyncio.Semaphore(MAX_OPENING)
        self.alive_at = 0.0
        self._noted = False

    def head(self, endpoint: Endpoint, api: API, ticket: str = "") -> bytes:
        """The head of requests to `api`. ticket: instead, the URL to get a reply from. Raises `ValueError` as
        `request_head` does.
        """
        parts = urlsplit(ticket or endpoint.over_http(endpoint.base_url + api.path))
        headers = request_headers(endpoint, api)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        host = parts.netloc.rpartition("@")[2]  # the Host header excludes a name and password
        if self.proxy is not None and not self.tls:  # such a proxy fetches the page itself and needs its whole URL
            target, headers = f"http://{host}{target}", {**headers, **_proxy_authorization(self.proxy)}
        return request_head(target, host, headers, "GET" if ticket else "POST")

    def stop_reuse(self, unasked: bytes = b"") -> None:
        """Record that bytes arrived that answer no request: from now on, no connection is reused."""
        if not unasked.startswith(_REQUEST_TIMEOUT):
            self.doubted = True
            for connection in [*self.idle]:
                connection.transport.abort()
            self.idle.clear()

    def check(self, reply: Reply, *, used: bool) -> Reply:
        """The reply, with a note if it is the first after such bytes. used: whether its connection had been used.

        Raises `RequestFailed` if the reply may answer an earlier request.
        """
        if self.doubted and used:
            raise RequestFailed("malformed", f"{AFTER_LEFTOVER}; this reply may be one of them")
        if not self.doubted or self._noted:
            return reply
        self._noted = True
        return msgspec.structs.replace(reply, notes=(*reply.notes, AFTER_LEFTOVER))


class Connection(asyncio.Protocol):
    """A connection, and the request that it carries, if any. used: whether it has carried a request before."""

    transport: asyncio.Transport

    def __init__(self, server: Server) -> None:
        self.server = server
        self.used = self.closed = False
        self.request: Request | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self in self.server.idle:
            self.server.idle.remove(self)
        if self.request is not None:
            self.request.connection_ended(str(exc or ""))

    def data_received(self, data: bytes) -> None:
        """Store a read with its time, and parse the stored reads if that is due (see the module)."""
        request = self.request
        if request is None:
            self.server.stop_reuse(data)
            self.transport.abort()
            return
        request.reads.append(data)
        request.times.append(time.monotonic())
        request.size += len(data)
        if not request.lazy or request.size >= BATCH_BYTES or data[-5:] != _MAY_WAIT:
            request.parse()


class Request:
    """A request on its connection. reply: the future of its outcome.

    reads, times, size: the unparsed reads, when each arrived, and their total bytes. lazy: whether they may wait.
    check_at: when `check` is next due, on the monotonic clock.
    """

    def __init__(self, connection: Connection, parser: ReplyParser, deadlines: Deadlines) -> None:
        self.connection, self.parser, self.deadlines = connection, parser, deadlines
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.reads: list[bytes] = []
        self.times: list[float] = []
        self.size = 0
        self.lazy = False
        self.check_at = self._parsed_at = parser.started
        self._response = Response()
        self._begun = False  # whether `_begin` has acted on the head
        self._error_body: bytearray | None = None
        self._error_due = 0.0

    # ---- parsing

    def parse(self) -> None:
        """Parse the stored reads, and end the request if its reply is complete or fails."""
        reads, times, response = self.reads, self.times, self._response
        take = self.parser.feed if self.lazy else self._take_body
        self.reads, self.times, self.size = [], [], 0
        self._parsed_at = time.monotonic()
        try:
            for data, came_at in zip(reads, times, strict=True):
                if body := response.feed(data):
                    take(body, came_at)
            if response.status and not self._begun:
                self._begin()
            if response.broken and not response.status:
                self._end(self.parser.failure("malformed", f"the response is not HTTP: {response.broken}"))
            elif response.broken:  # the head was valid, so a text with its finish reason may still count
                self._finish(f"the HTTP framing is invalid: {response.broken}")
            elif response.ended:
                if response.excess:
                    self.connection.server.stop_reuse(response.excess)
                self._finish("")
        except RequestFailed as failure:
            self._end(failure)
        except Exception as error:  # noqa: BLE001 - a bug must end its request, never the event loop
            self._end(error)

    def _begin(self) -> None:
        """Act on the head of the response. Raises `RequestFailed` for a compressed reply."""
        self._begun = True
        headers, self.connection.server.alive_at = self._response.headers, time.monotonic()
        if self._response.status != 200:
            # The status has decided the outcome; the body only explains it, and must not take as long as a whole reply.
            self._error_body, self._error_due = bytearray(), time.monotonic() + ERROR_BODY_S
            self.check_at = 0.0
            return
        refuse_compressed(headers)
        self.parser.take_headers(headers)
        self.lazy = self._response.chunked

    def _take_body(self, body: bytes, came_at: float) -> None:
        """Read a piece of the body of an error or a reply. Raises `RequestFailed` as soon as the request fails."""
        if not self._begun:
            self._begin()
        if self._error_body is not None:
            self._error_body += body
            if len(self._error_body) >= MAX_ERROR_BODY_BYTES:
                raise self._refusal()
        else:
            self.parser.feed(body, came_at)

    # ---- progress

    def count(self) -> int:
        """The approximate number of token events so far."""
        n = self.parser.n_tokens
        return n + (self.size * n // self.parser.n_bytes if n else len(self.times))

    # ---- the end

    def check(self, now: float) -> None:
        """Parse reads that have waited too long, and end the request if a deadline has passed at `now`."""
        due = self.deadlines.due(self.parser)
        # A deadline that seems to have passed may be extended by a token that is stored but not yet parsed.
        if self.reads and (now >= due or now - self._parsed_at > BATCH_S):
            self.parse()
            due = self.deadlines.due(self.parser)
        if self.reply.done():
            return
        if self._error_body is not None:
            if now >= self._error_due:
                self._end(self._refusal())
        elif now >= due:
            try:
                self._end(self.deadlines.end_late(self.parser, now), keep=False)
            except RequestFailed as failure:
                self._end(failure)

    def connection_ended(self, cause: str) -> None:
        """End the request because its connection is gone. cause: the system's message; "" for an orderly end."""
        if self.reads:
            self.parse()
        if self.reply.done():
            return
        if not self._response.status:
            address = self.connection.server.address
            message = f"{address} closed the connection without a response {quoted(cause) if cause else ''}".strip()
            self._end(RequestFailed("connect", message, unanswered=not self._response.begun))
        elif self._error_body is not None:
            self._end(self._refusal())
        elif self._response.until_closed:
            self._finish(cause)
        else:
            self._finish(cause or "the connection was closed before the body was complete")

    def _finish(self, cut: str) -> None:
        """End the request with the reply received so far. cut: why its body ended early; "" if it did not."""
        if self._error_body is not None:
            self._end(self._refusal(), keep=not cut)
            return
        try:
            reply = self.parser.finish(time.monotonic(), cut)
            reply = self.connection.server.check(reply, used=self.connection.used)
        except RequestFailed as failure:  # after such a reply the server may keep the connection silent
            failure.resumable = bool(cut) or self._response.until_closed
            self._end(failure)
        else:
            self._end(reply, keep=not cut and AFTER_THE_END.isdisjoint(reply.notes))

    def _refusal(self) -> RequestFailed:
        """The failure of a reply with an error status."""
        body = bytes(self._error_body or b"")[:MAX_ERROR_BODY_BYTES]
        return failure_of_status(self._response.status, body, self._response.headers, self.parser.secrets)

    def _end(self, outcome: Reply | Exception, keep: bool = False) -> None:
        """Give `outcome` to the caller. Keep the connection if both `keep` and HTTP allow another request."""
        connection = self.connection
        connection.request, connection.used = None, True
        if keep and self._response.reusable and not (connection.closed or connection.server.doubted):
            connection.server.idle.append(connection)
        else:
            connection.transport.abort()
        if self.reply.done():  # canceled
            return
        if isinstance(outcome, Exception):
            self.reply.set_exception(outcome)
        else:
            self.reply.set_result(outcome)


class Transport:
    """Sends HTTP/1.1 requests. Implements `interface.Transport`. Can be created on any thread; used on one loop.

    secrets: texts in request bodies that no message may show.
    """

    def __init__(self, secrets: Sequence[Secret] = ()) -> None:
        self._secrets = tuple(secrets)
        self._servers: dict[str, Server] = {}
        # Keyed by the endpoint's identity: hashing its address and headers for each request takes longer than the
        # look-up. The endpoint is kept alive, so that no other object gets its identity.
        self._routes: dict[tuple[int, str], tuple[Endpoint, Server, bytes, tuple[Secret, ...]]] = {}
        self._lookups: dict[tuple[str, int], tuple[float, asyncio.Task[_Addresses]]] = {}
        self._active: set[Request] = set()
        self._checking: asyncio.TimerHandle | None = None
        self._writing = asyncio.Lock()
        self._closed = False

    async def complete(self, post: Post) -> Reply:
        """Send a request and return its reply; see `interface.Transport.complete`."""
        endpoint, api = post.endpoint, post.api
        _, server, head, secrets = self._routes.get((id(endpoint), api.path)) or self._route(endpoint, api)
        content, parser = post.body, None
        while True:
            kept = bool(server.idle)
            connection = server.idle.pop() if kept else await self._open(server, post.deadlines.connect)
            body = content if isinstance(content, bytes) else await self._written(connection, content)
            if self._closed:  # while this connection was being opened
                connection.transport.abort()
                raise RequestFailed("connect", "the client is closed", sent=False)
            request = connection.request = Request(connection, parser or post.parser(secrets), post.deadlines)
            post.arriving.count = request.count
            self._watch(request)
            connection.transport.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))
            del body  # the connection holds it until it is sent
            try:
                return await request.reply
            except RequestFailed as failure:
                if (ticket := await post.ticket(failure, request.parser)) is not None:
                    content, parser, head = b"", request.parser, self._head(server, endpoint, api, ticket)
                    continue
                # If the server closed a kept connection meanwhile, try another. If it closes a fresh one without an
                # answer, it has refused the request; sending again might never end.
                if not (kept and failure.unanswered):
                    raise
            finally:
                self._active.discard(request)
                if connection.request is request:  # the caller was canceled
                    connection.request = None
                    connection.transport.abort()

    async def _written(self, connection: Connection, write: Callable[[], bytes]) -> bytes:
        """A long body, written once enough of the earlier bodies have been sent.

        Raises `RequestFailed` if the connection is closed meanwhile.
        """
        try:
            async with self._writing:
                while self._unsent() > MAX_UNSENT_BYTES:
                    await asyncio.sleep(CHECK_S)
                body = await asyncio.to_thread(write)
        except BaseException:
            connection.transport.abort()
            raise
        if connection.closed:
            message = f"{connection.server.address} closed the connection before the request was sent"
            raise RequestFailed("connect", message, sent=False)
        return body

    def _unsent(self) -> int:
        """The bytes of requests that their connections still hold."""
        return sum(request.connection.transport.get_write_buffer_size() for request in self._active)

    async def close(self) -> None:
        """Close all connections; requests that do not have one yet get none."""
        self._closed = True
        for connection in [idle for server in self._servers.values() for idle in server.idle]:
            connection.transport.abort()
        for request in [*self._active]:
            request.connection.transport.abort()
        for _, lookup in self._lookups.values():
            lookup.cancel()
        if self._checking is not None:
            self._checking.cancel()
        await asyncio.sleep(0)  # the loop closes aborted sockets in its next iteration

    def _watch(self, request: Request) -> None:
        """Start checking the deadlines of `request`."""
        self._active.add(request)
        if self._checking is None:
            self._checking = asyncio.get_running_loop().call_later(CHECK_S, self._check)

    def _check(self) -> None:
        now = time.monotonic()
        for request in [request for request in self._active if now >= request.check_at]:
            request.check(now)
        # No timer without requests: it would keep waking the loop and keep the transport in memory.
        self._checking = asyncio.get_running_loop().call_later(CHECK_S, self._check) if self._active else None

    def _route(self, endpoint: Endpoint, api: API) -> tuple[Endpoint, Server, bytes, tuple[Secret, ...]]:
        """The server, request head and secrets for this endpoint and API, cached for later requests."""
        secrets = secrets_of(endpoint, self._secrets)
        server = self._servers.get(endpoint.base_url) or Server(endpoint)
        head = self._head(server, endpoint, api)
        self._servers[endpoint.base_url] = server
        route = self._routes[id(endpoint), api.path] = endpoint, server, head, secrets
        return route

    def _head(self, server: Server, endpoint: Endpoint, api: API, ticket: str = "") -> bytes:
        """`Server.head`. Raises `RequestFailed`."""
        try:
            return server.head(endpoint, api, ticket)
        except ValueError as error:
            words = quote_safely(str(error), secrets_of(endpoint, self._secrets))
            raise RequestFailed("refused", f"the request is invalid: {words}") from None

    # ---- connecting

    async def _open(self, server: Server, seconds: float) -> Connection:
        """A new connection, through a tunnel if there is a proxy. Raises `RequestFailed`.

        At most `seconds` may pass without a sign that the server is alive: when thousands of requests begin at once,
        the last ones wait for their turn and then for a place in the server's listen queue.
        """
        loop, begun = asyncio.get_running_loop(), time.monotonic()
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            left = max(begun, server.alive_at) + seconds - time.monotonic()
            if left > 0:
                timer = loop.call_later(left, look)
            else:
                limit.reschedule(loop.time())

        timer = loop.call_later(seconds, look)
        try:
            async with asyncio.timeout(None) as limit, server.opening:
                connection = await self._connect(server)
        except OSError as error:
            if limit.expired():
                message = f"could not connect to {server.address} within {seconds:g} s"
                raise RequestFailed("connect", message, sent=False) from None
            raise failure_to_connect(error, server.address, secrets_of(server.endpoint, self._secrets)) from None
        finally:
            timer.cancel()
        server.alive_at = time.monotonic()
        return connection

    async def _connect(self, server: Server) -> Connection:
        """Open a connection: to a Unix socket, directly, to an http proxy, or through a proxy's tunnel (https)."""
        loop, endpoint = asyncio.get_running_loop(), server.endpoint
        make = partial(Connection, server)
        if endpoint.socket_path is not None:
            return (await loop.create_unix_connection(make, endpoint.socket_path))[1]
        parts = urlsplit(endpoint.base_url)
        host, port = parts.hostname or "", parts.port or (443 if server.tls else 80)
        tls = self._tls if server.tls else None
        if server.proxy is None:
            way, server_name = await self._connect_arguments(host, port), host if server.tls else None
            return (await loop.create_connection(make, **way, ssl=tls, server_hostname=server_name))[1]
        proxy = urlsplit(server.proxy)
        way = await self._connect_arguments(proxy.hostname or "", proxy.port or 80)
        if tls is None:
            return (await loop.create_connection(make, **way))[1]
        tunnel = await _tunnel(way, host, port, _proxy_authorization(server.proxy))
        connection = make()
        secure = await loop.start_tls(tunnel, connection, tls, server_hostname=host)
        assert secure is not None
        connection.connection_made(secure)
        return connection

    async def _connect_arguments(self, host: str, port: int) -> dict[str, Any]:
        """The arguments with which the loop connects to a host: its only IPv4 address, or a connected socket.

        Any other addresses are tried one after another, each while the previous one has not answered.
        """
        match await self._addresses(host, port):
            case [(socket.AF_INET, _, _, _, (address, *_))]:  # the loop does it in half the time
                return {"host": address, "port": port}
            case addresses:
                return {"sock": await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_S)}

    async def _addresses(self, host: str, port: int) -> _Addresses:
        """The addresses of a host, looked up once for all callers within `RESOLVE_S`. Raises `OSError`."""
        until, lookup = self._lookups.get((host, port), (0.0, None))
        if lookup is None or time.monotonic() >= until or (lookup.done() and lookup.exception() is not None):
            lookup = asyncio.ensure_future(_look_up(host, port))
            self._lookups[host, port] = time.monotonic() + RESOLVE_S, lookup
        # Shielded, because a canceled caller must not end the lookup for the others.
        return await asyncio.shield(lookup)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()


async def _look_up(host: str, port: int) -> _Addresses:
    try:
        # A numeric address needs no name server and therefore no thread.
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)  # type: ignore[return-value]
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)  # type: ignore[return-value]


async def _tunnel(way: Mapping[str, Any], host: str, port: int, headers: Mapping[str, str]) -> asyncio.Transport:
    """A connection to a proxy, reached by `way`, that has opened a tunnel to a host. Raises `RequestFailed`."""
    reader, response = asyncio.StreamReader(), Response()
    make = partial(asyncio.StreamReaderProtocol, reader)
    transport = (await asyncio.get_running_loop().create_connection(make, **way))[0]
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *(f"{name}: {headers[name]}" for name in headers)]
    transport.write("\r\n".join([*lines, "", ""]).encode())
    try:
        with contextlib.suppress(OSError):  # a proxy that resets the connection has returned nothing
            while not (response.status or response.broken) and (data := await reader.read(BATCH_BYTES)):
                response.feed(data)
        # Do not say how it is broken: a proxy may repeat its own password, which is in no list of secrets.
        answer = "no HTTP" if response.broken else f"HTTP {response.status}" if response.status else "nothing"
        if not answer.startswith("HTTP 2"):
            raise RequestFailed("refused", f"the proxy returned {answer}")
    except BaseException:
        transport.abort()
        raise
    return transport


def _proxy_authorization(proxy: str) -> dict[str, str]:
    """The header that sends a proxy the name and password in its URL."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    words = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(words).decode()}"}


def open_transport(name: TransportName = "http", secrets: Sequence[Secret] = ()) -> interface.Transport:
    """The transport of that name; secrets: as in `Transport`."""
    if name == "http":
        return Transport(secrets)
    from harness.client.openai_sdk import OpenaiTransport

    return OpenaiTransport(secrets)
