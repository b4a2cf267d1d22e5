"""Equality of answers in words: case, articles, punctuation and commands of layout do not count."""

from __future__ import annotations

from harness.answers.words import exclude, squeezed, unwrapped, words_of
from harness.core.records import GradeRules
from harness.grading.compare.conventions import allows
from harness.grading.compare.scalars import Comparison


def same_words(reference: str, answer: str, rules: GradeRules) -> Comparison:
    """Compare two answers in words; with convention `text_case` off, their case counts.

    Other words may say the same, so they are no refutation, unless both are words of a closed list that exclude one
    another, such as yes and no.
    """
    if allows(rules, "text_case"):
        first, second = words_of(reference), words_of(answer)
        return Comparison(True if first == second else False if exclude(first, second) else None, "words")
    return Comparison(squeezed(unwrapped(reference)) == squeezed(unwrapped(answer)) or None, "words")
