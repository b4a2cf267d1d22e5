"""The transport for plain http: no switch of tasks and no parsing per token.

For a request it takes an idle connection to the endpoint, or opens one. A timer looks at all active connections four
times a second: their deadlines, and bytes that wait unparsed. If a connection that was used before turns out to be
closed, the request is sent again on another one.

On the loop of `event_loop` sockets are read inside its selector; on any other loop by the loop's readers. Arrival times
are the kernel's receive stamps where the system has them ("kernel"), so that they are true even if Python reads late;
else the loop's clock at the read ("user"). Not covered: https and proxies (see `libraries.aio`).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from harness.client.address.endpoint import Endpoint, host_and_port, quote_safely, secrets_of
from harness.client.fast.acknowledging import Acknowledging
from harness.client.fast.batches import Templates
from harness.client.fast.connecting import ClockOffset, Connector, Peer
from harness.client.fast.connection import Connection, unparsed_bytes
from harness.client.interface import Arriving, Deadlines, look_last, request_headers
from harness.client.protocol.http1 import Leftovers, request_head
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.client.protocol.written import Memory
from harness.core.secret import Secret

LOOK_S = 0.25
"""Seconds between two looks at the active connections."""

LOOKS_A_COUNT = 4
"""The memory that unparsed bytes take is counted at one look in this many.

