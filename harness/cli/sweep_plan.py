"""`harness sweep --dry-run`: prints the servers, the cells, and the most tokens that they can take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from harness.cli import terminal
from harness.cli.terminal import Terminal
from harness.core.errors import HarnessError
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.preparing.servers import URL_VARIABLE
from harness.sweeps import running
from harness.sweeps.cells import Cell, Sweep
from harness.sweeps.expected import ExpectedCell, estimates

MAX_NAMED = 2
"""A line that holds for several models and servers names at most this many."""


def show(sweep: Sweep) -> int:
    """Print the plan; nothing is started or asked. Returns the number of cells that would end without a new score."""
    by_cell = {ahead.cell.name: ahead for ahead in estimates(sweep, Terminal(progress=False))}
    settings = {name: {*ahead.settings.items()} for name, ahead in by_cell.items()}
    common = set.intersection(*settings.values())
    lines = [f"settings of all cells: {_in_words(common) or 'none'}"]
    of_benchmark: dict[str, set[tuple[str, str]]] = {}
    for cell in sweep.cells:
        of_benchmark[cell.benchmark] = of_benchmark.get(cell.benchmark, settings[cell.name]) & settings[cell.name]
    lines += [f"settings of {name}: {_in_words(own - common)}" for name, own in of_benchmark.items() if own - common]
    terminal.console().print("\n".join(map(visible, lines)))
    by_server: dict[str, list[str]] = {}
    for name, group in sweep.groups.items():
        by_server.setdefault(_server(group), []).append(name)
    for server, names in by_server.items():
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        click.echo(f"{', '.join(names[:MAX_NAMED])}{more}: {server}")
        rows = [
            (*_row(by_cell[cell.name]), _in_words(settings[cell.name] - of_benchmark[cell.benchmark]))
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
            f"not on this machine, and loaded at the start: {words}; `harness benchmarks fetch {words}` gets them"
        )
    for sentence in sweep.remarks:
        terminal.warn(sentence)
    lost = [ahead for ahead in by_cell.values() if ahead.lost]
    for ahead in lost:
        click.echo(f"harness: {ahead.cell.name} would end without a new score: {visible(ahead.lost)}", err=True)
    return len(lost)


def _steps(sweep: Sweep) -> list[str]:
    """A line for each series of checkpoints, with the steps that were read from their names."""
    series: dict[str, list[str]] = {}
    for checkpoint in sweep.checkpoints:
        series.setdefault(checkpoint.series, []).append(str(checkpoint.step))
    return [f"steps of {visible(name, 100) or 'the training'}: {', '.join(steps)}" for name, steps in series.items()]


def _server(group: Sequence[Cell]) -> str:
    """The processes that would be started for these cells, a line each, and what prevents their start here."""
    from server_launchers import replicas

    if group[0].options.serve is None:
        names_server = any(cell.options.base_url or cell.options.provider for cell in group)
        return "a server that runs already" if names_server else f"the server of {URL_VARIABLE}, or the running one"
    try:
        spec = running.server_of(group[0], Terminal(progress=False))
        return "\n  ".join(["", *replicas.dry_run(spec), *map(visible, replicas.remarks(spec))])
    except HarnessError as error:
        return f"cannot be started here: {visible(str(error))}"


def _in_words(settings: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(settings))


def _row(expected: ExpectedCell) -> tuple[str, ...]:
    """The texts of one row of the table, for one run of the sweep; "?" stands for what is not known."""
    at_most = "≤ " if expected.at_most else ""
    questions = "?" if expected.n_questions is None else f"{at_most}{expected.n_questions:,}"
    most = "?" if expected.most_tokens is None else f"{expected.most_tokens:,}"
    if expected.done:
        most = "done"
    return (expected.cell.name, questions, str(expected.samples), most)


def _total(sweep: Sweep, cells: list[ExpectedCell]) -> str:
    """The line below the table: how much is left."""
    n_samples = sum(cell.n_samples or 0 for cell in cells if not cell.done and not cell.lost)
    return (
        f"{count_noun(len(cells), 'cell')} on {count_noun(len(sweep.groups), 'server')}, "
        f"{sum(cell.done for cell in cells)} of them done; {count_noun(n_samples, 'sample')} to come; folder "
        f"{visible(str(sweep.out))}"
    )
