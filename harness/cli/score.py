"""`harness score`: grades a run's samples, or any tool's outputs, and computes the scores."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import judge as judges
from harness.cli import terminal
from harness.cli.flags import judge_of
from harness.cli.json_output import print_json
from harness.core.errors import Exit, NotWritable, UsageError
from harness.core.files import real
from harness.core.number_text import count_noun, in_percent
from harness.core.sanitize import visible
from harness.options.score import JudgingCosts, ScoreCommand, ScoreOptions
from harness.runs.layout import RunFolder

if TYPE_CHECKING:
    from harness.commands.score import Scored
    from harness.core.number_text import Prices
    from harness.exports.trackers import Tracker
    from harness.options.judge import JudgeOptions
    from harness.scoring.score import RunScore

_M_MMAP_THRESHOLD = -3
"""The number of this parameter in glibc's `malloc.h`."""


@contextlib.contextmanager
def _memory_saved() -> Iterator[None]:
    """A `with` block that returns memory early. For a million samples, Python's default garbage-collection thresholds,
    in place of those set at the start (`harness.__main__`), save 17 MB. Mapping each block of 1 MB or more separately
    saves 30 MB: in one heap, columns that grow side by side leave holes. This mapping lasts as long as the process.
    """
    of_start = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    with contextlib.suppress(AttributeError, TypeError, OSError):  # a different C library or operating system
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 1 << 20)
    try:
        yield
    finally:
        gc.set_threshold(*of_start)


@_memory_saved()
def carry_out(options: ScoreCommand) -> int:
    """Score each source, and print the scores. Returns the exit code."""
    from harness.commands import score as scoring
    from harness.runs.layout import labels

    sources, grading = options.sources, options.narrow(ScoreOptions)
    costs, judge = options.narrow(JudgingCosts), judge_of(options.judge)
    trackers = scoring.trackers_named(options.track)
    if options.dry_run:
        judges.show_expected(sources, grading, judge, costs)
        return Exit.YES
    prices = scoring.judge_prices(costs, judge, "--judge MODEL")
    if options.follow and len(sources) > 1:
        raise UsageError("--follow works with only one run at a time")
    scoring.check(sources, grading, follow=options.follow)
    scored = _score_each(sources, grading, judge, prices, follow=options.follow)
    named = list(zip(labels([source.folder for source in scored]), scored, strict=True))
    if options.as_json:
        print_json(_records(named))
    else:
        _print_tables(named, options.k, every_table=options.every_table)
        for given, (label, source) in zip(sources, named, strict=True):
            _print_open(options.out or given, label if len(named) > 1 else "", source.n_open)
    for given, source in zip(sources, scored, strict=True):
        if not given.samefile(source.folder.path):
            terminal.note(f"{visible(str(given))} was converted to the run folder {visible(str(source.folder.path))}")
    for label, source in named:
        _print_more(label if len(named) > 1 else "", source, grading, trackers, stderr=options.as_json)
    return Exit.of(source.exit_code for source in scored)


def _score_each(
    sources: Sequence[Path], options: ScoreOptions, judge: JudgeOptions | None, prices: Prices | None, *, follow: bool
) -> list[Scored]:
    """Score each source in turn, and return the scores.

    follow: grade repeatedly while a run is in progress.
    """
    from harness.cli import follower
    from harness.commands.score import refuse_any, score
    from harness.scoring.pipeline import score_run

    if len(sources) > 1:
        refuse_any(sources, options)
    by_rules = follower.follow if follow else score_run
    scored = []
    for source in sources:
        with terminal.Terminal() as watcher:
            try:
                scored.append(score(source, options, judge, watcher, by_rules=by_rules, prices=prices))
            except NotWritable as error:
                if RunFolder(source).manifest.is_file():
                    run, copy = shlex.quote(str(source)), shlex.quote(f"{real(source).name}-copy")
                    line = f"cp -r {run} {copy} && chmod -R u+w {copy} && harness score {copy}"
                    error.add(f"To score a copy in this folder: `{line}`")
                raise
    return scored


def _print_more(
    label: str, scored: Scored, options: ScoreOptions, trackers: Mapping[str, Tracker], *, stderr: bool
) -> None:
    """Print the reports of the second graders, the trackers, and the judge. label: the source's label; empty if it is
    the only one.
    """
    from harness.commands.score import describe_sent, send_scores

    for grader in options.second_graders:
        _show_opinions(label, scored, grader, options.also_python, stderr=stderr)
    for name, tracker in trackers.items():
        click.echo(describe_sent(name, send_scores(scored, tracker, options)), err=True)
    if scored.judged is not None:
        judges.show(scored.judged, stderr=stderr)


def _show_opinions(label: str, scored: Scored, grader: str, python: Path | None, *, stderr: bool) -> None:
    """Print how well a second grader agrees with the grades, and the largest disagreements.

    label: the source's label; empty if it is the only one. python: the interpreter with the second grader; None: this
    one. stderr: print on standard error, since standard output holds JSON.
    """
    from harness.commands.score import second_opinions

    for benchmark, agreement in second_opinions(scored.folder, grader, python).items():
        ours, theirs = in_percent(agreement.accuracy_ours), in_percent(agreement.accuracy_theirs)
        title = f"{label}, {benchmark}" if label else benchmark
        click.echo(f"{visible(title)}: rules {ours}%, {grader} {theirs}%", err=stderr)
        disagreements = judges.disagreement_lines(agreement, grader, "the rules' verdict takes precedence")
        for line in (*judges.matrix_lines(agreement, grader), *disagreements):
            click.echo(line, err=stderr)


def _print_open(path: Path, label: str, n: int) -> None:
    """Print how many undecided samples no person has judged, and the commands to show and to judge them.

    path: the source's path. label: the source's label; empty if it is the only one. n: the number of samples.
    """
    name = shlex.quote(visible(str(path)))
    if not n:
        return
    of = f" of {visible(label)}" if label else ""
    click.echo(f"{count_noun(n, 'undecided sample')}{of} {'has' if n == 1 else 'have'} no manual verdict")
    click.echo(f"  to read:   harness show {name} --undecided")
    click.echo(f"  to decide: harness audit {name} --undecided")


def _records(named: list[tuple[str, Scored]]) -> list[RunScore]:
    """The scores as `--json` prints them. named: (label, scored source) pairs."""
    import msgspec

    from harness.scoring.score import RunScore

    return [RunScore(run=label, **msgspec.structs.asdict(score)) for label, source in named for score in source.scores]


def _print_tables(scored: list[tuple[str, Scored]], ks: tuple[int, ...], *, every_table: bool) -> None:
    """Print the accuracy table; if `every_table`, print the tables of all metrics for which a score has data.

    scored: (label, scored source) pairs. ks: additional values of k for pass@k, whose table is always printed.
    """
    from harness.reports import score_tables
    from harness.reports.formats import to_terminal

    named = [(label, score) for label, source in scored for score in source.scores]
    over_k = [score_tables.over_k_table(named, ks)] if ks else []
    limited = [*filter(None, [score_tables.turn_table(named), score_tables.goodput_table(named)])]
    if not every_table:
        terminal.console().print(to_terminal([score_tables.accuracy_table(named), *over_k, *limited]))
        click.echo("for all tables (both intervals, pass@k, lengths, speed), use --all")
        return
    where_any = (
        score_tables.measure_table,
        score_tables.speed_table,
        score_tables.engine_table,
        score_tables.endpoint_table,
    )
    shown = [score_tables.score_table(named), score_tables.sample_table(named), *over_k, *limited]
    terminal.console().print(to_terminal([*shown, *filter(None, (table_of(named) for table_of in where_any))]))
