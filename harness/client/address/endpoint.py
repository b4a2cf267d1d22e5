"""The address of a server (`Endpoint`), the route of a connection to it, and the hiding of its key in texts.

The proxy of a connection, the first rule that fits (names of variables in upper or lower case):

    the host is this machine or in a private network      none
    `no_proxy` names the host                             none
    `https_proxy` or `http_proxy`, by the URL's scheme    that one
    `all_proxy`                                           that one

A URL that begins `dns+`, such as `dns+http://servers:8000`, stands for one URL for each machine behind the name.

A server may repeat our key in an error or in an answer: whole or in part, as it is, percent-encoded or in base64.

    function          text                               hidden
    quote_safely      words of a server, for a message   `PART_CHARS` characters of a key in a row, bearer tokens
    without_repeats   a good reply                       `REPEATED_CHARS` characters of a key in a row

Two rules, because a message may lose a word and an answer may not. Time and memory grow with the length that is shown,
not with what a server sent: a long text is cut first, a margin beyond the shown length, so that no key is cut in two
and left unrecognised at the edge.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from harness.core.errors import ServerError, UsageError
from harness.core.inert import quoted, visible
from harness.core.limits import MAX_MESSAGE_CHARS
from harness.core.secret import HIDDEN, Secret, bearer, without_user_info

if TYPE_CHECKING:
    import ssl

_SOCKET_SCHEME = "http+unix"
"""Scheme of a unix socket's URL, as other HTTP clients write it.

In `http+unix://%2Ftmp%2Fserver.sock/v1` the host is the socket's path, percent-encoded.
"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks the OpenAI protocol, and the key for it.

    base_url: ends in a version path such as `/v1`, without a trailing slash, name or password; safe to print. api_key,
    headers: secrets that reach a request's headers by `own_headers` alone. weight: this endpoint's share of the
    requests, relative to the weights of the other endpoints.
    """

    base_url: str
    api_key: Secret | None = None
    headers: tuple[tuple[str, Secret], ...] = ()
    weight: float = 1.0

    def own_headers(self) -> dict[str, str]:
        """The headers with the key and with what the user adds."""
        return bearer(self.api_key) | {name: value.reveal() for name, value in self.headers}

    @property
    def local(self) -> bool:
        """Whether the server is on this machine or in a private network; requests to it go past any proxy."""
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
        """The path of the unix socket that the server listens on; None if it listens on TCP."""
        parts = urlsplit(self.base_url)
        return unquote(parts.netloc, errors="surrogateescape") if parts.scheme == _SOCKET_SCHEME else None

    def over_http(self, url: str) -> str:
        """`url`, a page of this endpoint, in a form that HTTP libraries accept.

        Over a unix socket the scheme is `http` and the host `localhost`; any other URL stays.
        """
        return url if self.socket_path is None else urlunsplit(("http", "localhost", urlsplit(url).path, "", ""))

    @classmethod
    def parse(
        cls, url: str, api_key: str | Secret | None = None, headers: Iterable[tuple[str, str | Secret]] = ()
    ) -> Endpoint:
        """The endpoint that a user names: `http://host:port`, with or without `/v1`, or `unix:/path/of/socket`.

        A password in the URL becomes the key unless `api_key` is given. Raises `UsageError`.
        """
        if url.startswith("unix:"):
            # Some write unix:///path, as in other URLs: three slashes are one.
            path = os.path.abspath(url.removeprefix("unix:"))  # noqa: PTH100 - no path yet
            url = f"{_SOCKET_SCHEME}://{quote(os.fsencode(path), safe='')}"
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            # A bad port raises only when it is read.
            port = parts.port
            if port == 0:
                raise ValueError("no server listens on port 0")
        except ValueError as error:
            raise UsageError(str(error), field="base_url", value=url) from error
        if parts.scheme not in ("http", "https", _SOCKET_SCHEME) or not parts.hostname:
            raise UsageError("expected http://HOST[:PORT][/v1], https://… or unix:/PATH", field="base_url", value=url)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = parts.path.rstrip("/")
        for suffix in ("/chat/completions", "/completions"):
            path = path.removesuffix(suffix)
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
        )


def split_weight(text: str) -> tuple[str, float]:
    """Split "ADDRESS,weight=2" into address and weight; without a comma the weight is 1.

    Raises `UsageError` if the comma is followed by anything else.
    """
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


# ---- hiding keys in a server's words


PART_CHARS = 10
"""Length of a part of a key that is hidden in messages; a shorter part may be an ordinary word."""

REPEATED_CHARS = 16
"""Length of a part of a key that is hidden in good replies; a shorter part may be the model's own words."""

