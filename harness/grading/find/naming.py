"""A last sentence that names a reference in words and states no answer by any form: 这个多边形是六边形。 beside 六边形.

Its words may deny or limit the reference, so that it is undecided and a judge or a person sees it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.answers.words import words_of, words_of_sentence
from harness.grading.find.refusals import gives_up

_MAX_CHARS = 160
"""Longest sentence that is read."""

_SENTENCE = re.compile(r"[^。！!？?\n]+[。！!]?\s*\Z")
_NAME = re.compile("[\u3400-\u9fff].*[\u3400-\u9fff]|[A-Za-z]{3}")
"""A word that is no mere particle: two Chinese characters or three letters, at least."""


def naming_sentence(text: str, start: int, end: int, references: Sequence[str]) -> tuple[int, int] | None:
    """Return the span of the last sentence of text[start:end] if it names a reference as a whole word; else None.

    A reply with a box, or one that gives up, has no such sentence.
    """
    tail = text[max(start, end - _MAX_CHARS) : end].rstrip()
    sentence = _SENTENCE.search(tail)
    if sentence is None or "box" in text or gives_up(tail):
        return None
    begin = end - len(text[max(start, end - _MAX_CHARS) : end]) + sentence.start()
    # Spelled as answers in words are compared, so that case and articles do not count.
    words = words_of_sentence(sentence.group())
    # A synonym stands in a sentence as it is typed: 无解, whose words are "no solution".
    names = [reference for reference in references if _NAME.search(reference)]
    named = (*map(words_of, names), *map(str.casefold, names))
    if not any(re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", words) for name in named if name):
        return None
    return begin, begin + len(sentence.group().rstrip())
