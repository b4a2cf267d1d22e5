"""`harness sweep`: runs and scores a file's models, servers, prompts, sampling and benchmarks, and prints one table."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.asking.options.verbs import SweepOptions
from harness.cli import terminal
from harness.cli.flags import FIRST, judge_fields, judge_option, run_given, run_options, typed_parameters
from harness.cli.help import Helping
from harness.cli.json_output import json_option, say
from harness.core.errors import EXIT_COMPLETE, EXIT_OWED, StoppedByRule, UsageError
from harness.core.inert import visible
from harness.core.nouns import are, count_noun

if TYPE_CHECKING:
    from harness.verbs.sweep.cells import Sweep
    from harness.verbs.sweep.file import SweepFile
    from harness.verbs.sweep.record import CellRecord
    from harness.verbs.sweep.whole import EndedSweep

_SHOWN = (
    "schema",
    "list_suites",
    "verify",
    "dry_run",
    "follow",
    "track",
    "k",
    "as_json",
    *FIRST,
    "judge",
)


@click.command("sweep", cls=Helping, verb="sweep", first=_SHOWN)
@click.argument("file", metavar="FILE|SUITE", required=False)
@click.option("--schema", is_flag=True, help="Print the JSON schema of the file, for editors.")
@click.option("--list", "list_suites", is_flag=True, help="List the suites that ship with the harness.")
@click.option(
    "--verify", is_flag=True, help="Exit with 4 if a score does not agree with published scores of its model."
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show the servers, the cells and the most tokens that they take; start and send nothing.",
)
@click.option(
    "--follow",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help="Run and score each checkpoint as it appears; end after MINUTES without a new checkpoint.",
)
@click.option(
    "--k",
    type=click.IntRange(1),
    metavar="K",
    help="k of pass@k in the tables, for every benchmark. Default: what the file says.",
)
@click.option(
    "--track",
    multiple=True,
    metavar="TOOL",
    help="Send scores to wandb, mlflow, trackio or a plug-in's tracker; a series of checkpoints is one run there.",
)
@json_option("harness.cli.printed.ends:SweepEnd", "the cells instead of the tables")
@click.option("--lane", hidden=True, help="Used by a sweep for its own processes: the server whose cells are run.")
@click.option(
    "--lane-devices", default="", hidden=True, help="Used by a sweep for its own processes: the server's accelerators."
)
@run_options(SweepOptions)
@judge_option
def command(
    file: str | None,
    schema: bool,
    list_suites: bool,
    verify: bool,
    dry_run: bool,
    follow: float | None,
    k: int | None,
    track: tuple[str, ...],
    as_json: bool,
    lane: str | None,
    lane_devices: str,
    **given: Any,
) -> None:
    """Run and score every combination that FILE names: models × servers × prompts × sampling × benchmarks.

    Each combination is a cell. Each server is started once, all its cells are run and scored, and it is stopped. If the
    command is killed, the same command continues and asks for nothing twice. A cell that fails does not stop the
    others; the exit code is then 1. An option given here replaces that of the file. A SUITE is a shipped file (--list):
    give it a model and a server. The tables show published scores of the models beside the new ones, and with --verify
    the exit code says whether they agree.

    \b
    harness sweep budgets.yaml --dry-run
    harness sweep budgets.yaml
    harness sweep checkpoints.yaml --follow 90
    harness sweep limo10 --model GAIR/LIMO --serve vllm --serve-option tp=8 --judge org/judge@URL
    """
    from harness.asking.watching import Watcher
    from harness.cli import sweep_plan, sweep_processes
    from harness.verbs.sweep import cells, expected, running, whole
    from harness.verbs.sweep import file as files

    without_cells = {"--schema": schema, "--list": list_suites, "--dry-run": dry_run}
    if as_json and (flags := [flag for flag, asks in without_cells.items() if asks]):
        raise UsageError(f"--json prints how a sweep ended: leave out {flags[0]}")
    if schema or list_suites:
        _schema() if schema else _list()
        return
    if file is None:
        raise UsageError("give the sweep's file, or a suite (harness sweep --list shows them)")
    words = typed_parameters(given)
    plan = functools.partial(whole.plan_of, file, k=k, track=track)
    if follow is not None and lane is None:
        if dry_run or as_json:
            raise UsageError("--follow runs checkpoints as they appear: leave out --dry-run and --json")
        given_options = run_given(words), judge_fields(words.get("judge"))
        # All else is checked now: the first checkpoint may come in hours.
        read = files.read(files.find(file))
        checked = plan(*given_options, file=cells.before_checkpoints(read))
        expected.estimates(checked, download=True)
        running.refuse_hopeless(checked, Watcher())
        later = functools.partial(plan, *given_options, file=read)
        with _says_how_to_go_on():
            sys.exit(_follow(checked, later, read, 60 * follow, verify=verify))
    # A child carries out one group of its parent's plan, whatever has appeared since.
    handed = None if lane is None else files.with_content(files.find(file), sweep_processes.content_from_parent())
    planned = plan(run_given(words), judge_fields(words.get("judge")), file=handed)
    if dry_run:
        n_without_score = sweep_plan.show(planned)
        sys.exit(EXIT_OWED if n_without_score else EXIT_COMPLETE)
    if lane is not None:  # This process was started by a sweep, for the cells of one group.
        _run_lane(planned, lane, [device for device in lane_devices.split(",") if device])
    else:
        with _says_how_to_go_on():
            sys.exit(_run(planned, verify=verify, as_json=as_json))


@contextmanager
def _says_how_to_go_on() -> Iterator[None]:
    """Add to a Ctrl-C outside the sampling of a run, whose own message says it, how to go on with the sweep."""
    from harness.cli.terminal import Terminal

    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(
            "stopped by SIGINT. What is stored counts, and the same command writes the tables. Resume with: "
            f"{Terminal().resume_command}"
        )
        raise


def _follow(checked: Sweep, plan: Callable[[], Sweep], file: SweepFile, patience_s: float, *, verify: bool) -> int:
    """Plan and carry out the sweep anew for each new checkpoint. Returns the last exit code.

    checked: the plan before any checkpoint exists. patience_s: seconds without a new checkpoint after which the command
    ends. verify: as the flag `--verify`.
    """
    from harness.cli.terminal import Terminal
    from harness.verbs.sweep import checkpoints

    warned: Counter[str] = Counter()

    def run(settled: Collection[Path]) -> int:
        swept = _carry_out(plan().only(settled), warned)
        _print_tables(swept)
        _say_state(swept, verify=verify, as_json=False, follows=True)
        return _code(swept, verify=verify)

    try:
        watcher = Terminal(progress=False, warned=warned)
        for sentence in checked.remarks:
            watcher.warn(sentence)
        return checkpoints.follow(file, run, patience_s, watcher)
    finally:  # also after Ctrl-C
        terminal.count_repeated(warned)


def _run(planned: Sweep, *, verify: bool, as_json: bool) -> int:
    """Carry the sweep out, and print how it ended. Returns the exit code."""
    from harness.verbs.sweep import table

    warned: Counter[str] = Counter()
    try:
        swept = _carry_out(planned, warned)
    finally:  # also after Ctrl-C
        terminal.count_repeated(warned)
    code = _code(swept, verify=verify)
    if as_json:
        from harness.cli.printed.ends import SweepEnd

        say(
            SweepEnd(
                sweep=planned.name,
                folder=str(planned.out),
                exit_code=code,
                complete=not swept.lost,
                cells=table.records(swept.results),
                means=table.mean_records(swept.results),
            )
        )
    else:
        _print_tables(swept)
    _say_state(swept, verify=verify, as_json=as_json, follows=False)
    return code


def _carry_out(planned: Sweep, warned: Counter[str]) -> EndedSweep:
    """Carry the sweep out; the tables of checkpoints are written again after each cell (after each server, if several
    run at once). warned: how often each warning has come so far.
    """
    from harness.cli.sweep_processes import SweepLanes
    from harness.cli.terminal import Terminal
    from harness.verbs.sweep.whole import carry_out, with_tables

    def on_cell(*records: CellRecord) -> None:
        for record in records:
            _ended(record)
        if planned.checkpoints and not any(record.reason for record in records):
            with_tables(planned)

    with Terminal(warned=warned) as watcher:
        return carry_out(planned, watcher, on_cell, SweepLanes(planned, on_cell).run)


def _run_lane(planned: Sweep, lane: str, devices: list[str]) -> None:
    """Carry out one group, in a process that a sweep started for it.

    lane: name of the group. devices: the accelerators of its server.
    """
    from harness.cli.sweep_processes import end_with_parent
    from harness.cli.terminal import Terminal
    from harness.verbs.sweep import running
    from harness.verbs.sweep.scorer import score_cell

    end_with_parent()
    # No group if its checkpoint was deleted after the parent made its plan.
    groups = [group for group in planned.groups if group.name == lane]
    with Terminal(progress=False) as watcher:
        for group in groups:
            running.run_group(planned, group, score_cell, watcher, _ended, devices)


def _ended(record: CellRecord) -> None:
    """Print how a cell ended."""
    if record.reason:
        click.echo(f"harness: {record.cell}: {record.reason}", err=True)
    else:
        terminal.note(f"{record.cell}: scored")


def _code(swept: EndedSweep, *, verify: bool) -> int:
    """The exit code of a sweep. verify: as the flag `--verify`."""
    if swept.lost:
        return EXIT_OWED
    return StoppedByRule.exit_code if verify and swept.disagreeing else EXIT_COMPLETE


def _print_tables(swept: EndedSweep) -> None:
    """Print the tables."""
    from harness.reports.formats import to_terminal
    from harness.verbs.sweep import table

    terminal.console().print(to_terminal(table.tables(swept.results)))


def _say_state(swept: EndedSweep, *, verify: bool, as_json: bool, follows: bool) -> None:
    """Print where the tables are, how many cells are incomplete, and with `verify` the cells that disagree with
    published scores.

    as_json: print the reasons of the incomplete cells, too. follows: this command goes on with the sweep by itself.
    """
    from harness.core.about import install_line
    from harness.reports.plots import draw
    from harness.verbs.sweep import table
    from harness.verbs.sweep.whole import disagreement

    terminal.note(f"tables: {', '.join(visible(str(path)) for path in swept.written)}")
    if table.plots(swept.results) and not draw.installed():
        terminal.note(f"the curve over steps is not drawn; to draw it: {install_line(draw.EXTRA)}")
    if as_json:  # a table has the reasons in its notes
        for result in swept.lost:
            click.echo(f"harness: incomplete: {result.cell.name}: {visible(result.reason)}", err=True)
    if verify:
        for result in swept.disagreeing:
            click.echo(f"harness: {disagreement(result)}", err=True)
    n = len(swept.results.results)
    if lost := len(swept.lost):
        again = "each change of a checkpoint" if follows else "the same command"
        click.echo(
            f"harness: {lost} of {count_noun(n, 'cell')} {are(lost)} incomplete; {again} tries them again, but where "
            "the reason says what else to do",
            err=True,
        )
    else:
        terminal.note(f"complete{' so far' if follows else ''}: {count_noun(n, 'cell')}")


def _schema() -> None:
    """Print the JSON schema of a sweep's file."""
    from harness.core import codec
    from harness.verbs.sweep.schema import json_schema

    click.echo(codec.pretty(json_schema()).decode(), nl=False)


def _list() -> None:
    """Print the suites that ship with the harness."""
    from harness.benchmarks.catalogue import suites
    from harness.verbs.sweep import file as files

    rows = []
    for path in suites():
        content = files.read(path).content
        names = [
            benchmark if isinstance(benchmark, str) else benchmark.get("benchmark", "")
            for benchmark in content["benchmarks"]
        ]
        rows.append((path.stem, content.get("suite", {}).get("title", ""), ", ".join(names)))
    terminal.table(("suite", "what it repeats", "benchmarks"), rows)