_MIN_REPEATED_CHARS = 8
"""Shortest key that is hidden in good replies.

A key of fewer than `REPEATED_CHARS` characters is hidden there only if it is not made of letters alone or of digits
alone: keys such as `EMPTY` and `anything` are words of answers, too.
"""

_MIN_SECRET_CHARS = 4
"""Shortest key that is hidden in messages.

Shorter ones (`x`, `-`) are placeholders, and hiding them would mangle the text.
"""

_MARGIN_CHARS = 1024
"""Characters beyond the shown text that are searched, too.

Of a key that the cut divides, at most `PART_CHARS` - 1 characters are left unrecognised; they stand in this margin,
which is not shown.
"""

_BEARER = re.compile(r"(?i)\b(bearer|api[-_]?key[\"']?\s*+[:=]\s*+[\"']?+)\s*+[A-Za-z0-9._~+/=-]{8,}")


def secrets_of(endpoint: Endpoint, others: Iterable[Secret] = ()) -> tuple[Secret, ...]:
    """All secrets of an endpoint: its key, the values of its extra headers, and `others` (keys in requests' bodies)."""
    key = () if endpoint.api_key is None else (endpoint.api_key,)
    return (*key, *(value for _, value in endpoint.headers), *others)


def _texts_to_hide(secrets: Iterable[Secret]) -> tuple[str, ...]:
    """The characters of the secrets, to search a text for them; "Bearer KEY" also as "KEY"."""
    values = [secret.reveal() for secret in secrets]
    values += [value.split(None, 1)[1] for value in values if " " in value.strip()]
    return tuple(value for value in values if len(value) >= _MIN_SECRET_CHARS)


def redact(text: str, secrets: Iterable[Secret] = ()) -> str:
    """`text` with `[hidden]` in place of secrets, their parts and bearer tokens; names and passwords in URLs are cut.

    A text that a server can make long goes through `quote_safely` instead, which bounds the work.
    """
    return _redact(text, _texts_to_hide(secrets))


def _redact(text: str, hidden: tuple[str, ...]) -> str:
    """`text` with the hidden values, parts of them, bearer tokens and passwords in addresses replaced."""
    # The longest first: a key that contains another would leave its rest in the text.
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _without_parts(text, _parts(hidden))
    text = _BEARER.sub(lambda match: f"{match[1]} {HIDDEN}", text)
    return without_user_info(text)


def quote_safely(text: str, secrets: Iterable[Secret] = ()) -> str:
    """A server's words for a message: secrets hidden (`redact`), cut, and made harmless (`inert.quoted`)."""
    hidden = _texts_to_hide(secrets)
    text = text.strip()
    clipped = text[: MAX_MESSAGE_CHARS + 2 * _MARGIN_CHARS]
    safe = _redact(clipped, hidden)
    return quoted(safe if len(clipped) == len(text) else f"{safe[:-_MARGIN_CHARS]}…")


def repeats_a_key(text: str, secrets: Iterable[Secret]) -> bool:
    """Whether a good reply contains a key, or a part of one that `without_repeats` hides."""
    # The quick test first: nearly no text contains a block of a key.
    may_contain = any(block in text for runs in _runs(_texts_to_hide(secrets)) for block in runs.blocks)
    return may_contain and without_repeats(text, secrets) != text


