"""A base URL that answers the OpenAI protocol, and how to address it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from harness.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """base_url: ends in a version path such as `/v1`, without a trailing slash or user-info; safe to print.

    api_key and headers are secrets: they are never shown by repr and reach the request headers only.
    weight: share of the work relative to the other endpoints.
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    weight: float = 1.0

    @property
    def local(self) -> bool:
        """Loopback or a private network: proxies are bypassed."""
        host = urlsplit(self.base_url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(host).is_private
        except ValueError:
            return False

    @classmethod
    def parse(cls, url: str, api_key: str | None = None, headers: tuple[tuple[str, str], ...] = ()) -> Endpoint:
        """The endpoint at `url`: `http://host:port`, with or without `/v1`. Raises `UsageError`."""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port
        except ValueError as error:
            raise UsageError(f"--base-url {url!r}: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--base-url {url!r}: expected http://HOST[:PORT][/v1] or https://…")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = parts.path.rstrip("/")
        for suffix in ("/chat/completions", "/completions"):
            path = path.removesuffix(suffix)
        netloc = f"{host}:{port}" if port else host
        return cls(
            urlunsplit((parts.scheme, netloc, path or "/v1", "", "")),
            api_key or parts.password or None,
            headers,
        )
