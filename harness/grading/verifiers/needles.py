"""Texts that a reply must name (RULER)."""

from __future__ import annotations

import json

from harness.core.records import Question


def named(answer: str, question: Question) -> bool:
    """Whether the reply holds the texts of the reference, letter case aside: `{"all": [...]}` or `{"any": [...]}`."""
    ((how, texts),) = json.loads(question.references[0]).items()
    reply = answer.casefold()
    held = (text.casefold() in reply for text in texts)
    return all(held) if how == "all" else any(held)
