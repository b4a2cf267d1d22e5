"""`harness plan`: how many samples it takes to see a difference, and what they cost."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options import PlanOptions
from harness.cli import terminal
from harness.cli.flags import takes
from harness.cli.help import SpelledCommand
from harness.cli.json_output import json_option, say
from harness.core.errors import option
from harness.core.inert import visible
from harness.core.limits import MAX_SAMPLES
from harness.core.nouns import count_noun, count_points, count_questions, in_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.verbs.plan import OutOfReach, Planned
    from harness.verbs.plan_typical import TypicalSpread


CANDIDATES = (3, 6)
"""Numbers of candidates beside one baseline for which a plan says how much more they take."""

MIN_GROWTH = 1.1
"""A plan says how much of its difference comes from the growth of the variance if that is more than this factor."""


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
    difference do these samples find? A file of your own questions may stand for a BENCHMARK.

    "In 80 % of repetitions": if the models truly differ by that much and the two runs are made again and again, four
    comparisons of five show the difference; one of five misses it.

    The difference is between two new runs of equal size on the same questions; with --versus, between a new run (RUN is
    taken as this one) and a stored one of so many samples; with --published-samples, between a new run and a published
    score, as `harness verify` finds it. Several benchmarks are planned for one `harness compare` of all of them, and so
    is their mean: it corrects their p values together, so each benchmark needs more samples than alone.

    --margin plans another verdict of `harness compare`: that a new run is not worse by so many points or more. So many
    samples show it in 80 % of repetitions, if both models are equally good.

    \b
    harness run aime24:2 … && harness score results/mine && harness plan results/mine --detect 2
    harness plan aime24 --detect 2
    harness plan aime24:64
    harness plan aime24 --detect 2 --published-samples 64
    harness plan aime24 --margin 1
    """
    from harness.verbs.plan import n_tests_of, plan
    from harness.verbs.plan_sources import sources_of

    options = PlanOptions.of(**given)
    plans = plan(sources_of(runs), options)
    if options.accuracy is not None and options.accuracy < 1:
        terminal.warn(
            f"an accuracy is in per cent, and {options.accuracy:g} means {options.accuracy:g} %: for "
            f"{100 * options.accuracy:g} % give {option('accuracy', f'{100 * options.accuracy:g}')}"
        )
    named = ""
    for planned in plans:
        run = "" if planned.source.of_run else planned.needed.run
        if run and run != named:
            click.echo(f"from {visible(run, 200)}:", err=as_json)
        named = run
        if not as_json:
            _print(planned, options)
    if as_json:
        say([planned.needed for planned in plans])
        return
    _print_pilot(plans, options)
    if len(plans) > 1 and not options.published_samples:
        _print_mean(plans, options)
    # A published score is verified by a test that is corrected for nothing else.
    if not options.published_samples:
        _print_candidates(n_tests_of(options, len(plans)))
    if options.stored_samples and any(planned.beyond for planned in plans):
        _print_new_runs(plans, options)


def _print(planned: Planned, options: PlanOptions) -> None:
    """Print the plan of one benchmark."""
    if planned.needed.given_samples is not None:
        _print_detectable(planned, options)
    if options.points is not None:
        _print_needed(planned, options, options.points)
    else:
        _print_forecasts(planned, options)
    if options.other_samples and planned.needed.run:
        run, stored = visible(planned.needed.run, 200), count_noun(options.other_samples, "sample")
        click.echo(f"  {run} is taken as the new run; the stored one has {stored} a question")
    if not options.published_samples and options.margin is None:
        _print_new_questions(planned, options)


