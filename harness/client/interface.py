"""The interface of all transports (`Transport`), and the deadlines that all of them keep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.http1 import Leftovers
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.client.protocol.written import SoFar, WrittenTokens

DRAIN_S = 1.0
"""Seconds that the body may take to end after `[DONE]`; only a connection whose body has ended can be used again."""

ERROR_BODY_S = 10.0
"""Longest time for reading the body of a reply with an error status."""

LAST_LOOK_S = 0.05
"""Seconds that idle connections stay open after the last reply, for what the server may send on them unasked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long a reply may let us wait, in seconds.

    connect: for the connection. first_token: from the request to the first token. idle: from one token to the next; a
    server's pings, which bring bytes and no token, do not extend it. There is no deadline for a whole reply: an answer
    of 32k tokens may take an hour, a stalled one may not.
    """

    connect: float = 10.0
    first_token: float = 600.0
    idle: float = 120.0

    def due(self, parser: ReplyParser) -> float:
        """When the next token of the reply that `parser` reads is due, on the parser's clock.

        After `[DONE]`: when the end of the body is due.
        """
        if parser.done_at is not None:
            return parser.done_at + DRAIN_S
        last = parser.last_token_at
        return parser.started + self.first_token if last is None else last + self.idle

    def end_late(self, parser: ReplyParser, now: float) -> Reply:
        """End a reply whose deadline has passed at `now`.

        Returns the reply if its text is complete and only the end of the body is late; else raises `RequestFailed`.
        """
        if parser.done:
            return parser.finish(now)
        if parser.finished:
            return parser.finish(now, "the body did not end")
        if parser.last_token_at is None:
            raise parser.failure("timeout", f"no token within {self.first_token:g} s of the request")
        raise parser.failure("timeout", f"no token for {self.idle:g} s")


class Arriving:
    """Tells the caller how far a reply has come while it is being received. Nothing is counted before the caller asks.

    count: returns about how many token events have come so far; 0 for a reply that comes in one piece. so_far:
    returns the text received so far; the call may parse bytes that wait unparsed, and so end the request. The transport
    sets both functions. written: set by the caller if the reply's token ids must be recorded, so that another request
    can continue the reply after an interruption.
    """

    __slots__ = ("count", "so_far", "written")

    def __init__(self, written: WrittenTokens | None = None) -> None:
        self.count: Callable[[], int] = int
        self.so_far: Callable[[], SoFar | None] = _nothing
        self.written = written


def _nothing() -> SoFar | None:
    return None


class Transport(Protocol):
    """Sends requests and reads their replies. One asyncio loop owns it; any number of calls may run at once."""

    async def complete(
        self,
        endpoint: Endpoint,
        path: str,
        body: bytes,
        deadlines: Deadlines,
        max_body_bytes: int,
        arriving: Arriving | None = None,
    ) -> Reply:
        """POST `body` (encoded JSON) to `path` ("/chat/completions" or "/completions") and return the whole reply.

        max_body_bytes: longest body of the reply. arriving: tells the caller meanwhile how far the reply has come.
        A stream and a body in one piece are told apart by their first byte. Raises `RequestFailed`; if the task is
        cancelled, closes the connection and raises `asyncio.CancelledError`.
        """
        ...

    async def close(self) -> int:
        """Close all connections.

        Returns how many replies may be leftovers (answers to other requests, see `Leftovers`) and have no note that
        says so, because the sign of it came after the last reply.
        """
        ...


async def look_last(leftovers: Collection[Leftovers]) -> int:
    """Wait `LAST_LOOK_S` for a late sign that replies answered other requests; return how many may have done so.

    The number is that of `Transport.close`. leftovers: the detector of each server, whose connections are still open.
    """
    if any(server.n_exposed and not server.doubted for server in leftovers):
        await asyncio.sleep(LAST_LOOK_S)
    return sum(server.n_untold for server in leftovers)


def request_headers(endpoint: Endpoint) -> dict[str, str]:
    """The headers of a completion request.

    `identity` asks for an uncompressed reply: in a compressed stream tokens arrive late, and a small one can unpack to
    gigabytes.
    """
    return {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "reasoning-harness",
        **endpoint.own_headers(),
    }
