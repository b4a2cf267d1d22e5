"""Searches for exact text in the samples of a benchmark, by reading the whole journal; there is no index.

Guarantees: every sample with the text is found, also in a growing run; memory stays within one record. A
search text without capital letters (A–Z) ignores case. The reason for having no index is in `docs/decisions.md`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from harness.core import codec
from harness.core.errors import StoreError, UsageError
from harness.core.records import Key, VerdictName
from harness.scoring.opened import OpenBenchmark
from harness.viewer.rows import text_of, title

MAX_HITS = 500
"""Number of hits after which a search in the browser ends."""

MAX_SOUGHT_CHARS = 1_000
"""Largest number of characters in a search text."""

CONTEXT_CHARS = 80
"""Characters that a hit shows on either side."""


Part = Literal["question", "text", "reasoning"]


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
    folded = sought == sought.lower()
    yield from _in_questions(benchmark, sought, folded)
    # The forms in which a record can hold the text: in UTF-8, or all escaped if the string holds a lone surrogate.
    text = sought.translate(_LOWER) if folded else sought
    needles = {codec.encode(text)[1:-1], json.dumps(text).encode("ascii")[1:-1]}
    for key, _ in list(benchmark.offsets.in_file_order()):
        line = benchmark.offsets.line(key)
        if any(needle in (line.lower() if folded else line) for needle in needles):
            yield from _in_sample(benchmark, key, sought, folded)


def _in_questions(benchmark: OpenBenchmark, sought: str, folded: bool) -> Iterator[Hit]:
    """Yield a hit for each question whose prompt, id or reference answers contain the text `sought`.

    folded: whether small letters also find capitals.
    """
    for question in benchmark.questions.values():
        for text in (text_of(question), question.question_id, *question.references):
            if (begin := find(text, sought, folded)) >= 0:
                yield _hit(benchmark, Key(question.question_id, -1), "question", text, begin, len(sought))
                break


def _in_sample(benchmark: OpenBenchmark, key: Key, sought: str, folded: bool) -> Iterator[Hit]:
    """Yield the hit in the sample's text or reasoning; none if neither contains `sought` or the record is damaged.

    folded: whether small letters also find capitals.
    """
    try:
        sample = benchmark.offsets.read(key)
    except StoreError:
        return
    parts: tuple[tuple[Part, str | None], ...] = (("text", sample.text), ("reasoning", sample.reasoning))
    for part, text in parts:
        if text is not None and (begin := find(text, sought, folded)) >= 0:
            yield _hit(benchmark, key, part, text, begin, len(sought))
            return


def _hit(benchmark: OpenBenchmark, key: Key, part: Part, text: str, begin: int, length: int) -> Hit:
    """A hit with the text around it. part: the field of the sample or question that holds `text`. begin, length: where
    the match stands in `text`."""
    question, end = benchmark.questions.get(key.question_id), begin + length
    of_sample = part != "question"
    return Hit(
        question_id=key.question_id,
        title="" if question is None else title(benchmark, question),
        sample_index=key.sample_index if of_sample else None,
        verdict=benchmark.verdict(key) if of_sample else None,
        part=part,
        before=text[max(0, begin - CONTEXT_CHARS) : begin],
        match=text[begin:end],
        after=text[end : end + CONTEXT_CHARS],
    )


def find(text: str, sought: str, folded: bool) -> int:
    """Position of `sought` in `text`; -1 if `text` does not contain it. folded: capitals A–Z count as small letters."""
    if not folded:
        return text.find(sought)
    return text.translate(_LOWER).find(sought)  # Unlike `str.lower`, this never changes a length.


_LOWER = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}
