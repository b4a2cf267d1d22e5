"""A grader: a function of the extracted answer and the question."""

from __future__ import annotations

from typing import Any


def is_palindrome(answer: str, question: Any) -> bool:
    """Return whether the answer is a palindrome of the reference's length. The model's text is never evaluated."""
    word = answer.strip()
    return len(word) == int(question.references[0]) and word == word[::-1]
