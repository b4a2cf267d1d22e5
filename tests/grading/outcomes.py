"""Outcomes of replies by the thousand: as `harness.grade` finds them, with each answer decided once."""

from __future__ import annotations

from functools import cache

from harness.core.records import Question
from harness.grading import verdict as deciding
from harness.grading.processes.pool import question_on, sample_of


@cache
def asked(reference: str) -> Question:
    """The question with this reference."""
    return question_on(reference)


@cache
def decided(reference: str, answer: str) -> deciding.AnswerVerdict:
    """The verdict on an answer, which hundreds of replies give."""
    return deciding.decide(asked(reference), answer)


def outcome(reference: str, reply: str) -> str:
    """The outcome of a reply: correct, wrong, undecided or no_answer."""
    searched = deciding.search(asked(reference), sample_of(reply))
    if (extraction := searched.extraction) is None:
        return "no_answer"
    beside = [decided(reference, value) for value in extraction.beside]
    found = searched.unasked or deciding.as_stated(extraction, decided(reference, extraction.answer), beside)
    return found.outcome
