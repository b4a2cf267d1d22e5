"""`harness plan`: how many samples it takes to see a difference, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options import PlanOptions
from harness.cli.flags import takes
from harness.cli.help import SpelledCommand
from harness.cli.json_output import json_option, say
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.verbs.plan import Needed


def _prints() -> Any:
    from harness.verbs.plan import Needed

    return list[Needed]


@click.command("plan", cls=SpelledCommand, verb="plan")
@click.argument("run", metavar="RUN|BENCHMARK", type=click.Path(path_type=Path))
@json_option(_prints, "a list, one plan of each benchmark,")
@takes(PlanOptions)
def command(run: Path, as_json: bool, **given: Any) -> None:
    """Say how many samples per question find a true difference of --detect points four times in five, and their
    tokens, time and money. RUN is scored and has at least two samples per question: a pilot, or a former run of such a
    model. For a BENCHMARK's name, the latest scored run of it in results/ is used, and named.

    The difference is one on the same questions, asked again: between two runs of equal size, or beside a run of
    --versus samples per question.

    \b
    harness run aime24 --pilot … && harness score results/mine && harness plan results/mine --detect 2
    harness plan aime24 --detect 2
    """
    from harness.verbs.plan import plan_from

    options = PlanOptions.of(**given)
    planned = plan_from(run, options)
    if not run.exists():
        click.echo(f"from {visible(planned[0].run, 200)}:", err=as_json)
    if as_json:
        say(planned)
        return
    for plan in planned:
        _print(plan, options)


def _print(plan: Needed, options: PlanOptions) -> None:
    from harness.cli.pilot import forecast_lines

    detect, versus = options.detect, options.other_samples
    name = visible(plan.benchmark, 80)
    if plan.samples is None or plan.forecast is None:
        click.echo(f"{name}: no number of samples finds {detect:g} points beside {versus} samples a question")
        return
    beside = f"compared with {versus} stored samples" if versus else "in each of two runs"
    click.echo(
        f"{name}: {plan.samples:,} samples a question {beside} find a difference of {detect:g} points in 80 % of "
        f"repetitions (accuracy about {100 * plan.accuracy:.1f} %, {plan.n_questions} questions)"
    )
    for line in forecast_lines(plan.forecast, plan.concurrency):
        click.echo(f"  {line}")