def _print_new_questions(planned: Planned, options: PlanOptions) -> None:
    """Print the limit of the line "new questions", which more samples do not lower."""
    from harness.scoring.stats_differences import MAX_PLANNED

    needed = planned.needed
    words = "  for a claim about other questions like these, more samples help little: "
    if needed.n_clusters is None or needed.least_on_new_questions is None or needed.least_questions is None:
        click.echo(
            f"{words}these questions come in clusters, and what counts is their number, which a scored run shows"
        )
        return
    points = 100 * needed.least_on_new_questions
    more = "how many questions it takes depends on how unevenly two models differ on them"
    if needed.least_questions > needed.n_questions:
        size = "the difference above" if options.detect is None else f"one of {count_points(f'{options.detect:g}')}"
        clusters = needed.least_questions * needed.n_clusters / needed.n_questions
        reach = f"at least {count_questions(needed.least_questions, clusters)}"
        if needed.least_questions > MAX_PLANNED:
            reach = f"more than {MAX_PLANNED:,} questions: more questions of this kind do not show it"
        more = f"{size} takes {reach}"
    click.echo(
        f"{words}{count_questions(needed.n_questions, needed.n_clusters)} never "
        f"{'show' if needed.n_questions != 1 else 'shows'} a difference below "
        f"{count_points(f'{points:.1f}' if points >= 1 else f'{points:.2g}')}; {more}"
    )


def _print_mean(plans: Sequence[Planned], options: PlanOptions) -> None:
    """Print what the mean of all benchmarks shows and needs, and that they are planned for one comparison."""
    needed, n_benchmarks = plans[0].needed, len(plans)
    name = f"mean of the {n_benchmarks} benchmarks"
    if needed.smallest_difference_of_mean is not None:
        click.echo(
            f"{name}: these samples {_finds(2, _rounded_up(100 * needed.smallest_difference_of_mean), options)} in "
            f"80 % of repetitions, {_if_of_mean(options)}"
        )
    if needed.samples_of_mean is not None:
        click.echo(
            f"{name}: {count_noun(needed.samples_of_mean, 'sample')} a question of each "
            f"{_finds(needed.samples_of_mean, f'{options.points:g}', options)} in 80 % of repetitions, "
            f"{_if_of_mean(options)}"
        )
    elif options.points is not None:
        click.echo(f"{name}: {_never(options)}")
    click.echo(
        f"The {n_benchmarks} benchmarks are planned for one `harness compare`, which corrects their p values and that "
        "of their mean together; compared alone, each needs fewer samples. It prints the mean if each of the two runs "
        "has all of them: in one run folder, or in the cells of one sweep."
    )
    if any(planned.source.n_questions for planned in plans):
        click.echo(
            "A file has a run folder of its own: one folder of all benchmarks needs a card for it (docs/deciding.md)"
        )


def _print_candidates(n_tests: int) -> None:
    """Print how much more it takes if one `harness compare` has several candidates beside the baseline.

    n_tests: p values that are corrected together for one candidate.
    """
    from harness.scoring.stats_differences import power_factor

    # The points grow as f of the formula, and the samples as its square.
    factors = [power_factor(n * n_tests) / power_factor(n_tests) for n in CANDIDATES]
    click.echo(
        "Planned for one candidate beside one baseline. If one `harness compare` has "
        f"{CANDIDATES[0]} (or {CANDIDATES[1]}) candidates, it takes {factors[0] ** 2:.1f} ({factors[1] ** 2:.1f}) "
        f"times the samples, or shows {factors[0]:.2f} ({factors[1]:.2f}) times the points."
    )


