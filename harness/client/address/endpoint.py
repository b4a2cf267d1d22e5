"""A base URL that answers the OpenAI protocol, how to address it, and what may be shown of it.

A key is hidden whole and in part, as it is, percent-encoded or in base64. There are two rules, since a message may lose
a word and an answer may not: in messages `PART_CHARS` of a key in a row are hidden, in good replies `REPEATED_CHARS`.
Work and memory grow with what is shown, not with what a server sent: the text of a message is clipped first, with a
margin in which no secret can be cut unseen.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from harness.core.errors import UsageError
from harness.core.inert import quoted, visible
from harness.core.limits import MAX_MESSAGE_CHARS
from harness.core.secret import HIDDEN, Secret, without_user_info

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


# ---- what may be shown of it


PART_CHARS = 10
"""Characters of a key in a row that are hidden where they stand alone; fewer may be a word."""

REPEATED_CHARS = 16
"""Characters of a key in a row that are hidden in a good reply, where a run of fewer may be the model's own words."""

_MIN_REPEATED_CHARS = 8
"""Shortest key that is hidden in a good reply, in characters, and only if it is no word: `EMPTY`, `anything`."""

_MIN_SECRET_CHARS = 4
"""Shortest key that is hidden, in characters: shorter ones (x, -) are placeholders, and hiding them would mangle the
message."""

_MARGIN_CHARS = 1024
"""Least characters beyond the clipped text that are looked at for a secret or a token that the clip would cut."""

_BEARER = re.compile(r"(?i)\b(bearer|api[-_]?key[\"']?\s*+[:=]\s*+[\"']?+)\s*+[A-Za-z0-9._~+/=-]{8,}")


def secrets_of(endpoint: Endpoint, others: Iterable[Secret] = ()) -> tuple[Secret, ...]:
    """What must never be shown: the key, the values of extra headers, and `others`, which the requests' bodies
    carry."""
    key = () if endpoint.api_key is None else (endpoint.api_key,)
    return (*key, *(value for _, value in endpoint.headers), *others)


def _revealed(secrets: Iterable[Secret]) -> tuple[str, ...]:
    """The texts to be looked for, "Bearer KEY" without its first word, too: the one place that reveals them for it."""
    values = [secret.reveal() for secret in secrets]
    values += [value.split(None, 1)[1] for value in values if " " in value.strip()]
    return tuple(value for value in values if len(value) >= _MIN_SECRET_CHARS)


def redacted(text: str, secrets: Iterable[Secret] = ()) -> str:
    """`text` with every secret or part of one, bearer token and URL user-info replaced.

    For a text that a server can make long: `shown_safely` and `tail_redacted`.
    """
    return _redacted(text, _revealed(secrets))


