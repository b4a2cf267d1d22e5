"""`harness grade`: one response against one reference answer, told step by step."""

from __future__ import annotations

import math
import resource
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from harness.cli.spelling import Command
from harness.core.errors import UsageError
from harness.core.inert import visible

KINDS = ("integer", "number", "expression", "multiple", "choice", "text")
MAX_CPU_S = 10
MAX_MEMORY_BYTES = 2 << 30


@click.command("grade", cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("reference")
@click.argument("response")
@click.option("--kind", type=click.Choice(KINDS), help="What the reference is. Default: as it looks.")
@click.option("--relative-tolerance", type=float, default=0.0, help="Accepted distance, relative to the reference.")
@click.option("--absolute-tolerance", type=float, default=0.0, help="Accepted distance.")
@click.option("--round-to-reference", is_flag=True, help="Accept what rounds to the reference at its own digits.")
@click.option("--choice", "choices", multiple=True, help="Text of an option, in order; for choice questions.")
def command(
    reference: str,
    response: str,
    kind: str | None,
    relative_tolerance: float,
    absolute_tolerance: float,
    round_to_reference: bool,
    choices: tuple[str, ...],
) -> None:
    """Say whether RESPONSE (`-` reads it from standard input) gives the answer REFERENCE, and by which rule.

    \b
    harness grade '1/2' 'So the answer is \\boxed{0.5}.'
    """
    from harness.core.records import GradeRules
    from harness.grading.explain import explain

    if not reference.strip():
        raise UsageError("REFERENCE is empty: give the right answer")
    for flag, value in (("relative", relative_tolerance), ("absolute", absolute_tolerance)):
        if not 0 <= value < math.inf:
            raise UsageError(f"--{flag}-tolerance {value}: expected a number of at least 0")
    text = sys.stdin.read() if response == "-" else response
    rules = GradeRules(
        relative_tolerance=relative_tolerance,
        absolute_tolerance=absolute_tolerance,
        round_to_reference=round_to_reference,
    )
    _bound_this_process()
    try:
        for line in explain(reference, text, kind=kind, rules=rules, choices=choices):  # type: ignore[arg-type]
            click.echo(visible(line))
    except MemoryError:
        click.echo("undecided: the comparison needs too much memory")


def _bound_this_process() -> None:
    """The answer is hostile: this process, which does nothing else, gives itself a limit of time and memory."""

    def out_of_time(_signal: int, _frame: FrameType | None) -> NoReturn:
        click.echo("undecided: the comparison takes too long")
        sys.exit(0)

    signal.signal(signal.SIGXCPU, out_of_time)
    used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
    resource.setrlimit(resource.RLIMIT_CPU, (used + MAX_CPU_S, used + 2 * MAX_CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