def _print_detectable(planned: Planned, options: PlanOptions) -> None:
    """Print how small a difference the given samples find."""
    needed, versus = planned.needed, options.stored_samples
    assert needed.given_samples is not None
    assert needed.smallest_difference is not None
    name, most = visible(needed.benchmark, 80), needed.largest_possible(loss=options.margin is not None)
    finds = _finds(needed.given_samples, _rounded_up(100 * needed.smallest_difference), options)
    only = ""
    if needed.smallest_difference > most:
        finds = f"{_verb(needed.given_samples, options)} no {_noun(options)} that is possible"
        accuracy, room = f"{in_percent(needed.accuracy)} %", count_points(in_percent(most))
        only = f": no accuracy differs by more than {room} from {accuracy}"
        if options.margin is not None:
            only = f": no model is worse than one of {accuracy} by more than {room}"
    click.echo(
        f"{name}: {count_noun(needed.given_samples, 'sample')} a question {_beside(options)} {finds} on the same "
        f"{count_noun(needed.n_questions, 'question')} in 80 % of repetitions{_if_equal(options)}{only}"
    )
    for points, samples in planned.listed.items():
        if samples is not None:
            words = f"{count_noun(samples, 'sample')} a question"
        elif versus is not None:
            words = f"no number of samples is enough beside {count_noun(versus, 'sample')} a question"
        else:
            words = f"more than {MAX_SAMPLES:,} samples a question, which no run has"
        click.echo(f"  {count_points(f'{points:g}')}: {words}")
    if planned.steady is not None and needed.smallest_difference > MIN_GROWTH * planned.steady <= MIN_GROWTH * most:
        # The variance grows on the side on which more accuracies are possible.
        changed = "worse" if needed.accuracy >= 0.5 else "better"
        click.echo(
            f"  this allows for a {changed} model whose samples vary more; a model whose samples do not is found from "
            f"about {count_points(_rounded_up(100 * planned.steady))} on"
        )
    if 1 in (needed.given_samples, options.other_samples) and options.margin is None:
        verb = "verify" if options.published_samples else "compare"
        click.echo(
            f"  `harness {verb}` of such runs may state a larger difference: one sample of each question does not show "
            "how much its answers vary, so it assumes the most that is possible"
        )
    if planned.typical is None:
        click.echo(
            f"  the spread is that of {visible(needed.run, 200)}{_between(needed.difference_range, _noun(options))}"
        )
        return
    assert planned.wide is not None
    # Near 0 and 100 % the accuracy bounds every spread.
    over = f"{100 * planned.wide:.2g}"
    wider = f"; for one model in four, the smallest {_noun(options)} is over {count_points(over)}"
    is_wider = 100 * most >= float(over) >= float(_rounded_up(100 * needed.smallest_difference))
    click.echo(f"  {_basis(planned, planned.typical, options)}{wider if is_wider else ''}")


def _between(ends: tuple[float, float] | None, noun: str) -> str:
    """The words for the range of a smallest difference, or margin (`noun`); empty if it is unknown."""
    if ends is None:
        return ""
    low, high = (in_percent(end) for end in ends)
    if low == high:
        return f"; by chance in its samples, the {noun} varies by less than 0.1 points around {low} (95 % interval)"
    return f"; by chance in its samples, the {noun} is between {low} and {high} points (95 % interval)"


def _beside(options: PlanOptions) -> str:
    """The words for the two sides that are compared."""
    if options.published_samples:
        return f"compared with a published score of {count_noun(options.published_samples, 'sample')}"
    if options.other_samples:
        return f"compared with {count_noun(options.other_samples, 'stored sample')}"
    return "in each of two runs"


def _never(options: PlanOptions) -> str:
    """The words for a difference that no number of samples finds."""
    stored = options.stored_samples
    up_to = f" up to {MAX_SAMPLES:,} a question" if stored is None else ""
    beside = "" if stored is None else f" beside {count_noun(stored, 'sample')} a question"
    verb = "finds" if options.margin is None else "shows a margin of"
    return f"no number of samples{up_to} {verb} {count_points(f'{options.points:g}')}{beside}"


def _noun(options: PlanOptions) -> str:
    """The noun for the points that are planned."""
    return "difference" if options.margin is None else "margin"


def _finds(samples: int, points: str, options: PlanOptions) -> str:
    """The words for what a number of samples does."""
    if options.margin is None:
        return f"{_verb(samples, options)} a difference of {count_points(points)}"
    return f'{_verb(samples, options)} "not worse by {count_points(points)} or more"'


def _verb(samples: int, options: PlanOptions) -> str:
    """The verb for what a number of samples does."""
    return f"{'find' if options.margin is None else 'show'}{'s' if samples == 1 else ''}"


