"""Equality of answers in words: case, articles, punctuation and commands of layout do not count."""

from __future__ import annotations

from harness.answers.words import squeezed, unwrapped, words_of
from harness.core.records import GradeRules
from harness.grading.compare.conventions import allows


def same_words(reference: str, answer: str, rules: GradeRules) -> bool:
    """Whether two answers in words are the same; with convention `text_case` off, their case counts."""
    if allows(rules, "text_case"):
        return words_of(reference) == words_of(answer)
    return squeezed(unwrapped(reference)) == squeezed(unwrapped(answer))
