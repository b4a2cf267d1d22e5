"""The transport on aiohttp: https, private certificate authorities, IPv6, proxies, unix sockets.

Guarantees: no redirect is followed; the key goes to the endpoint's own host only; loopback and private hosts bypass
proxies; every wait has a deadline, and the idle one counts from the last token, not the last byte.

aiohttp hides which connection carries a request, and gives bytes that came unasked to the next request. So each request
has a `_Carrier`, which learns its connection (`_Protocol`) and asks `Leftovers` whether the reply can be trusted.
Arrival times are the loop's clock at the read ("user"), since TLS hides the kernel's receive stamps.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import socket
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Unpack, cast

import aiohttp
import msgspec
from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage

from harness.client.address.endpoint import Endpoint, host_and_port, proxy_for, quote_safely
from harness.client.interface import ERROR_BODY_S, Arriving, Deadlines, look_last, request_headers
from harness.client.libraries.watch import LibraryOptions, LibraryTransport
from harness.client.protocol.failures import failure_of_status
from harness.client.protocol.http1 import (
    MAX_INTERIM_HEADS,
    REQUEST_TIMEOUT_HEAD,
    Leftovers,
    Mark,
    ended_cleanly,
    prompt_of,
)
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.core.limits import MAX_ERROR_BODY_BYTES
from harness.core.secret import Secret


class AiohttpTransport(LibraryTransport):
    """Sends requests with aiohttp. It may be made on any thread and is used on one loop."""

    def __init__(self, **given: Unpack[LibraryOptions]) -> None:
        super().__init__(**given)
        self._sessions: dict[str | None, aiohttp.ClientSession] = {}  # by unix socket; None: TCP
        self._leftovers: dict[str, Leftovers] = {}  # by base URL

    async def complete(
        self,
        endpoint: Endpoint,
        path: str,
        body: bytes,
        deadlines: Deadlines,
        max_body_bytes: int,
        arriving: Arriving | None = None,
    ) -> Reply:
        """POST `body` to `path` of `endpoint`; see `Transport.complete`."""
        leftovers = self._leftovers.setdefault(endpoint.base_url, Leftovers())
        while True:
            carrier = _Carrier(leftovers)
            _CARRIER.set(carrier)
            try:
                return await self._ask(endpoint, path, body, deadlines, max_body_bytes, arriving, carrier)
            except RequestFailed as failure:
                # After an error status the connection is sound: the error's body was a whole answer.
                if failure.status in (None, 0, 200):
                    carrier.drop()
                # A fresh connection that is closed unanswered is the server's refusal; sending again might never end.
                if not (carrier.reused and failure.unanswered):
                    raise

    async def _ask(
        self,
        endpoint: Endpoint,
        path: str,
        body: bytes,
        deadlines: Deadlines,
        max_body_bytes: int,
        arriving: Arriving | None,
        carrier: _Carrier,
    ) -> Reply:
        """Send one request and read its reply. Raises `RequestFailed`."""
        session = self._session(endpoint.socket_path)
        proxy = proxy_for(endpoint)
        clock = asyncio.get_running_loop().time
        parser, watch, secrets = self._begin(endpoint, deadlines, max_body_bytes, arriving)
        try:
            async with (
                watch,
                session.post(
                    endpoint.over_http(endpoint.base_url + path),
                    data=body,
                    headers=request_headers(endpoint),
                    proxy=proxy,
                    # A redirect would take the key to another host.
                    allow_redirects=False,
                    # No bound on the whole: a long reply takes hours. `Watch` bounds the wait for tokens.
                    timeout=aiohttp.ClientTimeout(total=None, connect=deadlines.connect),
                ) as response,
            ):
                if response.status != 200:
                    raise await _refusal(response, secrets)
                encoding = response.headers.get("Content-Encoding", "identity").lower()
                if encoding != "identity":
                    raise parser.failure("malformed", f"the reply is compressed ({encoding}), which was not asked for")
                parser.request_id = response.headers.get("x-request-id")
                watch.is_closed = partial(_is_closed, response)
                cut = await _read(response, parser, clock)
                return carrier.check_reply(parser.finish(clock(), cut), prompt_of(body))
        except TimeoutError as error:
            if watch.lost and not parser.finished:
                return parser.finish(clock(), cut="the connection was closed because the reply broke the rules of HTTP")
            if watch.expired:
                return deadlines.end_late(parser, clock())
            raise parser.failure("timeout", f"{_cause(error)} ({host_and_port(endpoint.base_url)})") from None
        except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
            raise _connection_failure(error, endpoint, proxy, secrets) from None

    async def close(self) -> int:
        """Close all connections; see `Transport.close`."""
        n_doubtful = await look_last(self._leftovers.values())
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()
        return n_doubtful

    def _session(self, socket_path: str | None) -> aiohttp.ClientSession:
        """The aiohttp session for TCP, or for this unix socket; each is made once."""
        session = self._sessions.get(socket_path)
        if session is None:
            connector: aiohttp.BaseConnector
            if socket_path is None:
                # Without aiohttp's limit of 100 connections: the dispatcher bounds the requests.
                connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, ssl=self._tls)
            else:
                connector = aiohttp.UnixConnector(socket_path, limit=0)
            # aiohttp has no public way to set the class of its connections.
            connector._factory = cast("partial[ResponseHandler]", partial(_Protocol, asyncio.get_running_loop()))
            session = self._sessions[socket_path] = aiohttp.ClientSession(
                connector=connector,
                # A cookie of one reply must not change the next request.
                cookie_jar=aiohttp.DummyCookieJar(),
                # Unpacked without a bound, a small body could take gigabytes.
                auto_decompress=False,
                request_class=_Request,
            )
        return session


class _Carrier:
    """Connects a request with the connection that carries it. reused: that connection had carried another request."""

    def __init__(self, leftovers: Leftovers) -> None:
        self.leftovers = leftovers
        self.protocol: _Protocol | None = None
        self.reused = False

    def set_out(self, protocol: _Protocol) -> None:
        """Take note that the request is sent on the connection `protocol`."""
        self.protocol = protocol
        self.reused = protocol.used
        protocol.begin(self)

    def drop(self) -> None:
        """Close the connection, unless another request has it by now.

        A server that sent an unbelievable reply may leave the next request on this connection without an answer.
        """
        if self.protocol is not None and self.protocol.carrier is self:
            self.protocol.close()

    def check_reply(self, reply: Reply, prompt: int) -> Reply:
        """Check a finished reply: returns it with a note if one is due. prompt: see `prompt_of`.

        Closes the connection if more than the reply may have come on it. Raises `RequestFailed` if the reply is a
        leftover of another request.
        """
        if self.protocol is None:
            return reply
        # aiohttp frees the connection when it reads the end of the body, so another request may have it by now.
        is_ours = self.protocol.carrier is self
        self.protocol.idle = is_ours
        try:
            self.protocol.before = self.leftovers.check(reply, self.protocol.before, prompt, used=self.reused)
        except RequestFailed:
            if is_ours:
                self.protocol.close()
            raise
        if is_ours and not ended_cleanly(reply):
            self.protocol.close()
        note = self.leftovers.note()
        return reply if note is None else msgspec.structs.replace(reply, notes=(*reply.notes, note))


_CARRIER: ContextVar[_Carrier] = ContextVar("carrier")
"""The carrier of the current task's request: aiohttp does not tell a caller which connection it chose."""


