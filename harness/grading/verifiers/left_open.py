"""Answers that only a judge can grade: the verifier for cards whose judge rules on each reply."""

from __future__ import annotations

from harness.core.records import Question


def to_judge(answer: str, question: Question) -> None:
    """Return None, which leaves the answer to a judge; without a judge, it stays undecided."""
