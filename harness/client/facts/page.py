"""One page of a server, read whole: model lists, descriptions, tokens. Blocking, bounded, for what is not hot."""

from __future__ import annotations

import socket
import ssl
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from harness.client.address.endpoint import Endpoint, host_and_port, secrets_of, shown_safely
from harness.client.address.routes import proxy_for, trusting
from harness.client.protocol.http1 import request_head
from harness.core import http_get
from harness.core.errors import ServerError
from harness.core.http_get import Page
from harness.core.wording import option

MAX_PAGE_BYTES = 16 * 1024 * 1024
"""Longest page that is read; OpenRouter's list of models is 0.5 MB."""


class NoAnswer(ServerError):
    """Nobody answers at the address, at present; what an address that is merely wrong looks like, too."""


WHOLE_PAGE = 2.5
"""Times the timeout of a step that a page may take in all, its attempts included: a server can make steps without end
(interim replies, a header now and then)."""


_NO_TLS = ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
"""OpenSSL's words for an answer that is no handshake: what a server of plain http sends, or its hanging up."""


def get(
    endpoint: Endpoint, url: str, *, timeout: float, ca_file: Path | None = None, content: bytes | None = None
) -> Page:
    """What a GET of `url`, a page of `endpoint`, brings, its body up to its bound; a POST where there is `content`.

    timeout: seconds to connect, between two reads, and for the body; `WHOLE_PAGE` times that for everything. A redirect
    is an error. Raises `ServerError`, `NoAnswer` where nobody answers.
    """
    answer: Future[Page] = Future()
    # What the library waits for in there has no end of its own; the thread is left behind, and ends with the process.
    Thread(target=_into, args=(answer, endpoint, url, timeout, ca_file, content), daemon=True, name="page").start()
    try:
        return answer.result(WHOLE_PAGE * timeout)
    except TimeoutError:
        raise NoAnswer(f"{url} does not come to an end of its answer within {WHOLE_PAGE * timeout:g} s") from None


def _into(answer: Future[Page], *arguments: Any) -> None:
    try:
        answer.set_result(_get(*arguments))
    except BaseException as error:  # noqa: BLE001 - raised again where the answer is awaited
        answer.set_exception(error)


def _get(endpoint: Endpoint, url: str, timeout: float, ca_file: Path | None, content: bytes | None) -> Page:
    secrets = secrets_of(endpoint)
    address = host_and_port(endpoint.base_url)
    proxy = proxy_for(endpoint)
    if proxy:
        address += f" through the proxy {host_and_port(proxy)}"
    try:
        if endpoint.socket_path is not None:
            _knock(endpoint.socket_path, timeout)
        with client_of(endpoint, timeout, ca_file) as client:
            page = http_get.get(
                client, endpoint.over_http(url), max_bytes=MAX_PAGE_BYTES, body_s=timeout, content=content
            )
    except (httpx.InvalidURL, httpx.LocalProtocolError, httpx.UnsupportedProtocol, ValueError) as error:
        raise ServerError(f"{address} cannot be asked: {shown_safely(str(error), secrets)}") from None
    except httpx.ConnectTimeout as error:
        # A server of plain http may wait for the rest of what it takes for a request.
        plain = endpoint.base_url.replace("https://", "http://", 1)
        over_http = f", or if it speaks http, give {option('base_url', plain)}" if plain != endpoint.base_url else ""
        raise NoAnswer(
            f"no answer from {address} within {timeout:g} s; check the host of {option('base_url')}{over_http}"
        ) from error
    except httpx.TimeoutException as error:
        raise NoAnswer(f"{url} does not answer within {timeout:g} s") from error
    except (httpx.ConnectError, httpx.ProxyError, OSError) as error:
        cause = shown_safely(str(error), secrets)
        if _is_tls(error):
            if any(word in cause for word in _NO_TLS):
                plain = endpoint.base_url.replace("https://", "http://", 1)
                raise ServerError(
                    f"{address} does not speak https ({cause}); if it speaks http, give {option('base_url', plain)}"
                ) from error
            raise ServerError(
                f"no trusted TLS connection to {address}: {cause}; {option('ca_file')} names the authority to trust"
            ) from error
        raise NoAnswer(f"no server answers at {address} ({cause}); is it started, and is the port right?") from error
    except httpx.RemoteProtocolError as error:
        words = shown_safely(str(error), secrets) or type(error).__name__
        raise ServerError(f"{address} does not answer in HTTP ({words}); check the port and http/https") from error
    except httpx.HTTPError as error:
        raise ServerError(f"{url}: {shown_safely(str(error), secrets)}") from error
    if page.location:
        to = shown_safely(page.location, secrets)
        raise ServerError(f"{url} redirects to {to}; give that address as {option('base_url')}")
    return page


def client_of(endpoint: Endpoint, timeout: float, ca_file: Path | None) -> httpx.Client:
    """A client with the endpoint's key, headers, proxy and trust. timeout: seconds of each step."""
    proxy = proxy_for(endpoint)
    headers = {**http_get.HEADERS, **endpoint.own_headers()}
    request_head(endpoint.base_url, headers)  # httpx would show the value that no header can carry; this does not
    if not endpoint.base_url.startswith("https://"):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the system's authorities takes longer than the page
    else:
        tls = ssl.create_default_context() if ca_file is None else trusting(ca_file)
    transport = httpx.HTTPTransport(verify=tls, proxy=proxy, uds=endpoint.socket_path, trust_env=False)
    return httpx.Client(transport=transport, headers=headers, timeout=timeout, trust_env=False)


def _knock(socket_path: str, timeout: float) -> None:
    """Raises `OSError` where nobody listens: httpcore (1.0) would not close the socket of a refused connection."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout)
        sock.connect(socket_path)


def _is_tls(error: BaseException | None) -> bool:
    """Whether the handshake failed; httpx keeps the reason as a cause of its cause."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
