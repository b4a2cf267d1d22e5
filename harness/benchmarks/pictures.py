"""Pictures in rows of data. A request holds text only, so a row that needs a picture is refused, and a link is told.

A row of the user's own data has a picture if any cell, or a part of one, is a data URL, a part of a message of such a
type, or the `bytes` and `path` of the hub's image columns; if a text has a mark such as `<image 1>`; or if a column
named as pictures are holds anything. A link in a text (`![](https://…)`) stays: statements of programming tasks have
many.
"""

from __future__ import annotations

import re
from typing import Any

from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError
from harness.core.inert import visible

_IN_TEXT = re.compile(
    r"data:(?:image|video|audio)/[\w.+-]{1,40};base64,|<\|?image(?:[ _-]?\d{1,3}|_pad)?\|?>|<\|vision_start\|>", re.I
)
_LINK = re.compile(r"!\[[^\]\n]{0,300}\]\([^)\s]{0,500}[./]|<img\s[^<>]{0,300}src=", re.I)
_COLUMN = re.compile(r"(?:image|img|picture|figure|photo|diagram|video|audio)s?\d{0,3}(?:path|url|file|name)?s?", re.I)
_PART = re.compile(r"(?:input_)?(?:image|video|audio)(?:_url)?")


def refuse_picture(row: Row) -> None:
    """Raise `UsageError` for a row that holds a picture, or has a place for one."""
    for column, cell in row.value.items():
        named = _COLUMN.fullmatch(re.sub(r"[\s_-]", "", column)) is not None
        if (sign := _sign(cell)) or (named and _holds_anything(cell)):
            shown = f" ({sign})" if sign else ""
            raise UsageError(
                f"{row.where}: the column {visible(column, 100)!r} holds a picture{shown}, and requests hold text "
                "only: leave out the rows with pictures, or this column if no question needs it"
            )


def links_picture(text: str) -> bool:
    """Whether a question's text shows a picture by its address."""
    return _LINK.search(text) is not None


def _sign(cell: Any) -> str:
    """What shows that a cell, or a part of it, is a picture or has a mark for one; empty if nothing does."""
    if isinstance(cell, str):
        match = _IN_TEXT.search(cell)
        return visible(match[0], 60) if match else ""
    if isinstance(cell, list):
        return next(filter(None, map(_sign, cell)), "")
    if not isinstance(cell, dict):
        return ""
    if cell.keys() == {"bytes", "path"} and _holds_anything([*cell.values()]):
        return "`bytes` and `path`"
    kind = cell.get("type")
    if isinstance(kind, str) and _PART.fullmatch(kind) and len(cell) > 1:
        return f"a part of the type {kind}"
    return _sign([*cell.values()])


def _holds_anything(cell: Any) -> bool:
    """Whether a cell is more than null, an empty text, or a list or mapping of these."""
    if isinstance(cell, dict | list):
        return any(map(_holds_anything, cell.values() if isinstance(cell, dict) else cell))
    return cell not in (None, False) and bool(str(cell).strip())
