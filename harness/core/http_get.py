"""Fetches a page by HTTP, with retries: model lists, a server's facts, token pages, downloads; everything but samples.

The caller makes the httpx client, which determines proxies, certificates and headers. `get` only sends through it.
Guarantees: a page is limited in bytes and seconds; only transient failures are retried. `get` blocks: code on an event
loop calls it with `asyncio.to_thread`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import httpx
import tenacity

from harness.core.sanitize import MAX_ERROR_BODY_BYTES

HEADERS = {"Accept-Encoding": "identity", "User-Agent": "reasoning-harness"}
"""Headers for the caller's client. `identity` asks for an uncompressed body: a small compressed one can unpack to
gigabytes."""

ATTEMPTS = 3
"""Number of requests for one page before its failure is final."""

MAX_WAIT_SECONDS = 1.0
"""Longest pause between two attempts, because a person is waiting for the page."""

TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})
"""Statuses of servers or gateways that may be temporary; such requests are retried."""

TRANSIENT_ERRORS = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""Errors after which a request is retried: a dropped connection. A refused or silent one is reported at once."""


class Page(NamedTuple):
    """The reply to a request, with any status.

    body: cut at the limits of `get`. whole: whether no part of the body was cut. location: the target of a redirect, or
    empty. headers: all headers, keyed by lower-case name.
    """

    status: int
    body: bytes
    whole: bool
    location: str
    headers: Mapping[str, str] = {}


def get(
    client: httpx.Client,
    url: str,
    *,
    max_bytes: int,
    body_s: float,
    content: bytes | None = None,
    transient: Collection[int] = TRANSIENT_STATUSES,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Page:
    """The page at `url`, after up to `ATTEMPTS` requests.

    max_bytes: longest body of a reply with status 200; other bodies are cut at `MAX_ERROR_BODY_BYTES`. body_s: seconds
    after which a body is cut. content: JSON to send by POST; None sends a GET. transient: statuses after which the
    request is sent again. The client's own timeouts limit the waits for a connection and for the next read. Raises
    `httpx.HTTPError`, `httpx.InvalidURL`. clock, sleep: time and waiting, which tests replace.
    """
    patiently = tenacity.Retrying(
        retry=tenacity.retry_any(
            tenacity.retry_if_exception_type(TRANSIENT_ERRORS),
            tenacity.retry_if_result(lambda page: page.status in transient),
        ),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        # A random wait, so that the clients of a restarted server do not all come back at once.
        wait=tenacity.wait_random_exponential(multiplier=0.2, max=MAX_WAIT_SECONDS),
        sleep=sleep,
        # After the last attempt, return the page with its bad status, or raise its error.
        retry_error_callback=lambda last: last.outcome and last.outcome.result(),
    )
    page: Page = patiently(_request_once, client, url, max_bytes, body_s, clock, content)
    return page


def _request_once(
    client: httpx.Client, url: str, max_bytes: int, body_s: float, clock: Callable[[], float], content: bytes | None
) -> Page:
    """Make one request, and read its body within the limits on bytes and seconds."""
    method, headers = ("GET", None) if content is None else ("POST", {"Content-Type": "application/json"})
    with client.stream(method, url, content=content, headers=headers) as response:
        due = clock() + body_s
        most = max_bytes if response.status_code == 200 else MAX_ERROR_BODY_BYTES
        body = bytearray()
        whole = True
        # Raw, because a body that is compressed despite our request must not be unpacked.
        for piece in response.iter_raw():
            body += piece
            if len(body) > most or clock() > due:
                whole = False
                break
    stated = response.headers
    return Page(
        status=response.status_code,
        body=bytes(body[:most]),
        whole=whole,
        location=stated.get("location", "") if response.is_redirect else "",
        headers=dict(stated),
    )
