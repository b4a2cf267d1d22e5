"""`harness grade`: grades one response against one reference answer, and shows every step."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options import GradeOptions
from harness.cli.flag_words import refuse
from harness.cli.flags import takes
from harness.cli.help import Helping
from harness.core.errors import EXIT_UNJUDGED, UsageError, near_names
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.verbs.grade import NearMiss

_OPTION = re.compile(r"--[A-Za-z][A-Za-z_-]*")


class GradeCommand(Helping):
    """A command whose arguments may begin with a dash, such as `-5`; an unknown long option is still refused."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words. A word that looks like a long option but is no flag is refused, with similar flags."""
        flags = {flag for parameter in self.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        flags.update(self.get_help_option_names(ctx))
        typed = args[: args.index("--")] if "--" in args else args
        for word in typed:
            name = word.partition("=")[0]
            if _OPTION.fullmatch(name) and name not in flags and not ctx.resilient_parsing:
                refuse("grade", name)
                raise click.UsageError(
                    f"No such option: {visible(name, 80)}.{near_names(name, flags)} If it is the reference or "
                    "the response, write -- before it.",
                    ctx,
                )
        return super().parse_args(ctx, args)


@click.command("grade", cls=GradeCommand, context_settings={"ignore_unknown_options": True})
@click.argument("reference")
@click.argument("response", required=False)
@takes(GradeOptions)
@click.option("--near-misses", is_flag=True, help="List the near misses of the scored run folder REFERENCE instead.")
def command(reference: str, response: str | None, near_misses: bool, **given: Any) -> None:
    """Say whether RESPONSE (`-` reads it from standard input) gives the answer REFERENCE, and by which rule.

    The last line is the verdict that `harness score` stores for a sample with this response. With --near-misses,
    REFERENCE is a scored run folder: the wrong answers that miss by little are listed, and RESPONSE is left out.
    With --kind program, REFERENCE is tests in JSON, which the program in RESPONSE must pass in a sandbox.

    \b
    harness grade '1/2' 'So the answer is \\boxed{0.5}.'
    harness grade --near-misses results/qwq-32b
    """
    from harness.grading.verifier import failure
    from harness.verbs import grade as grading

    if near_misses:
        if response is not None:
            raise UsageError("--near-misses takes a run folder and no response")
        lines = [_in_a_line(miss) for miss in grading.near_misses(Path(reference))]
        click.echo("\n".join(lines) or "no near miss")
        return
    if response is None:
        raise UsageError("RESPONSE is missing: give the model's words, or - to read them from standard input")
    options = GradeOptions.of(**given)
    verdict = grading.grade(reference, sys.stdin.read() if response == "-" else response, options, with_steps=True)
    for step in verdict.steps:
        click.echo(step)
    if failure(verdict.rule) is not None:
        sys.exit(EXIT_UNJUDGED)


def _in_a_line(miss: NearMiss) -> str:
    """The near miss in one line: its sample, its kind, the reference and the answer."""
    from harness.grading.verdict import NEAR_MISSES

    grade = miss.grade
    assert grade.near_miss is not None
    references = " or ".join(visible(reference, 60) for reference in miss.references)
    return (
        f"{visible(miss.benchmark)} {visible(grade.question_id, 60)} #{grade.sample_index}: "
        f"{NEAR_MISSES[grade.near_miss]}: reference {references}, answer {visible(grade.extracted or '', 60)}"
    )
