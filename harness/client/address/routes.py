"""How a connection to an endpoint goes: by which proxy, to which machines of a name, trusting which authorities.

The proxy is the first that applies: loopback and private hosts have none; then `https_proxy` or `http_proxy` by the
address's scheme; then `all_proxy`; and a host that `no_proxy` names has none. Names of variables count in any case.

`dns+http://servers:8000` stands for an address for each machine that the name stands for.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from harness.client.address.endpoint import Endpoint, redacted
from harness.core.errors import ServerError, UsageError
from harness.core.inert import visible


def proxy_for(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> str | None:
    """The URL of the proxy for `endpoint`, user-info included; None for loopback, private and excepted hosts."""
    if endpoint.local:
        return None
    named = {name.lower(): value for name, value in environ.items() if name.lower().endswith("_proxy") and value}
    parts = urlsplit(endpoint.base_url)
    proxy = named.get(f"{parts.scheme}_proxy") or named.get("all_proxy")
    if not proxy or _excepted(parts.hostname or "", parts.port, named.get("no_proxy", "")):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.startswith("http://"):
        raise UsageError(
            f"the environment names the proxy {redacted(proxy)}; only http:// proxies are supported: "
            f"set {parts.scheme.upper()}_PROXY, or NO_PROXY={parts.hostname}"
        )
    try:
        _ = urlsplit(proxy).port
    except ValueError:
        raise UsageError(
            "the proxy that the environment names has no readable port; percent-encode its password"
        ) from None
    return proxy


def _excepted(host: str, port: int | None, no_proxy: str) -> bool:
    """NO_PROXY: names and their subdomains, `*`, with or without a port."""
    for entry in no_proxy.lower().split(","):
        name = entry.strip().lstrip(".")
        if name == "*" or (name and (host == name or host.endswith(f".{name}") or f"{host}:{port}" == name)):
            return True
    return False


# ---- machines of a name


PREFIX = "dns+"
MAX_ADDRESSES = 4096

Resolve = Callable[[str, int], list[str]]


def spread(url: str, resolve: Resolve | None = None) -> list[str]:
    """`url` as it is; of a `dns+` address, an address for each machine that its name stands for now, in a fixed order.

    Raises `UsageError` for what is no such address, `ServerError` where the name is not known.
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


def trusting(ca_file: Path) -> ssl.SSLContext:
    """TLS for a client that trusts the authorities in this PEM file only. Raises `UsageError`."""
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{error}; expected a PEM file of certificates", field="ca_file", value=ca_file) from error
