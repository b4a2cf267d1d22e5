"""The outcome of a sample in one word: its verdict, or `cut`.

`cut` is the outcome of a reply that is not right and was ended by `max_tokens`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from harness.core.records import Grade

Outcome = Literal["correct", "wrong", "cut", "no_answer", "undecided"]

WORDS: dict[Outcome, str] = {
    "correct": "correct",
    "wrong": "wrong",
    "cut": "cut by max_tokens",
    "no_answer": "no answer",
    "undecided": "undecided",
}
"""The words for every outcome, in the order of bars and legends."""


def outcome(grade: Grade) -> Outcome:
    """The outcome of one sample; a right answer is correct, cut or not."""
    return "cut" if grade.truncated and grade.verdict != "correct" else grade.verdict


def count(grades: Iterable[Grade]) -> dict[Outcome, int]:
    """Samples by outcome, in the order of `WORDS`; outcomes that do not occur have 0."""
    counts = Counter(map(outcome, grades))
    return {kind: counts[kind] for kind in WORDS}
