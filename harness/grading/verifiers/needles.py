"""Texts that a reply must name (RULER)."""

from __future__ import annotations

import json

from harness.core.records import Question
from harness.grading.verifier import Parts


def named(answer: str, question: Question) -> Parts:
    """How many of the texts of the reference the reply names, letter case aside.

    `{"all": [...]}`: each text is a part. `{"any": [...]}`: one of the texts is enough, and is the only part.
    """
    ((how, texts),) = json.loads(question.references[0]).items()
    reply = answer.casefold()
    is_named = [text.casefold() in reply for text in texts]
    return Parts(sum(is_named), len(texts)) if how == "all" else Parts(int(any(is_named)), 1)
