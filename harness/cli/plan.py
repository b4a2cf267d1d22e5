"""`harness plan`: how many samples a difference takes, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.json_output import json_option, say
from harness.cli.spelling import Command
from harness.core.inert import visible


def _prints() -> Any:
    from harness.verbs.plan import Needed

    return list[Needed]


@click.command("plan", cls=Command)
@click.argument("run", metavar="RUN|BENCHMARK", type=click.Path(path_type=Path))
@click.option("--detect", type=float, required=True, metavar="POINTS", help="True difference that is to be found.")
@click.option("--versus", type=click.IntRange(1), help="Samples a question in what this run is compared with.")
@click.option("--price-in", type=click.FloatRange(0), help="USD per million prompt tokens.")
@click.option("--price-out", type=click.FloatRange(0), help="USD per million completion tokens.")
@json_option(_prints, "a list, one plan of each benchmark,")
def command(
    run: Path, detect: float, versus: int | None, price_in: float | None, price_out: float | None, as_json: bool
) -> None:
    """Say how many samples a question it takes to find a true difference of --detect points four times in five, and the
    tokens, time and money. RUN is scored: a pilot of two samples a question, or a former run of such a model.
    For a BENCHMARK's name, the run in results/ is taken whose scores of it are the latest, of those with two samples a
    question, and named.

    The difference is one on these questions, between two runs of as many samples, or beside --versus samples that are
    there already.

    \b
    harness run aime24 --pilot … && harness score results/mine && harness plan results/mine --detect 2
    harness plan aime24 --detect 2
    """
    from harness.cli.pilot import forecast_lines
    from harness.verbs.plan import plan_from, prices_of

    planned = plan_from(run, detect / 100, versus, prices_of(price_in, price_out))
    if not run.exists():
        click.echo(f"from {visible(planned[0].run, 200)}:", err=as_json)
    if as_json:
        say(planned)
        return
    for one in planned:
        name = visible(one.benchmark, 80)
        if one.samples is None or one.forecast is None:
            click.echo(f"{name}: no number of samples finds {detect:g} points beside {versus} samples a question")
            continue
        beside = f"beside {versus} samples that are there" if versus else "in each of two runs"
        click.echo(
            f"{name}: {one.samples:,} samples a question {beside} find a difference of {detect:g} points in 80 % of "
            f"repetitions (accuracy about {100 * one.accuracy:.1f} %, {one.n_questions} questions)"
        )
        for line in forecast_lines(one.forecast, one.concurrency):
            click.echo(f"  {line}")