def _redacted(text: str, hidden: tuple[str, ...]) -> str:
    for secret in sorted(hidden, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _without_parts(text, _parts(hidden))
    text = _BEARER.sub(lambda match: f"{match[1]} {HIDDEN}", text)
    return without_user_info(text)


def shown_safely(text: str, secrets: Iterable[Secret] = ()) -> str:
    """A bounded, harmless quotation of foreign words without secrets: see `redacted` and `inert.quoted`."""
    hidden = _revealed(secrets)
    margin = _margin(hidden)
    text = text.strip()
    clipped = text[: MAX_MESSAGE_CHARS + 2 * margin]
    safe = _redacted(clipped, hidden)
    return quoted(safe if len(clipped) == len(text) else f"{safe[:-margin]}…")


def tail_redacted(text: str, limit: int, secrets: Iterable[Secret] = ()) -> str:
    """The last `limit` characters of `text`, redacted."""
    hidden = _revealed(secrets)
    margin = _margin(hidden)
    clipped = text[-(limit + 2 * margin) :]
    safe = _redacted(clipped, hidden)
    return (safe if len(clipped) == len(text) else safe[margin:])[-limit:]


def repeats(text: str, secrets: Iterable[Secret]) -> bool:
    """Whether a good reply repeats a key: all of it, or `REPEATED_CHARS` of its characters in a row."""
    return any(block in text for runs in _runs(_revealed(secrets)) for block in runs.blocks) and (
        without_repeats(text, secrets) != text
    )


def without_repeats(text: str, secrets: Iterable[Secret]) -> str:
    """The text of a good reply, what it repeats of a key hidden; nearly always the same text.

    A placeholder in a key's place, such as `EMPTY`, is left in: it may be a word of the answer.
    """
    for runs in _runs(_revealed(secrets)):
        if any(block in text for block in runs.blocks):
            text = _without_parts(text, runs.parts, runs.n_chars)
    return text


class _Runs(NamedTuple):
    """The runs of characters of one length that are hidden in good replies.

    blocks: pieces of half that length, side by side, of which each run holds at least one: most texts hold none, and
    are not looked at further.
    """

    n_chars: int
    blocks: tuple[str, ...]
    parts: frozenset[str]


@lru_cache(64)
def _runs(values: tuple[str, ...]) -> tuple[_Runs, ...]:
    by_length: dict[int, set[str]] = {}
    for word in {word for value in values for word in value.split()}:
        if len(word) >= REPEATED_CHARS:
            spellings = (spelling for spelling in _spellings(word) if len(spelling) >= REPEATED_CHARS)
            by_length.setdefault(REPEATED_CHARS, set()).update(spellings)
        elif len(word) >= _MIN_REPEATED_CHARS and not (word.isalpha() or word.isdecimal()):
            by_length.setdefault(len(word), set()).add(word)
    return tuple(_runs_of(n_chars, spellings) for n_chars, spellings in by_length.items())


def _runs_of(n_chars: int, spellings: Iterable[str]) -> _Runs:
    half = n_chars // 2
    blocks = {text[start : start + half] for text in spellings for start in range(0, len(text) - half + 1, half)}
    return _Runs(n_chars, tuple(sorted(blocks)), _parts_of(spellings, n_chars))


def host_and_port(url: str) -> str:
    """`host:port` of `url` (a unix socket's path) as a person would type it, without user-info."""
    if path := Endpoint(url).socket_path:
        return path
    parts = urlsplit(url)
    host = parts.hostname or "?"
    if ":" in host:
        host = f"[{host}]"
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _margin(secrets: tuple[str, ...]) -> int:
    """Characters in which the longest spelling of any secret fits: percent-encoding triples it."""
    return max(_MARGIN_CHARS, 3 * max(map(len, secrets), default=0))


@lru_cache(64)
def _parts(secrets: tuple[str, ...]) -> frozenset[str]:
    """Every run of `PART_CHARS` characters in any spelling of a secret."""
    return _parts_of((spelling for secret in secrets for spelling in _spellings(secret)), PART_CHARS)


def _spellings(secret: str) -> list[str]:
    """A secret as it is, percent-encoded and in base64."""
    raw = secret.encode("utf-8", "surrogatepass")
    # Base64 spells a secret in one of three ways, by where in the text it begins; its edges mix with others.
    encoded = [base64.b64encode(b"\0" * skip + raw).decode()[4 if skip else 0 : -4] for skip in range(3)]
    return [secret, quote(secret, safe="", errors="surrogatepass"), *encoded]


def _parts_of(spellings: Iterable[str], n_chars: int) -> frozenset[str]:
    """Every run of `n_chars` characters in the spellings."""
    return frozenset(text[start : start + n_chars] for text in spellings for start in range(len(text) - n_chars + 1))


def _without_parts(text: str, parts: frozenset[str], n_chars: int = PART_CHARS) -> str:
    if not parts:
        return text
    parts_shown: list[str] = []
    start = begin = 0
    while start <= len(text) - n_chars:
        if text[start : start + n_chars] not in parts:
            start += 1
            continue
        end = start + n_chars
        while text[end - n_chars + 1 : end + 1] in parts and end < len(text):
            end += 1
        parts_shown += [text[begin:start], HIDDEN]
        begin = start = end
    return "".join([*parts_shown, text[begin:]])
