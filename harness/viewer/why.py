"""Explains why a sample got its verdict: a worker process that can be killed grades it again, and the judges' stored
replies are quoted.
"""

from __future__ import annotations

import shlex

from harness.core.errors import StoreError, UsageError
from harness.core.hidden_limit import checksum_of
from harness.core.inert import visible
from harness.core.records import Grade, Key, Sample
from harness.grading.processes import pool
from harness.grading.second.judge_messages import without_judge
from harness.grading.second.judge_rulings import JudgeRuling
from harness.grading.verdict import JUDGE_RULE, Verdict
from harness.scoring.judge_replies import JudgeReply, replies_about
from harness.scoring.opened import OpenBenchmark

MAX_JUDGE_CHARS = 600
"""Largest number of characters of a judge's reply that are quoted: its end, where the verdict stands."""

_OUTCOMES = {"correct": "correct", "wrong": "wrong", "no_answer": "without an answer", "undecided": "undecided"}
"""Verdict of a grader → its words behind "the sample is" and "calls the answer"."""


def why(benchmark: OpenBenchmark, key: Key) -> list[str]:
    """Return the steps from the text of a sample to its verdict, a sentence each, safe to print; may take seconds.

    The replies of judges come after the steps of the rules, or of the benchmark's own verifier. Steps explain a stored
    verdict only if the rules and the grader of that verdict give it again; else a sentence stands in their place.
    Raises `UsageError` for an unknown question, `StoreError` for a sample that is missing or damaged.
    """
    question, sample, grade = benchmark.question(key.question_id), benchmark.offsets.read(key), benchmark.grade(key)
    as_graded = benchmark.as_graded(question, grade)
    if as_graded is None:
        steps = [
            "this verdict was made neither by the rules with which the run began nor by those that its card has now, "
            "so its steps are not known: score the run again"
        ]
    else:
        try:
            verdict = pool.verdict_on(as_graded, sample)
            doubt = None if grade is None else _doubt(grade, verdict, sample)
            steps = list(verdict.steps) if doubt is None else [doubt]
        # The benchmark's own verifier is code that the viewer does not trust, so it does not run.
        except UsageError as error:
            steps = [str(error)]
    try:
        replies = [] if grade is None else replies_about(benchmark.folder, question, sample, grade)
    except StoreError as error:
        return [*steps, f"the judges' replies cannot be read: {error}"]
    return [*steps, *map(_words, replies)]


def _doubt(grade: Grade, verdict: Verdict, sample: Sample) -> str | None:
    """A sentence if the steps of a verdict of today do not explain the stored grade; None if they explain it.

    They do if the same grader, about the same reply, ends in the stored verdict by the stored rule. A judge decides
    after the grader, which then has to end in "undecided", or in the judge's own verdict.
    """
    is_same = without_judge(grade.grader) == verdict.grader and grade.reply_checksum in (None, checksum_of(sample))
    if is_same and grade.rule == JUDGE_RULE:
        if verdict.outcome in ("undecided", grade.verdict):
            return None
        return f"the rules call the answer {_OUTCOMES[verdict.outcome]}, and a judge decided in their place"
    if is_same and (verdict.outcome, verdict.rule) == (grade.verdict, grade.rule):
        return None
    return (
        f"graded again by {visible(verdict.grader, 200)}, the sample is now {_OUTCOMES[verdict.outcome]} (rule: "
        f"{visible(verdict.rule, 60)}), so the steps to the stored verdict, by {visible(grade.grader, 200)}, are not "
        "known: score the run again, all samples anew"
    )


def _ruled(ruling: JudgeRuling | None) -> str:
    """What a judge does by its ruling, in words."""
    if ruling is None:
        return "gives no verdict"
    if ruling.points is not None:
        return f"gives {ruling.points[0]:g} of {ruling.points[1]:g} points"
    return f"calls the answer {ruling.verdict if ruling.verdict != 'no_answer' else 'not attempted'}"


def _words(reply: JudgeReply) -> str:
    """What a judge replied, and the command that shows its request and its whole reply."""
    text = " ".join(reply.text.split())
    # A judge states its verdict on the last line.
    text = text if len(text) <= MAX_JUDGE_CHARS else f"…{text[-MAX_JUDGE_CHARS:]}"
    name = f"{reply.key.question_id}:{reply.key.sample_index}"
    return (
        f"the judge {visible(reply.judge, 200)} {_ruled(reply.ruling)}: “{visible(text)}” "
        f"(in full: harness show {visible(shlex.quote(str(reply.folder.source)))} {name})"
    )