def _if_equal(options: PlanOptions) -> str:
    """The condition of a planned margin, with a comma; empty for a difference."""
    return "" if options.margin is None else ", if both are equally good"


def _if_of_mean(options: PlanOptions) -> str:
    """The condition of a planned mean."""
    if options.margin is None:
        return "if every benchmark differs by it"
    return "if both are equally good on every benchmark"


def _rounded_up(points: float) -> str:
    """A number of points with one decimal, or two digits below 1, never below `points`: fewer samples would not find
    the printed one.
    """
    step = min(0.1, 10.0 ** (math.floor(math.log10(points)) - 1))
    return f"{math.ceil(round(points / step, 6)) * step:.6g}"


def _print_pilot(plans: Sequence[Planned], options: PlanOptions) -> None:
    """Print the commands that make one pilot of all benchmarks without a run, score it, and plan them anew."""
    # A pilot takes no more samples than its run, and one shows no spread: the run itself is of two then.
    sizes = {
        planned.source: max(samples, 2)
        for planned in plans
        if planned.typical is not None and (samples := planned.needed.samples or planned.needed.given_samples)
    }
    if not sizes:
        return
    pilot = " --pilot" if max(sizes.values()) > 2 else ""
    names = {source: visible(source.name, 200) for source in sizes}
    cards = ",".join(f"{names[source]}:{n}" for source, n in sizes.items() if not source.n_questions)
    files = [f"--data {shlex.quote(names[source])} --samples {n}" for source, n in sizes.items() if source.n_questions]
    questions = [*([cards] if cards else []), *files]
    # One folder has all benchmarks, for their mean.
    out = " --out results/…" if len(questions) > 1 else ""
    again = shlex.join(["harness", "plan", *(visible(planned.source.in_a_command, 200) for planned in plans)])
    runs = " && ".join(f"harness run {text} …{out}{pilot}" for text in questions)
    click.echo("A pilot of your model, two samples a question, tells its spread, and the time and cost of the run:")
    click.echo(f"  {runs} && harness score results/… && {' '.join([again, *_flags(options)])}")


def _flags(options: PlanOptions) -> list[str]:
    """The options that say what the new run is compared with, and last the difference or margin that is planned."""
    given = {
        "--versus": options.other_samples,
        "--published-samples": options.published_samples,
        "--detect": options.detect,
        "--margin": options.margin,
    }
    return [word for flag, value in given.items() if value is not None for word in (flag, f"{value:g}")]


def _basis(planned: Planned, typical: TypicalSpread, options: PlanOptions) -> str:
    """The words on the published models whose spread is taken."""
    if typical.of_all:
        scores = f"{typical.n_published} published scores"
        spread = f"nobody publishes a spread on it: it is taken from {scores} on other benchmarks"
    else:
        spread = f"the spread is the median of {typical.n_published} published models on this benchmark"
    if options.accuracy is not None or typical.of_all:
        spread += f", scaled to an accuracy of {in_percent(typical.accuracy)} %"
    else:
        spread += f", whose accuracy is about {in_percent(typical.accuracy)} %"
    return spread if planned.source.n_questions else f"results/ holds no scored run of it, and {spread}"


def _print_needed(planned: Planned, options: PlanOptions, points: float) -> None:
    """Print how many samples find the difference (or show the margin), and what they cost."""
    needed = planned.needed
    name = visible(needed.benchmark, 80)
    if needed.samples is None:
        assert planned.beyond is not None
        _print_out_of_reach(name, planned.beyond, options)
        return
    percent = f"{in_percent(needed.accuracy)} %"
    if options.accuracy is not None:
        accuracy = f"accuracy {percent}, as given"
    elif needed.basis == "models on all benchmarks":
        accuracy = f"accuracy {percent} assumed, where the spread is largest"
    else:
        accuracy = f"accuracy about {percent}{'' if needed.run else ', the median of published models'}"
    click.echo(
        f"{name}: {count_noun(needed.samples, 'sample')} a question {_beside(options)} "
        f"{_finds(needed.samples, f'{points:g}', options)} on the same {count_noun(needed.n_questions, 'question')} in "
        f"80 % of repetitions{_if_equal(options)} ({accuracy})"
    )
    if needed.samples_range is not None:
        few, many = needed.samples_range
        up_to = "any number" if many is None else f"{many:,}"
        click.echo(
            f"  by chance in the samples of the run, the number is between {few:,} and {up_to} (95 % interval); a run "
            "with more samples narrows it"
        )
    if planned.typical is not None:
        # The lines on the given samples have said whose spread it is.
        if needed.given_samples is None:
            click.echo(f"  {_basis(planned, planned.typical, options)}")
        return
    _print_forecasts(planned, options)


