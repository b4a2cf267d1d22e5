"""One socket of the fast transport, and the request that it carries.

    idle ──ask──▶ waiting ──read──▶ reading ──whole, and nothing followed──▶ idle (the transport lends it again)
     │                │                │
     │ bytes, end     │ end            │ end, failure, deadline, cancelled task, leftover
     ▼                ▼                ▼
    closed ◀──────────┴────────────────┘

Reading: the selector calls `_drain` when bytes come. A read is put aside with its receive stamp; a batch is parsed at
32 KiB, after a second where 8 KiB have come, after four seconds in any case, and at the reply's end (see `batches`).
So a token costs a system call, two appends and a share of a batch; no task is switched and no timer is set.

Invariants: each read is parsed once and in order, with its own stamp. The future is set once; then the parser is
forgotten. `_drain` and what it calls never raise: an exception there would end the loop with all its requests. What
comes when no request waits was asked by nobody: it closes the connection, and is a doubt about the server. Deadlines
count tokens, and only parsed events are tokens; so `look` parses before it decides that a reply is late.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from harness.client.fast.batches import BATCH_BYTES, BatchReader, Templates
from harness.client.fast.connecting import SO_TIMESTAMPNS, ClockOffset, Peer, stamp_now
from harness.client.fast.event_loop import StreamLoop
from harness.client.interface import ERROR_BODY_S, Deadlines
from harness.client.protocol.failures import failure_of_status
from harness.client.protocol.http1 import (
    REQUEST_TIMEOUT_HEAD,
    BadResponse,
    Leftovers,
    Mark,
    begins_chunked_body,
    ended_exactly,
    prompt_of,
)
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.client.protocol.written import SoFar
from harness.core.limits import MAX_ERROR_BODY_BYTES

BATCH_S = 1.0
"""Seconds after which reads are parsed if they come to `RIPE_BYTES`, or look like the end."""

RIPE_BYTES = 8 * 1024
"""Bytes that are worth a batch: some thirty events. With less, what a batch costs by itself shows in each token."""

SLOW_BATCH_S = 4.0
"""Seconds after which reads are parsed in any case."""

_READ_BYTES = 64 * 1024
_READ_OVERHEAD_BYTES = 128
"""Memory of a read and its stamp beside the bytes."""

_QUICKACK = getattr(socket, "TCP_QUICKACK", None)  # Linux only
_LAST_BYTES = b"\r\n\r\n"


class Owner(Protocol):
    """What a connection tells the transport that it belongs to."""

    clock_offset: ClockOffset

    def freed(self, connection: Connection) -> None:
        """`connection` may carry another request."""
        ...

    def ended(self, connection: Connection) -> None:
        """Its request is over, whatever becomes of `connection`."""
        ...

    def dropped(self, connection: Connection) -> None:
        """`connection` is closed."""
        ...


class Connection:
    """One socket, and the request that it carries. kernel_stamps: see `harness.client.fast.transport`.

    look_at: when `look` has something to do again, on the monotonic clock.
    """

    __slots__ = (
        "_again",
        "_batch_at",
        "_before",
        "_deadlines",
        "_detach",
        "_error_due",
        "_future",
        "_kernel_stamps",
        "_lazy",
        "_leftovers",
        "_owner",
        "_parser",
        "_pieces",
        "_prompt",
        "_read",
        "_receive",
        "_size",
        "_sock",
        "_stamps",
        "_step",
        "_templates",
        "_used",
        "look_at",
        "peer",
    )  # fmt: skip

    def __init__(
        self,
        owner: Owner,
        peer: Peer,
        sock: socket.socket,
        templates: Templates,
        leftovers: Leftovers,
        *,
        kernel_stamps: bool,
    ) -> None:
        self.peer = peer
        self._owner = owner
        self._sock = sock
        self._receive = sock.recvmsg
        self._templates = templates
        self._leftovers = leftovers
        self._before: Mark | None = None  # of the reply before the one under way
        self._kernel_stamps = kernel_stamps
        self._used = False  # it has carried a request before the one under way
        self._future: asyncio.Future[Reply] | None = None
        self._pieces: list[bytes] = []
        self._stamps: list[bytes] = []  # each a struct timespec, also where the kernel gives none
        self._size = 0
        self._lazy = False
        if kernel_stamps:
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if _QUICKACK is not None:
            # Each token's packet would be acknowledged by one of its own until a second request is sent; so each other.
            sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 0)
        self._attach(self._drain if kernel_stamps else self._drain_plainly)

    # -- the request ---------------------------------------------------------------------------------------------

    async def ask(self, request: bytes, parser: ReplyParser, deadlines: Deadlines) -> Reply:
        """Send `request`, return its reply. Raises `RequestFailed`."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._future = future
        self._parser = parser
        self._read = BatchReader(parser, self._templates)
        self._deadlines = deadlines
        self._error_due: float | None = None  # when the body of an error must have ended
        self._batch_at = parser.started
        self._step = min(BATCH_S, deadlines.first_token, deadlines.idle)
        self.look_at = parser.started + self._step
        try:
            if self._used and self._unasked():
                raise RequestFailed("connect", "something came before the request was sent", unanswered=True)
            self._prompt = prompt_of(request)
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

    def _unasked(self) -> bool:
        """Whether bytes of no request, or the connection's end, have come since the reply before.

        The kernel is asked before each request: a receive stamp (`_came_before`) tells most of them later, but not all.
        """
        try:
            data = self._sock.recv(len(REQUEST_TIMEOUT_HEAD), socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        self._leftovers.came_unasked(data)
        return True

    def count(self, parser: ReplyParser) -> int:
        """Token events of the reply that `parser` reads; those put aside are estimated from the bytes of the others."""
        n = parser.n_tokens
        if not self._size or self._parser is not parser:
            return n
        return n + (self._size * n // parser.n_bytes if n else len(self._stamps))

    def so_far(self, parser: ReplyParser) -> SoFar | None:
        """What the reply that `parser` reads has come to; what was put aside of it is read first.

        None where it may be what is left over from another request, and where it is too long.
        """
        if self._size and self._parser is parser:
            self._parse(all_of_it=True)
        seen = parser.so_far()
        return None if seen is None or self._leftovers.may_be_one(seen.request_id, self._before) else seen

    async def _send_rest(self, rest: memoryview) -> None:
        """Send what did not fit the socket's buffer, while replies are read: a refusal may come before the end."""
        assert self._future is not None
        # Not before: one small request a round trip is sent at once anyway.
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with socket.socket(fileno=os.dup(self._sock.fileno())) as twin:
            sending = asyncio.ensure_future(asyncio.get_running_loop().sock_sendall(twin, rest))
            either: set[asyncio.Future[Any]] = {sending, self._future}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                sending.cancel()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await sending

    def _attach(self, drain: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        fd = self._sock.fileno()
        self._detach: Callable[[], object]
        self._again: Callable[[], object]
        if isinstance(loop, StreamLoop):
            loop.streams.attach(fd, drain)
            self._detach = partial(loop.streams.detach, fd)
            self._again = partial(loop.streams.again, fd)
        else:
            loop.add_reader(fd, drain)
            self._detach = partial(loop.remove_reader, fd)
            self._again = _nothing  # its readers are called for as long as there is something

    @property
    def unparsed_bytes(self) -> int:
        """Memory of the reads that are put aside, about."""
        return self._size + _READ_OVERHEAD_BYTES * len(self._pieces)

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
            data, extra, _, _ = self._receive(_READ_BYTES, 64)
        except BlockingIOError:
            return False
        except OSError as error:
            return self._ended(error.strerror or str(error))
        if not data:
            return self._ended("")
        self._pieces.append(data)
        self._stamps.append(extra[0][2] if extra else self._user_stamp())
        self._size = size = self._size + len(data)
        if self._lazy and size < BATCH_BYTES and len(data) > 4 and data[-4:] != _LAST_BYTES:
            return False
        return self._news(data)

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
        self._stamps.append(self._user_stamp())
        self._size += len(data)
        return self._news(data)

    def _news(self, data: bytes) -> bool:
        """`data` came last: parse, or wait for more."""
        if len(data) == _READ_BYTES:
            self._again()
        # A last chunk (with or without trailers) ends so; if it is split over reads, the last of them is short.
        if self._size < BATCH_BYTES and len(data) > 4 and data[-4:] != _LAST_BYTES:
            if self._lazy:
                return False
            if self._future is not None and len(self._pieces) == 1 and not self._read.http.started:
                self._lazy = begins_chunked_body(data)
                if self._lazy:
                    return False
        return self._parse()

    def _user_stamp(self) -> bytes:
        if self._future is not None:
            self._parser.clock = "user"
        return stamp_now()

    def _ended(self, cause: str) -> bool:
        """The connection ended."""
        if self._future is None or self._future.done():
            self.close()
            return False
        if self._parse(all_of_it=True):
            return True
        why = self._read.http.eof()
        if not self._read.http.status:
            peer = f"{self.peer[0]}:{self.peer[1]}"
            message = f"{peer} closed the connection before replying {cause}".strip()
            return self._over(RequestFailed("connect", message, unanswered=not self._read.http.started))
        if self._read.error_body is not None:
            return self._over(self._refusal())
        return self._finish(why and (cause or why))

    def _parse(self, all_of_it: bool = False) -> bool:
        """Parse what was put aside, whole frames only unless `all_of_it`; True when the request is over."""
        if self._future is None or self._future.done():
            if self._pieces:  # bytes that nobody asked for
                self._leftovers.came_unasked(self._pieces[0])
                self.close()
            return False
        pieces, raw_stamps = self._pieces, self._stamps
        stamps = self._owner.clock_offset.monotonic(raw_stamps, self._batch_at)
        self._pieces, self._stamps, self._size = [], [], 0
        self._batch_at = time.monotonic()
        try:
            if pieces and self._used and not self._read.http.started and self._came_before(stamps):
                message = "something came before the request was sent"
                return self._over(RequestFailed("connect", message, unanswered=True), keep=False)
            rest = self._read.take(pieces, stamps, all_of_it=all_of_it) if pieces else b""
            if rest:
                self._pieces, self._stamps, self._size = [rest], raw_stamps[-1:], len(rest)
            self._lazy = self._read.http.chunked and self._read.error_body is None
            return self._after_parse()
        except RequestFailed as failure:  # whoever sends such a reply may as well leave the connection silent after it
            return self._over(failure, keep=False)
        except BadResponse as error:
            if self._read.http.status:
                return self._finish(str(error))
            return self._over(self._parser.failed("malformed", f"no reply in HTTP: {error}"))
        except Exception as error:  # noqa: BLE001 - a bug must end its request, never the loop whose selector runs this
            return self._over(error, keep=False)

    def _came_before(self, stamps: Sequence[float]) -> bool:
        """The reply begins with bytes that the kernel had before the request was sent."""
        return self._kernel_stamps and self._parser.clock == "kernel" and stamps[0] < self._parser.started

    # -- the end of the request --------------------------------------------------------------------------------------

    def _after_parse(self) -> bool:
        if self._read.error_body is not None:
            if self._error_due is None:
                self.look_at = self._error_due = time.monotonic() + ERROR_BODY_S
            whole = self._read.http.ended or len(self._read.error_body) >= MAX_ERROR_BODY_BYTES
            return whole and self._over(self._refusal())
        if self._read.http.ended:
            return self._finish("")
        if self._parser.done:
            self.look_at = self._deadlines.due(self._parser)
        return False

    def look(self, now: float) -> None:
        """Parse what waits too long; end the request if a deadline passed."""
        parser = self._parser
        self.look_at = now + self._step
        due = self._deadlines.due(parser)
        # Deadlines count tokens, and only parsed events are tokens: so parse when one seems to have passed.
        if self._pieces and (now >= due or self._ripe(now)):
            if self._parse(all_of_it=True):
                return
            due = self._deadlines.due(parser)
        if self._error_due is not None:
            if now >= self._error_due:
                self._over(self._refusal())
                return
            due = min(due, self._error_due)
        self.look_at = min(self.look_at, due)
        if now >= due:
            self._conclude(partial(self._deadlines.end_late, parser, now))

    def _ripe(self, now: float) -> bool:
        """What was put aside should be parsed."""
        age = now - self._batch_at
        if age < BATCH_S:
            return False
        return age >= SLOW_BATCH_S or self._size >= RIPE_BYTES or b"[DONE]" in self._pieces[-1]

    def _finish(self, cut: str) -> bool:
        return self._conclude(partial(self._parser.finish, time.monotonic(), cut))

    def _conclude(self, outcome: Callable[[], Reply]) -> bool:
        try:
            reply = outcome()
            if self._read.http.surplus:
                self._leftovers.doubt()
            self._before = self._leftovers.check(reply, self._before, self._prompt, used=self._used)
        except RequestFailed as failure:
            return self._over(failure, keep=False)
        if (note := self._leftovers.note()) is not None:
            reply = msgspec.structs.replace(reply, notes=(*reply.notes, note))
        return self._over(reply, keep=ended_exactly(reply) and not self._leftovers.doubted)

    def _refusal(self) -> RequestFailed:
        headers = self._read.http.headers
        return failure_of_status(
            self._read.http.status,
            bytes(self._read.error_body or b"")[:MAX_ERROR_BODY_BYTES],
            content_encoding=headers.get("content-encoding", ""),
            retry_after=headers.get("retry-after"),
            retry_after_ms=headers.get("retry-after-ms"),
            location=headers.get("location"),
            secrets=self._parser.secrets,
        )

    def _over(self, outcome: Reply | Exception, *, keep: bool = True) -> bool:
        """Hand the outcome to the waiting request; keep the connection if it can carry another, and `keep`."""
        future, self._future = self._future, None
        self._lazy = False
        self._used = True
        self._owner.ended(self)
        if keep and self._read.http.reusable and not self._pieces:
            self._owner.freed(self)
        else:
            self.close()
        self._pieces, self._stamps, self._size = [], [], 0
        del self._parser, self._read  # with all that they hold; the next request brings its own
        if future is not None and not future.done():
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        return True


def _nothing() -> None:
    pass