With thousands of connections, a count takes longer than a look.
"""


@dataclass(frozen=True, slots=True)
class _Route:
    """What all requests to one path of an endpoint share. endpoint: held, so that no other object gets its identity.
    head: the request's head, without the value of Content-Length, which ends it. secrets: texts that no message may
    show.
    """

    endpoint: Endpoint
    peer: Peer
    head: bytes
    secrets: tuple[Secret, ...]


class FastTransport:
    """Sends HTTP/1.1 requests over connections of its own, without a library.

    kernel_stamps: use the kernel's receive stamps if the system has them. secrets: texts in the bodies of requests that
    no message may show. memory: counts the bytes of all replies, if transports share it.
    """

    def __init__(
        self, *, kernel_stamps: bool = True, secrets: Sequence[Secret] = (), memory: Memory | None = None
    ) -> None:
        self._secrets = tuple(secrets)
        # On 32-bit systems the stamp is a struct of another layout.
        self.kernel_stamps = kernel_stamps and sys.platform == "linux" and sys.maxsize > 2**32
        self.clock_offset = ClockOffset()
        self._connector = Connector()
        self._memory = memory or Memory()
        self._active: set[Connection] = set()
        self._idle: dict[Peer, list[Connection]] = {}
        # By the endpoint's identity: to hash its address and headers for each request takes longer than the look-up.
        self._routes: dict[tuple[int, str], _Route] = {}
        self._templates: dict[Peer, Templates] = {}
        self._leftovers: dict[Peer, Leftovers] = {}
        self._acknowledging: dict[Peer, Acknowledging] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._n_looks = 0

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
        route = self._routes.get((id(endpoint), path)) or self._route(endpoint, path)
        request = b"%b%d\r\n\r\n%b" % (route.head, len(body), body)
        # A server may close an idle connection while the request is on its way, which HTTP/1.1 allows: the next round
        # takes another connection.
        while True:
            used = self._take_idle(route.peer)
            connection = used or await self._open(route.peer, deadlines.connect)
            parser = ReplyParser(
                started=time.monotonic(),
                started_utc=time.time(),
                max_body_bytes=max_body_bytes,
                clock="kernel" if self.kernel_stamps else "user",
                memory=self._memory,
                secrets=route.secrets,
                written=arriving.written if arriving is not None else None,
            )
            self._watch(connection)
            if arriving is not None:
                arriving.count = partial(connection.count, parser)
                arriving.so_far = partial(connection.so_far, parser)
            try:
                return await connection.ask(request, parser, deadlines)
            except RequestFailed as failure:
                # A fresh connection that is closed without an answer is the server's refusal; sending again might never
                # end.
                if not (used and failure.unanswered):
                    raise

    async def close(self) -> int:
        """Close all connections; see `Transport.close`."""
        n_doubtful = await look_last(self._leftovers.values())
        # A copy, since `close` calls `forget`, which changes both collections.
        for connection in [*self._active, *(connection for idle in self._idle.values() for connection in idle)]:
            connection.close()
        self._idle.clear()
        self._connector.close()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        return n_doubtful

    def _take_idle(self, peer: Peer) -> Connection | None:
        """Return an idle connection to `peer` for the next request; None if there is none.

        None as well if the server has sent bytes that belong to no request (`Leftovers.doubted`): then no connection is
        used twice, and all idle ones are closed.
        """
        idle = self._idle.get(peer)
        if not idle:
            return None
        if not self._leftovers[peer].doubted:
            # The one used last: of all idle connections the server is least likely to have closed it.
            return idle.pop()
        # A copy, since `close` removes the connection from `idle`.
        for connection in [*idle]:
            connection.close()
        idle.clear()
        return None

    def keep_idle(self, connection: Connection) -> None:
        """Keep `connection` for the next request to its peer."""
        self._idle.setdefault(connection.peer, []).append(connection)

    def end_request(self, connection: Connection) -> None:
        """Stop checking the deadlines of `connection`: its request is over."""
        self._active.discard(connection)

    def forget(self, connection: Connection) -> None:
        """Forget `connection`, which is closed."""
        self._active.discard(connection)
        idle = self._idle.get(connection.peer)
        if idle and connection in idle:
            idle.remove(connection)

    def _watch(self, connection: Connection) -> None:
        """Take note that `connection` carries a request, so that `_look` checks its deadlines."""
        self._active.add(connection)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Check the deadlines and unparsed bytes of the active connections; called every `LOOK_S`."""
        now = time.monotonic()
        self._n_looks += 1
        if self._n_looks % LOOKS_A_COUNT == 0 or not self._active:
            self._memory.unparsed_bytes = unparsed_bytes(self._active)
        # A list, since a look may end a request, which changes the set.
        for connection in [connection for connection in self._active if connection.look_at <= now]:
            connection.look(now)
        loop = asyncio.get_running_loop()
        # No timer without requests: it would keep waking the loop, and hold the transport in memory.
        self._looking = loop.call_later(LOOK_S, self._look) if self._active else None

    def _route(self, endpoint: Endpoint, path: str) -> _Route:
        """Host, request head and secrets for this endpoint and path; they are kept for later requests."""
        parts = urlsplit(endpoint.base_url)
        if parts.scheme != "http":
            raise RequestFailed("refused", f"{host_and_port(endpoint.base_url)}: this transport speaks plain http only")
        secrets = secrets_of(endpoint, self._secrets)
        try:
            head = request_head(endpoint.base_url + path, request_headers(endpoint))
        except ValueError as error:
            message = quote_safely(str(error), secrets)
            raise RequestFailed("refused", f"the request cannot be made: {message}") from None
        peer = (parts.hostname or "", parts.port or 80)
        route = self._routes[id(endpoint), path] = _Route(endpoint, peer, head, secrets)
        return route

    async def _open(self, peer: Peer, seconds: float) -> Connection:
        """Open a connection within `seconds`; it shares what is known of the server with its other connections."""
        sock = await self._connector.connect(peer, seconds)
        # Not `setdefault`, which would make these objects for each connection.
        if peer not in self._leftovers:
            self._templates[peer] = Templates()
            self._leftovers[peer] = Leftovers()
            self._acknowledging[peer] = Acknowledging()
        return Connection(
            self,
            peer,
            sock,
            self._templates[peer],
            self._leftovers[peer],
            self._acknowledging[peer],
            kernel_stamps=self.kernel_stamps,
        )