def without_repeats(text: str, secrets: Iterable[Secret]) -> str:
    """The text of a good reply with `[hidden]` in place of keys and long parts of keys; nearly always the same text.

    A placeholder that was given as the key, such as `EMPTY`, stays: it may be a word of the answer. secrets: the keys
    to hide.
    """
    for runs in _runs(_texts_to_hide(secrets)):
        if any(block in text for block in runs.blocks):
            text = _without_parts(text, runs.parts, runs.n_chars)
    return text


class _Runs(NamedTuple):
    """The parts of keys that are hidden in good replies, all of one length.

    n_chars: that length. parts: every run of that many characters in a key. blocks: the keys cut into pieces of half
    that length. Every part contains at least one block, so a text without a block contains no part: that quick test
    suffices for nearly all texts.
    """

    n_chars: int
    blocks: tuple[str, ...]
    parts: frozenset[str]


@lru_cache(64)
def _runs(values: tuple[str, ...]) -> tuple[_Runs, ...]:
    """The texts that are hidden in a good reply because they are keys or parts of keys, grouped by their length.

    Of a long key every piece of `REPEATED_CHARS` characters is hidden, of a shorter key the whole.
    """
    by_length: dict[int, set[str]] = {}
    for word in {word for value in values for word in value.split()}:
        if len(word) >= REPEATED_CHARS:
            spellings = (spelling for spelling in _spellings(word) if len(spelling) >= REPEATED_CHARS)
            by_length.setdefault(REPEATED_CHARS, set()).update(spellings)
        elif len(word) >= _MIN_REPEATED_CHARS and not (word.isalpha() or word.isdecimal()):
            by_length.setdefault(len(word), set()).add(word)
    return tuple(_runs_of(n_chars, spellings) for n_chars, spellings in by_length.items())


def _runs_of(n_chars: int, spellings: Iterable[str]) -> _Runs:
    """Every run of `n_chars` characters in the spellings of secrets, and the blocks that find them quickly."""
    half = n_chars // 2
    blocks = {text[start : start + half] for text in spellings for start in range(0, len(text) - half + 1, half)}
    return _Runs(n_chars, tuple(sorted(blocks)), _parts_of(spellings, n_chars))


def host_and_port(url: str) -> str:
    """`host:port` of `url`, or a unix socket's path, for messages; without a name and password."""
    if path := Endpoint(url).socket_path:
        return path
    parts = urlsplit(url)
    host = parts.hostname or "?"
    if ":" in host:
        host = f"[{host}]"
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


@lru_cache(64)
def _parts(secrets: tuple[str, ...]) -> frozenset[str]:
    """Every run of `PART_CHARS` characters of the secrets, in each encoding."""
    return _parts_of((spelling for secret in secrets for spelling in _spellings(secret)), PART_CHARS)


def _spellings(secret: str) -> list[str]:
    """A secret in each encoding in which a server may repeat it: as it is, percent-encoded, in base64."""
    raw = secret.encode("utf-8", "surrogatepass")
    # Base64 encodes three bytes at a time, so a secret looks different by where in a triple it begins. The first and
    # last characters also depend on the neighbours, and are left out.
    encoded = [base64.b64encode(b"\0" * skip + raw).decode()[4 if skip else 0 : -4] for skip in range(3)]
    return [secret, quote(secret, safe="", errors="surrogatepass"), *encoded]


def _parts_of(spellings: Iterable[str], n_chars: int) -> frozenset[str]:
    """Every run of `n_chars` characters in the given texts."""
    return frozenset(text[start : start + n_chars] for text in spellings for start in range(len(text) - n_chars + 1))


