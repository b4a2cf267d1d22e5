"""The trial of a benchmark's own verifier before a run: it must give a verdict on at least one of two answers.

Which verdict it gives proves nothing, since a reference may say what a reply must fulfil and be no right answer itself.
A verifier that gives no verdict on the reference nor on a wrong answer would leave every sample undecided.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from harness.core.errors import UsageError
from harness.core.inert import quoted, visible
from harness.core.records import Question
from harness.grading import verifier
from harness.grading.bounds import WARMING_SECONDS
from harness.grading.processes.pool import Pool, sample_of
from harness.grading.verdict import Verdict, search
from harness.presets.grading import DEADLINE_SECONDS

TRIAL_SECONDS = WARMING_SECONDS
"""Deadline of one answer in the trial, in seconds; longer than the default of grading, which an option can raise."""

WRONG_ANSWER = "no such answer"
"""The second answer of the trial: a model may give it to any question, and it is wrong for nearly every question."""

JUDGE = "--judge MODEL"
"""The option that names a judge."""

_MAX_CAUSE_CHARS = 240

ALL_TRIES_SECONDS = 120.0
"""The trial of a verifier on both answers ends after this many seconds of the clock, with a verdict or without."""

SLOW_SECONDS = 10.0
"""A trial that takes longer says so, since a person waits for it."""


class Trial(NamedTuple):
    """What the trial of a verifier found. warnings: sentences. deadline: the seconds for an answer that `harness score`
    needs; None if its default is enough.
    """

    warnings: list[str]
    deadline: float | None


def try_verifier(question: Question, *, judged: bool, on_slow: Callable[[str], None]) -> Trial:
    """Call the question's verifier on its reference and on `WRONG_ANSWER`, in a worker as grading does.

    judged: a judge will decide the answers for which the verifier returns None, so None is no lack of a verdict.
    on_slow: gets a sentence if the trial takes longer than `SLOW_SECONDS`.
    Warns if the verifier gives no verdict on one of the two answers, or takes longer than grading allows by default.
    Raises `UsageError` if the verifier gives no verdict on either answer, or takes longer than `TRIAL_SECONDS` on one
    of them or `ALL_TRIES_SECONDS` in all.
    """
    answers = dict.fromkeys((question.references[0], WRONG_ANSWER))
    grader = quoted(question.rules.grader)
    words = (question.messages[-1].content if question.messages else question.prompt).split()
    subject = f'question {visible(question.question_id, 60)} ("{visible(" ".join(words), 60)}")'
    no_verdict = f"the verifier {grader} gives no verdict on {subject}"
    look = _clock(no_verdict, on_slow)
    causes: dict[str, str] = {}
    slow: list[str] = []
    left_open = False
    for answer in answers:
        verdict = _verdict(question, answer, DEADLINE_SECONDS, look)
        if verifier.is_late(verdict.rule):
            slow.append(f'"{visible(answer, 60)}"')
            verdict = _verdict(question, answer, TRIAL_SECONDS, look)
        if verifier.is_late(verdict.rule):
            # No further answer is tried: each would cost as much time again.
            raise UsageError(
                f"{no_verdict}: it {verifier.failure(verdict.rule)} on the answer {slow[-1]}. Make it faster"
            )
        if judged and verdict.rule == verifier.LEFT_OPEN:
            continue
        left_open |= verdict.rule == verifier.LEFT_OPEN
        if (cause := _cause(verdict)) is not None:
            causes[answer] = cause
    warnings: list[str] = []
    deadline = TRIAL_SECONDS if slow else None
    if slow:
        warnings.append(
            f"the verifier {grader} took longer than {DEADLINE_SECONDS:g} s on the answer"
            f"{'s' if len(slow) > 1 else ''} {' and '.join(slow)}, and `harness score` allows {DEADLINE_SECONDS:g} s "
            f"an answer: slower ones count as wrong. Make it faster, or allow more: `harness score` "
            f"with deadline={round(TRIAL_SECONDS)}"
        )
    if not causes:
        return Trial(warnings, deadline)
    why = "; ".join(
        f"{cause} (on the answer{'s' if len(by_cause) > 1 else ''} {' and '.join(by_cause)})"
        for cause, by_cause in _by_cause(causes).items()
    )
    if len(causes) == len(answers):
        raise UsageError(f"{no_verdict}: {why}. Correct it{f', or name the judge ({JUDGE})' if left_open else ''}")
    unjudged = f"they count as wrong, unless a judge decides them ({JUDGE})"
    fate = "the judge decides such samples in its place" if judged else unjudged
    warnings.append(f"the verifier {grader} gives no verdict on some answers to {subject}: {why}; {fate}")
    return Trial(warnings, deadline)


def _by_cause(causes: dict[str, str]) -> dict[str, list[str]]:
    """Return cause → the answers, in quotes, that got no verdict for this cause. causes: answer → cause."""
    return {
        cause: [f'"{visible(answer, 60)}"' for answer in causes if causes[answer] == cause]
        for cause in dict.fromkeys(causes.values())
    }


def _clock(no_verdict: str, on_slow: Callable[[str], None]) -> Callable[[], None]:
    """A function that raises `UsageError`, which begins with `no_verdict`, if called `ALL_TRIES_SECONDS` from now."""
    began = time.monotonic()
    notes = [f"the verifier has not ended in {SLOW_SECONDS:g} s; its trial ends after {ALL_TRIES_SECONDS:g} s"]

    def look() -> None:
        seconds = time.monotonic() - began
        if notes and seconds >= SLOW_SECONDS:
            on_slow(notes.pop())
        if seconds >= ALL_TRIES_SECONDS:
            raise UsageError(f"{no_verdict}, in {ALL_TRIES_SECONDS:g} s of tries on two answers. Make it faster")

    return look


def _verdict(question: Question, answer: str, seconds: float, look: Callable[[], None]) -> Verdict:
    """Return the verdict on this answer by a new worker, which is stopped after `seconds`, or if `look` raises."""
    with Pool(1, seconds) as pool:
        pool.on_wait = look
        sample = sample_of(answer if question.rules.whole_reply else f"\\boxed{{{answer}}}")
        found = search(question, sample, with_steps=True)
        return pool.ask_about(question, sample, found, question.rules.grader, with_steps=True).verdict()


def _cause(verdict: Verdict) -> str | None:
    """Return why the verifier gave no verdict; None if it gave one, or if the answer did not reach the verifier."""
    if verdict.outcome != "undecided":
        return None
    stopped = {
        "time": "it took too long",
        "memory": "it needed too much memory",
        "crash": "it ended its process",
        verifier.ENDED: "it ended its process",
    }
    # For any other rule, a step says what the verifier raised or returned.
    own_words = (step for step in verdict.steps if step.startswith("the verifier "))
    return stopped.get(verdict.rule) or visible(next(own_words, verdict.rule), _MAX_CAUSE_CHARS)
