"""A base URL that answers the OpenAI protocol, and how to address it."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.secret import Secret

_SOCKET_SCHEME = "http+unix"
"""`http+unix://%2Ftmp%2Fserver.sock/v1`, as other HTTP clients have it: the host is the socket's path."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """base_url: ends in a version path such as `/v1`, without a trailing slash or user-info; safe to print.

    api_key and the values of headers are secrets: they reach the request's headers only, by `own_headers`.
    weight: share of the work relative to the other endpoints.
    """

    base_url: str
    api_key: Secret | None = field(default=None, repr=False)
    headers: tuple[tuple[str, Secret], ...] = field(default=(), repr=False)
    weight: float = 1.0

    def own_headers(self) -> dict[str, str]:
        """The headers that carry its key and what the user adds: the one place that reveals a secret to send it."""
        key = {"Authorization": f"Bearer {self.api_key.reveal()}"} if self.api_key else {}
        return key | {name: value.reveal() for name, value in self.headers}

    @property
    def local(self) -> bool:
        """Loopback or a private network: proxies are bypassed."""
        if self.socket_path is not None:
            return True
        host = urlsplit(self.base_url).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(host).is_private
        except ValueError:
            return False

    @property
    def socket_path(self) -> str | None:
        """The unix socket that it listens on; None over TCP."""
        parts = urlsplit(self.base_url)
        return unquote(parts.netloc, errors="surrogateescape") if parts.scheme == _SOCKET_SCHEME else None

    def over_http(self, url: str) -> str:
        """`url`, a page of this endpoint, as an HTTP library wants it: that of a unix socket gets a host."""
        return url if self.socket_path is None else urlunsplit(("http", "localhost", urlsplit(url).path, "", ""))

    @classmethod
    def parse(
        cls, url: str, api_key: str | Secret | None = None, headers: Iterable[tuple[str, str | Secret]] = ()
    ) -> Endpoint:
        """The endpoint at `url`: `http://host:port`, with or without `/v1`, or `unix:/path/of/socket`.

        Raises `UsageError`.
        """
        if url.startswith("unix:"):
            path = os.path.abspath(url.removeprefix("unix:").replace("///", "/", 1))  # noqa: PTH100 - no path yet
            url = f"{_SOCKET_SCHEME}://{quote(os.fsencode(path), safe='')}"
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port
        except ValueError as error:
            raise UsageError(str(error), field="base_url", value=url) from error
        if parts.scheme not in ("http", "https", _SOCKET_SCHEME) or not parts.hostname:
            raise UsageError("expected http://HOST[:PORT][/v1], https://… or unix:/PATH", field="base_url", value=url)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = parts.path.rstrip("/")
        for suffix in ("/chat/completions", "/completions"):
            path = path.removesuffix(suffix)
        # A socket's path keeps its case.
        netloc = (
            parts.netloc.rpartition("@")[2] if parts.scheme == _SOCKET_SCHEME else f"{host}:{port}" if port else host
        )
        return cls(
            urlunsplit((parts.scheme, netloc, path or "/v1", "", "")),
            Secret.of(key) if (key := api_key or parts.password) else None,
            tuple((name, Secret.of(value)) for name, value in headers),
        )


def split_weight(text: str) -> tuple[str, float]:
    """(address, weight) of "ADDRESS" or "ADDRESS,weight=2". Raises `UsageError` for anything else after the comma."""
    address, *options = text.split(",")
    weight = 1.0
    for given in options:
        name, _, value = given.partition("=")
        try:
            weight = float(value) if name.strip() == "weight" else -1.0
        except ValueError:
            weight = -1.0
        if not 0 < weight < float("inf"):
            raise UsageError(f"expected `weight=NUMBER` after the address, found {visible(given, 60)!r}.")
    return address.strip(), weight
