"""What an engine prints, made safe to show and to keep. Standard library only: the guard imports it."""

from __future__ import annotations

import re
import unicodedata

MAX_LINE_CHARS = 4000
"""Characters of a line that are kept; an ellipsis replaces the rest."""
_SUSPECT = re.compile(r"[^\x20-\x7e]")
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def visible(text: str, limit: int = MAX_LINE_CHARS) -> str:
    """The text on one line, with control, escape, surrogate and bidi characters written out; tabs become spaces.

    limit: number of characters of the text that are kept; an ellipsis replaces the rest.
    """
    # The text is cut first, so that a huge line is not searched whole.
    clipped = _SUSPECT.sub(_show, text[:limit].replace("\t", "    "))
    return clipped if len(text) <= limit else clipped + "…"


def _show(match: re.Match[str]) -> str:
    character = match[0]
    if unicodedata.category(character) not in _UNSAFE:
        return character
    return character.encode("unicode_escape").decode("ascii")
