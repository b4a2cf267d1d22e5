"""What a judge model is asked, and what its verdicts do to grades. Pure; who asks it stands above this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from harness.core.checksums import digest
from harness.core.records import Grade, Question, Sample
from harness.grading.find.reasoning import final_part
from harness.grading.second.judge_prompts import JudgePrompt, render, shown_answer, shown_ending
from harness.grading.verdict import GRADER

Scope = Literal["undecided", "wrong", "all"]
"""Which samples a judge sees: those that the rules left undecided · also those that they call wrong · all."""

_ID_DIGITS = 24


def in_scope(grade: Grade, scope: Scope) -> bool:
    """Is the judge to see this sample?"""
    return scope == "all" or grade.verdict == "undecided" or (scope == "wrong" and grade.verdict == "wrong")


def shown(grade: Grade) -> str | None:
    """The extracted answer as the judge sees it; None where there is nothing to show."""
    return shown_answer(grade.extracted) or None if grade.extracted is not None else None


def shown_instead(sample: Sample) -> str | None:
    """What the judge sees of a sample without an extracted answer: the end of what follows the reasoning, if any."""
    part = final_part(sample.text) if sample.text else None
    if part is None or sample.text is None:
        return None
    return shown_ending(sample.text[slice(*part)]) or None


def judge_question(prompt: JudgePrompt, question: Question, answer: str) -> Question:
    """What the judge is asked about `answer` (see `shown`). Equal requests have one id."""
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
    """The question's words: the last turn of the user, or the raw prompt."""
    turns = [message.content for message in question.messages if message.role == "user"]
    return turns[-1] if turns else question.prompt


def majority(votes: Sequence[bool | None]) -> bool | None:
    """What most of the votes say; None for a tie. A vote without a verdict (None) does not count."""
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
