"""The trial of a benchmark's own verifier before a run: it must give a verdict on at least one of two answers.

Which verdict it gives proves nothing, since a reference may say what a reply must fulfil and be no right answer itself.
A verifier that gives no verdict on the reference nor on a wrong answer would leave every sample undecided.
"""

from __future__ import annotations

from harness.core.errors import UsageError
from harness.core.inert import quoted, visible
from harness.core.records import Question
from harness.grading.bounds import WARMING_SECONDS
from harness.grading.processes.pool import Pool, sample_of, verdict_with

TRIAL_SECONDS = WARMING_SECONDS
"""Processor time for one answer. Grading allows less by default, but the option `deadline` allows more."""

WRONG_ANSWER = "no such answer"
"""A model may give this answer to any question, and it is wrong for nearly every one."""

_MAX_CAUSE_CHARS = 240


def try_verifier(question: Question) -> str | None:
    """Call the question's verifier on its reference and on `WRONG_ANSWER`, in a worker as grading does.

    Returns a warning if it gives no verdict on one of them. Raises `UsageError` if it gives none on either.
    """
    answers = dict.fromkeys((question.references[0], WRONG_ANSWER))
    with Pool(1, TRIAL_SECONDS) as pool:
        causes = {answer: cause for answer in answers if (cause := _cause(pool, question, answer)) is not None}
    if not causes:
        return None
    grader, question_id = quoted(question.rules.grader), visible(question.question_id, 60)
    why = "; ".join(
        f"{cause} (on the answer{'s' if len(by_cause) > 1 else ''} {' and '.join(by_cause)})"
        for cause, by_cause in _by_cause(causes).items()
    )
    if len(causes) == len(answers):
        raise UsageError(f"the verifier {grader} gives no verdict on question {question_id}: {why}. Correct it")
    return (
        f"the verifier {grader} gives no verdict on some answers to question {question_id}: {why}; they count as wrong"
    )


def _by_cause(causes: dict[str, str]) -> dict[str, list[str]]:
    """The answers without a verdict, in quotes, by the cause. causes: answer → cause."""
    return {
        cause: [f'"{visible(answer, 60)}"' for answer in causes if causes[answer] == cause]
        for cause in dict.fromkeys(causes.values())
    }


def _cause(pool: Pool, question: Question, answer: str) -> str | None:
    """Why the verifier gives no verdict on this answer; None if it gives one, or if the answer never reaches it."""
    text = answer if question.rules.whole_reply else f"\\boxed{{{answer}}}"
    verdict = verdict_with(pool, question, sample_of(text), with_steps=True)
    if verdict.outcome != "undecided":
        return None
    stopped = {
        "time": f"it took longer than {TRIAL_SECONDS:g} s",
        "memory": "it needed too much memory",
        "crash": "it ended its process",
    }
    # Otherwise a step has the verifier as its subject: what it raised or returned.
    own_words = (step for step in verdict.steps if step.startswith("the verifier "))
    return stopped.get(verdict.rule) or visible(next(own_words, verdict.rule), _MAX_CAUSE_CHARS)
