"""The interface of all transports (`Transport`), and the deadlines that all of them enforce."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.client.address.endpoint import Endpoint
from harness.client.apis.api import API
from harness.client.protocol.failures import TICKET_S, RequestFailed
from harness.client.protocol.reply import Reply
from harness.client.protocol.sse import ReplyParser
from harness.core.secret import Secret

DRAIN_S = 1.0
"""Seconds that the body may take to end after `[DONE]`; only a connection whose body has ended can be reused."""

ERROR_BODY_S = 10.0
"""Longest time for reading the body of a reply with an error status."""

_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*\Z")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_|~-]+\Z")
_NOT_IN_URLS = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long we wait for parts of a reply, in seconds.

    connect: for the connection. first_token: from the request to the first token. idle: from one token to the next; a
    server's pings, which contain bytes but no token, do not extend it. There is no deadline for a whole reply: an
    answer of 32k tokens may take an hour, but a stalled one may not.
    """

    connect: float = 10.0
    first_token: float = 600.0
    idle: float = 120.0

    def due(self, parser: ReplyParser) -> float:
        """When the next token of the reply that `parser` reads is due, on the parser's clock.

        After `[DONE]`, it is when the end of the body is due.
        """
        if parser.done_at is not None:
            return parser.done_at + DRAIN_S
        last = parser.last_token_at
        return parser.started + self.first_token if last is None else last + self.idle

    def end_late(self, parser: ReplyParser, now: float) -> Reply:
        """End a reply whose deadline has passed at `now`.

        Returns the reply if its text is complete and only the end of the body is late. Otherwise raises
        `RequestFailed`, which says if bytes without a token (comments, pings, empty events) came in the second half of
        the wait.
        """
        if parser.done:
            return parser.finish(now)
        if parser.finished:
            return parser.finish(now, "the response body never ended")
        if parser.last_token_at is None:
            seconds, message = self.first_token, f"no token within {self.first_token:g} s of the request"
        else:
            seconds, message = self.idle, f"no token for {self.idle:g} s"
        if (ago := now - parser.last_byte_at) < seconds / 2 and parser.n_bytes:
            message += f", but the server is alive: it sent bytes {ago:.1f} s ago; raise `timeout` (--timeout)"
        raise parser.failure("timeout", message)


@dataclass(slots=True)
class Arriving:
    """Tells the caller how much of a reply has been received so far. Nothing is counted before the caller asks.

    count: returns the approximate number of token events so far; 0 for a reply that comes in one piece. The transport
    sets this function.
    """

    count: Callable[[], int] = int  # returns 0


Body = bytes | Callable[[], bytes]
"""Encoded JSON, or for a long body a function that writes it: called for each attempt, once there is a connection."""


def encode_body(body: Body) -> bytes:
    """A request's body as bytes. If the body is a function, raises what the function raises."""
    return body if isinstance(body, bytes) else body()


@dataclass(slots=True)
class Post:
    """One request. body: encoded JSON, sent to the path of `api` below the endpoint's URL. max_body_bytes: longest
    body of the reply. arriving: tells the caller meanwhile how much of the reply has been received.
    """

    endpoint: Endpoint
    api: API
    body: Body = field(repr=False)  # may contain a key
    deadlines: Deadlines
    max_body_bytes: int
    arriving: Arriving = field(default_factory=Arriving)

    def parser(self, secrets: Sequence[Secret]) -> ReplyParser:
        """The parser for the reply if the request is sent now. secrets: texts that no message may show."""
        return ReplyParser(
            self.api,
            started=time.monotonic(),
            started_utc=time.time(),
            max_body_bytes=self.max_body_bytes,
            secrets=secrets,
        )

    async def ticket(self, failure: RequestFailed, parser: ReplyParser) -> str | None:
        """Where a failed request says that its reply will be, after a pause; None if it does not say so.

        Raises `RequestFailed` if the first token is overdue.
        """
        url = self.endpoint.ticket(failure.ticket)
        if url is not None:
            await asyncio.sleep(TICKET_S)
            if (now := time.monotonic()) >= self.deadlines.due(parser):
                self.deadlines.end_late(parser, now)
        return url


class Transport(Protocol):
    """Sends requests and reads their replies. One asyncio loop owns it; any number of calls may run at once."""

    async def complete(self, post: Post) -> Reply:
        """Send a request and return the whole reply.

        A stream and a body in one piece are distinguished by their first byte. Raises `RequestFailed`; if the task is
        canceled, closes the connection and raises `asyncio.CancelledError`.
        """

    async def close(self) -> None:
        """Close all connections."""


def api_headers(endpoint: Endpoint, api: API) -> dict[str, str]:
    """The headers that the API requires, without those that the user sets for the endpoint."""
    given = {name.lower() for name, _ in endpoint.headers}
    return {name: value for name, value in api.headers.items() if name not in given}


def request_headers(endpoint: Endpoint, api: API) -> dict[str, str]:
    """The headers of a completion request.

    `identity` asks for an uncompressed reply: in a compressed stream tokens arrive late, and a small stream can unpack
    to gigabytes.
    """
    return {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "reasoning-harness",
        **api_headers(endpoint, api),
        **endpoint.own_headers(),
    }


def request_head(target: str, host: str, headers: Mapping[str, str], method: str = "POST") -> bytes:
    """The head of a request, up to but excluding the value of Content-Length, so that many requests can use it.

    target: path and query; behind a proxy without a tunnel, the whole URL. Raises `ValueError` if a part has a
    character that HTTP does not allow.
    """
    for part, text in (("host", host), ("path", target)):
        # A line end in one of these would start another header or request.
        if not text.isascii() or _NOT_IN_URLS.search(text):
            raise ValueError(f"the {part} contains characters that are not allowed in a URL")
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    for name, value in headers.items():
        if not _HEADER_VALUE.match(value) or not _HEADER_NAME.match(name):
            raise ValueError(f"the name or value of the header {name!r} contains characters that HTTP does not allow")
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "Content-Length: "]).encode("ascii")
