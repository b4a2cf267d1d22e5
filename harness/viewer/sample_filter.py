"""The filters of `harness show`: which samples of a run are listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.core.records import Key, Question, VerdictName
from harness.scoring.opened import OpenBenchmark
from harness.viewer.rows import ListedSample, Mark, sample_rows
from harness.viewer.search import search


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFilter:
    """A filter of samples.

    verdicts: the accepted verdicts; empty: any. marks: all of them that a sample must have. columns: (name,
    value) of metadata that the question must have. text: a text that the sample's text or reasoning must contain.
    """

    verdicts: frozenset[VerdictName] = frozenset()
    marks: frozenset[Mark] = frozenset()
    columns: tuple[tuple[str, str], ...] = ()
    text: str | None = None

    @property
    def everything(self) -> bool:
        """Whether the filter keeps all samples."""
        return self == SampleFilter()

    @property
    def of_grades(self) -> bool:
        """Whether the filter needs a sample's grade."""
        return bool(self.verdicts or self.marks - {"cut"})

    def question(self, question: Question) -> bool:
        """Whether the question has the wanted metadata."""
        return all(column_text(question, name) == value for name, value in self.columns)

    def sample(self, row: ListedSample) -> bool:
        """Whether the sample passes the filter, apart from its text."""
        return (not self.verdicts or row.verdict in self.verdicts) and self.marks <= row.marks.keys()


def column_text(question: Question, name: str) -> str | None:
    """The value of a column of a question's metadata, written as in a filter (`true`, not `True`); None without it."""
    value = question.metadata.get(name)
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def matching_samples(
    benchmark: OpenBenchmark, sample_filter: SampleFilter, question_id: str | None = None
) -> Iterator[tuple[Question, Key]]:
    """Yield the stored samples that pass the filter, question by question; of one question if `question_id` is given.

    Raises `UsageError` for an unknown question, `StoreError` when the journal cannot be read.
    """
    questions = list(benchmark.questions.values()) if question_id is None else [benchmark.question(question_id)]
    holding: set[Key] | None = None
    if sample_filter.text is not None:
        holding = {
            Key(hit.question_id, hit.sample_index)
            for hit in search(benchmark, sample_filter.text)
            if hit.sample_index is not None
        }
    for question in questions:
        if not sample_filter.question(question):
            continue
        for row in sample_rows(benchmark, question.question_id):
            key = Key(question.question_id, row.index)
            if row.stored and sample_filter.sample(row) and (holding is None or key in holding):
                yield question, key
