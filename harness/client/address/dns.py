"""An address whose name stands for several machines: `dns+http://servers:8000` becomes one address for each of them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from urllib.parse import urlsplit, urlunsplit

from harness.core.errors import ServerError, UsageError
from harness.core.inert import visible

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
