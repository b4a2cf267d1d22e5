"""The search and the filters that select samples of a run.

A search scans the whole journal for exact text: it finds every sample with the text, even in a run in progress, and
holds one record at a time in memory. A search text without capital letters (A–Z) ignores case. `docs/decisions.md`
explains why there is no index.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.core import codec
from harness.core.errors import StoreError, UsageError
from harness.core.records import Key, Question, VerdictName
from harness.scoring.run_reader import OpenBenchmark
from harness.viewer.rows import ListedSample, Mark, sample_rows, text_of, title

MAX_HITS = 500
"""Number of hits after which a search in the browser stops."""

MAX_SOUGHT_CHARS = 1_000
"""Longest search text, in characters."""

CONTEXT_CHARS = 80
"""Number of characters shown on each side of a match."""


Part = Literal["question", "text", "reasoning"]
"""Where a hit was found; `question` is its text, its id or a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A question or sample that contains the search text.

    title: as in `QuestionRow`. sample_index: None for a question. verdict: the verdict that counts; None if the sample
    is not graded. part: the first field that contains the text. before, match, after: the match and the text around it.
    """

    question_id: str
    title: str
    sample_index: int | None
    verdict: VerdictName | None
    part: Part
    before: str
    match: str
    after: str


def search(benchmark: OpenBenchmark, sought: str) -> Iterator[Hit]:
    """Yield the questions that contain `sought`, then the samples with it in their text or reasoning, in file order.

    Raises `UsageError` for an empty or too long text, `StoreError` when the journal cannot be read.
    """
    if not sought.strip() or len(sought) > MAX_SOUGHT_CHARS:
        raise UsageError(f"the search text must be 1 to {MAX_SOUGHT_CHARS} characters long.")
    for question in benchmark.questions.values():
        texts = (text_of(question), question.question_id, *question.references)
        yield from _hits(benchmark, question.question_id, None, [("question", text) for text in texts], sought)
    # A record can contain the text in UTF-8, or fully escaped if the string contains a lone surrogate.
    folded = sought == sought.lower()
    text = sought.translate(_LOWER) if folded else sought
    needles = {codec.encode(text)[1:-1], json.dumps(text).encode("ascii")[1:-1]}
    for key, line in benchmark.offsets.in_file_order():
        searched = line.lower() if folded else line
        if any(needle in searched for needle in needles):
            with contextlib.suppress(StoreError):  # a damaged record
                sample = benchmark.offsets.parsed(key, line)
                parts: list[tuple[Part, str]] = [("text", sample.text or ""), ("reasoning", sample.reasoning or "")]
                yield from _hits(benchmark, key.question_id, key.sample_index, parts, sought)


def _hits(
    benchmark: OpenBenchmark, question_id: str, index: int | None, parts: Sequence[tuple[Part, str]], sought: str
) -> Iterator[Hit]:
    """Yield a hit for the first part that contains `sought`, with the surrounding text; nothing if no part does.

    index: the sample's index; None: the parts belong to the question.
    """
    for part, text in parts:
        # Unlike `str.lower`, this never changes the length.
        begin = (text.translate(_LOWER) if sought == sought.lower() else text).find(sought)
        if begin >= 0:
            question, end = benchmark.questions.get(question_id), begin + len(sought)
            yield Hit(
                question_id=question_id,
                title="" if question is None else title(benchmark, question),
                sample_index=index,
                verdict=None if index is None else benchmark.verdict(Key(question_id, index)),
                part=part,
                before=text[max(0, begin - CONTEXT_CHARS) : begin],
                match=text[begin:end],
                after=text[end : end + CONTEXT_CHARS],
            )
            return


_LOWER = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}
"""Table for `str.translate` that lowercases the letters A to Z only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFilter:
    """A filter of samples.

    verdicts: the accepted verdicts; empty: any. marks: the marks that a sample must all have. columns: (name, value) of
    metadata that the question must have. text: a string that the sample's text or reasoning must contain.
    """

    verdicts: frozenset[VerdictName] = frozenset()
    marks: frozenset[Mark] = frozenset()
    columns: tuple[tuple[str, str], ...] = ()
    text: str | None = None
    why: str | None = None
    """The grade's rule, or one of its signs of calls."""

    @property
    def keeps_all(self) -> bool:
        """Whether the filter keeps all samples."""
        return self == SampleFilter()

    @property
    def needs_grade(self) -> bool:
        """Whether the filter needs a sample's grade."""
        return bool(self.verdicts or self.why or self.marks - {"cut"})

    def question(self, question: Question) -> bool:
        """Whether the question has the required metadata."""
        return all(column_text(question, name) == value for name, value in self.columns)

    def sample(self, benchmark: OpenBenchmark, key: Key, row: ListedSample) -> bool:
        """Whether the sample meets all conditions of the filter but the search for a text."""
        if (self.verdicts and row.verdict not in self.verdicts) or not self.marks <= row.marks.keys():
            return False
        grade = None if self.why is None else benchmark.grade(key)
        return self.why is None or (grade is not None and self.why in (grade.rule, *(grade.call_signs or ())))


def column_text(question: Question, name: str) -> str | None:
    """The value of a question's metadata column, written as in a filter (`true`, not `True`); None if there is none."""
    value = question.metadata.get(name)
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def matching_samples(
    benchmark: OpenBenchmark, sample_filter: SampleFilter, question_id: str | None = None
) -> Iterator[tuple[Question, Key]]:
    """Yield the stored samples that pass the filter, by question; only those of `question_id` if it is given.

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
            if row.stored and (holding is None or key in holding) and sample_filter.sample(benchmark, key, row):
                yield question, key
