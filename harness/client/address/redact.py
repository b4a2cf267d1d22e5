"""Secrets kept out of everything that is printed or stored.

A key is hidden whole and in part, as it is, percent-encoded or in base64. Work and memory grow with what is shown, not
with what a server sent: the text is clipped first, with a margin in which no secret can be cut unseen.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, urlsplit

from harness.client.address.endpoint import Endpoint
from harness.core.hidden import HIDDEN, without_user_info
from harness.core.inert import quoted
from harness.core.limits import MAX_MESSAGE_CHARS
from harness.core.secret import Secret

PART_CHARS = 10
"""Characters of a key in a row that are hidden where they stand alone; fewer may be a word."""

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


def _redacted(text: str, known: tuple[str, ...]) -> str:
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _without_parts(text, _parts(known))
    text = _BEARER.sub(lambda match: f"{match[1]} {HIDDEN}", text)
    return without_user_info(text)


def shown_safely(text: str, secrets: Iterable[Secret] = ()) -> str:
    """A bounded, harmless quotation of foreign words without secrets: see `redacted` and `inert.quoted`."""
    known = _revealed(secrets)
    margin = _margin(known)
    text = text.strip()
    clipped = text[: MAX_MESSAGE_CHARS + 2 * margin]
    safe = _redacted(clipped, known)
    return quoted(safe if len(clipped) == len(text) else f"{safe[:-margin]}…")


def tail_redacted(text: str, limit: int, secrets: Iterable[Secret] = ()) -> str:
    """The last `limit` characters of `text`, redacted."""
    known = _revealed(secrets)
    margin = _margin(known)
    clipped = text[-(limit + 2 * margin) :]
    safe = _redacted(clipped, known)
    return (safe if len(clipped) == len(text) else safe[margin:])[-limit:]


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
    spellings: list[str] = []
    for secret in secrets:
        raw = secret.encode("utf-8", "surrogatepass")
        spellings += [secret, quote(secret, safe="", errors="surrogatepass")]
        # Base64 spells a secret in one of three ways, by where in the text it begins; its edges mix with others.
        spellings += [base64.b64encode(b"\0" * skip + raw).decode()[4 if skip else 0 : -4] for skip in range(3)]
    return frozenset(s[at : at + PART_CHARS] for s in spellings for at in range(len(s) - PART_CHARS + 1))


def _without_parts(text: str, parts: frozenset[str]) -> str:
    if not parts:
        return text
    kept: list[str] = []
    at = begin = 0
    while at <= len(text) - PART_CHARS:
        if text[at : at + PART_CHARS] not in parts:
            at += 1
            continue
        end = at + PART_CHARS
        while text[end - PART_CHARS + 1 : end + 1] in parts and end < len(text):
            end += 1
        kept += [text[begin:at], HIDDEN]
        begin = at = end
    return "".join([*kept, text[begin:]])
