"""Foreign text made harmless: in file names, on terminals, in CSV cells.

Guarantees: no control, escape or bidirectional-override character reaches a terminal; no name leaves its
folder; no cell starts a formula. Not covered: HTML, which `harness.reports` escapes.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from harness.core.limits import MAX_MESSAGE_CHARS, MAX_NAME_BYTES

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*\Z")
_RESERVED = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))}
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def safe_name(name: str) -> str:
    """A file name for `name`: itself where plain, else its plain characters and a short digest of the true name.

    At most `MAX_NAME_BYTES` bytes; never `.`/`..`, hidden, an option, or a reserved device name; two names
    that differ only in case get different results on a case-blind file system, for all but the all-lower one
    carry a digest.
    """
    plain = (
        _PLAIN_NAME.match(name) is not None
        and name == name.lower()
        and len(name) <= MAX_NAME_BYTES
        and name.split(".")[0] not in _RESERVED
        and not name.endswith((".", ".tmp"))
    )
    if plain:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    stem = re.sub(r"[^A-Za-z0-9._+]+", "-", name).strip("-.")
    if stem.split(".")[0].lower() in _RESERVED:  # `nul.txt-…` would still be the device
        stem = f"x-{stem}"
    stem = stem[: MAX_NAME_BYTES - 9].rstrip("-.")
    return f"{stem}-{digest}" if stem else f"x-{digest}"


def visible(text: str, limit: int | None = None) -> str:
    """`text` with every control, escape, surrogate and bidi character written as a visible escape; one line.

    `limit`: at most so many characters of the original are shown, then `…`.
    """
    clipped = text if limit is None or len(text) <= limit else text[:limit]
    if clipped.isascii() and clipped.isprintable():
        shown = clipped
    else:
        shown = "".join(
            c if unicodedata.category(c) not in _INVISIBLE else c.encode("unicode_escape").decode("ascii")
            for c in clipped
        )
    return shown if clipped is text else shown + "…"


def quoted(text: str) -> str:
    """A bounded, harmless quotation of a server's or model's words for a message."""
    return visible(text.strip(), MAX_MESSAGE_CHARS)


def csv_cell(text: str) -> str:
    """`text` such that a spreadsheet shows it as text and never runs it as a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else text
