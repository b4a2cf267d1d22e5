"""Secrets kept out of everything that is printed or stored.

A key is hidden whole and in part, as it is, percent-encoded or in base64. There are two rules, since a message may lose
a word and an answer may not: in messages `PART_CHARS` of a key in a row are hidden, in good replies `REPEATED_CHARS`.
Work and memory grow with what is shown, not with what a server sent: the text of a message is clipped first, with a
margin in which no secret can be cut unseen.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from harness.client.address.endpoint import Endpoint
from harness.core.inert import quoted
from harness.core.limits import MAX_MESSAGE_CHARS
from harness.core.secret import HIDDEN, Secret, without_user_info

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
