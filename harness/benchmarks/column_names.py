"""The usual column names in question files, tried in this order if the user names no column.

`find` matches the names of columns: `Correct Answer` is `correct_answer`. A name may also be a path into an object in a
column: `reward_model.ground_truth` (`cell_at`). A column with exactly that name is preferred.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

QUESTION_COLUMNS = ("problem", "question", "prompt")
"""Columns with a question as text."""
ASKED_COLUMNS = (*QUESTION_COLUMNS, "messages")
"""Columns with a question in a file of questions to ask; in outputs, `messages` may also contain the reply."""
ANSWER_COLUMNS = ("answer", "expected_answer", "final_answer", "correct_answer", "gold", "target", "reference")
"""Columns of the reference answer."""
TOOLS_COLUMNS = ("tools",)
"""Columns of the tools that a question offers."""
IMAGE_COLUMNS = ("images", "image", *(f"image_{number}" for number in range(1, 8)))
"""Columns of the images that a question shows; each contains one image or a list."""
ID_COLUMNS = ("id",)
"""Columns of the question's id."""


def find(names: Iterable[str], columns: Collection[str]) -> str | None:
    """The column with the first of these names that exists, or the first path; None if there is none.

    A column with exactly this name is preferred, then one that differs only in case, spaces, underscores and hyphens.
    columns: the columns of a row, with its cells if names may be paths.
    """
    by_fold: dict[str, str] = {}  # the first column of each normalized name; built only if needed
    for name in names:
        if name in columns:
            return name
        if not by_fold:
            for column in columns:
                by_fold.setdefault(_fold(column), column)
        if _fold(name) in by_fold:
            return by_fold[_fold(name)]
    return next((name for name in names if isinstance(columns, Mapping) and _is_path(columns, name)), None)


def cell_at(cells: Mapping[str, Any], name: str) -> Any:
    """The cell in the column `name`, or the value at the path `COLUMN.KEY.KEY` in an object, which may be JSON in a
    text. Raises `KeyError`.
    """
    if name in cells:
        return cells[name]
    column, _, path = name.partition(".")
    value = cells[column]
    if path and isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise KeyError(name) from None
    if not isinstance(value, dict):
        raise KeyError(name)
    return cell_at(value, path)


def _is_path(cells: Mapping[str, Any], name: str) -> bool:
    """Whether `cell_at` finds a value under this name."""
    try:
        cell_at(cells, name)
    except KeyError:
        return False
    return True


def column_paths(cells: Mapping[str, Any]) -> list[str]:
    """The names of a row's columns, for messages; for an object, the paths of its values."""
    paths = ([f"{name}.{key}" for key in cell] if isinstance(cell, dict) else () for name, cell in cells.items())
    return [each for name, inner in zip(cells, paths, strict=True) for each in inner or [name]]


@functools.lru_cache(maxsize=4096)
def _fold(name: str) -> str:
    """The name without the spelling differences that `find` ignores."""
    composed = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in composed if not c.isspace() and c not in "_-")
