"""`harness experiment`: how far accuracies of repeated runs differ, and how the error falls with more samples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.asking.options import RepeatsRules, SizesRules
from harness.asking.options.verbs import RepeatsOptions, SizesOptions
from harness.cli import completing, terminal
from harness.cli.flags import run_given, run_options
from harness.cli.help import SpelledCommand, SpelledGroup
from harness.cli.json_output import json_option, say
from harness.core.about import install_line
from harness.core.errors import EXIT_OWED
from harness.core.inert import csv_file, safe_name, visible
from harness.core.nouns import count_noun, in_percent
from harness.core.options import Options, options_of

if TYPE_CHECKING:
    from harness.reports.plots.plot import Plot
    from harness.runs import RunFolder
    from harness.scoring.resampling import Repeats, SampleSizes
    from harness.verbs.repeats import Experimented

ExperimentResult = TypeVar("ExperimentResult", "Repeats", "SampleSizes")


@click.group("experiment", cls=SpelledGroup)
def command() -> None:
    """Find out how sure an accuracy is: by repeats, and by more and more samples.

    \b
    harness experiment repeats results/my-run --runs 30
    harness experiment samples results/my-run --n 8,16,…,64
    harness experiment repeats aime24:64 --real --runs 30 --base-url http://127.0.0.1:8000
    """


_SOURCE = click.argument(
    "source", metavar="RUN|BENCHMARK", required=False, shell_complete=completing.names(completing.benchmarks)
)
_WHAT = "a list, one result of each benchmark,"


def _prints_repeats() -> Any:
    """Return the type of what this command prints with `--json`; its JSON schema is made from it."""
    from harness.scoring.resampling import Repeats

    return list[Repeats]


def _prints_sizes() -> Any:
    """Return the type of what this command prints with `--json`; its JSON schema is made from it."""
    from harness.scoring.resampling import SampleSizes

    return list[SampleSizes]


@command.command(
    "repeats", cls=SpelledCommand, verb="experiment repeats", first=("runs", "samples", "real", "out", "as_json")
)
@_SOURCE
@json_option(_prints_repeats, _WHAT)
@run_options(RepeatsOptions)
def repeats(source: str | None, as_json: bool, **given: Any) -> None:
    """Say how much the accuracy varies over --runs repeats, and how much it should by its sampling error.

    Give a scored RUN, or with --real a BENCHMARK. Of a RUN, each repeat draws --samples of the samples of each question
    without replacement; by default as many as leave no sample in two repeats. With --real, BENCHMARK is run anew --runs
    times, into --out (run-01, run-02 …); the same command resumes an interrupted experiment. Writes a histogram with
    the predicted curve over it: PNG, SVG, CSV.

    \b
    harness experiment repeats results/my-run --runs 30
    harness experiment repeats demo:4 --real --runs 30 --serve llama_cpp --model smollm2-135m
    """
    from harness.cli.terminal import Terminal
    from harness.reports.plots.repeats import repeats_plot
    from harness.verbs import repeats as experiments

    rules = RepeatsRules.of(**_own(RepeatsRules, given))
    with Terminal() as watcher:
        experiment = experiments.repeats(source, rules, run_given(given), watcher, _on_repeat)
    _say(experiment, _say_repeats, repeats_plot, as_json=as_json)


@command.command(
    "samples", cls=SpelledCommand, verb="experiment samples", first=("n", "runs", "real", "out", "as_json")
)
@_SOURCE
@json_option(_prints_sizes, _WHAT)
@run_options(SizesOptions)
def samples(source: str | None, as_json: bool, **given: Any) -> None:
    """Say how the sampling error falls as the number of samples a question grows, beside the curve of theory.

    From a scored RUN: for each number in --n, that many of its samples of each question are drawn without replacement,
    --runs times. With --real, BENCHMARK is run anew for each number in --n, --runs times, into --out (n8/run-01 …); the
    same command resumes an interrupted experiment. Writes the error against the number of samples with the theoretical
    curve: PNG, SVG, CSV.

    \b
    harness experiment samples results/my-run --n 8,16,…,64
    harness experiment samples aime24 --real --n 8,16,…,256 --base-url http://127.0.0.1:8000
    """
    from harness.cli.terminal import Terminal
    from harness.reports.plots.repeats import sizes_plot
    from harness.verbs import repeats as experiments

    rules = SizesRules.of(**_own(SizesRules, given))
    with Terminal() as watcher:
        experiment = experiments.sizes(source, rules, run_given(given), watcher, _on_repeat)
    _say(experiment, _say_sizes, sizes_plot, as_json=as_json)


def _own(declared: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the command's parameters that are options of this class."""
    return {name: given[name] for name in options_of(declared)}


