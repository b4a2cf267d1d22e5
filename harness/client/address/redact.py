"""Secrets kept out of everything that is printed or stored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit

from harness.client.address.endpoint import Endpoint

HIDDEN = "[hidden]"

_MIN_SECRET_CHARS = 4
"""Shortest key that is hidden, in characters: shorter ones (x, -) are placeholders, and hiding them would mangle the
message."""

_BEARER = re.compile(r"(?i)\b(bearer|api[-_]?key[\"']?\s*[:=]\s*[\"']?)\s*[A-Za-z0-9._~+/=-]{8,}")
_USER_INFO = re.compile(r"(?<=://)[^/\s@]+@")


def secrets_of(endpoint: Endpoint) -> tuple[str, ...]:
    """The values that must never be shown: the key and the values of extra headers."""
    values = [endpoint.api_key or "", *(value for _, value in endpoint.headers)]
    values += [value.split(None, 1)[1] for value in values if " " in value.strip()]
    return tuple(value for value in values if len(value) >= _MIN_SECRET_CHARS)


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with every secret, bearer token and URL user-info replaced. Redact before clipping, never after."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
        encoded = quote(secret, safe="")
        if encoded != secret:
            text = text.replace(encoded, HIDDEN)
    text = _BEARER.sub(lambda match: f"{match[1]} {HIDDEN}", text)
    return _USER_INFO.sub("", text)


def host_and_port(url: str) -> str:
    """`host:port` of `url` (a unix socket's path) as a person would type it, without user-info."""
    if path := Endpoint(url).socket_path:
        return path
    parts = urlsplit(url)
    host = parts.hostname or "?"
    if ":" in host:
        host = f"[{host}]"
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
