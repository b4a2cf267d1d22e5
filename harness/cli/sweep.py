"""`harness sweep`: runs and scores the models, servers, prompts, sampling, and benchmarks of a file, and prints one
table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.text import Text

from harness.benchmarks.catalog import is_table, knows, suites
from harness.cli import terminal
from harness.cli.flag_spelling import as_typed
from harness.cli.flags import judge_fields, typed_run_options
from harness.cli.json_output import print_json
from harness.cli.terminal import Terminal
from harness.core import codec
from harness.core.errors import Exit, HarnessError, UsageError, stop_signal
from harness.core.number_text import count_noun, is_are
from harness.core.sanitize import visible
from harness.generation.runner import RESUME
from harness.options.run import SweepCommand
from harness.preparing.server_start import spec_of
from harness.preparing.servers import URL_VARIABLE
from harness.reports.formats import to_terminal
from harness.sweeps import cells, record, table
from harness.sweeps import file as files
from harness.sweeps.plan import LOADS, Cell, Sweep
from harness.sweeps.record import CellRecord
from harness.sweeps.results import Results
from harness.sweeps.rows import SweepEnd
from harness.sweeps.schema import json_schema
from harness.sweeps.sweep_runner import ExpectedCell, estimates, run_sweep, with_tables


def carry_out(options: SweepCommand) -> int:
    """Carry out the sweep, or show its plan or the list of suites. Returns the exit code."""
    if options.print_schema or options.list_suites:
        click.echo(codec.pretty(json_schema()).decode(), nl=False) if options.print_schema else _list()
        return Exit.YES
    given, judge = typed_run_options(options), judge_fields(options.judge)
    loads = {name: [*given.pop(name)] for name in LOADS if name in given}
    # One number is a setting of the runs, unless it is asked whether its load meets limits.
    axis = "rate" if "rate" in loads else "concurrency"
    settings = [name for name in loads if len(loads[name]) == 1 and (name != axis or options.limits is None)]
    given |= {name: loads.pop(name)[0] for name in settings}
    planned = cells.plan_of(_source(options, loads), given, judge, options.k, options.track, options.limits)
    if options.dry_run:
        return Exit.NO if show(planned) else Exit.YES
    with _says_how_to_go_on():
        return _run(planned, options)


def _source(options: SweepCommand, loads: Mapping[str, Sequence[float]]) -> str | dict[str, Any]:
    """The sweep's file or suite or, with options that are keys of a file, the content of one."""
    keys: dict[str, Any] = {**loads}
    if options.file is None:
        if options.data is None:
            raise UsageError("specify a sweep file, a suite (`harness sweep --list` lists the suites) or a benchmark")
        return {"benchmarks": [{"data": options.data}], **keys}
    names = options.file.split(",")
    are_cards = (
        knows(name.partition(":")[0])
        or re.search(r"\.ya?ml:\d+\Z", name)
        or (is_table(re.sub(r":[\d.]+\Z", "", name)) and not name.endswith(".json"))  # a sweep's file may be JSON
        for name in names
    )
    if options.file not in files.suite_files() and all(are_cards):
        return {"benchmarks": names, **keys}
    return {"extends": options.file, **keys} if keys else options.file


@contextmanager
def _says_how_to_go_on() -> Iterator[None]:
    """Add how to resume the sweep to a signal that arrives outside the sampling of a run, whose own message already
    says it.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        stop.add_note(
            f"stopped by {stop_signal(stop).name}. Stored results are kept; the tables are written when you resume."
            f"{RESUME}"
        )
        raise


def _run(planned: Sweep, options: SweepCommand) -> int:
    """Carry out the sweep, and print how it ended. Returns the exit code."""
    swept = _run_shown(planned)
    is_refused = options.verify and bool(swept.disagreeing)
    code = Exit.NO if is_refused else Exit.CANNOT_SAY if swept.lost else Exit.YES
    if options.as_json:
        print_json(
            SweepEnd(
                sweep=planned.name,
                folder=str(planned.out),
                exit_code=code,
                complete=not swept.lost,
                cells=table.records(swept),
                means=table.mean_records(swept),
            )
        )
    _print_results(swept, options)
    return code


def _run_shown(planned: Sweep) -> Results:
    """Carry out the sweep; the checkpoint tables are rewritten after each cell."""
    former = ""

    def on_cell(cell: CellRecord) -> None:
        """Print how a cell ended, without a reason that repeats the previous cell's."""
        nonlocal former
        if cell.reason:
            reason = "the same" if cell.reason == former else as_typed(cell.reason)
            click.echo(f"harness: {cell.cell}: {reason}", err=True)
        else:
            terminal.note(f"{cell.cell}: scored")
            if planned.checkpoints:
                with_tables(planned)
        former = cell.reason

    with Terminal() as watcher:
        return run_sweep(planned, watcher, on_cell)


def _print_results(swept: Results, options: SweepCommand) -> None:
    """Print the tables, their locations, the number of incomplete cells, and, with --verify, the cells that disagree
    with published scores.

    The tables are omitted with --json and when there is no score, because each row would only repeat an error; then the
    reasons of the cells that did not run are printed instead.
    """
    has_table = not options.as_json and any(result.score is not None for result in swept.results)
    if has_table:
        if answer := table.load_advice(swept):
            terminal.console().print(Text(f"{answer}\n"))
        terminal.console().print(to_terminal(table.tables(swept)))
    terminal.note(f"tables: {', '.join(visible(str(path)) for path in swept.written)}")
    if not has_table:  # the notes of a table contain the reasons
        for result in swept.lost:
            # A reason in the cell's record was already printed when the cell ended.
            if (stored := record.read(swept.sweep.out, result.cell.name)) is None or not stored.reason:
                click.echo(f"harness: incomplete: {result.cell.name}: {visible(as_typed(result.reason))}", err=True)
    if options.verify:
        for result in swept.disagreeing:
            name, model = visible(result.cell.name, 200), visible(result.cell.model, 100)
            click.echo(f"harness: {name} does not agree with published scores of {model}", err=True)
    n = len(swept.results)
    if lost := len(swept.lost):
        click.echo(
            f"harness: {lost} of {count_noun(n, 'cell')} {is_are(lost)} incomplete; the same command retries them, "
            "unless the stated reason requires another step first",
            err=True,
        )
    else:
        terminal.note(f"complete: {count_noun(n, 'cell')}")


