"""`harness grade`: grades one response against one reference answer, and shows every step."""

from __future__ import annotations

import sys

import click

from harness.commands import grade as grading
from harness.core.errors import Exit
from harness.options.finished_runs import GradeCommand
from reasoning_answers.host import failure


def carry_out(options: GradeCommand) -> int:
    """Print the steps to the verdict on one response. Returns the exit code."""
    response = sys.stdin.read() if options.response == "-" else options.response
    verdict = grading.verdict_on(options.reference, response, options, with_steps=True)
    for step in verdict.steps:
        click.echo(step)
    return Exit.YES if failure(verdict.rule) is None else Exit.CANNOT_SAY
