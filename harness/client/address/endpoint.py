"""The address of a server (`Endpoint`), the route of a connection to it, and how its key is hidden in texts.

A connection's proxy, by the first rule that matches (variable names in upper or lower case):

    the host is this machine or in a private network      none
    `no_proxy` names the host                             none
    `https_proxy` or `http_proxy`, by the URL's scheme    the variable's value
    `all_proxy`                                           the variable's value

A server may repeat our key in an error (`quote_safely`) or in an answer (`without_repeats`). There are two rules
because a message may lose a word and an answer may not. Time and memory grow with the length that is shown, not with
what the server sent: a long text is first cut a margin beyond that length, so that no key is cut in two and missed.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urljoin, urlsplit, urlunsplit

from harness.client.apis.table import APIS
from harness.core.errors import UsageError
from harness.core.sanitize import MAX_MESSAGE_CHARS, quoted
from harness.core.secret import HIDDEN, Secret, bearer, is_secret, looks_like_a_key, redacted_address, without_user_info

_SOCKET_SCHEME = "http+unix"
"""The scheme of a Unix socket's URL, as in other HTTP clients.

In `http+unix://%2Ftmp%2Fserver.sock/v1` the host is the socket's path, percent-encoded.
"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks the OpenAI protocol, and its key.

    base_url: ends in a version path such as `/v1`, without a trailing slash, name or password; safe to print. api_key,
    headers: secrets that reach a request's headers only through `own_headers`. query: appended to the path of every
    request, such as `api-version=2024-10-21`; it may contain a key.
    """

    base_url: str
    api_key: Secret | None = None
    headers: tuple[tuple[str, Secret], ...] = ()
    query: Secret | None = None

    def own_headers(self) -> dict[str, str]:
        """The header with the key, and the headers that the user adds."""
        return bearer(self.api_key) | {name: value.reveal() for name, value in self.headers}

    @property
    def local(self) -> bool:
        """Whether the server is on this machine or in a private network; requests to it bypass any proxy."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return self.is_here or ipaddress.ip_address(host).is_private
        except ValueError:
            return False

    @property
    def is_here(self) -> bool:
        """Whether the address is this machine's own."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return self.socket_path is not None or host == "localhost" or host.endswith(".localhost")
        return address.is_loopback or address.is_unspecified

    def ticket(self, location: str) -> str | None:
        """The URL at which a redirect says that the reply will be; None unless it is on the endpoint's own host."""
        with contextlib.suppress(ValueError):
            own = urlsplit(base := self.over_http(self.base_url))
            to = urlsplit(urljoin(base, location))
            if location and (own.scheme, own.netloc.lower()) == (to.scheme, to.netloc.lower()):
                return to.geturl()
        return None

    @property
    def root(self) -> str:
        """The URL below which an engine has its own pages, such as `/props`."""
        return self.base_url.removesuffix("/v1")

    @property
    def socket_path(self) -> str | None:
        """The path of the Unix socket that the server listens on; None if it listens on TCP."""
        parts = urlsplit(self.base_url)
        return unquote(parts.netloc, errors="surrogateescape") if parts.scheme == _SOCKET_SCHEME else None

    def over_http(self, url: str) -> str:
        """`url`, a page of this endpoint, in a form that HTTP libraries accept, with the endpoint's query.

        Over a Unix socket the scheme is `http` and the host is `localhost`.
        """
        if self.socket_path is not None:
            url = urlunsplit(("http", "localhost", urlsplit(url).path, "", ""))
        return url if self.query is None else f"{url}{'&' if '?' in url else '?'}{self.query.reveal()}"

    @classmethod
    def parse(
        cls, url: str, api_key: str | Secret | None = None, headers: Iterable[tuple[str, str | Secret]] = ()
    ) -> Endpoint:
        """The endpoint that a user names: `http://host:port`, with or without `/v1`, or `unix:/path/of/socket`.

        A password in the URL becomes the key unless `api_key` is given. Raises `UsageError`.
        """
        if url.startswith("unix:"):
            # Some users write unix:///path, as in other URLs: treat three slashes as one.
            path = os.path.abspath(url.removeprefix("unix:"))  # noqa: PTH100 - no path yet
            url = f"{_SOCKET_SCHEME}://{quote(os.fsencode(path), safe='')}"
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            # A bad port raises only when the attribute is read.
            port = parts.port
        except ValueError:  # its text may quote part of a password as the port
            parts, port = urlsplit("http:"), 0
        if "," in (shown := redacted_address(url)):
            why = "expected a single address; to use several, repeat the option (weights are not supported)"
            raise UsageError(why, field="base_url", value=shown)
        is_http = parts.scheme in ("http", "https") and not re.search(r"\s", url)
        if not (is_http or parts.scheme == _SOCKET_SCHEME) or not parts.hostname or port == 0:
            why = "expected http://HOST[:PORT][/v1] with a port from 1 to 65535, https://… or unix:/PATH"
            raise UsageError(why, field="base_url", value=shown)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = parts.path.rstrip("/")
        for page in ("/models", *(api.path for api in APIS)):
            path = path.removesuffix(page)
        if parts.scheme == _SOCKET_SCHEME:
            # `hostname` is in lower case, and a socket's path keeps its case.
            netloc = parts.netloc.rpartition("@")[2]
        else:
            netloc = f"{host}:{port}" if port else host
        key = api_key or parts.password
        return cls(
            urlunsplit((parts.scheme, netloc, path or "/v1", "", "")),
            Secret.of(key) if key else None,
            tuple((name, Secret.of(value)) for name, value in headers),
            query=Secret(parts.query) if parts.query else None,
        )