def _without_parts(text: str, parts: frozenset[str], n_chars: int = PART_CHARS) -> str:
    """`text` with `[hidden]` in place of every stretch that is covered by `parts`, all of `n_chars` characters."""
    if not parts:
        return text
    parts_shown: list[str] = []
    start = copied_to = 0
    while start <= len(text) - n_chars:
        if text[start : start + n_chars] not in parts:
            start += 1
            continue
        end = start + n_chars
        # At the end of the text this piece is shorter than every part.
        while text[end - n_chars + 1 : end + 1] in parts:
            end += 1
        parts_shown += [text[copied_to:start], HIDDEN]
        copied_to = start = end
    return "".join([*parts_shown, text[copied_to:]])


# ---- routes


def proxy_for(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> str | None:
    """The URL of the proxy for `endpoint`, with its name and password; None if the connection is direct.

    Raises `UsageError` for a proxy that is not reached by http://. environ: the environment variables that name
    proxies.
    """
    if endpoint.local:
        return None
    # Names in lower case win, whatever the order of the environment.
    given = (name for name in sorted(environ) if name.lower().endswith("_proxy") and environ[name])
    named = {name.lower(): environ[name] for name in given}
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
        # Reading the port is what raises, as when a / in the password ends the host too early.
        _ = urlsplit(proxy).port
    except ValueError:
        raise UsageError(
            "the proxy that the environment names has no readable port; percent-encode its password"
        ) from None
    return proxy


def _bypasses_proxy(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether NO_PROXY names the host: by its name or a parent domain, with or without a port, or by `*`.

    no_proxy: the value of that variable, names between commas.
    """
    for entry in no_proxy.lower().split(","):
        name = entry.strip().lstrip(".")
        if name == "*" or (name and (host == name or host.endswith(f".{name}") or f"{host}:{port}" == name)):
            return True
    return False


# ---- machines of a name


DNS_PREFIX = "dns+"
"""Beginning of a URL that stands for one URL for each machine behind its name."""

MAX_ADDRESSES = 4096
"""Largest number of machines behind a name; more are a mistake in the name server."""

Resolve = Callable[[str, int], list[str]]
"""(host name, port) → the numeric addresses of its machines. Raises `OSError`."""


def expand_dns(url: str, resolve: Resolve | None = None) -> list[str]:
    """The URLs that `url` stands for: a `dns+` URL gives one for each machine, in sorted order; any other gives itself.

    Raises `UsageError` if a `dns+` URL is malformed, `ServerError` if its name is unknown.
    """
    if not url.startswith(DNS_PREFIX):
        return [url]
    parts = urlsplit(url.removeprefix(DNS_PREFIX))
    try:
        host, port = parts.hostname, parts.port or 80
    except ValueError as error:
        raise UsageError(str(error), field="base_url", value=visible(url, 200)) from error
    if parts.scheme != "http" or not host:
        raise UsageError(
            "expected dns+http://NAME:PORT; with https each machine would need a certificate for its IP address",
            field="base_url",
            value=visible(url, 200),
        )
    try:
        addresses = sorted(set((resolve or _resolve)(host, port)))
    except OSError as error:
        raise ServerError(f"the name {visible(host, 200)} is not known ({error.strerror or error})") from error
    if not 1 <= len(addresses) <= MAX_ADDRESSES:
        raise ServerError(f"{visible(host, 200)} stands for {len(addresses)} machines; expected 1 to {MAX_ADDRESSES}")
    numeric_hosts = [f"[{address}]" if ":" in address else address for address in addresses]
    return [urlunsplit(parts._replace(netloc=f"{numeric_host}:{port}")) for numeric_host in numeric_hosts]


def _resolve(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


# ---- certificate authorities


def tls_context(ca_file: Path) -> ssl.SSLContext:
    """TLS settings for a client that trusts only the certificate authorities in a PEM file. Raises `UsageError`."""
    import ssl  # most runs trust the usual authorities

    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{error}; expected a PEM file of certificates", field="ca_file", value=ca_file) from error
