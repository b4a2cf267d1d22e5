"""Explains why a sample got its verdict: a worker process that can be killed grades it again, and the judges' stored
replies are quoted.
"""

from __future__ import annotations

import shlex

from harness.core.errors import StoreError, UsageError
from harness.core.inert import visible
from harness.core.records import Question, Sample
from harness.grading.processes import pool
from harness.grading.second.judge import without_judge
from harness.scoring.judge_replies import JudgeReply, replies_about
from harness.viewer.library import OpenBenchmark

MAX_JUDGE_CHARS = 600
"""Largest number of characters of a judge's reply that are quoted: its end, where the verdict stands."""

_VERDICTS = {True: "calls the answer correct", False: "calls the answer wrong", None: "gives no verdict"}


def why(benchmark: OpenBenchmark, question: Question, sample: Sample) -> list[str]:
    """Return the steps from the sample's text to its verdict, a sentence each, safe to print; may take seconds.

    The replies of judges come after the steps of the rules, or of the benchmark's own verifier. A verifier whose file
    has changed since the grade explains another verdict; a sentence that says so stands in place of its steps.
    """
    grade = benchmark.grade(sample.key)
    try:
        ((_, verdict),) = pool.verdicts({sample.question_id: question}, [sample], with_steps=True)
        changed = "" if grade is None else _change(question.rules.grader, without_judge(grade.grader), verdict.grader)
        steps = [changed] if changed else list(verdict.steps)
    # The benchmark's own verifier is code that the viewer does not trust, so it does not run.
    except UsageError as error:
        steps = [str(error)]
    if grade is None:
        return steps
    try:
        return [*steps, *map(_words, replies_about(benchmark.folder, question, sample, grade))]
    except StoreError as error:
        return [*steps, f"the judges' replies cannot be read: {error}"]


def _change(verifier: str, then: str, now: str) -> str:
    """A sentence if the file of a verifier has changed since a grade; empty if not, or if another grader graded.

    then, now: the grader of the grade and of a grade of today, each `VERIFIER@CHECKSUM`.
    """
    if then == now or not then.startswith(f"{verifier}@"):
        return ""
    return (
        f"the file of {visible(verifier, 200)} has changed since this grade (SHA-256 began "
        f"{visible(then.rpartition('@')[2], 20)}, now {now.rpartition('@')[2]}): score the run again"
    )


def _words(reply: JudgeReply) -> str:
    """What a judge replied, and the command that shows its request and its whole reply."""
    text = " ".join(reply.text.split())
    # A judge states its verdict on the last line.
    text = text if len(text) <= MAX_JUDGE_CHARS else f"…{text[-MAX_JUDGE_CHARS:]}"
    name = f"{reply.key.question_id}:{reply.key.sample_index}"
    return (
        f"the judge {visible(reply.judge, 200)} {_VERDICTS[reply.vote]}: “{visible(text)}” "
        f"(in full: harness show {visible(shlex.quote(str(reply.folder.source)))} {name})"
    )
