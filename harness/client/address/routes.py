"""How a connection to an endpoint is made: through which proxy, to which machines, trusting which certificates.

Which proxy, the first rule that fits (names of variables in upper or lower case):

    the host is this machine or in a private network      none
    `no_proxy` names the host                             none
    `https_proxy` or `http_proxy`, by the URL's scheme    that one
    `all_proxy`                                           that one

A URL that begins `dns+`, such as `dns+http://servers:8000`, stands for one URL for each machine behind the name.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from harness.client.address.endpoint import Endpoint, redact
from harness.core.errors import ServerError, UsageError
from harness.core.inert import visible


def proxy_for(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> str | None:
    """The URL of the proxy for `endpoint`, with its name and password; None if the connection is direct.

    Raises `UsageError` for a proxy that is not reached by http://.
    """
    if endpoint.local:
        return None
    named = {name.lower(): value for name, value in environ.items() if name.lower().endswith("_proxy") and value}
    parts = urlsplit(endpoint.base_url)
    proxy = named.get(f"{parts.scheme}_proxy") or named.get("all_proxy")
    if not proxy or _bypasses_proxy(parts.hostname or "", parts.port, named.get("no_proxy", "")):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.startswith("http://"):
        raise UsageError(
            f"the environment names the proxy {redact(proxy)}; only http:// proxies are supported: "
            f"set {parts.scheme.upper()}_PROXY, or NO_PROXY={parts.hostname}"
        )
    try:
        _ = urlsplit(proxy).port
    except ValueError:
        raise UsageError(
            "the proxy that the environment names has no readable port; percent-encode its password"
        ) from None
    return proxy


def _bypasses_proxy(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether NO_PROXY names the host: by its name or a parent domain, with or without a port, or by `*`."""
    for entry in no_proxy.lower().split(","):
        name = entry.strip().lstrip(".")
        if name == "*" or (name and (host == name or host.endswith(f".{name}") or f"{host}:{port}" == name)):
            return True
    return False


# ---- machines of a name


PREFIX = "dns+"
"""Beginning of a URL that stands for one URL for each machine behind its name."""

MAX_ADDRESSES = 4096
"""Most machines behind a name; more are a mistake in the name server."""

Resolve = Callable[[str, int], list[str]]
"""(host name, port) → the numeric addresses of its machines. Raises `OSError`."""


def expand_dns(url: str, resolve: Resolve | None = None) -> list[str]:
    """The URLs that `url` stands for: a `dns+` URL gives one for each machine, in sorted order; any other gives itself.

    Raises `UsageError` if a `dns+` URL is malformed, `ServerError` if its name is unknown.
    """
    if not url.startswith(PREFIX):
        return [url]
    parts = urlsplit(url.removeprefix(PREFIX))
    try:
        host, port = parts.hostname, parts.port or 80
    except ValueError as error:
        raise UsageError(str(error), field="base_url", value=visible(url, 200)) from error
    if parts.scheme != "http" or not host:
        raise UsageError(
            "expected dns+http://NAME:PORT; with https each machine would need a certificate for its number",
            field="base_url",
            value=visible(url, 200),
        )
    try:
        addresses = sorted(set((resolve or _resolve)(host, port)))
    except OSError as error:
        raise ServerError(f"the name {visible(host, 200)} is not known ({error.strerror or error})") from error
    if not 1 <= len(addresses) <= MAX_ADDRESSES:
        raise ServerError(f"{visible(host, 200)} stands for {len(addresses)} machines; expected 1 to {MAX_ADDRESSES}")
    return [
        urlunsplit(parts._replace(netloc=f"{f'[{address}]' if ':' in address else address}:{port}"))
        for address in addresses
    ]


def _resolve(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


# ---- certificate authorities


def tls_context(ca_file: Path) -> ssl.SSLContext:
    """TLS settings for a client that trusts only the certificate authorities in a PEM file. Raises `UsageError`."""
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{error}; expected a PEM file of certificates", field="ca_file", value=ca_file) from error
