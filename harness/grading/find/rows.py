"""A reply whose last sentence is a row of named quantities: 所以商是5，余数是2。

Beside a reference that is a row, such a sentence is its answer, with all its quantities: a row is compared name by
name, so that a word of doubt or of another thing (大概鸡, 原来有鸡) is a name that the reference lacks. Boxes and what
stands behind an answer are read by `extract`, and are not read anew here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.answers.boxed import has_box
from harness.grading.bounds import TAIL_CHARS
from harness.grading.find.chinese import LEAD
from harness.grading.find.chinese_answers import conclusion_of
from harness.grading.find.extract import UNSTATED, Extraction, last_sentence
from harness.grading.find.markup import without_markup
from harness.grading.find.surroundings import is_left_standing, is_supposed

_OPEN_TO_ROWS = (UNSTATED, "line", "number", "phrase")
_LABEL = re.compile(rf"\s*(?:{LEAD})*(?:(?:(?:正确|最终|最后)的?)?(?:答(?:案[是为]?)?\s*[:：]|答案[是为]))\s*")
"""A label, perhaps behind a word that concludes: 答：, 故答案为：."""


def with_row_at_end(
    extraction: Extraction, text: str, lo: int, hi: int, is_row: Callable[[str], object | None]
) -> Extraction:
    """Return the row that the last sentence of text[lo:hi] is, in place of a part of it, or of an answer
    that no sentence states.

    is_row: returns None for a text that is no row.
    """
    if extraction.method not in _OPEN_TO_ROWS or extraction.opened_by or has_box(text, lo, hi):
        return extraction
    lo = max(lo, hi - TAIL_CHARS)
    tail = text[lo:hi]
    begin, sentence = last_sentence(tail)
    if extraction.start < lo + begin:
        return extraction
    plain = without_markup(sentence)
    label = _LABEL.match(plain.text)
    stands = not is_supposed(tail, begin) if label is None else is_left_standing(tail, begin, label.group())
    if not stands:
        return extraction
    first = 0 if label is None else label.end()
    span = tuple(first + position for position in conclusion_of(plain.text[first:], tail[:begin]))
    answer = plain.answer(span[0], span[1])
    if is_row(answer) is None:
        return extraction
    start, end = plain.source(span[0], span[1])
    return Extraction(answer, lo + begin + start, lo + begin + end, "line")


__all__ = ["with_row_at_end"]
