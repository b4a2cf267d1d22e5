"""One page of a server, read whole: model lists, health, descriptions. Blocking, bounded, for what is not hot.

The standard library's client: it reaches TCP, TLS, unix sockets and proxies, and costs the start of a run nothing.
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from harness.client.address.endpoint import Endpoint
from harness.client.address.proxies import proxy_for
from harness.client.address.redact import host_and_port, redacted, secrets_of
from harness.client.protocol.failures import MAX_ERROR_BODY_BYTES
from harness.client.protocol.http1 import request_head
from harness.core.errors import ServerError
from harness.core.inert import quoted

MAX_PAGE_BYTES = 16 * 1024 * 1024
"""Longest page that is read; OpenRouter's list of models is 0.5 MB."""

_READ_BYTES = 65536
_REDIRECTS = (301, 302, 303, 307, 308)


class NoAnswer(ServerError):
    """Nobody answers at the address, at present; what an address that is merely wrong looks like, too."""


def get(endpoint: Endpoint, url: str, *, timeout: float, ca_file: Path | None = None) -> tuple[int, bytes]:
    """(status, body up to its bound) of a GET of `url`, a page of `endpoint`.

    timeout: seconds to connect, between two reads, and for the body. A redirect is an error. Raises `ServerError`,
    `NoAnswer` where nobody answers.
    """
    secrets = secrets_of(endpoint)
    place = host_and_port(endpoint.base_url)
    if proxy := proxy_for(endpoint):
        place += f" through the proxy {host_and_port(proxy)}"
    headers = {"Accept-Encoding": "identity", **dict(endpoint.headers)}
    if endpoint.api_key:
        headers.setdefault("Authorization", f"Bearer {endpoint.api_key}")
    try:
        request_head(endpoint.over_http(url), headers)  # its objections name no value
        connection, target, for_proxy = _connection(endpoint, proxy, url, timeout, ca_file)
    except (ValueError, http.client.HTTPException) as error:
        raise ServerError(f"{place} cannot be asked: {quoted(redacted(str(error), secrets))}") from None
    headers |= for_proxy
    try:
        connection.connect()
    except TimeoutError as error:
        raise NoAnswer(f"no answer from {place} within {timeout:g} s; check the host of --base-url") from error
    except ssl.SSLError as error:
        raise ServerError(
            f"no trusted TLS connection to {place}: {quoted(redacted(str(error), secrets))}; "
            "--ca-file names the authority to trust"
        ) from error
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        cause = quoted(redacted(str(error), secrets))
        raise NoAnswer(f"no server answers at {place} ({cause}); is it started, and is the port right?") from error
    try:
        connection.request("GET", target, headers=headers)
        response = connection.getresponse()
        body = _body(response, time.monotonic() + timeout)
    except TimeoutError as error:
        raise NoAnswer(f"{url} does not answer within {timeout:g} s") from error
    except http.client.HTTPException as error:
        said = quoted(redacted(str(error), secrets)) or type(error).__name__
        raise ServerError(f"{place} does not answer in HTTP ({said}); check the port and http/https") from error
    except (OSError, ValueError) as error:
        raise ServerError(f"{url}: {quoted(redacted(str(error), secrets))}") from error
    finally:
        connection.close()
    if response.status in _REDIRECTS:
        to = quoted(redacted(response.headers.get("location", ""), secrets))
        raise ServerError(f"{url} redirects to {to}; give that address as --base-url")
    return response.status, body


def _body(response: http.client.HTTPResponse, due: float) -> bytes:
    """The body up to its bound, or as much of it as comes in time."""
    limit = MAX_PAGE_BYTES if response.status == 200 else MAX_ERROR_BODY_BYTES
    body = bytearray()
    while data := response.read1(_READ_BYTES):
        body += data
        if len(body) > limit or time.monotonic() > due:
            return bytes(body[:limit])
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(body)


def _connection(
    endpoint: Endpoint, proxy: str | None, url: str, timeout: float, ca_file: Path | None
) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """(a connection that is not open yet, what to ask it for, headers for a proxy that asks in our place)."""
    parts = urlsplit(url)
    page = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    if endpoint.socket_path is not None:
        return _SocketConnection(endpoint.socket_path, timeout), page, {}
    host = parts.hostname or ""
    if parts.scheme == "https":
        context = _trusted(ca_file)
        if proxy is None:
            return http.client.HTTPSConnection(host, parts.port or 443, timeout=timeout, context=context), page, {}
        through, credentials = _proxy(proxy)
        tunnel = http.client.HTTPSConnection(*through, timeout=timeout, context=context)
        tunnel.set_tunnel(host, parts.port or 443, credentials)
        return tunnel, page, {}
    if proxy is None:
        return http.client.HTTPConnection(host, parts.port or 80, timeout=timeout), page, {}
    through, credentials = _proxy(proxy)
    return http.client.HTTPConnection(*through, timeout=timeout), url, credentials


class _SocketConnection(http.client.HTTPConnection):
    """Over a unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """See `http.client.HTTPConnection.connect`."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.close()
            raise


def _proxy(url: str) -> tuple[tuple[str, int], dict[str, str]]:
    """((host, port), the header that names us to the proxy)."""
    parts = urlsplit(url)
    credentials = {}
    if parts.username is not None:
        who = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        credentials = {"Proxy-Authorization": f"Basic {base64.b64encode(who).decode()}"}
    return (parts.hostname or "", parts.port or 80), credentials


def _trusted(ca_file: Path | None) -> ssl.SSLContext:
    if ca_file is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise ServerError(f"--ca-file {ca_file}: {error}; expected a PEM file of certificates") from error
