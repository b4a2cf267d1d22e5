"""Foreign text (of models, servers, data sets) made harmless for file names, terminals and CSV cells.

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
    """A file name made from `name`: a plain name stays, any other gets its plain characters and a digest of `name`.

    The result has at most `MAX_NAME_BYTES` bytes and is never `.` or `..`, a hidden file, an option of a command
    (`-x`) or a device name of Windows (`nul`). `Model` and `model` get different results even on a file system that
    ignores case, because a name with a capital letter gets the digest.
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
    # Room for a hyphen and the 8 characters of the digest.
    stem = stem[: MAX_NAME_BYTES - 9].rstrip("-.")
    return f"{stem}-{digest}" if stem else f"x-{digest}"


def visible(text: str, limit: int | None = None) -> str:
    """`text` as one harmless line: control, surrogate and bidirectional characters are written as escapes (`\\n`).

    limit: characters of `text` that are shown; a longer text is cut and ends in `…`.
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
    """A server's or model's words, harmless and cut at `MAX_MESSAGE_CHARS`, to be quoted in a message."""
    return visible(text.strip(), MAX_MESSAGE_CHARS)


def csv_cell(text: str) -> str:
    """`text` for a CSV cell: an apostrophe goes before what a spreadsheet would run as a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else text
