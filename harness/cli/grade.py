"""`harness grade`: one response against one reference answer, told step by step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options import GradeOptions
from harness.cli.flags import takes
from harness.cli.help import SpelledCommand
from harness.core.errors import EXIT_UNJUDGED, UsageError
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.verbs.grade import NearMiss


@click.command("grade", cls=SpelledCommand, context_settings={"ignore_unknown_options": True})
@click.argument("reference")
@click.argument("response", required=False)
@takes(GradeOptions)
@click.option("--near-misses", is_flag=True, help="List the near misses of the scored run folder REFERENCE instead.")
def command(reference: str, response: str | None, near_misses: bool, **given: Any) -> None:
    """Say whether RESPONSE (`-` reads it from standard input) gives the answer REFERENCE, and by which rule.

    The last line is the verdict that `harness score` stores for such a sample.

    \b
    harness grade '1/2' 'So the answer is \\boxed{0.5}.'
    harness grade --near-misses results/qwq-32b
    """
    from harness.grading.verifier import RAISED
    from harness.verbs import grade as grading

    if near_misses:
        if response is not None:
            raise UsageError("--near-misses goes with a run folder alone")
        lines = [_in_a_line(miss) for miss in grading.near_misses(Path(reference))]
        click.echo("\n".join(lines) or "no near miss")
        return
    if response is None:
        raise UsageError("RESPONSE is missing: give the model's words, or - to read them from standard input")
    options = GradeOptions.of(**given)
    verdict = grading.grade(reference, sys.stdin.read() if response == "-" else response, options)
    for step in verdict.steps:
        click.echo(step)
    if verdict.rule.startswith(RAISED):
        sys.exit(EXIT_UNJUDGED)


def _in_a_line(miss: NearMiss) -> str:
    from harness.grading.verdict import NEAR_MISSES

    grade = miss.grade
    assert grade.near_miss is not None
    references = " or ".join(visible(reference, 60) for reference in miss.references)
    return (
        f"{visible(miss.benchmark)} {visible(grade.question_id, 60)} #{grade.sample_index}: "
        f"{NEAR_MISSES[grade.near_miss]}: reference {references}, answer {visible(grade.extracted or '', 60)}"
    )
