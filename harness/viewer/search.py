"""Searches for exact text in the samples of a benchmark, by reading the whole journal; filters of `harness show`.

Guarantees: every sample with the text is found, also in a growing run; memory stays within one record. A
search text without capital letters (A–Z) ignores case. The reason for having no index is in `docs/decisions.md`.
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
from harness.scoring.opened import OpenBenchmark
from harness.viewer.rows import ListedSample, Mark, sample_rows, text_of, title

MAX_HITS = 500
"""Number of hits after which a search in the browser ends."""

MAX_SOUGHT_CHARS = 1_000
"""Largest number of characters in a search text."""

CONTEXT_CHARS = 80
"""Characters that a hit shows on either side."""


Part = Literal["question", "text", "reasoning"]
"""Where a hit was found; `question` is its text, its id or a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A question or sample with the text.

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
    """Yield the questions with the text `sought`, then the samples with it in their text or reasoning, in file order.

    Raises `UsageError` for an empty or too long text, `StoreError` when the journal cannot be read.
    """
    if not sought.strip() or len(sought) > MAX_SOUGHT_CHARS:
        raise UsageError(f"the text to search for must have 1 to {MAX_SOUGHT_CHARS} characters.")
    for question in benchmark.questions.values():
        texts = (text_of(question), question.question_id, *question.references)
        yield from _hits(benchmark, question.question_id, None, [("question", text) for text in texts], sought)
    # The forms in which a record can hold the text: in UTF-8, or all escaped if the string holds a lone surrogate.
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
    """Yield a hit for the first of these parts that contains `sought`, with the text around it; none if none does.

    index: of the sample; None: the parts are the question's.
    """
    for part, text in parts:
        # Unlike `str.lower`, this never changes a length.
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
"""For `str.translate`: makes the letters A to Z small, and leaves all others."""


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