# ---- hiding keys in a server's texts


_MIN_REPEATED_CHARS = 8
"""Length of the shortest key that is hidden in successful replies.

A key of fewer than `_SURE_CHARS` characters is hidden there only if it is neither all letters nor all digits: keys such
as `EMPTY` and `anything` may also be words of an answer.
"""

_SURE_CHARS = 16
"""A key of at least this many characters is always hidden in successful replies: it cannot be a word of an answer."""

_MIN_SECRET_CHARS = 4
"""Length of the shortest key that is hidden in messages.

Shorter keys (`x`, `-`) are placeholders, and hiding them would mangle the text.
"""

_MARGIN_CHARS = 1024
"""Characters searched beyond the shown text, so that no part of a key or an address that the cut divides is shown."""

_BEARER = re.compile(r"(?i)\b(bearer|api[-_]?key[\"']?\s*+[:=]\s*+[\"']?+)\s*+[A-Za-z0-9._~+/=-]{8,}")


def secrets_of(endpoint: Endpoint, others: Iterable[Secret] = ()) -> tuple[Secret, ...]:
    """All secrets of an endpoint: its key, the values of its extra headers, and `others` (keys in requests' bodies).

    An API's own header, such as its version, is not secret, and a reply may contain the same date.
    """
    key = () if endpoint.api_key is None else (endpoint.api_key,)
    query = parse_qsl(endpoint.query.reveal()) if endpoint.query is not None else ()
    keys = (Secret(value) for name, value in query if is_secret(name, value) or looks_like_a_key(value))
    of_apis = {name for api in APIS for name in api.headers}
    return (*key, *keys, *(value for name, value in endpoint.headers if name.lower() not in of_apis), *others)


def _texts_to_hide(secrets: Iterable[Secret]) -> list[str]:
    """The secrets as plain strings to search for in a text; "Bearer KEY" also as "KEY"."""
    values = [secret.reveal() for secret in secrets]
    values += [value.split(None, 1)[1] for value in values if " " in value.strip()]
    # The longest first: otherwise the rest of a key that contains another key would stay in the text.
    return sorted((value for value in values if len(value) >= _MIN_SECRET_CHARS), key=len, reverse=True)


