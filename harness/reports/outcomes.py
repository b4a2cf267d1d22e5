"""What became of a sample, in one word: its verdict, and `cut` where `max_tokens` ended a reply that is not right."""

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
"""Every outcome in the order of bars and legends, as a reader knows it."""


def outcome(grade: Grade) -> Outcome:
    """The outcome of one sample; a right answer is correct, cut or not."""
    return "cut" if grade.truncated and grade.verdict != "correct" else grade.verdict


def count(grades: Iterable[Grade]) -> dict[Outcome, int]:
    """How many samples came to each outcome, in the order of `WORDS`; all outcomes, also those of none."""
    found = Counter(map(outcome, grades))
    return {kind: found[kind] for kind in WORDS}
