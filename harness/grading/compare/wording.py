"""Answers in words that no rule reads: 30平方米地面, 7是质数, "30 square metres of floor".

Such an answer equals its own text and no other. As a further reference it is one more wording of the other references,
so that an answer that is proven to differ from these is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from harness.answers.boxed import without_boxes
from harness.answers.grammar.characters import plain_latex
from harness.answers.grammar.literals import Unreadable
from harness.answers.grammar.numerals import IN_WORDS, number_in_words
from harness.answers.grammar.parse import parse
from harness.answers.grammar.tree import walk
from harness.answers.grammar.units import is_counted, unit_of
from harness.answers.words import numeral_as_digits, stands_for_value
from harness.grading.compare.dates import day_of

_NUMBER = re.compile(
    rf"\d+(?:\.\d+)?|[零〇一二两三四五六七八九十百千万亿半]+|{IN_WORDS.pattern.removeprefix('(?i)')}", re.I
)


@lru_cache(maxsize=1_024)
def unread_words(reference: str) -> str:
    """Return the first words of a reference that no rule reads; empty if the grammar reads all of it, or reads none.

    Words that are read: units, what was counted, numbers, days, names of values, and words for a value, such as "no
    solution".
    """
    text = numeral_as_digits(without_boxes(reference))
    if stands_for_value(text) or day_of(text) is not None:
        return ""
    try:
        tree = parse(text)
    except (Unreadable, RecursionError):
        return ""
    names = [side for node in walk(tree) if node.op == "rel" for side in node.args[0]]  # 面积 in 面积是30
    for node in walk(tree):
        words = str(node.args[1]) if node.op == "quantity" else str(node.args[0]) if node.op == "text" else ""
        counts = node.op == "quantity" and is_counted(words)
        if words and not counts and unit_of(words) is None and not stands_for_value(words) and node not in names:
            return words
    return ""


def is_another_wording(further: str, references: Sequence[str], answer: str) -> bool:
    """Whether a further reference says in words what the others say, so that `answer`, which does not have its text,
    is right only if it equals one of them.

    A number that no other reference has may be another value: beside 5, "x等于3" leaves the answer 3 undecided.
    references: all references of the question; the first is never another wording.
    """
    if further == references[0] or not unread_words(further):
        return False
    others = (reference for reference in references if reference == references[0] or not unread_words(reference))
    return not _numbers(answer) or _numbers(further) <= frozenset[str]().union(*map(_numbers, others))


@lru_cache(maxsize=1_024)
def _numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text, those in words as digits."""
    return frozenset(number_in_words(match) or match for match in _NUMBER.findall(plain_latex(text)))
