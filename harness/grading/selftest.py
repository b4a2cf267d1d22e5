"""The self-test of a benchmark: the grader must accept each reference as an answer and reject a changed reference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from harness.core.cores import granted_cores
from harness.core.records import Question, Sample
from harness.grading.external_graders import is_elsewhere, require_package
from harness.grading.grades import grade, sample_of
from harness.grading.processes import pool
from harness.grading.verifier import RULES
from reasoning_answers.host import examples_of, is_unread, letter_of, read_calls, with_stated_answers

_NUMBER = re.compile(r"\d+")


class SelfTest(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a self-test: how many references and changed references were graded, and the failures.

    verifiers: the benchmark's own verifiers; questions that they decide are not tested. not_itself: (question id,
    reference) of each reference that was not accepted as its own answer. not_distinct: (question id, reference, changed
    reference) of each changed reference that was accepted. unread: (question id, reference) of each first reference
    that no rule can read.
    """

    n_references: int
    n_changed: int
    verifiers: list[str]
    not_itself: list[tuple[str, str]]
    not_distinct: list[tuple[str, str, str]]
    unread: list[tuple[str, str]] = []

    @property
    def passed(self) -> bool:
        """Whether every reference was accepted and every changed reference was rejected."""
        return not self.not_itself and not self.not_distinct


def self_test(questions: Iterable[Question]) -> SelfTest:
    """Run the self-test: grade each reference as an answer to its own question, and then a changed reference.

    For questions about calls, and questions that an extension decides, example replies are graded instead
    (`_by_examples`).
    """
    n_references = n_changed = 0
    not_itself: list[tuple[str, str]] = []
    not_distinct: list[tuple[str, str, str]] = []
    unread: list[tuple[str, str]] = []
    with_examples: list[Question] = []
    verifiers: set[str] = set()
    for question in map(with_stated_answers, questions):
        if is_elsewhere(question.rules.grader) or question.kind == "calls":
            with_examples.append(question)
            continue
        if question.rules.grader != RULES:
            verifiers.add(question.rules.grader)  # its reference may be a list of conditions rather than a reply
            continue
        # A further reference in words is meant to accept its own text only.
        if question.kind not in ("choice", "text") and any(map(is_unread, question.references[:1])):
            unread.append((question.question_id, question.references[0]))
        for reference in question.references:
            n_references += 1
            if grade(question, boxed_sample(question, reference)).verdict != "correct":
                not_itself.append((question.question_id, reference))
            changed_reference = change(reference)
            if changed_reference is None:
                continue
            n_changed += 1
            if grade(question, boxed_sample(question, changed_reference)).verdict == "correct":
                not_distinct.append((question.question_id, reference, changed_reference))
    for question, is_right, was_accepted in _by_examples(with_examples):
        name, reference = question.question_id, question.references[0]
        n_references += is_right
        n_changed += not is_right
        if is_right and not was_accepted:
            fails = f"the solution of {name} fails its tests"
            not_itself.append((name, reference if question.kind == "calls" else fails))
        elif was_accepted and not is_right:
            passes = "", f"an empty program passes the tests of {name}"
            not_distinct.append((name, *((reference, "other calls") if question.kind == "calls" else passes)))
    return SelfTest(
        n_references=n_references,
        n_changed=n_changed,
        verifiers=sorted(verifiers),
        not_itself=not_itself,
        not_distinct=not_distinct,
        unread=unread,
    )


def _by_examples(questions: Sequence[Question]) -> Iterator[tuple[Question, bool, bool]]:
    """Grade the example replies of questions that have some.

    Yields (question, whether the reply is right, whether it was graded as right).
    """
    replies = [(question, *example) for question in questions for example in _examples(question)]
    by_id = {question.question_id: question for question in questions}
    grades = pool.grade_all(by_id, (sample for *_, sample in replies), workers=granted_cores())
    for (question, is_right, _), graded in zip(replies, grades, strict=True):
        yield question, is_right, graded.verdict == "correct"


def _examples(question: Question) -> Iterator[tuple[bool, Sample]]:
    """Yield (whether it is right, the reply) of the examples of a question about calls, or of an extension."""
    if question.kind == "calls":
        calls = examples_of(question.references[0])
        samples = [None if text is None else sample_of("", read_calls(text)) for text in calls]
    else:
        examples = require_package(question.rules.grader).example_replies(question.references[0]) or ()
        samples = [sample_of(text) for text in examples]
    for is_right, sample in zip((True, False), samples, strict=False):
        if sample is not None:
            yield is_right, msgspec.structs.replace(sample, question_id=question.question_id)


def change(reference: str) -> str | None:
    """Return a wrong answer of the same form: another letter, or all numbers far off; None for an empty reference."""
    if (letter := letter_of(reference)) is not None:
        return "B" if letter == "A" else "A"
    if _NUMBER.search(reference):
        # Far off, so that no tolerance of a card reaches it.
        return _NUMBER.sub(lambda match: str(int(match.group()) * 7 + 5), reference)
    return f"{reference} {reference}x + 1" if reference.strip() else None


def boxed_sample(question: Question, answer: str) -> Sample:
    """Return a sample that gives `answer` in a box."""
    return _sample(question, f"The answer is $\\boxed{{{answer}}}$.")


def _sample(question: Question, text: str) -> Sample:
    """Return a sample outside any run that answers the question with `text`."""
    return msgspec.structs.replace(sample_of(text), question_id=question.question_id)
