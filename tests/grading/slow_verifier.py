"""A verifier whose package takes longer to import than an answer may take."""

from __future__ import annotations

import time

from harness.core.records import Question

time.sleep(1.5)


def is_right(answer: str, question: Question) -> bool:
    """Whether the answer is the reference."""
    return answer == question.references[0]
