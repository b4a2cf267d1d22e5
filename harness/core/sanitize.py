"""Foreign text (from models, servers, data sets) made harmless for file names, terminals and CSV cells; and the check
for control characters in the text of a prompt.

Guarantees: no control, escape or bidirectional-override character reaches a terminal; no name leads out of its folder;
no cell starts a formula. Not covered: HTML, which `harness.reports` escapes.
"""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from collections.abc import Iterable

MAX_MESSAGE_CHARS = 300
"""Longest excerpt of a server's or model's text that is quoted in a message or a log."""

MAX_NAME_BYTES = 100
"""Longest file or folder name, in bytes, made from the name of a benchmark, a model or a run."""

MAX_ERROR_BODY_BYTES = 64 * 1024
"""How much of the body is read if a reply has an error status; servers echo whole prompts in it."""

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_RESERVED = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))}
_IGNORABLE = re.compile(
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u3164\\ufe00-\\ufe0f\\uffa0\\U000e0100-\\U000e01ef]"
)
"""The letters and marks with the Unicode property Default_Ignorable_Code_Point: they are invisible, and some file
systems ignore them.
"""
_SIGNED_NUMBER = re.compile(r"[-+][0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][-+]?[0-9]{1,3})?")


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


def safe_name(name: str) -> str:
    """A file name made from `name`: `name` itself if it is plain, otherwise its plain characters and its digest.

    Plain characters are letters, marks and digits of any script, and `. _ + -`; only ASCII if the system's file names
    are not UTF-8. The result has at most `MAX_NAME_BYTES` bytes and is never `.` or `..`, a hidden file, a command
    option (`-x`) or a Windows device name (`nul`). Different names give different results, even on a file system that
    ignores case or how a letter is composed: a name that such a system could confuse with another gets the digest.
    """
    ascii_only = sys.getfilesystemencoding().lower() != "utf-8"

    def is_plain(c: str) -> bool:
        """Whether a character may be used in a file name as it is."""
        if c.isascii():
            return c.isalnum() or c in "._+-"
        return not ascii_only and unicodedata.category(c)[0] in "LMN" and not _IGNORABLE.match(c)

    whole = (
        all(map(is_plain, name))
        # The form that a file system compares if it ignores case and composition.
        and name == unicodedata.normalize("NFKC", name.upper().casefold())
        and len(name.encode()) <= MAX_NAME_BYTES
        and name[:1].isalnum()
        and name.split(".")[0] not in _RESERVED
        and not name.endswith((".", ".tmp"))
    )
    if whole:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    plain = "".join(c if is_plain(c) and c != "-" else "-" for c in unicodedata.normalize("NFC", name))
    stem = re.sub("-+", "-", plain).strip("-.")
    if stem.split(".")[0].lower() in _RESERVED:  # `nul.txt-…` would still be the device
        stem = f"x-{stem}"
    # Leave room for a hyphen and the 8 characters of the digest; do not cut a letter of several bytes in two.
    stem = stem.encode()[: MAX_NAME_BYTES - 9].decode(errors="ignore").rstrip("-.")
    return f"{stem}-{digest}" if stem else f"x-{digest}"


def visible_json(text: str) -> str:
    """The JSON in `text` with the characters that `visible` escapes written as JSON escapes, so that it stays JSON.

    It must not have line breaks between its values.
    """
    if visible(text) == text:
        return text
    return "".join(c if visible(c) == c else "".join(f"\\u{unit:04x}" for unit in _utf16(c)) for c in text)


def _utf16(c: str) -> tuple[int, ...]:
    """A character's UTF-16 units, as JSON writes them; a lone surrogate is one unit."""
    data = c.encode("utf-16-be", "surrogatepass")
    return tuple(int.from_bytes(data[begin : begin + 2], "big") for begin in range(0, len(data), 2))


def check_text(text: str) -> str:
    """Return `text` unchanged if it has no control character other than newline and tab; otherwise raise `ValueError`.

    In an ordinary Python string, `"\\boxed"` begins with a backspace. Because of this mistake, a published script asks
    its models for "oxed".
    """
    for position, char in enumerate(text):
        if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t":
            hint = r" (if you meant \boxed, escape its backslash)" if char == "\b" else ""
            raise ValueError(f"control character {visible(char)} at position {position} of the text{hint}")
    return text


def csv_cell(text: str) -> str:
    """`text` for a CSV cell: an apostrophe precedes what a spreadsheet would run as a formula; numbers stay as is."""
    may_run = text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") and not _SIGNED_NUMBER.fullmatch(text)
    return f"'{text}" if may_run else text


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The rows, the first of which has the headings, as CSV; texts are made harmless, and None is an empty cell."""
    import csv  # few commands write tables
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([csv_cell(visible(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return buffer.getvalue()


def csv_file(text: str) -> bytes:
    """The bytes of a CSV file: UTF-8, with a byte order mark if `text` is not all ASCII.

    Without the mark, Excel garbles other scripts.
    """
    return text.encode("ascii" if text.isascii() else "utf-8-sig", "backslashreplace")
