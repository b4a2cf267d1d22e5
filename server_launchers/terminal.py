"""What an engine prints, made safe to show and to keep. Standard library only: the guard imports it."""

from __future__ import annotations

import unicodedata

MAX_LINE_CHARS = 4000
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def visible(text: str, limit: int = MAX_LINE_CHARS) -> str:
    """`text` on one line, with control, escape, surrogate and bidi characters written out; tabs become spaces."""
    clipped = text[:limit].replace("\t", "    ")
    if not (clipped.isascii() and clipped.isprintable()):
        clipped = "".join(
            c if unicodedata.category(c) not in _UNSAFE else c.encode("unicode_escape").decode("ascii") for c in clipped
        )
    return clipped if len(text) <= limit else clipped + "…"
