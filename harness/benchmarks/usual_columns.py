"""The usual names of columns in files of questions, tried in this order if the user names no column.

`find` matches the names of columns: `Correct Answer` is `correct_answer`.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Collection, Iterable

QUESTION_COLUMNS = ("problem", "question", "prompt")
"""Columns of a question as a text."""
ASKED_COLUMNS = (*QUESTION_COLUMNS, "messages")
"""Columns of a question in a file that is asked; in outputs, `messages` may hold the reply too."""
ANSWER_COLUMNS = ("answer", "expected_answer", "final_answer", "correct_answer", "gold", "target", "reference")
"""Columns of the reference answer."""
ID_COLUMNS = ("id",)
"""Columns of the question's id."""


def find(names: Iterable[str], columns: Collection[str]) -> str | None:
    """The column that has the first of these names that any column has; None if there is none.

    A column spelt exactly as the name comes first, then one that differs in case, spaces, underscores and hyphens only.
    """
    by_fold: dict[str, str] = {}  # the first column of each folded name; made only if it is needed
    for name in names:
        if name in columns:
            return name
        if not by_fold:
            for column in columns:
                by_fold.setdefault(_fold(column), column)
        if _fold(name) in by_fold:
            return by_fold[_fold(name)]
    return None


@functools.lru_cache(maxsize=4096)
def _fold(name: str) -> str:
    """The name without the differences of spelling that `find` ignores."""
    composed = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in composed if not c.isspace() and c not in "_-")
