"""Verdicts on samples of questions: decided by the rules or the benchmark's own verifier, and stored as grades."""

from __future__ import annotations

from functools import partial

import msgspec

from harness.core.records import UNSTATED_REASON, Grade, Question, Sample
from harness.grading import verifier
from reasoning_answers import verdict as verdicts
from reasoning_answers.find.values import UNSTATED
from reasoning_answers.rulings import LEFT_OPEN, failure
from reasoning_answers.search import find_stated, search
from reasoning_answers.steps import REASONS, meaning
from reasoning_answers.verdict import GRADER, Verdict, conclude


def decide(question: Question, answer: str, *, with_steps: bool = False) -> Verdict:
    """Return the verdict on an extracted answer: that of the rules, or of the verifier that the question names.

    with_steps: describe the comparison.
    """
    return verdicts.decide(question, answer, with_steps=with_steps, ask=verifier.ask)


def grade(question: Question, sample: Sample, *, answer_from_reasoning: bool = False) -> Grade:
    """Grade one sample in this process, without a deadline; for hostile text use `processes.pool`.

    answer_from_reasoning: search the reasoning as well if the final part has no answer.
    """
    searched = search(question, sample, answer_from_reasoning=answer_from_reasoning)
    grader = GRADER if question.rules.grader == verifier.RULES else verifier.identity(question.rules.grader)
    return grade_of(conclude(question, searched, partial(decide, question), grader=grader), sample)


def grade_of(verdict: Verdict, sample: Sample) -> Grade:
    """Return a verdict as the grade record to store for `sample`."""
    return Grade(
        benchmark=sample.benchmark,
        question_id=sample.question_id,
        sample_index=sample.sample_index,
        verdict=verdict.outcome,
        extracted=verdict.extracted,
        rule=verdict.rule,
        grader=verdict.grader,
        vote=verdict.vote,
        span=verdict.span,
        unextracted=verdict.unextracted,
        near_miss=verdict.near_miss,
        truncated=None if sample.finish_reason == UNSTATED_REASON else sample.truncated,
        completion_tokens=sample.usage.completion_tokens,
        parts=msgspec.UNSET if verdict.parts is None else verdict.parts,
        call_signs=msgspec.UNSET if verdict.call_signs is None else verdict.call_signs,
        points=msgspec.UNSET if verdict.points is None else verdict.points,
    )


def given(sample: Sample) -> Verdict:
    """The verdict that another tool's file states for a sample, whose reply is not graded; a fraction counts as a
    fraction of one point. Undecided if the sample has no verdict.
    """
    if sample.verdict is msgspec.UNSET:
        return Verdict("undecided", verifier.GIVEN, grader=verifier.GIVEN)
    return Verdict(
        "correct" if sample.verdict == 1 else "wrong",
        verifier.GIVEN,
        grader=verifier.GIVEN,
        steps=(f"the verdict, a score of {sample.verdict:g}, was given in the file; nothing was graded here",),
        points=None if sample.verdict in (0, 1) else (sample.verdict, 1.0),
    )


def why_undecided(question: Question, sample: Sample, grade: Grade) -> str:
    """Return in words why a grade is undecided; words of the reply that leave it open are quoted."""
    if grade.rule == LEFT_OPEN:
        return "the benchmark's own verifier returned None, which leaves the answer to a judge"
    if (failed := failure(grade.rule)) is not None:
        return f"the benchmark's own verifier {failed} instead of returning True, False or Parts"
    if grade.rule not in REASONS:
        return "no rule can tell whether the answer equals the reference"
    extraction = find_stated(question, sample) if grade.rule == UNSTATED else None
    return meaning(grade.rule, extraction)
