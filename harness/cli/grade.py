"""`harness grade`: grades one response against one reference answer, and shows every step."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.asking.options.finished import GradeCommand
from harness.core.errors import EXIT_COMPLETE, EXIT_UNJUDGED, UsageError
from harness.core.inert import visible
from harness.grading.verdict import NEAR_MISSES
from harness.grading.verifier import failure
from harness.verbs import grade as grading


def carry_out(options: GradeCommand) -> int:
    """Print the steps to the verdict on one response, or the near misses of a run."""
    if options.near_misses:
        if options.response is not None:
            raise UsageError("--near-misses takes a run folder and no response")
        lines = [_in_a_line(miss) for miss in grading.near_misses(Path(options.reference))]
        click.echo("\n".join(lines) or "no near miss")
        return EXIT_COMPLETE
    if options.response is None:
        raise UsageError("RESPONSE is missing: give the model's words, or - to read them from standard input")
    response = sys.stdin.read() if options.response == "-" else options.response
    verdict = grading.grade(options.reference, response, options, with_steps=True)
    for step in verdict.steps:
        click.echo(step)
    return EXIT_COMPLETE if failure(verdict.rule) is None else EXIT_UNJUDGED


def _in_a_line(miss: grading.NearMiss) -> str:
    """The near miss in one line: its sample, its kind, the reference and the answer."""
    grade = miss.grade
    assert grade.near_miss is not None
    references = " or ".join(visible(reference, 60) for reference in miss.references)
    return (
        f"{visible(miss.benchmark)} {visible(grade.question_id, 60)} #{grade.sample_index}: "
        f"{NEAR_MISSES[grade.near_miss]}: reference {references}, answer {visible(grade.extracted or '', 60)}"
    )
