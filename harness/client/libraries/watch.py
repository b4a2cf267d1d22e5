"""What the two transports on an HTTP library share: certificates, and a timer that enforces a reply's deadlines."""

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
"""Seconds between two checks of a reply's deadlines and connection."""


class Watch:
    """Async context manager that ends its body with `TimeoutError` when a deadline of the reply has passed.

    It needs one timer, however many tokens come. is_closed: a function that says whether the connection is gone, which
    the library may not tell the reader of the body (see `aio`). If two checks in a row find it gone, the body ends with
    `TimeoutError`, too, and `lost` is True.
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
        """Whether the context ended its body."""
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
        """Expire the timeout if a deadline has passed or the connection is lost; otherwise look again later."""
        now, due = self._loop.time(), self._deadlines.due(self._parser)
        closed = self.is_closed()
        # Two checks, because between them the reader takes the bytes that had come before the connection went.
        self.lost = closed and self._was_closed
        self._was_closed = closed
        if due > now and not self.lost:
            self._timer = self._loop.call_at(min(due, now + LOOK_S), self._look)
        # An expired timeout refuses to be rescheduled.
        elif not self._timeout.expired():
            self._timeout.reschedule(now)


class LibraryOptions(TypedDict, total=False):
    """The arguments for making a transport on a library; see `chooser.open_transport`.

    ca_file: PEM file of the certificate authorities to trust in place of the system's. insecure: accept any
    certificate; the caller warns about it and records it. secrets: texts in the bodies of requests that no message may
    show. memory: counts the bytes of all replies, if transports share it.
    """

    ca_file: Path | None
    insecure: bool
    secrets: Sequence[Secret]
    memory: Memory | None


class LibraryTransport:
    """Base of the transports whose library sends the request and whose reply our own parser reads."""

    def __init__(self, **given: Unpack[LibraryOptions]) -> None:
        """Raises `UsageError` if `ca_file` cannot be used."""
        ca_file = given.get("ca_file")
        self._tls = not given.get("insecure", False) if ca_file is None else tls_context(ca_file)
        self._secrets = tuple(given.get("secrets", ()))
        self._memory = given.get("memory") or Memory()

    def _begin(
        self, endpoint: Endpoint, deadlines: Deadlines, max_body_bytes: int, arriving: Arriving | None
    ) -> tuple[ReplyParser, Watch, tuple[Secret, ...]]:
        """Begin a request: (parser of its reply, watch over its deadlines, texts that no message may show)."""
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
