"""A page or a file by HTTP, for what is not hot: model lists, what a server says of itself and of tokens, downloads.

The caller makes the httpx client, which settles where the request goes and whom it trusts; here it is asked.
Guarantees: bounded in bytes and seconds; asked again only where chance may have been at work. Blocking: from a running
loop use `asyncio.to_thread`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import httpx
from tenacity import (
    Retrying,
    retry_any,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    wait_random_exponential,
)

from harness.core.limits import MAX_ERROR_BODY_BYTES

HEADERS = {"Accept-Encoding": "identity", "User-Agent": "reasoning-harness"}
"""Headers for the caller's client. `identity`: a compressed page can be a bomb, and is not unpacked here."""

ATTEMPTS = 3
"""Requests for one page before its failure is final."""

MAX_WAIT_SECONDS = 1.0
"""Longest pause between two attempts, in seconds: a person waits."""

CHANCE_STATUSES = frozenset({429, 502, 503, 504})
"""Transient statuses of a server or a gateway; these requests are retried."""

_CHANCE_BREAKS = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""Retried: the connection dropped after it was made. A refused or silent connection is reported at once."""


class Page(NamedTuple):
    """An answer of whatever status. body: up to its bounds; whole: nothing of it is missing.
    location: where a redirect points, else empty. server: the header of that name, else empty."""

    status: int
    body: bytes
    whole: bool
    location: str
    server: str = ""


def get(
    client: httpx.Client,
    url: str,
    *,
    max_bytes: int,
    body_s: float,
    content: bytes | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Page:
    """The page at `url`. max_bytes: most of the body; of an error's, `MAX_ERROR_BODY_BYTES`.
    body_s: most seconds for the body. content: JSON to POST there, for a page that depends on it; None: a GET.

    Raises `httpx.HTTPError`, `httpx.InvalidURL`. Waits to connect and between two reads are the client's timeouts.
    """
    patiently = Retrying(
        retry=retry_any(
            retry_if_exception_type(_CHANCE_BREAKS), retry_if_result(lambda page: page.status in CHANCE_STATUSES)
        ),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.2, max=MAX_WAIT_SECONDS),
        sleep=sleep,
        retry_error_callback=lambda last: last.outcome and last.outcome.result(),
    )
    page: Page = patiently(_once, client, url, max_bytes, body_s, clock, content)
    return page


def _once(
    client: httpx.Client, url: str, max_bytes: int, body_s: float, clock: Callable[[], float], content: bytes | None
) -> Page:
    method, headers = ("GET", None) if content is None else ("POST", {"Content-Type": "application/json"})
    with client.stream(method, url, content=content, headers=headers) as response:
        due = clock() + body_s
        most = max_bytes if response.status_code == 200 else MAX_ERROR_BODY_BYTES
        body = bytearray()
        whole = True
        for piece in response.iter_raw():
            body += piece
            if len(body) > most or clock() > due:
                whole = False
                break
    location = response.headers.get("location", "") if response.is_redirect else ""
    return Page(response.status_code, bytes(body[:most]), whole, location, response.headers.get("server", ""))