def _print_out_of_reach(name: str, beyond: OutOfReach, options: PlanOptions) -> None:
    """Print that no number of samples is enough, and which differences (or margins) and stored samples are."""
    least, verb = _rounded_up(100 * beyond.least), "finds" if options.margin is None else "shows"
    click.echo(
        f"{name}: {_never(options)}; the smallest {_noun(options)} that some number {verb} is {count_points(least)}"
    )
    click.echo(f"  plan a larger {_noun(options)} ({_flags(options)[-2]} {least})")
    if beyond.enough is not None:
        kind, flag = ("published score", "published-samples") if options.published_samples else ("run", "versus")
        click.echo(
            f"  or take another {kind}, of about {count_noun(beyond.enough, 'sample')} a question (--{flag} "
            f"{beyond.enough})"
        )


def _print_new_runs(plans: Sequence[Planned], options: PlanOptions) -> None:
    """Print the command that plans two new runs for the difference that the stored samples cannot show."""
    names = dict.fromkeys(visible(planned.source.name, 200) for planned in plans)
    accuracy = [] if options.accuracy is None else ["--accuracy", f"{options.accuracy:g}"]
    words = shlex.join(["harness", "plan", *names, *_flags(options)[-2:], *accuracy])
    side = "published score" if options.published_samples else "stored samples"
    click.echo(f"Two new runs on the same questions, without the {side}, {_verb(2, options)} it: {words}")


def _print_forecasts(planned: Planned, options: PlanOptions) -> None:
    """Print what the planned runs still take, if a run tells, and the commands that make them."""
    from harness.cli.again import run_command
    from harness.cli.pilot import forecast_lines

    needed = planned.needed
    if not needed.run:
        if options.price_in is not None or options.price_out is not None:
            click.echo("  the cost is unknown until a pilot shows how many tokens a sample takes")
        return
    if needed.forecast is None:
        click.echo("  outputs of another tool do not say how long a sample takes, so time and cost are unknown")
        return
    if not needed.forecast.n_samples:
        click.echo("  this run has that size already")
    else:
        completes = planned.run_samples > ((needed.given_samples if options.points is None else needed.samples) or 0)
        own = f"to complete this run, which was asked for {count_noun(planned.run_samples, 'sample')} a question:"
        click.echo(f"  {own if completes else 'to extend this run to that size:'}")
        for line in forecast_lines(needed.forecast, needed.concurrency):
            click.echo(f"  {line}")
        score = shlex.join(["harness", "score", str(planned.extending["out"])])
        click.echo(visible(f"    {run_command(planned.extending)} && {score}"))
        if not completes:
            click.echo("    if the run was compared before, take two new runs instead")
    if needed.second_forecast is not None:
        click.echo(
            "  for the second run, from its beginning (the command of this run with another --out, and the model or "
            "setting that differs):"
        )
        for line in forecast_lines(needed.second_forecast, needed.concurrency):
            click.echo(f"  {line}")
        first, second = needed.forecast.usd, needed.second_forecast.usd
        # A run that has the size already costs nothing more, and then there is no sum.
        if needed.forecast.n_samples and first is not None and second is not None:
            click.echo(f"  both together: about {first + second:,.2f} USD")
