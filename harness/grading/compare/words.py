"""Answers in words compared: case, articles, punctuation and the commands that set them do not matter."""

from __future__ import annotations

from harness.answers.words import squeezed, unwrapped, words_of
from harness.core.records import GradeRules
from harness.grading.compare.conventions import allows


def same_words(one: str, other: str, rules: GradeRules) -> bool:
    """Two answers in words are the same."""
    if allows(rules, "text_case"):
        return words_of(one) == words_of(other)
    return squeezed(unwrapped(one)) == squeezed(unwrapped(other))
