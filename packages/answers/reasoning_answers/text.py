"""Foreign text made harmless for terminals and messages."""

from __future__ import annotations

import unicodedata

MAX_MESSAGE_CHARS = 300
"""Longest excerpt of a server's or model's text that is quoted in a message or a log."""

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def visible(text: str, limit: int | None = None) -> str:
    """`text` as one harmless line: control, surrogate and bidirectional characters are written as escapes (`\\n`).

    limit: number of characters of `text` to show; a longer text is cut and ends in `…`.
    """
    clipped = text if limit is None or len(text) <= limit else text[:limit]
    if clipped.isascii() and clipped.isprintable():
        shown = clipped
    else:
        shown = "".join(
            c.encode("unicode_escape").decode("ascii") if unicodedata.category(c) in _INVISIBLE else c for c in clipped
        )
    return shown if clipped is text else shown + "…"


def quoted(text: str) -> str:
    """A server's or model's text for quoting in a message: harmless and cut at `MAX_MESSAGE_CHARS`."""
    return visible(text.strip(), MAX_MESSAGE_CHARS)
