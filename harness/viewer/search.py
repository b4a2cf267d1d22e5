"""Searches for exact text in the samples of a benchmark, by reading the whole journal; there is no index.

Guarantees: every sample with the text is found, also in a growing run; memory stays within one block and one record. A
search text without capital letters (A–Z) ignores case. The reason for having no index is in `docs/decisions.md`.
"""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

from harness.core import codec
from harness.core.errors import StoreError, UsageError
from harness.core.files import open_untrusted
from harness.core.records import Key, VerdictName
from harness.viewer.library import OpenBenchmark
from harness.viewer.rows import text_of, title

BLOCK_BYTES = 4 * 1024 * 1024
"""Bytes of the journal that are read at a time; progress is reported after each of these blocks."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """The progress of a search, with new hits. done, total: bytes of the journal. hits: those since the step before."""

    done: int
    total: int
    hits: tuple[Hit, ...]


def search(benchmark: OpenBenchmark, sought: str, most: float = math.inf) -> Generator[SearchStep]:
    """Yield the questions with the text `sought`, then the samples with it in their text or reasoning, in file order.

    Yields the progress after each block. most: samples after which the search ends. Raises `UsageError` for an empty or
    too long text, `StoreError` when the journal cannot be read.
    """
    if not sought.strip() or len(sought) > MAX_SOUGHT_CHARS:
        raise UsageError(f"the text to search for must have 1 to {MAX_SOUGHT_CHARS} characters.")
    folded = sought == sought.lower()
    # The forms in which a record can hold the text, as bytes.
    needles = _as_stored(sought.translate(_LOWER) if folded else sought)
    # The end of a block is searched again with the next one, for a text that lies in both.
    keep = max(map(len, needles)) - 1
    places = list(benchmark.offsets.in_file_order())
    starts = [location.offset for _, location in places]
    total = places[-1][1].offset + places[-1][1].length if places else 0
    done = n_hits = 0
    looked_at = -1  # number of the last record that was searched
    tail = b""  # the end of the block before
    yield SearchStep(done=0, total=total, hits=_in_questions(benchmark, sought, folded))
    try:
        with open_untrusted(benchmark.folder.samples) as file:
            while n_hits < most and done < total and (block := file.read(min(BLOCK_BYTES, total - done))):
                data = tail + block
                base = done - len(tail)
                haystack = data.lower() if folded else data
                hits = []
                match = _first(haystack, needles, 0)
                while match >= 0 and n_hits < most:
                    number = bisect.bisect_right(starts, base + match) - 1
                    if number > looked_at:  # Only whole records are searched, each once.
                        looked_at = number
                        hit = _in_sample(benchmark, places[number][0], sought, folded)
                        if hit is not None:
                            hits.append(hit)
                            n_hits += 1
                    after = starts[number + 1] - base if number + 1 < len(starts) else len(data)
                    match = _first(haystack, needles, after)
                done += len(block)
                tail = data[-keep:] if keep else b""
                ended = starts[looked_at] + places[looked_at][1].length if n_hits >= most else done
                yield SearchStep(done=ended, total=total, hits=tuple(hits))
    except OSError as error:
        raise StoreError(f"cannot read {benchmark.folder.samples}: {error.strerror or error}.") from error


def _in_questions(benchmark: OpenBenchmark, sought: str, folded: bool) -> tuple[Hit, ...]:
    """Return a hit for each question whose prompt, id or reference answers contain the text `sought`.

    folded: whether small letters also find capitals.
    """
    hits = []
    for question in benchmark.questions.values():
        for text in (text_of(question), question.question_id, *question.references):
            if (begin := find(text, sought, folded)) >= 0:
                hits.append(
                    _around(
                        text,
                        begin,
                        len(sought),
                        (question.question_id, title(benchmark, question)),
                        None,
                        None,
                        "question",
                    )
                )
                break
    return tuple(hits)


def _in_sample(benchmark: OpenBenchmark, key: Key, sought: str, folded: bool) -> Hit | None:
    """Return the hit in the sample's text or reasoning; None if neither contains `sought` or the record is damaged.

    folded: whether small letters also find capitals.
    """
    try:
        sample = benchmark.offsets.read(key)
    except StoreError:
        return None
    parts: tuple[tuple[Part, str | None], ...] = (("text", sample.text), ("reasoning", sample.reasoning))
    for part, text in parts:
        if text is not None and (begin := find(text, sought, folded)) >= 0:
            verdict = benchmark.verdict(key)
            question = benchmark.questions.get(key.question_id)
            named = (key.question_id, "" if question is None else title(benchmark, question))
            return _around(text, begin, len(sought), named, key.sample_index, verdict, part)
    return None


def _around(
    text: str,
    begin: int,
    length: int,
    named: tuple[str, str],
    sample_index: int | None,
    verdict: VerdictName | None,
    part: Part,
) -> Hit:
    """A hit with the text around it. begin, length: where the match stands in `text`.

    named: id and title of the question. part: the field of the sample or question in which the text stands.
    sample_index, verdict: None for a hit in a question.
    """
    return Hit(
        question_id=named[0],
        title=named[1],
        sample_index=sample_index,
        verdict=verdict,
        part=part,
        before=text[max(0, begin - CONTEXT_CHARS) : begin],
        match=text[begin : begin + length],
        after=text[begin + length : begin + length + CONTEXT_CHARS],
    )


def _as_stored(text: str) -> list[bytes]:
    """Return the bytes of `text` as a record's string stores them: in UTF-8, or all escaped if the string holds a lone
    surrogate.
    """
    return list(dict.fromkeys((codec.encode(text)[1:-1], json.dumps(text).encode("ascii")[1:-1])))


def _first(haystack: bytes, needles: list[bytes], start: int) -> int:
    """Return the position at which the first of these texts begins, from `start` on; -1 if none occurs."""
    return min((begin for needle in needles if (begin := haystack.find(needle, start)) >= 0), default=-1)


def find(text: str, sought: str, folded: bool) -> int:
    """Position of `sought` in `text`; -1 if `text` does not contain it. folded: capitals A–Z count as small letters."""
    if not folded:
        return text.find(sought)
    return text.translate(_LOWER).find(sought)  # Unlike `str.lower`, this never changes a length.


_LOWER = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}
