"""Outcomes of replies by the thousand: as `harness.grade` finds them, with each answer decided once."""

from __future__ import annotations

from functools import cache

from harness.core.records import Question
from harness.grading import verdict as deciding
from harness.grading.processes.pool import question_on, sample_of


@cache
def question_with(reference: str) -> Question:
    """The question with this reference."""
    return question_on(reference)


@cache
def verdict_on(reference: str, answer: str) -> deciding.AnswerVerdict:
    """The verdict on an answer, which hundreds of replies give."""
    return deciding.decide(question_with(reference), answer)


def outcome(reference: str, reply: str) -> str:
    """The outcome of a reply: correct, wrong, undecided or no_answer."""
    searched = deciding.search(question_with(reference), sample_of(reply))
    if (extraction := searched.extraction) is None:
        return "no_answer"
    beside = [verdict_on(reference, value) for value in extraction.beside]
    found = searched.unasked or deciding.as_stated(extraction, verdict_on(reference, extraction.answer), beside)
    return found.outcome
