"""One socket of the fast transport, and the request that it carries.

    state    meaning                        an event                                              leads to
    idle     no request                     `ask`                                                 waiting
                                            bytes come, or the connection ends                    closed
    waiting  the request is sent            bytes come                                            reading
                                            the connection ends                                   closed
    reading  a part of the reply has come   the reply is whole and nothing came behind it         idle
                                            a failure, a deadline, a cancelled task, a leftover   closed

Reading: the event loop's selector calls `_drain` when bytes come. The bytes of a read are stored with their receive
stamp and parsed later, many reads at once (a batch, see `batches`):

    a batch is parsed   when 32 KiB have come; after two seconds if 8 KiB have; after four; at the reply's end

So a token costs a system call, two appends and a share of a batch. No task is switched and no timer is set per token.

Invariants: each read is parsed once, in order, with its own stamp. The future of the request is set once, and the
parser is then deleted. `_drain` and what it calls never raise, since an exception there would end the event loop with
all its requests. Bytes that come while no request waits close the connection and make the server "doubted": from then
on each of its connections carries one request only (`Leftovers`).
Deadlines count tokens, and only parsed events are tokens; so `look` parses before it decides that a reply is late.

Long: a connection is one socket with its states, and its methods share the bytes that wait unparsed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from harness.client.fast.acknowledging import Acknowledging
from harness.client.fast.batches import BATCH_BYTES, END_OF_FRAME, BatchReader, Templates
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
    ended_cleanly,
    prompt_of,
)
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.client.protocol.written import SoFar
from harness.core.limits import MAX_ERROR_BODY_BYTES

BATCH_S = 2.0
"""Seconds after which stored reads are parsed if they have `RIPE_BYTES` bytes, or hold `[DONE]`."""

RIPE_BYTES = 8 * 1024
"""Smallest batch that is parsed after `BATCH_S`: some thirty events.

