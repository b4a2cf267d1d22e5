"""`harness plan`: how many samples it takes to see a difference, and what they cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options import PlanOptions
from harness.cli.flags import takes
from harness.cli.help import SpelledCommand
from harness.cli.json_output import json_option, say
from harness.core.errors import UsageError, option
from harness.core.inert import visible
from harness.core.nouns import count_noun

if TYPE_CHECKING:
    from harness.verbs.plan import Detectable, Needed
    from harness.verbs.plan_typical import TypicalSpread


def _prints() -> Any:
    """Return the type of what this command prints with `--json`; its JSON schema is made from it."""
    from harness.verbs.plan import Needed

    return list[Needed]


@click.command("plan", cls=SpelledCommand, verb="plan")
@click.argument("runs", metavar="RUN|BENCHMARK[:SAMPLES]...", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option(_prints, "a list, one plan of each benchmark,")
@takes(PlanOptions)
def command(runs: tuple[Path, ...], as_json: bool, **given: Any) -> None:
    """Say how many samples per question it takes to find a true difference of --detect points in 80 % of repetitions,
    and their tokens, time and money. Each RUN is scored and has at least two samples per question: a pilot, or a former
    run of a similar model. For the name of a BENCHMARK, its latest scored run in results/ is used, and named; if there
    is none, the spread that published runs had. BENCHMARK:SAMPLES or RUN:SAMPLES asks the other way round: how small a
    difference do these samples find?

    "In 80 % of repetitions": if the models truly differ by that much and the two runs are made again and again, four
    comparisons of five show the difference; one of five misses it.

    The difference is between two runs of equal size on the same questions, or between a new run and one of --versus
    samples per question.

    \b
    harness run aime24:2 … && harness score results/mine && harness plan results/mine --detect 2
    harness plan aime24 --detect 2
    harness plan aime24:64
    """
    from harness.verbs.plan import check_source, numbered

    sources = [(run, numbered(run)) for run in runs]
    for run, named in sources:
        check_source(named[0] if named else str(run))
    bare = [run for run, named in sources if named is None]
    if given["detect"] is None and (bare or as_json):
        raise UsageError(
            f"give the difference to find, as {option('detect', 2)}"
            + (
                "; --json prints only the samples that a difference needs"
                if as_json
                else f"; or a number of samples behind the name, as in {visible(str(bare[0]), 200)}:64"
            )
        )
    # Checks the other options, also where no difference is given.
    options = PlanOptions.of(**given | {"detect": 1.0 if given["detect"] is None else given["detect"]})
    if given["detect"] is None and (options.price_in is not None or options.price_out is not None):
        raise UsageError(
            f"a cost is computed for a difference to find: add {option('detect', 2)}, or leave out the prices"
        )
    plans = [plan for run, named in sources for plan in _answer(run, named, given["detect"], options, as_json)]
    if as_json:
        say(plans)


def _answer(
    run: Path, named: tuple[str, int] | None, detect: float | None, options: PlanOptions, as_json: bool
) -> list[Needed]:
    """Print what one argument asks; with `as_json`, only return its plans.

    named: the name and the number of samples where the argument has both. detect: the difference to find, in points;
    None: only the number of samples is asked about.
    """
    from harness.verbs.plan import detectable, plan_from

    if named is not None and not as_json:
        for answer in detectable(*named, options.other_samples):
            _print_detectable(answer, options.other_samples)
    if detect is None:
        return []
    plans = plan_from(Path(named[0]) if named else run, options)
    if not run.exists() and plans[0].run:
        click.echo(f"from {visible(plans[0].run, 200)}:", err=as_json)
    if not as_json:
        for plan in plans:
            _print(plan, options)
    return plans


# BENCHMARK:SAMPLES is the one argument that needs no difference; Python has a parameter for it instead.
next(parameter for parameter in command.params if parameter.name == "detect").required = False


def _print_detectable(answer: Detectable, versus: int | None) -> None:
    """Print how small a difference the samples find.

    versus: samples a question that the other run has stored; None: the other run is still to be sampled.
    """
    name = visible(answer.benchmark, 80)
    beside = f"compared with {versus} stored samples" if versus else "in each of two runs"
    click.echo(
        f"{name}: {count_noun(answer.samples, 'sample')} a question {beside} {_find(answer.samples)} a difference of "
        f"{_rounded_up(100 * answer.difference)} points on the same {count_noun(answer.n_questions, 'question')} in 80 "
        f"% of repetitions"
    )
    for points, samples in answer.needed.items():
        n = "no number of samples finds it" if samples is None else f"{count_noun(samples, 'sample')} a question"
        click.echo(f"  {points:g} point{'' if points == 1 else 's'}: {n}")
    if answer.typical is None:
        click.echo(f"  the spread is that of {visible(str(answer.run), 200)}")
        click.echo(_OF_NEW_QUESTIONS)
        return
    assert answer.wide is not None
    click.echo(f"  {_basis(answer.typical)}")
    click.echo(
        f"  for one model in four, the smallest difference is over {100 * answer.wide:.2g} points. "
        "A pilot of your model tells:"
    )
    click.echo(f"  harness run {name}:2 … && harness score results/… && harness plan {name}:{answer.samples}")
    click.echo(_OF_NEW_QUESTIONS)


_OF_NEW_QUESTIONS = "  for a claim about other questions like these, more samples help little; it takes more questions"


def _find(samples: int) -> str:
    """The verb behind a number of samples."""
    return "finds" if samples == 1 else "find"


def _rounded_up(points: float) -> str:
    """A number of points with two digits, never below `points`: fewer samples would not find the printed one."""
    step = 10.0 ** (math.floor(math.log10(points)) - 1)
    return f"{math.ceil(round(points / step, 6)) * step:.6g}"


def _basis(typical: TypicalSpread) -> str:
    """The words on the published models whose spread is assumed."""
    of = "on all benchmarks" if typical.of_all else "on this benchmark"
    return (
        f"results/ holds no scored run of it: the spread is the median of {typical.n_published} published models {of};"
    )


def _print(plan: Needed, options: PlanOptions) -> None:
    """Print how many samples find the difference, and what they cost."""
    from harness.cli.pilot import forecast_lines
    from harness.verbs.plan_typical import typical_spread

    detect, versus = options.detect, options.other_samples
    name = visible(plan.benchmark, 80)
    if plan.samples is None:
        click.echo(
            f"{name}: no number of samples finds {detect:g} point{'' if detect == 1 else 's'} beside {versus} samples "
            "a question"
        )
        return
    beside = f"compared with {versus} stored samples" if versus else "in each of two runs"
    whose = "" if plan.run else ", the median of published models"
    click.echo(
        f"{name}: {count_noun(plan.samples, 'sample')} a question {beside} {_find(plan.samples)} a difference of "
        f"{detect:g} point{'' if detect == 1 else 's'} on the same {count_noun(plan.n_questions, 'question')} in 80 % "
        f"of repetitions (accuracy about {100 * plan.accuracy:.1f} %{whose})"
    )
    if plan.forecast is None:
        basis = _basis(typical_spread(plan.benchmark))
        click.echo(f"  {basis} a pilot of two samples a question measures the spread of your model")
        if options.price_in is not None or options.price_out is not None:
            click.echo("  the cost is unknown until a pilot shows how many tokens a sample takes")
        return
    click.echo("  for this run alone:")
    for line in forecast_lines(plan.forecast, plan.concurrency):
        click.echo(f"  {line}")
