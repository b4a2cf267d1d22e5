"""A table of text cells and footnotes; `harness.reports.formats` and `harness.reports.page` print it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.core.sanitize import visible

MAX_CELL_CHARS = 80
"""Maximum length of a run, model or benchmark name in a table, in characters; longer ones are truncated."""

MEANINGS = "sampling: the same questions, sampled again; question: new questions of the same kind"
"""A plain explanation of both intervals for table titles."""

AT_MOST = (
    "at most: the interval for the same questions may be narrower, because one sample per question, or duplicate "
    "samples, cannot show how much the answers vary"
)
"""The footnote for an interval that is only an upper bound."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; false without rows. notes: cells refer to them by [number], from 1. numeric: the right-aligned columns.
    n_names: number of first columns that name a row even if they are numeric, such as a load.

    Cells may contain untrusted text; each format does its own escaping.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numeric: frozenset[int] = field(default_factory=frozenset)
    n_names: int = 1

    def __post_init__(self) -> None:
        assert {len(row) for row in self.rows} <= {len(self.columns)}, f"{self.title}: expected one cell per heading"

    def __bool__(self) -> bool:
        return bool(self.rows)

    @classmethod
    def of(
        cls,
        title: str,
        names: Sequence[str],
        heads: Sequence[str],
        rows: Iterable[Sequence[str]],
        notes: Iterable[str] = (),
    ) -> Table:
        """A table of numbers. names: headings of the columns that name a row. heads: headings of the other columns."""
        columns = (*names, *heads)
        return cls(title, columns, tuple(map(tuple, rows)), tuple(notes), frozenset(range(len(columns))[len(names) :]))


class Notes:
    """The numbered footnotes of a table."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    def mark(self, *texts: str) -> str:
        """The marks of these texts, such as ` [2] [3]`, which follow the text of a cell. Identical texts share a
        number; an empty text has none.
        """
        marks = ""
        for text in filter(None, texts):
            if text not in self.texts:
                self.texts.append(text)
            marks += f" [{self.texts.index(text) + 1}]"
        return marks

    def mark_remarks(self, label: str, benchmark: str, remarks: Sequence[str]) -> str:
        """The mark of remarks on a run's benchmark, such as ` [3]` or ` [3–5]`, each with both names in its note;
        empty if there are none.
        """
        first = len(self.texts) + 1
        self.texts += [f"{short(label)}, {short(benchmark)}: {remark}." for remark in remarks]
        if not remarks:
            return ""
        return f" [{first}]" if len(remarks) == 1 else f" [{first}–{len(self.texts)}]"


def p_cell(value: float) -> str:
    """A p-value with three decimal places."""
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def short(text: str) -> str:
    """A name made inert and truncated to `MAX_CELL_CHARS`."""
    return visible(text, MAX_CELL_CHARS)
