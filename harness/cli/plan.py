"""`harness plan`: how many samples it takes to see a difference, and what they cost."""

from __future__ import annotations

import math
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
    from harness.verbs.plan import Detectable, Needed, PlanSource
    from harness.verbs.plan_typical import TypicalSpread


def _prints() -> Any:
    """Return the type of what this command prints with `--json`; its JSON schema is made from it."""
    from harness.verbs.plan import Needed

    return list[Needed]


@click.command("plan", cls=SpelledCommand, verb="plan")
@click.argument("runs", metavar="RUN|BENCHMARK[:SAMPLES]...", nargs=-1, required=True)
@json_option(_prints, "a list, one plan of each benchmark,")
@takes(PlanOptions)
def command(runs: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Say how many samples per question it takes to find a true difference of --detect points in 80 % of repetitions,
    and their tokens, time and money. Each RUN is scored and has at least two samples per question: a pilot, or a former
    run of a similar model. For the name of a BENCHMARK, its latest scored run in results/ is used, and named; if there
    is none, the spread that published runs had. BENCHMARK:SAMPLES or RUN:SAMPLES asks the other way round: how small a
    difference do these samples find?

    "In 80 % of repetitions": if the models truly differ by that much and the two runs are made again and again, four
    comparisons of five show the difference; one of five misses it.

    The difference is between two runs of equal size on the same questions, or between a new run and one of --versus
    samples per question. Several benchmarks are planned for one `harness compare` of all of them: it corrects their p
    values together, so each needs more samples than alone.

    \b
    harness run aime24:2 … && harness score results/mine && harness plan results/mine --detect 2
    harness plan aime24 --detect 2
    harness plan aime24:64
    """
    from harness.verbs.plan import n_benchmarks, prices_of, sources_of

    sources = sources_of(runs)
    bare = [source for source in sources if source.samples is None]
    if given["detect"] is None and (bare or as_json):
        raise UsageError(
            f"give the difference to find, as {option('detect', 2)}"
            + (
                "; --json prints the samples that it needs, and beside a number of samples what they find"
                if as_json
                else f"; or a number of samples behind the name, as in {visible(bare[0].name, 200)}:64"
            )
        )
    # Checks the other options, also where no difference is given.
    options = PlanOptions.of(**given | {"detect": 1.0 if given["detect"] is None else given["detect"]})
    if given["detect"] is None and (options.price_in is not None or options.price_out is not None):
        raise UsageError(
            f"a cost is computed for a difference to find: add {option('detect', 2)}, or leave out the prices"
        )
    prices_of(options.price_in, options.price_out)  # Refuses one price without the other, before any output.
    n_together = n_benchmarks(sources)
    plans = [plan for source in sources for plan in _answer(source, n_together, given["detect"], options, as_json)]
    if as_json:
        say(plans)
    elif n_together > 1:
        click.echo(
            f"The {n_together} benchmarks are planned for one `harness compare`, which corrects their p values "
            "together; compared alone, each needs fewer samples. Their mean is not planned: `harness sweep` shows it "
            "for a suite."
        )


def _answer(
    source: PlanSource, n_together: int, detect: float | None, options: PlanOptions, as_json: bool
) -> list[Needed]:
    """Print what one argument asks; with `as_json`, only return its plans.

    n_together: benchmarks that are compared together. detect: the difference to find, in points; None: only the number
    of samples is asked about.
    """
    from harness.verbs.plan import detectable, plan_from

    if source.samples is not None and not as_json:
        for answer in detectable(source, options, n_together):
            _print_detectable(answer, options)
    if detect is None:
        return []
    plans = plan_from(source, options, n_together)
    if source.of_card and plans[0].run:
        click.echo(f"from {visible(plans[0].run, 200)}:", err=as_json)
    if not as_json:
        for plan in plans:
            _print(plan, options, source)
    return plans


# BENCHMARK:SAMPLES is the one argument that needs no difference; Python has a parameter for it instead.
next(parameter for parameter in command.params if parameter.name == "detect").required = False


def _print_detectable(answer: Detectable, options: PlanOptions) -> None:
    """Print how small a difference the samples find."""
    versus = options.other_samples
    name = visible(answer.benchmark, 80)
    beside = f"compared with {versus} stored samples" if versus else "in each of two runs"
    click.echo(
        f"{name}: {count_noun(answer.samples, 'sample')} a question {beside} {_find(answer.samples)} a difference of "
        f"{_points(_rounded_up(100 * answer.difference))} on the same {count_noun(answer.n_questions, 'question')} in "
        f"80 % of repetitions"
    )
    for points, samples in answer.needed.items():
        n = "no number of samples finds it" if samples is None else f"{count_noun(samples, 'sample')} a question"
        click.echo(f"  {_points(f'{points:g}')}: {n}")
    if answer.typical is None:
        click.echo(f"  the spread is that of {visible(str(answer.run), 200)}")
        click.echo(_OF_NEW_QUESTIONS)
        return
    assert answer.wide is not None
    click.echo(f"  {_basis(answer.typical, options)}")
    click.echo(
        f"  for one model in four, the smallest difference is over {100 * answer.wide:.2g} points. "
        "A pilot of your model tells:"
    )
    click.echo(f"  harness run {name}:2 … && harness score results/… && harness plan {name}:{answer.samples}")
    click.echo(_OF_NEW_QUESTIONS)


_OF_NEW_QUESTIONS = "  for a claim about other questions like these, more samples help little; it takes more questions"


def _points(number: str) -> str:
    """A number of points with its noun."""
    return f"{number} point{'' if number == '1' else 's'}"


def _find(samples: int) -> str:
    """The verb behind a number of samples."""
    return "finds" if samples == 1 else "find"


def _rounded_up(points: float) -> str:
    """A number of points with two digits, never below `points`: fewer samples would not find the printed one."""
    step = 10.0 ** (math.floor(math.log10(points)) - 1)
    return f"{math.ceil(round(points / step, 6)) * step:.6g}"


def _basis(typical: TypicalSpread, options: PlanOptions) -> str:
    """The words on the published models whose spread is taken."""
    models = f"{typical.n_published} published models"
    if typical.of_all:
        spread = f"nobody publishes a spread on it: it is taken from {models} on other benchmarks"
    else:
        spread = f"the spread is the median of {models} on this benchmark"
    if options.accuracy is not None or typical.of_all:
        spread += f", scaled to an accuracy of {100 * typical.accuracy:.1f} %"
    else:
        spread += f", whose accuracy is about {100 * typical.accuracy:.1f} %"
    return f"results/ holds no scored run of it, and {spread};"


def _print(plan: Needed, options: PlanOptions, source: PlanSource) -> None:
    """Print how many samples find the difference, and what they cost."""
    from harness.cli.pilot import forecast_lines
    from harness.verbs.plan_typical import typical_spread

    detect, versus = options.detect, options.other_samples
    name = visible(plan.benchmark, 80)
    if plan.samples is None:
        click.echo(f"{name}: no number of samples finds {_points(f'{detect:g}')} beside {versus} samples a question")
        return
    beside = f"compared with {versus} stored samples" if versus else "in each of two runs"
    percent = f"{100 * plan.accuracy:.1f} %"
    if options.accuracy is not None:
        accuracy = f"accuracy {percent}, as given"
    elif plan.basis == "models on all benchmarks":
        accuracy = f"accuracy {percent} assumed, where the spread is largest"
    else:
        accuracy = f"accuracy about {percent}{'' if plan.run else ', the median of published models'}"
    click.echo(
        f"{name}: {count_noun(plan.samples, 'sample')} a question {beside} {_find(plan.samples)} a difference of "
        f"{_points(f'{detect:g}')} on the same {count_noun(plan.n_questions, 'question')} in 80 % "
        f"of repetitions ({accuracy})"
    )
    if plan.run and plan.forecast is None:
        click.echo("  outputs of another tool do not say how long a sample takes, so time and cost are unknown")
        return
    if plan.forecast is None:
        typical = typical_spread(source.name, plan.accuracy if options.accuracy is not None else None)
        basis = _basis(typical, options)
        click.echo(f"  {basis} a pilot of two samples a question measures the spread of your model")
        if options.price_in is not None or options.price_out is not None:
            click.echo("  the cost is unknown until a pilot shows how many tokens a sample takes")
        return
    click.echo("  to extend this run to that size:")
    for line in forecast_lines(plan.forecast, plan.concurrency):
        click.echo(f"  {line}")