class _Protocol(ResponseHandler):
    """A connection of aiohttp with two checks that aiohttp 3.14 lacks.

    Without them aiohttp accepts any number of interim replies, and silently drops bytes that come while no request is
    waiting. used: whether it has carried a request. carrier: that of the latest request. leftovers: detects replies of
    its server that belong to other requests. idle: whether no request is waiting. before: the mark of the latest reply.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self.used = False
        self.idle = False
        self.before: Mark | None = None
        self.carrier: _Carrier | None = None
        self.leftovers: Leftovers | None = None
        self._n_heads = 0
        self._n_interim = 0

    @property
    def should_close(self) -> bool:
        """Whether the connection closes after its request; always once the server sent bytes that answer no request."""
        return super().should_close or (self.leftovers is not None and self.leftovers.doubted)

    def begin(self, carrier: _Carrier) -> None:
        """Take note that a request is sent on this connection."""
        self.carrier = carrier
        self.leftovers = carrier.leftovers
        self.used = True
        self.idle = False
        self._n_heads = self._n_interim = 0

    def data_received(self, data: bytes) -> None:
        """Parse `data`; bytes that come while no request is under way are judged as possible leftovers first."""
        if self.idle and self.leftovers is not None:
            self.leftovers.judge_unasked(data)
        super().data_received(data)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Accept a response whose head has come; too many heads of status 1xx end the connection.

        A second response to one request is a sign of replies that answer other requests (`Leftovers.doubt`).
        """
        if 100 <= data[0].code < 200 and data[0].code != 101:
            self._n_interim += 1
            if self._n_interim > MAX_INTERIM_HEADS:
                too_many = f"more than {MAX_INTERIM_HEADS} interim replies (status 1xx)"
                self.set_exception(HttpProcessingError(code=400, message=too_many))
                if self.transport is not None:
                    self.transport.close()
                return
        else:
            self._n_heads += 1
            # By a 408 a proxy ends an idle connection; it answers no request.
            if self._n_heads > 1 and self.leftovers is not None and data[0].code != 408:
                self.leftovers.doubt()  # a second response to one request
        super().feed_data(data, size)

    def has_unread(self) -> bool:
        """Whether the idle connection holds bytes, or has ended, and the loop was too busy to notice."""
        if self.transport is None:
            return False
        fd = self.transport.get_extra_info("socket").fileno()
        # Not select, which refuses descriptors above 1023.
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(0):
            return False
        # Under TLS the bytes are encrypted, and may be no more than a session ticket.
        if self.leftovers is not None and self.transport.get_extra_info("ssl_object") is None:
            # asyncio hands out a wrapper of the socket, on which nothing can be received.
            with socket.socket(fileno=os.dup(fd)) as twin, contextlib.suppress(OSError):
                self.leftovers.judge_unasked(twin.recv(len(REQUEST_TIMEOUT_HEAD), socket.MSG_PEEK))
        return True


