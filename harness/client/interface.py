"""The one interface of all transports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from harness.client.address.endpoint import Endpoint
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.client.protocol.written import SoFar, Written

DRAIN_S = 1.0
"""Seconds for the end of the body after `[DONE]`: a connection whose body has ended can be kept."""

ERROR_BODY_S = 10.0
"""Longest time, in seconds, for which the body of an error is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds. `idle` counts from the last token, not from the last byte: pings do not extend it.

    There is no total deadline: a 32k-token answer may take an hour; a stall may not.
    """

    connect: float = 10.0
    first_token: float = 600.0
    idle: float = 120.0

    def due(self, parser: ReplyParser) -> float:
        """When the reply that `parser` reads must have brought its next token, on the parser's clock; after `[DONE]`:
        when its body must have ended, whatever else comes."""
        if parser.done_at is not None:
            return parser.done_at + DRAIN_S
        last = parser.last_token_at
        return parser.started + self.first_token if last is None else last + self.idle

    def passed(self, parser: ReplyParser, now: float) -> Reply:
        """What a reply comes to that is late at `now`: one that is complete is not lost because its last bytes are
        late. Raises `RequestFailed`.
        """
        if parser.done:
            return parser.finish(now)
        if parser.finished:
            return parser.finish(now, "no end of the body")
        if parser.last_token_at is None:
            raise parser.failed("timeout", f"no token within {self.first_token:g} s of the request")
        raise parser.failed("timeout", f"no token for {self.idle:g} s")


class Arriving:
    """How far one reply under way has come. Counted only when somebody looks, so it costs the reading nothing.

    count: token events received so far, about; 0 for a reply that comes as a whole. so_far: what they say; a call may
    read what has been put aside, and end the request. Both are set by the transport.
    written: set by the caller where the tokens of the reply must be known, because it may have to be continued.
    """

    __slots__ = ("count", "so_far", "written")

    def __init__(self, written: Written | None = None) -> None:
        self.count: Callable[[], int] = int
        self.so_far: Callable[[], SoFar | None] = _nothing
        self.written = written


def _nothing() -> SoFar | None:
    return None


class Transport(Protocol):
    """Sends one request and reads its whole reply. Lives on one asyncio loop; safe for many calls at once."""

    async def complete(
        self,
        endpoint: Endpoint,
        path: str,
        body: bytes,
        deadlines: Deadlines,
        max_body_bytes: int,
        arriving: Arriving | None = None,
    ) -> Reply:
        """POST `body` (JSON, already encoded) to `path` ("/chat/completions" or "/completions").

        arriving: lets the caller's thread of the loop look at how far the reply has come.
        Streaming or not is read off the reply's content type. Raises `RequestFailed`; on cancellation closes the
        connection and raises `asyncio.CancelledError`.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def request_headers(endpoint: Endpoint) -> dict[str, str]:
    """Headers of a completion request. `identity`: a compressed stream hides its tokens and can be a bomb."""
    return {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "reasoning-harness",
        **endpoint.own_headers(),
    }
