"""Which grades a judge model sees, the request for each, and the verdict of its reply.

Pure: makes requests and reads replies; `judges.judge` sends the requests.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.answers.reasoning import final_part
from harness.core.codec import digest
from harness.core.records import Grade, Question, Sample
from harness.grading.find.values import UNSTATED
from harness.grading.second.judge_prompts import JudgePrompt, render, shown_answer, shown_ending, shown_reply, verdict
from harness.grading.verdict import JUDGE_RULE

Scope = Literal["undecided", "wrong", "all"]
"""Which samples a judge sees: "undecided" ones only; "wrong": undecided and wrong ones; "all": every sample."""

# 96 bits: no two requests of a benchmark share them by chance.
_ID_DIGITS = 24


def in_scope(grade: Grade, scope: Scope) -> bool:
    """Whether the judge sees the sample of this grade."""
    return scope == "all" or grade.verdict == "undecided" or (scope == "wrong" and grade.verdict == "wrong")


def answer_for_judge(grade: Grade) -> str | None:
    """Return the extracted answer as the judge sees it; None if nothing was extracted, or if no known form states it.

    An answer that no known form states may be any number of the last sentence. The judge then reads the end of the
    reply itself (`text_for_judge`).
    """
    if grade.extracted is None or grade.rule == UNSTATED:
        return None
    return shown_answer(grade.extracted) or None


def text_for_judge(sample: Sample, *, whole: bool = False) -> str | None:
    """Return the end of a sample's final part, or its whole reply, as the judge sees it; None without one.

    The judge sees the end if `answer_for_judge` is None, and whole replies if its prompt shows them.
    """
    part = final_part(sample.text, is_apart=bool(sample.reasoning)) if sample.text else None
    if part is None or sample.text is None:
        return None
    return shown_reply(sample.text) if whole else shown_ending(sample.text[slice(*part)]) or None


def judge_question(prompt: JudgePrompt, question: Question, answer: str) -> Question:
    """Return the request to the judge as a question, so that it is sent and stored like any other question.

    answer: from `answer_for_judge` or `text_for_judge`. Equal requests have equal ids.
    """
    messages = render(prompt, question.last_turn, question.references, answer)
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


def vote(reply: Sample, prompt: JudgePrompt) -> bool | None:
    """The verdict of a judge's reply; None without a verdict, and for a truncated reply, whose last word may be cut."""
    return None if reply.truncated else verdict(prompt, reply.text)


def judge_name(model: str, prompt: JudgePrompt) -> str:
    """Return the name of a judge in grades and opinions, such as `judge:org/model@verdict`."""
    return f"judge:{model}@{prompt.name}"


def without_judge(grader: str) -> str:
    """Return the grader before the judge, in the grader of a sample that a judge decided or that none did."""
    return grader.partition("+judge:")[0]


def prompt_of(grader: str) -> str:
    """Return the prompt's name in the grader of a sample that a judge decided (`judge_name`)."""
    return grader.rpartition("@")[2].partition("*")[0]


def apply_ruling(grade: Grade, ruling: bool | None, judge: str, *, override: bool = False) -> Grade:
    """Return the grade after the judge's ruling, which decides undecided grades, or all with `override`.

    A decided grade has the rule `JUDGE_RULE`, also if the judge agrees with the rules: its verdict is the one that
    counts, so an audit must be able to draw it. Its grader is the former one, then the judge. The next score grades
    such a sample by the rules again, since the name differs from theirs.

    ruling: right, wrong, or None: the judge has no verdict, and the grade stays. judge: from `judge_name`.
    """
    if ruling is None or (grade.verdict != "undecided" and not override):
        return grade
    decided = msgspec.structs.replace(grade, rule=JUDGE_RULE, grader=f"{grade.grader}+{judge}")
    if grade.verdict != "undecided" and (grade.verdict == "correct") == ruling:
        return decided
    if ruling:
        return msgspec.structs.replace(decided, verdict="correct", unextracted=False, near_miss=None)
    # An undecided grade has no near miss, but one by another box follows from `unextracted`.
    near_miss = grade.near_miss or ("another box" if grade.unextracted else None)
    return msgspec.structs.replace(decided, verdict="wrong", near_miss=near_miss)
