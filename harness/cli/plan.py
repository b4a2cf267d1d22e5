"""`harness plan`: shows how many samples it takes to detect a difference, and what they cost."""

from __future__ import annotations

import math

import click

from harness.cli.json_output import print_json
from harness.commands.plan import Needed, plan, sources_of
from harness.core.number_text import count_noun, count_points, duration, in_percent
from harness.core.records import MAX_SAMPLES
from harness.core.sanitize import visible
from harness.generation.forecast import Forecast
from harness.options.decisions import PlanCommand, PlanOptions


def carry_out(options: PlanCommand) -> None:
    """Print the plan of each benchmark."""
    plans = plan(sources_of(options.runs), options)
    if options.as_json:
        print_json(plans)
        return
    for needed in plans:
        _print(needed, options)
    if options.plots is not None:
        click.echo(f"plot: {visible(str(options.plots / 'plan.svg'))}")


def _print(needed: Needed, options: PlanOptions) -> None:
    """Print the plan of one benchmark."""
    name, is_margin, points = visible(needed.benchmark, 80), options.is_margin, options.points(needed.accuracy)
    noun, verb, equal = ("margin", "show", ", if both are equally good") if is_margin else ("difference", "detect", "")
    questions = f"on the same {count_noun(needed.n_questions, 'question')} (80% power{equal})"
    what = '"not worse by {} or more"' if is_margin else "a difference of {}"
    target = what.format(count_points(f"{points or 0:g}"))
    if options.recovery is not None:
        target = f"a recovery of more than {options.recovery:g}%"

    def finds(samples: int, effect: str, *, can: bool = True) -> None:
        """Print what a number of samples can, or cannot, detect."""
        runs = f"{count_noun(samples, 'sample')} per question in each of two runs"
        does = f"{verb}{'s' if samples == 1 else ''}" if can else f"cannot {verb}"
        click.echo(f"{name}: {runs} {does} {effect} {questions}")

    if needed.floor_fails is not None:
        fails = f"fails {in_percent(needed.floor_fails)}% of the runs of an unchanged model"
        if needed.floor_loss is not None:
            loss = count_points(_rounded_up(100 * needed.floor_loss))
            fails += f", and detects a loss of {loss} (80% power)"
        click.echo(f"{name}: a floor of {options.floor:g}% {fails}")
    if needed.given_samples is not None and needed.smallest_difference is not None:
        is_possible = needed.smallest_difference <= needed.largest_possible(loss=is_margin)
        smallest = what.format(count_points(_rounded_up(100 * needed.smallest_difference)))
        effect = smallest if is_possible else f"even the largest possible {noun}"
        finds(needed.given_samples, effect, can=is_possible)
    if needed.samples is not None:
        finds(needed.samples, target)
    elif needed.least_difference is not None:
        least = count_points(_rounded_up(100 * needed.least_difference))
        effect = f"can {verb} {target}; the smallest possible {noun} is {least}"
        click.echo(f"{name}: no number of samples up to {MAX_SAMPLES:,} {effect}")
    click.echo(f"  {_basis(needed, options)}")
    if needed.forecast is not None:
        first, *more = forecast_lines(needed.forecast, needed.concurrency)
        for line in (f"for each run, from its start: {first}", *more):
            click.echo(f"  {line}")


def _basis(needed: Needed, options: PlanOptions) -> str:
    """The text that says where the plan's accuracy and spread come from."""
    percent = f"{in_percent(needed.accuracy)}%"
    if needed.run:
        return f"accuracy (about {percent}) and spread from {visible(needed.run, 200)}"
    median = f"the median of {needed.n_published} published scores of {needed.basis}"
    if options.accuracy is None:
        return f"accuracy (about {percent}) and spread from {median}"
    return f"accuracy {percent}, as specified; spread from {median}, scaled to this accuracy"


def _rounded_up(points: float) -> str:
    """A number of points with one decimal, or two digits below 1, rounded up so that the planned samples can detect the
    printed number.
    """
    step = min(0.1, 10.0 ** (math.floor(math.log10(points)) - 1))
    return f"{math.ceil(round(points / step, 6)) * step:.6g}"


MIN_IN_MILLIONS = 10_000
"""Smallest error, in tokens, for which token counts are printed in millions."""


def forecast_lines(ahead: Forecast, concurrency: int) -> list[str]:
    """The samples, tokens, time, and cost of a run, as lines.

    concurrency: the number of concurrent requests that the forecast assumes.
    """
    in_flight = f"with {count_noun(concurrency, 'request')} in flight"
    shortest, longest = duration(ahead.least_s), duration(ahead.most_s)
    time = f"about {shortest} {in_flight}"
    if shortest != longest:
        time = (
            f"{shortest} to {longest} {in_flight} (shorter if each stream keeps its speed, longer if "
            "the total speed stays the same)"
        )
    lines = [
        f"{count_noun(ahead.n_samples, 'sample')}, {_tokens(ahead.tokens, ahead.tokens_error)}",
        f"  time: {time}",
    ]
    if ahead.usd is not None:
        lines.append(f"  cost: about {ahead.usd:,.2f} USD")
    return lines


def _tokens(number: float, error: float) -> str:
    """The number of tokens with its error, in millions if the error is large enough (`MIN_IN_MILLIONS`).

    An error below 1 token means that the error is unknown, and is not printed.
    """
    if error >= MIN_IN_MILLIONS:
        return f"{number / 1e6:,.2f} ± {error / 1e6:,.2f} million new tokens"
    return f"about {number:,.0f}{f' ± {error:,.0f}' if error >= 1 else ''} new tokens"
