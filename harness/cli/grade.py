"""`harness grade`: one response against one reference answer, told step by step."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli.spelling import Command
from harness.core.errors import EXIT_UNJUDGED, UsageError
from harness.core.inert import visible

KINDS = ("auto", "integer", "number", "expression", "multiple", "choice", "text")


@click.command("grade", cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("reference")
@click.argument("response", required=False)
@click.option("--kind", type=click.Choice(KINDS), default="auto", show_default=True, help="What the reference is.")
@click.option("--relative-tolerance", type=float, default=0.0, help="Accepted distance, relative to the reference.")
@click.option("--absolute-tolerance", type=float, default=0.0, help="Accepted distance.")
@click.option("--round-to-reference", is_flag=True, help="Accept what rounds to the reference at its own digits.")
@click.option("--choice", "choices", multiple=True, help="Text of an option, in order; for choice questions.")
@click.option("--grader", default="rules", help="A verifier of your own instead of the rules: module:function.")
@click.option("--near-misses", is_flag=True, help="List the near misses of the scored run folder REFERENCE instead.")
@click.option("--deadline", type=float, help="Seconds for the answer, after which it is undecided. Default: 2.")
def command(
    reference: str,
    response: str | None,
    kind: str,
    relative_tolerance: float,
    absolute_tolerance: float,
    round_to_reference: bool,
    choices: tuple[str, ...],
    grader: str,
    near_misses: bool,
    deadline: float | None,
) -> None:
    """Say whether RESPONSE (`-` reads it from standard input) gives the answer REFERENCE, and by which rule.

    The last line is the verdict that `harness score` stores for such a sample.

    \b
    harness grade '1/2' 'So the answer is \\boxed{0.5}.'
    harness grade --near-misses results/qwq-32b
    """
    if near_misses:
        if response is not None:
            raise UsageError("--near-misses goes with a run folder alone")
        _list_near_misses(Path(reference))
        return
    if response is None:
        raise UsageError("RESPONSE is missing: give the model's words, or - to read them from standard input")
    from harness.core.records import GradeRules
    from harness.grading.processes import pool
    from harness.grading.verifier import RAISED
    from harness.presets.grading import DEADLINE_SECONDS

    if not reference.strip():
        raise UsageError("REFERENCE is empty: give the right answer")
    verdict = pool.verdict_on(
        reference,
        sys.stdin.read() if response == "-" else response,
        kind=kind,  # type: ignore[arg-type] # click has checked it
        rules=GradeRules(
            grader=grader,
            relative_tolerance=relative_tolerance,
            absolute_tolerance=absolute_tolerance,
            round_to_reference=round_to_reference,
        ),
        choices=choices,
        deadline_s=deadline if deadline is not None else DEADLINE_SECONDS,
    )
    for step in verdict.steps:
        click.echo(step)
    if verdict.rule.startswith(RAISED):
        sys.exit(EXIT_UNJUDGED)


def _list_near_misses(path: Path) -> None:
    """One line for each wrong answer of a scored run that misses by little, by benchmark and kind."""
    from harness.grading.verdict import NEAR_MISSES
    from harness.runs import Manifest, RunFolder, grades, questions

    run = RunFolder.open(path)
    total = 0
    for benchmark in Manifest.load(run).benchmarks:
        folder = run.benchmark(benchmark)
        references = {question.question_id: question.references for question in questions.read(folder)}
        missed = [grade for grade in grades.read(folder) if grade.near_miss is not None]
        total += len(missed)
        for grade in sorted(missed, key=lambda grade: (grade.near_miss or "", grade.question_id, grade.sample_index)):
            wanted = " or ".join(visible(reference, 60) for reference in references.get(grade.question_id, ()))
            click.echo(
                f"{visible(benchmark)} {visible(grade.question_id, 60)} #{grade.sample_index}: "
                f"{NEAR_MISSES[grade.near_miss]}: "  # type: ignore[index]
                f"reference {wanted}, answer {visible(grade.extracted or '', 60)}"
            )
    if not total:
        click.echo("no near miss")