class _Request(aiohttp.ClientRequest):
    """A request that refuses a connection with unread bytes: aiohttp 3.14 would take them for the reply."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Send the request; on a used connection with unread bytes, close that and raise `ServerDisconnectedError`."""
        protocol = conn.protocol
        if isinstance(protocol, _Protocol):
            if protocol.used and (protocol.should_close or protocol.has_unread()):
                conn.close()
                # Only a request with this mark is sent again. `set_out` would set it, but runs for sent requests only.
                _CARRIER.get().reused = True
                raise aiohttp.ServerDisconnectedError("the server sent bytes before the request was sent")
            _CARRIER.get().set_out(protocol)
        return await super().send(conn)


async def _read(response: aiohttp.ClientResponse, parser: ReplyParser, clock: Callable[[], float]) -> str:
    """Feed the body to `parser`. Returns why the body was cut off; an empty text if it ended well."""
    try:
        async for data in response.content.iter_any():
            parser.feed(data, clock())
    except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError) as error:
        # A deadline of `Watch`, which `_ask` explains.
        if isinstance(error, TimeoutError):
            raise
        return _cause(error)
    return ""


def _is_closed(response: aiohttp.ClientResponse) -> bool:
    """Whether the connection is closed. aiohttp 3.14 closes it over broken framing and does not tell the reader."""
    connection = response.connection
    return connection is not None and (connection.transport is None or connection.transport.is_closing())


async def _refusal(response: aiohttp.ClientResponse, secrets: tuple[Secret, ...]) -> RequestFailed:
    """The failure for a reply with an error status, with the beginning of its body.

    secrets: keys that the text must not show.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_S):
            while len(body) < MAX_ERROR_BODY_BYTES and (data := await response.content.readany()):
                body += data
    except (TimeoutError, aiohttp.ClientError, HttpProcessingError, OSError):
        pass  # the part that came must do as the explanation
    headers = response.headers
    return failure_of_status(
        response.status,
        bytes(body[:MAX_ERROR_BODY_BYTES]),
        content_encoding=headers.get("Content-Encoding", ""),
        retry_after=headers.get("Retry-After"),
        retry_after_ms=headers.get("retry-after-ms"),
        location=headers.get("Location"),
        secrets=secrets,
    )


def _connection_failure(
    error: Exception, endpoint: Endpoint, proxy: str | None, secrets: tuple[Secret, ...]
) -> RequestFailed:
    """The failure for an error of the connection, of a kind that says whether a retry can help.

    proxy: the proxy's address; None without one. secrets: keys that the text must not show.
    """
    address = host_and_port(endpoint.base_url)
    if proxy:
        address += f" through the proxy {host_and_port(proxy)}"
    cause = quote_safely(_cause(error), secrets)
    # The order counts: aiohttp's exceptions inherit from one another, and some from OSError.
    if isinstance(error, aiohttp.ClientSSLError):
        return RequestFailed(
            "refused", f"no trusted TLS connection to {address}: {cause}; ca_file names the authority to trust"
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return RequestFailed("refused", f"{address}: the proxy answered HTTP {error.status}", status=error.status)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return RequestFailed("connect", f"{address} closed the connection before replying", unanswered=True)
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return RequestFailed("out_of_files", f"{address}: {cause}; lower the concurrency or raise `ulimit -n`")
    if isinstance(error, aiohttp.ClientConnectorError):
        return RequestFailed("connect", f"cannot connect to {address}: {cause}")
    if isinstance(error, HttpProcessingError | aiohttp.ClientResponseError):
        return RequestFailed("malformed", f"{address} does not answer in HTTP: {cause}")
    if isinstance(error, ValueError) and not isinstance(error, aiohttp.ClientError):
        return RequestFailed("refused", f"the request to {address} cannot be made: {cause}")
    return RequestFailed("connect", f"the connection to {address} broke before the reply: {cause}")


def _cause(error: Exception) -> str:
    """The reason in an exception, without the words that the library puts around it."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return str(inner) or type(inner).__name__
