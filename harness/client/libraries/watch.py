"""What the transports on a library share: whom they trust, and the deadlines of a reply in a task of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypedDict, Unpack

from harness.client.address.endpoint import Endpoint, secrets_of, tls_context
from harness.client.interface import Arriving, Deadlines
from harness.client.protocol.sse import ReplyParser
from harness.client.protocol.written import Memory
from harness.core.secret import Secret

LOOK_S = 0.5
"""Seconds between two looks at a reply's deadlines and connection."""


class Watch:
    """One timer, however many tokens come.

    An async context; on expiry it cancels the body and raises `TimeoutError`. `is_closed`: the connection is gone,
    though the reader was not told (see `aio`); seen twice in a row it ends the wait as `lost`.
    """

    def __init__(self, parser: ReplyParser, deadlines: Deadlines) -> None:
        self.lost = False
        self.is_closed: Callable[[], bool] = bool
        self._parser = parser
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._was_closed = False

    @property
    def expired(self) -> bool:
        """A deadline passed."""
        return self._timeout.expired()

    async def __aenter__(self) -> Watch:
        await self._timeout.__aenter__()
        self._look()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def _look(self) -> None:
        now, due = self._loop.time(), self._deadlines.due(self._parser)
        closed = self.is_closed()
        self.lost = closed and self._was_closed  # between the two looks, what had come was read
        self._was_closed = closed
        if due > now and not self.lost:
            self._timer = self._loop.call_at(min(due, now + LOOK_S), self._look)
        elif not self._timeout.expired():
            self._timeout.reschedule(now)


class LibraryOptions(TypedDict, total=False):
    """What a transport on a library is made with.

    ca_file: PEM file of the certificate authorities to trust instead of the system's. insecure: certificates are not
    checked; the caller says so loudly and records it. secrets: values in the bodies of requests that no message may
    show. memory: the bound of all replies, where transports share one.
    """

    ca_file: Path | None
    insecure: bool
    secrets: Sequence[Secret]
    memory: Memory | None


class LibraryTransport:
    """A transport whose library sends the request, and whose reply our own parser reads."""

    def __init__(self, **given: Unpack[LibraryOptions]) -> None:
        """Raises `UsageError` for a file of authorities that cannot be used."""
        ca_file = given.get("ca_file")
        self._tls = not given.get("insecure", False) if ca_file is None else tls_context(ca_file)
        self._secrets = tuple(given.get("secrets", ()))
        self._memory = given.get("memory") or Memory()

    def _begun(
        self, endpoint: Endpoint, deadlines: Deadlines, max_body_bytes: int, arriving: Arriving | None
    ) -> tuple[ReplyParser, Watch, tuple[Secret, ...]]:
        """(reader of the reply to a request that begins now, watch over its deadlines, what no message may show)."""
        secrets = secrets_of(endpoint, self._secrets)
        parser = ReplyParser(
            started=asyncio.get_running_loop().time(),
            started_utc=time.time(),
            max_body_bytes=max_body_bytes,
            memory=self._memory,
            secrets=secrets,
            written=arriving.written if arriving is not None else None,
        )
        if arriving is not None:
            arriving.count = lambda: parser.n_tokens
            arriving.so_far = parser.so_far
        return parser, Watch(parser, deadlines), secrets
