"""Which grades a judge model sees, the request for each, and the majority of its votes. Pure: `verbs.judge` sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from harness.core.codec import digest
from harness.core.records import Grade, Question, Sample
from harness.grading.find.reasoning import final_part
from harness.grading.second.judge_prompts import JudgePrompt, render, shown_answer, shown_ending
from harness.grading.verdict import GRADER

Scope = Literal["undecided", "wrong", "all"]
"""Which samples a judge sees: "undecided" ones only; "wrong": those too that the rules call wrong; "all"."""

_ID_DIGITS = 24


def in_scope(grade: Grade, scope: Scope) -> bool:
    """Whether the judge sees the sample of this grade."""
    return scope == "all" or grade.verdict == "undecided" or (scope == "wrong" and grade.verdict == "wrong")


def shown(grade: Grade) -> str | None:
    """The extracted answer as the judge sees it; None if there is nothing to show."""
    return shown_answer(grade.extracted) or None if grade.extracted is not None else None


def shown_instead(sample: Sample) -> str | None:
    """What the judge sees of a sample without an extracted answer: the end of its final part; None without one."""
    part = final_part(sample.text) if sample.text else None
    if part is None or sample.text is None:
        return None
    return shown_ending(sample.text[slice(*part)]) or None


def judge_question(prompt: JudgePrompt, question: Question, answer: str) -> Question:
    """The request to the judge about `answer`, which `shown` returned, as a question. Equal requests have equal ids."""
    messages = render(prompt, _asked(question), question.references, answer)
    sent = digest([[message.role, message.content] for message in messages])
    return Question(
        benchmark=question.benchmark,
        question_id=sent[:_ID_DIGITS],
        messages=messages,
        references=question.references,
        kind="text",
        metadata={"question_id": question.question_id},
        row_digest=question.row_digest,
        prompt_digest=sent,
    )


def _asked(question: Question) -> str:
    """The text of the question: the last turn of the user, or the raw prompt."""
    turns = [message.content for message in question.messages if message.role == "user"]
    return turns[-1] if turns else question.prompt


def majority(votes: Sequence[bool | None]) -> bool | None:
    """The verdict of most votes; None for a tie. A vote without a verdict (None) does not count."""
    balance = votes.count(True) - votes.count(False)
    return None if balance == 0 else balance > 0


def grader_name(model: str, prompt: JudgePrompt, votes: int) -> str:
    """The `grader` of a grade that this judge decided: another name than the rules', so that they grade it anew."""
    return f"{GRADER}+judge:{model}@{prompt.name}{f'*{votes}' if votes > 1 else ''}"


def judged(grade: Grade, ruling: bool | None, grader: str, *, override: bool = False) -> Grade:
    """The grade after the judge's ruling: decided by it where the rules decided nothing, or wherever `override`."""
    if ruling is None or (grade.verdict != "undecided" and not override):
        return grade
    if grade.verdict != "undecided" and (grade.verdict == "correct") == ruling:
        return grade
    return msgspec.structs.replace(
        grade,
        verdict="correct" if ruling else "wrong",
        rule="judge",
        grader=grader,
        unextracted=grade.unextracted and not ruling,
        near_miss=None if ruling else grade.near_miss,
    )