def _list() -> None:
    """Print the suites that ship with the harness."""
    rows = []
    for path in suites():
        content = files.read(str(path)).content
        names = [each if isinstance(each, str) else each.get("benchmark", "") for each in content["benchmarks"]]
        rows.append((path.stem, content.get("suite", {}).get("title", ""), ", ".join(dict.fromkeys(names))))
    terminal.table(("suite", "what it repeats", "benchmarks"), rows)


MAX_NAMED = 2
"""Largest number of models or servers named in a line that applies to several."""


def show(sweep: Sweep) -> int:
    """Print the plan without starting or sending anything. Returns the number of cells that would end without a new
    score.
    """
    by_cell = {ahead.cell.name: ahead for ahead in estimates(sweep, Terminal(progress=False))}
    settings = {name: {*ahead.settings.items()} for name, ahead in by_cell.items()}
    common = set.intersection(*settings.values())
    lines = [f"settings shared by all cells: {_join(common) or 'none'}"]
    of_benchmark: dict[str, set[tuple[str, str]]] = {}
    for cell in sweep.cells:
        of_benchmark[cell.benchmark] = of_benchmark.get(cell.benchmark, settings[cell.name]) & settings[cell.name]
    lines += [f"settings of {name}: {_join(own - common)}" for name, own in of_benchmark.items() if own - common]
    terminal.console().print("\n".join(map(visible, lines)))
    by_server: dict[str, list[str]] = {}
    for name, group in sweep.groups.items():
        by_server.setdefault(_server(group), []).append(name)
    for server, names in by_server.items():
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        click.echo(f"{', '.join(names[:MAX_NAMED])}{more}: {server}")
        rows = [
            (*_row(by_cell[cell.name]), _join(settings[cell.name] - of_benchmark[cell.benchmark]))
            for name in names
            for cell in sweep.groups[name]
        ]
        heads = ("cell", "questions", "samples", "tokens at most", "other settings")
        filled = [column for column, cells in enumerate(zip(*rows, strict=True)) if any(cells)]
        terminal.table([heads[column] for column in filled], [[row[column] for column in filled] for row in rows])
    for line in (_total(sweep, list(by_cell.values())), *_steps(sweep)):
        click.echo(line)
    if absent := list(dict.fromkeys(ahead.benchmark for ahead in by_cell.values() if ahead.absent)):
        words = visible(" ".join(absent))
        click.echo(
            f"not on this machine; will be downloaded when the sweep starts: {words} "
            f"(`harness benchmarks fetch {words}`)"
        )
    for sentence in sweep.remarks:
        terminal.warn(sentence)
    lost = [ahead for ahead in by_cell.values() if ahead.lost]
    for ahead in lost:
        click.echo(
            f"harness: {ahead.cell.name} would end without producing a new score: {visible(ahead.lost)}", err=True
        )
    return len(lost)


def _steps(sweep: Sweep) -> list[str]:
    """A line for each series of checkpoints, with the steps read from their names."""
    series: dict[str, list[str]] = {}
    for checkpoint in sweep.checkpoints:
        series.setdefault(checkpoint.series, []).append(str(checkpoint.step))
    return [f"steps of {visible(name, 100) or 'the training'}: {', '.join(steps)}" for name, steps in series.items()]


def _server(group: Sequence[Cell]) -> str:
    """The processes that would be started for these cells, one per line, or the reason why they cannot be started
    here.
    """
    from server_launchers import replicas

    if group[0].options.serve is None:
        names_server = any(cell.options.base_url or cell.options.provider for cell in group)
        return "a running server" if names_server else f"the server in {URL_VARIABLE} or a running server"
    try:
        fields = dict(group[0].options.serve)
        spec = spec_of(fields.pop("engine"), fields.pop("model"), Terminal(progress=False), **fields)
        return "\n  ".join(["", *replicas.dry_run(spec), *map(visible, replicas.start_problems(spec))])
    except HarnessError as error:
        return f"cannot be started here: {visible(str(error))}"


def _join(settings: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(settings))


def _row(expected: ExpectedCell) -> tuple[str, ...]:
    """The texts of one table row, for one run of the sweep; "?" stands for unknown values."""
    at_most = "≤ " if expected.at_most else ""
    questions = "?" if expected.n_questions is None else f"{at_most}{expected.n_questions:,}"
    most = "?" if expected.most_tokens is None else f"{expected.most_tokens:,}"
    if expected.done:
        most = "done"
    return (expected.cell.name, questions, str(expected.samples), most)


def _total(sweep: Sweep, cells: list[ExpectedCell]) -> str:
    """The line below the table, which says how much remains."""
    n_samples = sum(cell.n_samples or 0 for cell in cells if not cell.done and not cell.lost)
    return (
        f"{count_noun(len(cells), 'cell')} on {count_noun(len(sweep.groups), 'server')}, "
        f"{sum(cell.done for cell in cells)} of them done; {count_noun(n_samples, 'sample')} left; folder "
        f"{visible(str(sweep.out))}"
    )