def redact(text: str, secrets: Iterable[Secret] = ()) -> str:
    """`text` with `[hidden]` in place of secrets and bearer tokens, and without names and passwords in URLs.

    Use `quote_safely`, which bounds the work, for a text that a server can make long.
    """
    for secret in _texts_to_hide(secrets):
        text = text.replace(secret, HIDDEN)
    text = _BEARER.sub(lambda match: f"{match[1]} {HIDDEN}", text)
    return without_user_info(text)


def redact_values(value: Any, secrets: tuple[Secret, ...]) -> Any:
    """A JSON value with `redact` applied to each string in it, including field names."""
    if isinstance(value, dict):
        return {redact(name, secrets): redact_values(part, secrets) for name, part in value.items()}
    if isinstance(value, list):
        return [redact_values(part, secrets) for part in value]
    return redact(value, secrets) if isinstance(value, str) else value


def quote_safely(text: str, secrets: Iterable[Secret] = ()) -> str:
    """A server's text for a message: secrets are hidden (`redact`), and `sanitize.quoted` makes it harmless and cuts it
    at `MAX_MESSAGE_CHARS`. The cuts here only bound the work.
    """
    secrets = tuple(secrets)
    margin = max(_MARGIN_CHARS, *(len(secret.reveal()) for secret in secrets), 0)
    text = text.strip()
    if len(text) <= MAX_MESSAGE_CHARS + 2 * margin:
        return quoted(redact(text, secrets))
    # The first cut may divide a key and leave part of it unhidden; the second cut removes that part, which is shorter
    # than a margin. The other margin leaves enough text to show where hiding has made it shorter.
    return quoted(f"{redact(text[: MAX_MESSAGE_CHARS + 2 * margin], secrets)[:-margin]}…")


def error_quoted(text: str, secrets: Iterable[Secret] = ()) -> str:
    """`quote_safely` for an error, in quotation marks if the server puts names in backticks, as we put our options."""
    words = quote_safely(text, secrets)
    return f"“{words}”" if "`" in words else words


def without_repeats(text: str, secrets: Iterable[Secret]) -> str:
    """The text of a successful reply with `[hidden]` in place of keys; nearly always the same text.

    A placeholder that was given as the key, such as `EMPTY`, stays, because it may be a word of the answer.
    secrets: the keys to hide.
    """
    for value in _texts_to_hide(secrets):
        for word in value.split():
            is_word = word.isalpha() or word.isdecimal()
            if len(word) >= _SURE_CHARS or (len(word) >= _MIN_REPEATED_CHARS and not is_word):
                text = text.replace(word, HIDDEN)
    return text


# ---- routes


def host_and_port(url: str) -> str:
    """`host:port` of `url`, or a Unix socket's path, for messages, without a name and password."""
    if path := Endpoint(url).socket_path:
        return path
    parts = urlsplit(url)
    host = parts.hostname or "?"
    if ":" in host:
        host = f"[{host}]"
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def proxy_for(endpoint: Endpoint) -> str | None:
    """The URL of the proxy for `endpoint`, with its name and password; None if the connection is direct.

    Raises `UsageError` for a proxy that is not reached by http://.
    """
    if endpoint.local:
        return None
    from urllib.request import getproxies_environment, proxy_bypass  # a slow import, for remote hosts only

    parts = urlsplit(endpoint.base_url)
    named = getproxies_environment()
    proxy = named.get(parts.scheme) or named.get("all")
    exempt = [name.strip() for name in named.get("no", "").split(",")]
    # With the port, for an entry that has one; the bare name for an IPv6 address, which entries write without brackets.
    if not proxy or "*" in exempt or proxy_bypass(parts.netloc) or proxy_bypass(parts.hostname or ""):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.lower().startswith("http://"):
        raise UsageError(
            f"the proxy {redacted_address(proxy)} from the environment is not an http:// proxy, so it is not "
            f"supported: change {parts.scheme.upper()}_PROXY, or set NO_PROXY={parts.hostname}"
        )
    try:
        # Reading the port can raise, for example when a / in the password ends the host too early.
        _ = urlsplit(proxy).port
    except ValueError:
        why = "the proxy URL from the environment has an invalid port; percent-encode its password"
        raise UsageError(why) from None
    return proxy
