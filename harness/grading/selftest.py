"""The grader against a benchmark's own references: each must equal itself and must not equal itself changed."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from harness.answers.letters import letter_of
from harness.core.records import Question, Sample, Timing
from harness.grading.verdict import grade

_NUMBER = re.compile(r"\d+")


class SelfTest(msgspec.Struct, frozen=True, kw_only=True):
    """How many references and changed references were graded, and the failures.

    not_itself: (question id, reference) that did not equal itself. not_distinct: (question id, reference, changed
    reference) that was accepted.
    """

    n_references: int
    n_changed: int
    not_itself: list[tuple[str, str]]
    not_distinct: list[tuple[str, str, str]]

    @property
    def passed(self) -> bool:
        """Every reference equals itself and none equals its change."""
        return not self.not_itself and not self.not_distinct


def self_test(questions: Iterable[Question]) -> SelfTest:
    """Grade each reference of `questions` in a box against itself, and against a changed one where there is one."""
    n_references = n_changed = 0
    not_itself: list[tuple[str, str]] = []
    not_distinct: list[tuple[str, str, str]] = []
    for question in questions:
        for reference in question.references:
            n_references += 1
            if grade(question, boxed(question, reference)).verdict != "correct":
                not_itself.append((question.question_id, reference))
            changed_reference = changed(reference)
            if changed_reference is None:
                continue
            n_changed += 1
            if grade(question, boxed(question, changed_reference)).verdict == "correct":
                not_distinct.append((question.question_id, reference, changed_reference))
    return SelfTest(n_references=n_references, n_changed=n_changed, not_itself=not_itself, not_distinct=not_distinct)


def changed(reference: str) -> str | None:
    """A wrong answer of the same form: another letter, or every number far off; None for an empty reference."""
    if (letter := letter_of(reference)) is not None:
        return "B" if letter == "A" else "A"
    if _NUMBER.search(reference):
        # Far off, so that no tolerance of a card reaches it.
        return _NUMBER.sub(lambda match: str(int(match.group()) * 7 + 5), reference)
    return f"{reference} {reference}x + 1" if reference.strip() else None


def boxed(question: Question, answer: str) -> Sample:
    """A sample that gives `answer` in a box."""
    return Sample(
        benchmark=question.benchmark,
        question_id=question.question_id,
        sample_index=0,
        text=f"The answer is $\\boxed{{{answer}}}$.",
        reasoning=None,
        finish_reason="stop",
        timing=Timing(started=0.0, total=0.0),
        endpoint="self-test",
    )
