"""`harness sweep`: runs and scores a file's models, servers, prompts, sampling and benchmarks, and prints one table."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from harness.asking.options.run import SweepCommand
from harness.asking.watching import Watcher
from harness.benchmarks.catalogue import suites
from harness.cli import sweep_plan, terminal
from harness.cli.flags import judge_fields, run_given
from harness.cli.json_output import say
from harness.cli.printed.ends import SweepEnd
from harness.cli.terminal import Terminal
from harness.core import codec
from harness.core.about import install_line
from harness.core.errors import EXIT_COMPLETE, EXIT_OWED, StoppedByRule, UsageError
from harness.core.inert import visible
from harness.core.nouns import are, count_noun
from harness.reports.formats import to_terminal
from harness.reports.plots import draw
from harness.verbs.sweep import cells, checkpoints, expected, record, running, table
from harness.verbs.sweep import file as files
from harness.verbs.sweep.cells import Sweep
from harness.verbs.sweep.file import SweepFile
from harness.verbs.sweep.record import CellRecord
from harness.verbs.sweep.results import Results
from harness.verbs.sweep.schema import json_schema
from harness.verbs.sweep.whole import carry_out as carry_out_sweep
from harness.verbs.sweep.whole import with_tables


def carry_out(options: SweepCommand) -> int:
    """Carry the sweep out, or show its plan, or a list. Returns the exit code."""
    without_cells = {"--schema": options.print_schema, "--list": options.list_suites, "--dry-run": options.dry_run}
    if options.as_json and (flags := [flag for flag, asks in without_cells.items() if asks]):
        raise UsageError(f"--json prints how a sweep ended: leave out {flags[0]}")
    if options.print_schema or options.list_suites:
        click.echo(codec.pretty(json_schema()).decode(), nl=False) if options.print_schema else _list()
        return EXIT_COMPLETE
    if options.file is None:
        raise UsageError("give the sweep's file, or a suite (harness sweep --list shows them)")
    given = run_given(options), judge_fields(options.judge)
    plan = functools.partial(cells.plan_of, options.file, *given, k=options.k, track=options.track)
    if options.follow is not None:
        if options.dry_run or options.as_json:
            raise UsageError("--follow runs checkpoints as they appear: leave out --dry-run and --json")
        # All else is checked now: the first checkpoint may come in hours.
        read = files.read(files.find(options.file))
        checked = plan(file=cells.before_checkpoints(read))
        expected.estimates(checked, download=True)
        running.refuse_hopeless(checked, Watcher())
        with _says_how_to_go_on():
            return _follow(
                checked, functools.partial(plan, file=read), read, 60 * options.follow, verify=options.verify
            )
    planned = plan()
    if options.dry_run:
        return EXIT_OWED if sweep_plan.show(planned) else EXIT_COMPLETE
    with _says_how_to_go_on():
        return _run(planned, verify=options.verify, as_json=options.as_json)


@contextmanager
def _says_how_to_go_on() -> Iterator[None]:
    """Add to a Ctrl-C outside the sampling of a run, whose own message says it, how to go on with the sweep."""
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
    warned: Counter[str] = Counter()

    def run(settled: Collection[Path]) -> int:
        swept = _carry_out(plan().only(settled), warned)
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
    warned: Counter[str] = Counter()
    try:
        swept = _carry_out(planned, warned)
    finally:  # also after Ctrl-C
        terminal.count_repeated(warned)
    code = _code(swept, verify=verify)
    if as_json:
        say(
            SweepEnd(
                sweep=planned.name,
                folder=str(planned.out),
                exit_code=code,
                complete=not swept.lost,
                cells=table.records(swept),
                means=table.mean_records(swept),
            )
        )
    _say_state(swept, verify=verify, as_json=as_json, follows=False)
    return code


def _carry_out(planned: Sweep, warned: Counter[str]) -> Results:
    """Carry the sweep out; the tables of checkpoints are written again after each cell.

    warned: how often each warning has come so far.
    """
    former = ""

    def on_cell(cell: CellRecord) -> None:
        """Print how a cell ended; the reason of the cell before is not printed again."""
        nonlocal former
        if cell.reason:
            click.echo(f"harness: {cell.cell}: {'the same' if cell.reason == former else cell.reason}", err=True)
        else:
            terminal.note(f"{cell.cell}: scored")
            if planned.checkpoints:
                with_tables(planned)
        former = cell.reason

    with Terminal(warned=warned) as watcher:
        return carry_out_sweep(planned, watcher, on_cell)


def _code(swept: Results, *, verify: bool) -> int:
    """The exit code of a sweep. verify: as the flag `--verify`."""
    if swept.lost:
        return EXIT_OWED
    return StoppedByRule.exit_code if verify and swept.disagreeing else EXIT_COMPLETE


def _say_state(swept: Results, *, verify: bool, as_json: bool, follows: bool) -> None:
    """Print the tables, where they are, how many cells are incomplete, and with `verify` the cells that disagree with
    published scores. Without any score, each row of a table would only name an error once more.

    as_json: print no table, and so the reasons of the cells that did not run. follows: this command goes on with the
    sweep by itself.
    """
    has_table = not as_json and any(result.score is not None for result in swept.results)
    if has_table:
        terminal.console().print(to_terminal(table.tables(swept)))
    terminal.note(f"tables: {', '.join(visible(str(path)) for path in swept.written)}")
    if table.plots(swept) and not draw.installed():
        terminal.note(f"the curve over steps is not drawn; to draw it: {install_line(draw.EXTRA)}")
    if not has_table:  # a table has the reasons in its notes
        for result in swept.lost:
            # A reason in the cell's record was printed when the cell ended.
            if (stored := record.read(swept.sweep.out, result.cell.name)) is None or not stored.reason:
                click.echo(f"harness: incomplete: {result.cell.name}: {visible(result.reason)}", err=True)
    if verify:
        for result in swept.disagreeing:
            name, model = visible(result.cell.name, 200), visible(result.cell.model, 100)
            click.echo(f"harness: {name} does not agree with published scores of {model}", err=True)
    n = len(swept.results)
    if lost := len(swept.lost):
        again = "each change of a checkpoint" if follows else "the same command"
        click.echo(
            f"harness: {lost} of {count_noun(n, 'cell')} {are(lost)} incomplete; {again} tries them again, "
            "unless their reason asks for something else first",
            err=True,
        )
    else:
        terminal.note(f"complete{' so far' if follows else ''}: {count_noun(n, 'cell')}")


def _list() -> None:
    """Print the suites that ship with the harness."""
    rows = []
    for path in suites():
        content = files.read(path).content
        names = [each if isinstance(each, str) else each.get("benchmark", "") for each in content["benchmarks"]]
        rows.append((path.stem, content.get("suite", {}).get("title", ""), ", ".join(dict.fromkeys(names))))
    terminal.table(("suite", "what it repeats", "benchmarks"), rows)
