"""The answer that a reference states if the reference is a worked solution: the 18 of `2 · 9 = 18 … #### 18`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from reasoning_answers.bounds import LAST_LETTER
from reasoning_answers.kinds import kind_of
from reasoning_answers.records import AnswerKind, QuestionLike

Q = TypeVar("Q", bound=QuestionLike)

_COMMAND = re.compile(r"\\[A-Za-z]+|\{[A-Za-z]+\}")
_WORD = re.compile(r"[A-Za-z]{3,}")
_FORMULA = re.compile(r"[\d$\\]")
_MIN_WORDS = 5
"""A reference with this many words around a number or a formula is a worked solution; so is one with two words and two
lines.
"""
_STATES = frozenset(("box", "boxes", "phrase"))
"""Methods by which a worked solution states its answer; any other value may be an intermediate one."""


@lru_cache(maxsize=4_096)
def stated_in(reference: str) -> str | None:
    """The answer that a worked solution states, None if it states none; any other reference unchanged."""
    _, hashes, behind = reference.rpartition("####")  # as in GSM8K
    if hashes:
        return (behind.strip() if "\n" not in behind.strip() else "") or None
    if not _is_solution(reference):
        return reference
    from reasoning_answers.find.extract import extract_from  # imported late: most references are answers

    # The kind reveals nothing about the answer that is searched for.
    stated = extract_from(
        reference, 0, len(reference), kind="expression", parts=None, truncated=False, last=LAST_LETTER
    )
    return stated.answer if stated is not None and stated.method in _STATES else None


def _is_solution(reference: str) -> bool:
    if "</answer>" in reference:
        return True
    words = len(_WORD.findall(_COMMAND.sub("", reference)))
    return (words >= _MIN_WORDS or (words > 1 and "\n" in reference.strip())) and bool(_FORMULA.search(reference))


def with_stated_answers(question: Q) -> Q:
    """The question with the answers that its references state, for comparison by the rules."""
    if not question.rules.is_built_in or question.kind in ("program", "calls"):
        return question
    references, kind = _stated(question.references, question.kind)
    if references == question.references:
        return question
    return cast(Q, replace(cast(Any, question), references=references, kind=kind))


@lru_cache(maxsize=4_096)
def _stated(references: tuple[str, ...], kind: AnswerKind) -> tuple[tuple[str, ...], AnswerKind]:
    """The answers that references state and their kind."""
    stated = tuple(stated_in(reference) or reference for reference in references)
    if stated == references:
        return references, kind
    return stated, kind_of(stated[0]) if kind == kind_of(references[0]) else kind
