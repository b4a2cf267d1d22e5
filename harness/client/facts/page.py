"""Reading one page of a server (list of models, facts, tokens): limited in bytes and seconds, errors as one sentence.

The calls block. A thread reads the page, since a hostile server can keep the HTTP library waiting forever; the caller
waits `WHOLE_PAGE` times the timeout, then abandons the thread.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Collection
from concurrent.futures import Future
from functools import partial
from threading import Thread
from urllib.parse import urlsplit

import httpx

from harness.client.address.endpoint import Endpoint, host_and_port, proxy_for, quote_safely, secrets_of
from harness.client.interface import request_head
from harness.client.protocol.failures import SEE_OTHER, TICKET_S, unpacked
from harness.core import http_get
from harness.core.errors import Hope, ServerError
from harness.core.http_get import Page
from harness.core.secret import redacted_address

MAX_PAGE_BYTES = 16 * 1024 * 1024
"""Longest page that is read. For comparison, OpenRouter's list of models has 0.5 MB."""


WHOLE_PAGE = 2.5
"""Longest time for a page including all attempts, as a multiple of the timeout of one step.

Without this limit a server could stay within the timeouts forever by sending a header now and then.
"""


_NO_TLS = ("WRONG_VERSION_NUMBER", "EOF", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
"""OpenSSL's names for an answer other than a TLS handshake: the server speaks plain http or closed the connection."""


def get(
    endpoint: Endpoint,
    url: str,
    *,
    timeout: float,
    content: bytes | None = None,
    transient: Collection[int] = http_get.TRANSIENT_STATUSES,
    max_bytes: int = MAX_PAGE_BYTES,
) -> Page:
    """The page at `url`, which belongs to `endpoint`, with any status; a body above `max_bytes` is cut.

    content: JSON to send by POST; None sends a GET. timeout: seconds for connecting, for the next bytes, and for the
    body; everything together takes at most `WHOLE_PAGE` times as long. transient: statuses after which the request is
    sent again, a few times within seconds. Raises `ServerError`, also for a redirect to another host.
    """
    answer: Future[Page] = Future()

    def read() -> None:
        try:
            answer.set_result(_get(endpoint, url, timeout, content, transient, max_bytes))
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is awaited
            answer.set_exception(error)

    # The HTTP library limits each wait but not their sum. A thread that waits too long is abandoned; it does not keep
    # the process alive.
    Thread(target=read, daemon=True, name="page").start()
    try:
        return answer.result(WHOLE_PAGE * timeout)
    except TimeoutError:
        raise ServerError(
            f"{url} did not finish its response within {WHOLE_PAGE * timeout:g} s; the server may be overloaded",
            hope="slow",
        ) from None


def _get(
    endpoint: Endpoint, url: str, timeout: float, content: bytes | None, transient: Collection[int], max_bytes: int
) -> Page:
    """Read one page, or post `content` to it. Raises `ServerError` with what to do."""
    secrets = secrets_of(endpoint)
    address = host_and_port(endpoint.base_url)
    proxy = proxy_for(endpoint)
    if proxy:
        address += f" through the proxy {host_and_port(proxy)}"
    try:
        if endpoint.socket_path is not None:
            # Test whether anything listens: httpcore 1.0 does not close a socket whose connection is refused.
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(timeout)
                probe.connect(endpoint.socket_path)
        with http_client(endpoint, timeout) as client:
            ask = partial(http_get.get, client, max_bytes=max_bytes, body_s=timeout, transient=transient)
            page = ask(endpoint.over_http(url), content=content)
            for _ in range(math.ceil(WHOLE_PAGE * timeout / TICKET_S)):  # until the caller no longer waits
                if page.status == SEE_OTHER and (ticket := endpoint.ticket(page.location)):
                    time.sleep(TICKET_S)
                    page = ask(ticket)
    except (httpx.InvalidURL, httpx.LocalProtocolError, httpx.UnsupportedProtocol, ValueError) as error:
        raise ServerError(f"the request to {address} is invalid: {quote_safely(str(error), secrets)}") from None
    except httpx.ConnectTimeout as error:
        # A plain http server takes our TLS greeting for an unfinished request and waits for the rest of it.
        plain = endpoint.base_url.replace("https://", "http://", 1)
        over_http = f", or if the server uses http, set `base_url={plain}`" if plain != endpoint.base_url else ""
        why = f"no response from {address} within {timeout:g} s"
        hope: Hope = "starting" if endpoint.is_here else "elsewhere"
        raise ServerError(why, advice=f"check the host in `base_url`{over_http}", hope=hope) from error
    except httpx.TimeoutException as error:
        raise ServerError(f"{url} did not respond within {timeout:g} s", hope="slow") from error
    except (httpx.ConnectError, httpx.ProxyError, OSError) as error:
        raise _no_connection(error, endpoint, address) from error
    except httpx.RemoteProtocolError as error:
        words = quote_safely(str(error), secrets) or type(error).__name__
        why = f"{address} did not send an HTTP response ({words})"
        # Tunnels and container ports accept connections before a server listens behind them.
        passes: Hope | None = "passing" if "disconnected" in words else None
        raise ServerError(why, advice="check the port and the scheme", hope=passes) from error
    except httpx.HTTPError as error:
        raise ServerError(f"{url}: {quote_safely(str(error), secrets)}", hope="passing") from error
    if page.location:
        to = quote_safely(page.location, secrets)
        raise ServerError(f"{url} redirects to {to}; set `base_url` to that address")
    return page._replace(body=unpacked(page.body, page.headers, max_bytes))


def _no_connection(error: Exception, endpoint: Endpoint, address: str) -> ServerError:
    """The error for a connection that cannot be made, with what to do."""
    cause = quote_safely(str(error), secrets_of(endpoint))
    if _is_tls(error) and any(word in cause for word in _NO_TLS):
        plain = endpoint.base_url.replace("https://", "http://", 1)
        return ServerError(f"{address} does not support https ({cause}); if it uses http, set `base_url={plain}`")
    if _is_tls(error):
        trust = "set SSL_CERT_FILE to the certificate authorities to trust"
        return ServerError(f"cannot establish a trusted TLS connection to {address}: {cause}; {trust}")
    hope: Hope = "starting" if endpoint.is_here else "elsewhere"
    if "[Errno -" in cause:  # only getaddrinfo's errors have negative numbers
        name = redacted_address(proxy_for(endpoint) or endpoint.base_url)
        return ServerError(f"the host of {name} is unknown ({cause})", advice="check the host in `base_url`", hope=hope)
    waits = "" if endpoint.is_here else " (`wait=600` waits for it)"
    advice = f"make sure that it is running{waits}, and check the port"
    return ServerError(f"no server answers at {address} ({cause})", advice=advice, hope=hope)


def http_client(endpoint: Endpoint, timeout: float) -> httpx.Client:
    """An httpx client with the endpoint's key, headers, proxy and certificates. timeout: seconds of each step."""
    proxy = proxy_for(endpoint)
    headers = {**http_get.HEADERS, **endpoint.own_headers()}
    # Check the headers before httpx does: its error would show a key that is not a valid header value.
    request_head("/", urlsplit(endpoint.base_url).netloc, headers)
    if not endpoint.base_url.startswith("https://"):
        # An empty context: plain http needs no certificates, and reading the system's takes longer than the page.
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        tls = ssl.create_default_context()
    # With `trust_env` httpx would read a .netrc file and choose proxies from the environment, bypassing `proxy_for`.
    transport = httpx.HTTPTransport(verify=tls, proxy=proxy, uds=endpoint.socket_path, trust_env=False)
    return httpx.Client(transport=transport, headers=headers, timeout=timeout, trust_env=False)


def _is_tls(error: BaseException | None) -> bool:
    """Whether the TLS handshake failed: httpx hides the reason in its error's chain of causes."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
