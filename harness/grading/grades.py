"""Verdicts on samples of questions: decided by the rules or the benchmark's own verifier, and stored as grades."""

from __future__ import annotations

from functools import partial

import msgspec

from harness.core.records import UNSTATED_REASON, Grade, Question, Sample, SentCall, Timing
from harness.grading import verifier
from reasoning_answers import Verdict, host
from reasoning_answers.host import GRADER, conclude, search


def sample_of(response: str, calls: tuple[SentCall, ...] | msgspec.UnsetType = msgspec.UNSET) -> Sample:
    """Return a response as a sample that belongs to no run."""
    return Sample(
        benchmark="",
        question_id="",
        sample_index=0,
        text=response,
        reasoning=None,
        finish_reason="stop",
        timing=Timing(started=0.0, total=0.0),
        endpoint="",
        calls=calls,
    )


def decide(question: Question, answer: str, *, with_steps: bool = False) -> Verdict:
    """Return the verdict on an extracted answer: that of the rules, or of the verifier that the question names.

    with_steps: describe the comparison.
    """
    return host.decide(question, answer, with_steps=with_steps, ask=verifier.ask)


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


def foreign_verdict(sample: Sample) -> Verdict:
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
