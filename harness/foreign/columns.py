"""Finds the layout of any file by the names of its columns, which the user may specify."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.benchmarks import usual_columns
from harness.benchmarks.sources.tables import Row
from harness.benchmarks.usual_columns import ANSWER_COLUMNS, ID_COLUMNS, QUESTION_COLUMNS
from harness.foreign import verdicts
from harness.foreign.cells import Paths, missing_error
from harness.foreign.formats import GOLD_COLUMNS, RESPONSE_COLUMNS, Layout
from harness.foreign.rows import GRADED
from harness.foreign.verdicts import GivenVerdicts


class Keys(NamedTuple):
    """The user's names for the columns of the response, reference, question, question id and sample number; None: the
    usual names.
    """

    response_key: str | None = None
    answer_key: str | None = None
    question_key: str | None = None
    id_key: str | None = None
    sample_key: str | None = None


def layout_of(first: Row, keys: Keys, judged: GivenVerdicts = GRADED, *, in_benchmark: bool = False) -> Layout:
    """The layout of a file with this first row. Raises `UsageError` if a column is missing; with verdicts, only if the
    user named it.

    Each column has one use: a column that the user names is never guessed for another use, nor is the response column
    taken for the reference. in_benchmark: whether a benchmark has the references, so that the file may omit them.
    """
    named = frozenset(usual_columns.find((name,), first.value) for name in (*keys, judged.key) if name is not None)

    def find(field: str, role: str, usual: Iterable[str] = (), taken: Paths = ()) -> Paths:
        """The column that the user names, or the first of the usual names that the row has."""
        free = [name for name in first.value if name not in named and name not in taken]
        key: str | None = getattr(keys, field)
        column = usual_columns.find(usual, free) if key is None else usual_columns.find((key,), first.value)
        if column is None and key is not None:
            raise missing_error(first, key, role, field)
        return () if column is None else (column,)

    response = find("response_key", "the response", RESPONSE_COLUMNS)
    answer = find("answer_key", "the reference", (*GOLD_COLUMNS, *ANSWER_COLUMNS), response)
    if judged.key is None and not response:
        raise missing_error(first, None, "the response", "response_key", answer if in_benchmark else ())
    if judged.key is None and not (answer or in_benchmark):
        raise missing_error(first, None, "the reference", "answer_key")
    return Layout(
        "this file",
        (*response, *answer) if judged.key is None else (),
        reply=response,
        answer=answer,
        question=find("question_key", "the question", QUESTION_COLUMNS),
        question_id=find("id_key", "the id", ID_COLUMNS if judged.key is None else verdicts.ID_COLUMNS),
        sample=find("sample_key", "the sample's number"),
        id_is_certain=keys.id_key is not None or judged.key is not None,
        named=named,
    )
