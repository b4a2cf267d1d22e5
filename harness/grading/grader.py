"""From a question and a sample to a grade."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harness.core.records import Grade, GradeRules, Question, Sample
from harness.core.records import Verdict as Outcome
from harness.grading.bounds import MAX_CANDIDATES
from harness.grading.compare.canonical import canonical
from harness.grading.compare.equivalence import bare, equal
from harness.grading.find.extract import Found, candidates, extract, extract_from

VERSION = "1"
GRADER = f"rules/{VERSION}"

Judge = Callable[[Question, str], bool | None]
"""What decides an answer that the rules leave undecided: (question, extracted answer) → correct, wrong, or None."""


class Decision(NamedTuple):
    """What the rules say of one extracted answer: the part of a grade that does not depend on the sample."""

    verdict: Outcome
    rule: str
    vote: str | None


def grade(
    question: Question, sample: Sample, *, judge: Judge | None = None, answer_from_reasoning: bool = False
) -> Grade:
    """Grade one sample in this process, without sympy and without a deadline; for many use `pool.grade_all`.

    answer_from_reasoning: where the final part gives no answer, the reasoning is searched as well.
    """
    found = find(question, sample)
    if found is None and answer_from_reasoning:
        found = find_in_reasoning(question, sample)
    if found is None:
        return assemble(sample, None, Decision("no_answer", "no answer", None), present(question, sample, None))
    decision = decide(question, found.answer)
    if decision.verdict == "undecided" and judge is not None:
        ruling = judge(question, found.answer)
        if ruling is not None:
            decision = Decision("correct" if ruling else "wrong", "judge", decision.vote)
    seen = decision.verdict != "correct" and present(question, sample, found)
    return assemble(sample, found, decision, seen)


def find(question: Question, sample: Sample) -> Found | None:
    """The answer of a sample; `sample.reasoning` is never searched."""
    return extract(
        sample.text,
        kind=question.kind,
        several_boxes=several(question),
        truncated=sample.truncated,
        last=last_letter(question),
    )


def find_in_reasoning(question: Question, sample: Sample) -> Found | None:
    """The answer that the reasoning ends with, in a separate field or in the text; its span is of that field."""
    text = sample.reasoning or sample.text
    if not text:
        return None
    return extract_from(
        text, 0, len(text), kind=question.kind, several_boxes=several(question), truncated=True,
        last=last_letter(question),
    )  # fmt: skip


def several(question: Question) -> bool:
    """Boxes side by side are one answer where the card says so or the reference has several parts."""
    return question.rules.several_boxes or question.kind == "multiple"


def last_letter(question: Question) -> str:
    """The letter of the last option."""
    return chr(ord("A") + len(question.choices) - 1) if question.choices else "J"


def decide(question: Question, answer: str) -> Decision:
    """Compare an extracted answer with every reference of the question."""
    rule, undecided = "no reference", False
    for reference in question.references:
        verdict = equal(reference, answer, question.kind, question.rules, question.choices)
        if verdict.equal:
            return Decision("correct", verdict.rule, canonical(answer, question))
        undecided = undecided or verdict.equal is None
        rule = verdict.rule
    return Decision("undecided" if undecided else "wrong", rule, canonical(answer, question))


def present(question: Question, sample: Sample, found: Found | None) -> bool:
    """Does a right answer stand in some other box of the text?"""
    return any(decide(question, other).verdict == "correct" for other in others(sample, found))


def others(sample: Sample, found: Found | None) -> list[str]:
    """Contents of the other boxes, the last first, each once."""
    if not sample.text:
        return []
    taken = found.answer if found is not None else None
    return [c for c in dict.fromkeys(candidates(sample.text, MAX_CANDIDATES)) if c != taken]


def assemble(sample: Sample, found: Found | None, decision: Decision, unextracted: bool) -> Grade:
    """The grade of a sample."""
    return Grade(
        benchmark=sample.benchmark,
        question_id=sample.question_id,
        sample_index=sample.sample_index,
        verdict=decision.verdict,
        extracted=None if found is None else found.answer,
        rule=decision.rule,
        grader=GRADER,
        vote=decision.vote,
        span=None if found is None else (found.start, found.end),
        unextracted=unextracted,
        truncated=sample.truncated,
        completion_tokens=sample.usage.completion_tokens,
    )


__all__ = ["GRADER", "Decision", "GradeRules", "Judge", "bare", "decide", "find", "grade"]
