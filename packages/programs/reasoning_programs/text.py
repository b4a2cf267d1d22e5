"""Foreign text made harmless for messages, and JSON that keeps lone surrogates."""

from __future__ import annotations

import json
import unicodedata
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

MAX_MESSAGE_CHARS = 300
"""Longest excerpt of a foreign text that a message quotes."""

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def visible(text: str, limit: int = MAX_MESSAGE_CHARS) -> str:
    """At most `limit` characters of `text` as one line; control, surrogate and bidirectional characters are escaped."""
    shown = "".join(
        c if unicodedata.category(c) not in _INVISIBLE else c.encode("unicode_escape").decode("ascii")
        for c in text[:limit]
    )
    return shown if len(text) <= limit else shown + "…"


def count_noun(n: int, noun: str) -> str:
    """A number with its noun: `1 test`, `2,000 tests`."""
    return f"{n:,} {noun if n == 1 else f'{noun}s'}"


def to_json(value: Any) -> bytes:
    """`value` as JSON in UTF-8; lone surrogates are escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii")


def from_json(data: str | bytes, kind: type[T] = Any) -> T:  # type: ignore[assignment]
    """The value in `data`, checked against `kind`; lone surrogates are kept. Raises `ValueError`."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    try:
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Only an escaped surrogate is worth a second attempt with the slower decoder.
            if b"\\ud" not in data.lower():
                raise
            return msgspec.convert(json.loads(data), kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