In a smaller one the fixed cost of a batch would weigh on each token.
"""

SLOW_BATCH_S = 4.0
"""Seconds after which stored reads are parsed, however few they are."""

_READ_BYTES = 64 * 1024
"""Largest read from a socket."""
_READ_OVERHEAD_BYTES = 128
"""Memory of a stored read and its stamp, besides the bytes."""

_PIECES = attrgetter("_pieces")
_SIZE = attrgetter("_size")

_QUICKACK = getattr(socket, "TCP_QUICKACK", None)  # Linux only
_LAST_BYTES = b"\r\n\r\n"
"""The last bytes of a chunked body: of its last chunk, or of its trailers."""


class Owner(Protocol):
    """What a connection needs of its transport: a clock, and to be heard when its state changes."""

    clock_offset: ClockOffset

    def keep_idle(self, connection: Connection) -> None:
        """Keep `connection`, which may carry another request."""
        ...

    def end_request(self, connection: Connection) -> None:
        """Take note that the request of `connection` is over."""
        ...

    def forget(self, connection: Connection) -> None:
        """Forget `connection`, which is closed."""
        ...


class Connection:
    """One socket, and the request that it carries.

    templates, leftovers, acknowledging: what is known of the server, shared by all connections to it: the form of its
    token events, whether its replies can belong to other requests, and when its packets are acknowledged.
    kernel_stamps: see `fast.transport`. look_at: when `look` must be called again, on the monotonic clock.

    Wide: what a request brings stands here too, since an object of its own would cost each request its creation.
    """

    __slots__ = (
        "_acknowledging",
        "_again",
        "_batch_at",
        "_before",
        "_deadlines",
        "_detach",
        "_due",
        "_error_due",
        "_future",
        "_kernel_stamps",
        "_late",
        "_lazy",
        "_leftovers",
        "_loop",
        "_n_split",
        "_owner",
        "_parser",
        "_pieces",
        "_poll",
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
        acknowledging: Acknowledging,
        *,
        kernel_stamps: bool,
    ) -> None:
        self.peer = peer
        self._owner = owner
        self._sock = sock
        self._receive = sock.recvmsg
        self._templates = templates
        self._leftovers = leftovers
        self._acknowledging = acknowledging
        self._before: Mark | None = None  # the mark of the previous reply on this connection
        self._kernel_stamps = kernel_stamps
        # Kept, since Python 3.11 makes a system call whenever it is asked for the running loop.
        self._loop = asyncio.get_running_loop()
        self._poll: Callable[[int], list[tuple[int, int]]] | None = None  # see `_unasked`
        self._used = False  # it has carried a request before the current one
        self._future: asyncio.Future[Reply] | None = None
        self._pieces: list[bytes] = []  # stored reads
        self._stamps: list[bytes] = []  # their stamps, each a struct timespec, also without the kernel's
        self._size = 0  # bytes of the stored reads
        self._n_split = 0  # stored reads that do not end where an event's chunk does
        self._lazy = False  # a chunked body is being read: reads may be stored
        if kernel_stamps:
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._late: Callable[[], object] = _nothing  # sets the mode in which the kernel waits; see `acknowledging`
        if _QUICKACK is not None:
            self._late = partial(sock.setsockopt, socket.IPPROTO_TCP, _QUICKACK, 0)
            self._late()
        self._attach(self._drain if kernel_stamps else self._drain_plainly)

    # -- the request ---------------------------------------------------------------------------------------------

    async def ask(self, request: bytes, parser: ReplyParser, deadlines: Deadlines) -> Reply:
        """Send `request`, return its reply. Raises `RequestFailed`."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._future = future
        self._parser = parser
        self._read = BatchReader(parser, self._templates)
        self._deadlines = deadlines
        self._error_due: float | None = None  # when the body of an error must have ended
        self._batch_at = parser.started
        self._step = min(BATCH_S, deadlines.first_token, deadlines.idle)
        self._due = self.look_at = parser.started + self._step
        try:
            # A fresh connection has nothing to answer yet, so only a used one is worth the system call.
            if self._used and self._unasked():
                raise RequestFailed("connect", "the server sent bytes before the request was sent", unanswered=True)
            self._prompt = prompt_of(request)
            try:
                sent = self._sock.send(request)
            except BlockingIOError:
                # The socket's buffer is full: `_send_rest` waits for room.
                sent = 0
            except OSError:
                sent = len(request)  # `_drain` will see the reason: an early refusal, or the end of the connection
            if sent < len(request):
                await self._send_rest(memoryview(request)[sent:])
            return await future
        finally:
            if not future.done() or future.cancelled():
                # Cancelled, or `ask` itself failed: the server goes on with its reply, so the connection must not carry
                # another one.
                future.cancel()
                self.close()

    def _unasked(self) -> bool:
        """Whether bytes, or the connection's end, have come since the previous reply, without a request.

        Asks the kernel before each request. The receive timestamps of a reply also reveal most such bytes
        (`_came_before`), but only after the request was sent, and not all.
        """
        # A poll takes a third of the time of a read that fails.
        if self._poll is None and hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self._sock.fileno(), select.POLLIN)
            self._poll = poll.poll
        if self._poll is not None and not self._poll(0):
            return False
        try:
            data = self._sock.recv(len(REQUEST_TIMEOUT_HEAD), socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            # Reset while it was idle, which is no fault of the server: the transport takes another connection.
            return True
        self._leftovers.judge_unasked(data)
        return True

    def count(self, parser: ReplyParser) -> int:
        """Number of token events of the reply that `parser` reads. Unparsed ones are estimated by their bytes."""
        n = parser.n_tokens
        # The connection may carry another request by now, whose bytes are none of this reply.
        if not self._size or self._parser is not parser:
            return n
        # Before the first parsed token each read counts as one.
        return n + (self._size * n // parser.n_bytes if n else len(self._stamps))

    def so_far(self, parser: ReplyParser) -> SoFar | None:
        """The part of the reply that has come, after parsing all its stored reads. parser: the reply's parser.

        None if the reply may be a leftover of another request, or is too long.
        """
        if self._size and self._parser is parser:
            self._parse(all_of_it=True)
        seen = parser.so_far()
        return None if seen is None or self._leftovers.may_be_one(seen.request_id, self._before) else seen

    async def _send_rest(self, rest: memoryview) -> None:
        """Send the part of the request that did not fit the socket's buffer, or until a refusal ends the request."""
        assert self._future is not None
        # Only long requests need this option: a request that fits into one packet is never held back.
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A second descriptor of the same socket: the first is registered for reading, and epoll knows a descriptor only
        # once.
        with socket.socket(fileno=os.dup(self._sock.fileno())) as twin:
            sending = asyncio.ensure_future(self._loop.sock_sendall(twin, rest))
            either: set[asyncio.Future[Any]] = {sending, self._future}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            finally:
                sending.cancel()
                # Whatever broke the sending also reaches `_drain`, which knows whether the server had answered before.
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await sending

    def _attach(self, drain: Callable[[], bool]) -> None:
        """Have the event loop call `drain` when bytes come; it returns whether the request is over.

        Sets `_detach`, which ends that, and `_again`, which asks for one more call.
        """
        loop = self._loop
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
            self._again = _nothing  # such a loop calls its readers again as long as bytes are there

    def close(self) -> None:
        """Close the connection. A request that it carries fails."""
        if self._sock.fileno() >= 0:
            # Detached first: the kernel may give the number of a closed descriptor to the next socket at once.
            self._detach()
            self._sock.close()
        self._owner.forget(self)
        if self._future is not None and not self._future.done():
            self._future.set_exception(self._parser.failure("cut", "the harness closed the connection"))

    # -- reading -------------------------------------------------------------------------------------------------

    def _drain(self) -> bool:
        """Read the bytes that have come and store them; returns whether the request is over.

        The selector calls it; it never raises.
        """
        try:
            if self._acknowledging.late:
                self._late()
            # The control message with its one timespec takes 32 of the 64 bytes.
            data, extra, _, _ = self._receive(_READ_BYTES, 64)
        except BlockingIOError:
            return False
        except OSError as error:
            return self._ended(error.strerror or str(error))
        if not data:
            return self._ended("")
        self._pieces.append(data)
        # The kernel may leave a stamp out; the time of the read stands in, and the reply then says "user".
        self._stamps.append(extra[0][2] if extra else self._user_stamp())
        self._size = size = self._size + len(data)
        # The way of nearly every token; it saves a call per read. No body ends like an event's chunk.
        if self._lazy and size < BATCH_BYTES and data[-4:] == END_OF_FRAME:
            return False
        return self._news(data)

    def _drain_plainly(self) -> bool:
        """Read what has arrived, as `_drain` does, without the kernel's stamps (the times of arrival)."""
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
        """Parse the stored reads now, or leave them for a later batch. Returns whether the request is over.

        data: the latest read, which is already stored.
        """
        if len(data) == _READ_BYTES:
            # Edge-triggered epoll does not report bytes that were there before, and a full buffer may have left some.
            self._again()
        if data[-4:] != END_OF_FRAME:
            self._n_split += 1
        # A body ends in `_LAST_BYTES`; if these are split over two reads, the second one has less than 4 bytes.
        if self._size < BATCH_BYTES and len(data) > 4 and data[-4:] != _LAST_BYTES:
            if self._lazy:
                return False
            if self._future is not None and len(self._pieces) == 1 and not self._read.http.started:
                self._lazy = begins_chunked_body(data)
                if self._lazy:
                    return False
        return self._parse()

    def _user_stamp(self) -> bytes:
        """Return the present time as a receive stamp, where the kernel gives none; note the reply's clock as "user"."""
        if self._future is not None:
            self._parser.clock = "user"
        return stamp_now()

    def _ended(self, cause: str) -> bool:
        """End the request, because the connection has ended. cause: the system's words, or empty."""
        if self._future is None or self._future.done():
            # An idle connection that the server closes is nobody's failure.
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
        # A body without a stated length ends with its connection, as it should: the system's words then mean no cut.
        return self._finish((cause or why) if why else "")

    def _parse(self, all_of_it: bool = False) -> bool:
        """Parse the stored reads; returns whether the request is over.

        all_of_it: also parse an unfinished frame at the end, which otherwise stays stored.
        """
        if self._future is None or self._future.done():
            if self._pieces:  # bytes that nobody asked for
                self._leftovers.judge_unasked(self._pieces[0])
                self.close()
            return False
        pieces, raw_stamps = self._pieces, self._stamps
        # The end of the latest read does not matter: no event of this batch goes on behind it.
        whole_events = not self._n_split or (self._n_split == 1 and pieces[-1][-4:] != END_OF_FRAME)
        stamps = self._owner.clock_offset.monotonic(raw_stamps, self._batch_at)
        # Taken out before parsing: `_over` takes bytes that are still here for surplus, and would close the connection.
        self._pieces, self._stamps, self._size, self._n_split = [], [], 0, 0
        # What is parsed now may bring the deadline forward: the next look computes it anew.
        self._due = self._batch_at = time.monotonic()
        if len(pieces) > 1 and self._kernel_stamps:
            self._acknowledging.judge(pieces, stamps, fresh=not (self._used or self._read.http.started))
        try:
            if pieces and self._used and not self._read.http.started and self._came_before(stamps):
                message = "the server sent bytes before the request was sent"
                return self._over(RequestFailed("connect", message, unanswered=True), keep=False)
            rest = b""
            if pieces:
                rest = self._read.take(pieces, stamps, all_of_it=all_of_it, whole_events=whole_events)
            if rest:
                # An event gets the stamp of the read that ends it, so what stays needs no stamp of its earlier reads.
                self._pieces, self._stamps, self._size = [rest], raw_stamps[-1:], len(rest)
                self._n_split = 1
            self._lazy = self._read.http.chunked and self._read.error_body is None
            return self._after_parse()
        except RequestFailed as failure:  # after such a reply the server may leave the connection silent
            return self._over(failure, keep=False)
        except BadResponse as error:
            if self._read.http.status:
                # The head was sound, so a text with its finish reason may still count; the parser decides.
                return self._finish(str(error))
            return self._over(self._parser.failure("malformed", f"no reply in HTTP: {error}"))
        except Exception as error:  # noqa: BLE001 - a bug must end its request, never the loop whose selector runs this
            return self._over(error, keep=False)

    def _came_before(self, stamps: Sequence[float]) -> bool:
        """Whether the reply's first bytes arrived before the request was sent, by the kernel's stamps."""
        return self._kernel_stamps and self._parser.clock == "kernel" and stamps[0] < self._parser.started

    # -- the end of the request --------------------------------------------------------------------------------------

    def _after_parse(self) -> bool:
        """End the request if its reply is whole; returns whether it is over."""
        if self._read.error_body is not None:
            if self._error_due is None:
                # The status has decided already; the body only explains, and must not take the deadline of a whole
                # reply.
                self.look_at = self._error_due = time.monotonic() + ERROR_BODY_S
            whole = self._read.http.ended or len(self._read.error_body) >= MAX_ERROR_BODY_BYTES
            return whole and self._over(self._refusal())
        if self._read.http.ended:
            return self._finish("")
        if self._parser.done:
            self.look_at = self._deadlines.due(self._parser)
        return False

    def look(self, now: float) -> None:
        """Parse reads that have waited too long, and end the request if a deadline has passed at `now`."""
        batch_is_due = self._batch_is_due(now)
        # The way of nearly every look: thousands of connections are looked at each second.
        if now < self._due and not batch_is_due:
            self.look_at = min(now + self._step, self._due)
            return
        parser = self._parser
        due = self._deadlines.due(parser)
        # A deadline that seems to have passed may be moved by a token that is stored and not yet parsed.
        if self._pieces and (now >= due or batch_is_due):
            if self._parse(all_of_it=True):
                return
            due = self._deadlines.due(parser)
        if self._error_due is not None:
            if now >= self._error_due:
                self._over(self._refusal())
                return
            due = min(due, self._error_due)
        self._due = due
        self.look_at = min(now + self._step, due)
        if now >= due:
            self._conclude(self._deadlines.end_late, parser, now)

    def _batch_is_due(self, now: float) -> bool:
        """Whether the stored reads have waited long enough; few bytes wait longer, unless `[DONE]` is in the last."""
        age = now - self._batch_at
        if age < BATCH_S or not self._pieces:
            return False
        return age >= SLOW_BATCH_S or self._size >= RIPE_BYTES or b"[DONE]" in self._pieces[-1]

    def _finish(self, cut: str) -> bool:
        """End the request with the reply that has come. cut: why the body ended early; "" if it did not."""
        return self._conclude(self._parser.finish, time.monotonic(), cut)

    def _conclude(self, end: Callable[..., Reply], *arguments: object) -> bool:
        """End the request with the reply that `end` returns, or with the failure that it raises. Returns True.

        A reply that may belong to another request of this connection (a leftover) is a failure.
        """
        try:
            reply = end(*arguments)
            self._leftovers.judge_unasked(self._read.http.surplus)
            self._before = self._leftovers.check(reply, self._before, self._prompt, used=self._used)
        except RequestFailed as failure:
            return self._over(failure, keep=False)
        if (note := self._leftovers.note()) is not None:
            reply = msgspec.structs.replace(reply, notes=(*reply.notes, note))
        return self._over(reply, keep=ended_cleanly(reply) and not self._leftovers.doubted)

    def _refusal(self) -> RequestFailed:
        """The failure for a reply with an error status."""
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
        """End the request: give `outcome` to the waiting caller. Returns True: the request is over.

        The connection is kept if both `keep` and HTTP allow another request on it.
        """
        # Cleared first: `close` below fails a request that is still here with words of its own.
        future, self._future = self._future, None
        self._lazy = False
        self._used = True
        self._owner.end_request(self)
        if keep and self._read.http.reusable and not self._pieces:
            self._owner.keep_idle(self)
        else:
            self.close()
        self._pieces, self._stamps, self._size, self._n_split = [], [], 0, 0
        del self._parser, self._read  # frees the reply's memory; the next request brings its own
        # A cancelled task has ended its future before its connection.
        if future is not None and not future.done():
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        return True


def unparsed_bytes(connections: Collection[Connection]) -> int:
    """Memory of the reads that all `connections` have stored, in bytes, about."""
    # No loop in Python: thousands of connections are counted each second.
    n_bytes: int = sum(map(_SIZE, connections))
    return n_bytes + _READ_OVERHEAD_BYTES * sum(map(len, map(_PIECES, connections)))


def _nothing() -> None:
    pass