def _on_repeat(number: int, of: int, folder: RunFolder) -> None:
    """Print which repeat begins."""
    terminal.note(f"{number} of {of}: {visible(str(folder.path))}")


def _say(
    experiment: Experimented[ExperimentResult],
    lines: Callable[[ExperimentResult], None],
    plot: Callable[[ExperimentResult], Plot],
    *,
    as_json: bool,
) -> None:
    """Print the results and write their pictures; if samples are missing, end the command with `EXIT_OWED`.

    lines: prints one result. plot: makes its picture.
    """
    if experiment.owed:
        click.echo(f"harness: {visible(experiment.owed)}", err=True)
        sys.exit(EXIT_OWED)
    if as_json:
        say(experiment.results)
    else:
        for result in experiment.results:
            lines(result)
    for result in experiment.results:
        for warning in result.warnings:
            terminal.warn(f"{visible(result.benchmark)}: {warning}")
    _write([plot(result) for result in experiment.results], experiment.out, quiet=as_json)


def _say_repeats(result: Repeats) -> None:
    """Print how far the accuracies of repeats lie apart, and how far their sampling error predicts."""
    origin = {
        "runs": "each a run with its own seeds",
        "blocks": f"cut from {result.stored} samples of each question, none used twice",
        "draws": f"each drawn from {result.stored} samples of each question, so repeats share samples",
    }[result.source]
    runs, low, high = len(result.accuracies), min(result.accuracies), max(result.accuracies)
    click.echo(
        f"{visible(result.benchmark)}: {count_noun(runs, 'repeat')} of {count_noun(result.n, 'sample')} a question, "
        f"{origin}"
    )
    click.echo(
        f"  accuracy {in_percent(result.mean)} %, in single repeats from {in_percent(low)} to {in_percent(high)} %"
    )
    limits = " to ".join(f"{100 * end:.2f}" for end in result.limits)
    click.echo(
        f"  deviation of the accuracy: {_points(result.deviation)} points observed, {_points(result.predicted)} "
        f"predicted: "
        f"{result.verdict} (chance alone gives {limits})"
    )
    if result.verdict == "cannot say":
        click.echo(
            "  the samples of each question are all right or all wrong: without differences there is nothing to check"
        )
    click.echo(f"  {result.n_within} of {runs} repeats are within 1.96 predicted deviations of the mean")
    if result.source == "draws":
        click.echo(f"  runs that share no samples would deviate by {_points(result.run_error)} points")
    click.echo(
        f"  mean over questions of sd/√n, which some scripts print as the error: "
        f"{_points(result.mean_question_deviation)} points"
    )
    if result.verdict == "less than predicted" and result.source == "runs":
        terminal.warn("the repeats are too much alike: does the server ignore seeds, or does a cache answer?")
    if result.verdict == "more than predicted":
        terminal.warn("the repeats differ by more than chance: something changes between them")


def _say_sizes(result: SampleSizes) -> None:
    """Print the sampling error for each number of samples as a table."""
    origin = "of runs with seeds of their own" if result.source == "runs" else f"drawn from {result.stored} of each"
    click.echo(
        f"{visible(result.benchmark)}: sampling error of the accuracy in points, "
        f"{count_noun(result.n_questions, 'question')}, "
        f"samples {origin}"
    )
    header = ("samples", "repeats", "predicted", "stated by a run", "95 % of these", "seen", "mean of sd/√n")
    rows = [
        (
            str(size.n),
            str(size.runs),
            _points(size.predicted),
            _points(size.own),
            f"{_points(size.own_low)}–{_points(size.own_high)}" if size.runs > 1 else "–",
            "–" if size.deviation is None else _points(size.deviation),
            _points(size.mean_question_deviation),
        )
        for size in result.sizes
    ]
    terminal.table(header, rows)


def _points(fraction: float) -> str:
    return f"{100 * fraction:.2f}"


def _write(plots: Sequence[Plot], out: Path, *, quiet: bool) -> None:
    """Write the pictures and their data; only the data if plots cannot be drawn.

    out: the folder. quiet: name the written files on standard error, not on standard output.
    """
    from harness.core.files import write_atomically
    from harness.reports.plots import draw

    if draw.installed():
        written = draw.write_plots(plots, out)
    else:
        written = [out / f"{safe_name(plot.name)}.csv" for plot in plots]
        for plot, path in zip(plots, written, strict=True):
            write_atomically(path, csv_file(plot.csv()))
    click.echo(f"written: {', '.join(visible(str(path)) for path in written)}", err=quiet)
    if not draw.installed():
        click.echo(f"no pictures were drawn; to draw them: {install_line(draw.EXTRA)}", err=quiet)
