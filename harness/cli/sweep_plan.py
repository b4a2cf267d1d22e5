"""`harness sweep --dry-run`: prints the servers, the cells, and their expected tokens and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli import terminal
from harness.core.errors import HarnessError
from harness.core.inert import visible
from harness.core.nouns import count_noun
from harness.showing.lines import duration

if TYPE_CHECKING:
    from harness.verbs.sweep.cells import ServerGroup, Sweep
    from harness.verbs.sweep.expected import ExpectedCell

SHOWN_SOURCES = 3
"""Largest number of earlier runs that are named."""


def show(sweep: Sweep) -> int:
    """Print the plan; nothing is started or asked. Returns the number of cells that would end without a new score."""
    from harness.verbs.sweep.expected import estimates

    by_cell = {ahead.cell.name: ahead for ahead in estimates(sweep)}
    for group in sweep.groups:
        click.echo(f"{group.name}: {_server(group)}")
        terminal.table(
            ("cell", "benchmark", "questions", "samples", "new tokens at most", "new tokens", "time"),
            [_row(by_cell[cell.name]) for cell in group.cells],
        )
    for line in (*_totals(sweep, list(by_cell.values())), *_steps(sweep)):
        click.echo(line)
    for sentence in sweep.remarks:
        terminal.warn(sentence)
    lost = [ahead for ahead in by_cell.values() if ahead.lost]
    for ahead in lost:
        would = "" if ahead.refused else " would end without a score"
        click.echo(f"harness: {ahead.cell.name}{would}: {visible(ahead.lost)}", err=True)
    return len(lost)


def _steps(sweep: Sweep) -> list[str]:
    """A line for each series of checkpoints, with the steps that were read from their names."""
    series: dict[str, list[str]] = {}
    for checkpoint in sweep.checkpoints:
        series.setdefault(checkpoint.series, []).append(str(checkpoint.step))
    return [f"steps of {visible(name, 100) or 'the training'}: {', '.join(steps)}" for name, steps in series.items()]


def _server(group: ServerGroup) -> str:
    """The processes that would be started, a line each, and what prevents their start on this machine."""
    from harness.cli.terminal import Terminal
    from harness.verbs.sweep import running
    from server_launchers.keeping import supervisor

    if group.spec is None:
        return "a server that runs already"
    try:
        spec = running.server_of(group, Terminal(progress=False))
        lines = supervisor.dry_run(spec)
        if obstacle := supervisor.obstacle(spec):
            lines.append(f"cannot be started here: {visible(obstacle)}")
        return "\n  ".join(["", *lines])
    except HarnessError as error:
        return f"cannot be started here: {visible(str(error))}"


def _row(expected: ExpectedCell) -> tuple[str, ...]:
    """The texts of one row of the table, for one run of the sweep; "?" stands for what is not known."""
    ahead = expected.forecast
    at_most = "≤ " if expected.at_most else ""
    questions = "?" if expected.n_questions is None else f"{at_most}{expected.n_questions:,}"
    most = "?" if expected.most_tokens is None else f"{expected.most_tokens:,}"
    if expected.done or expected.refused:
        state = "refused" if expected.refused else "done"
        return expected.cell.name, expected.benchmark, questions, str(expected.samples), most, state, "–"
    tokens = time = "?"
    if ahead is not None:
        error = f" ± {ahead.tokens_error:,.0f}" if ahead.tokens_error >= 1 else ""
        tokens = f"{ahead.tokens:,.0f}{error}"
        time = f"{duration(ahead.least_s)} to {duration(ahead.most_s)}"
    return expected.cell.name, expected.benchmark, questions, str(expected.samples), most, tokens, time


def _totals(sweep: Sweep, cells: list[ExpectedCell]) -> list[str]:
    """The lines below the table: how much is left, and how long it takes as far as earlier runs tell."""
    left = [cell for cell in cells if not cell.done and not cell.refused]
    refused = f"{n} refused, " if (n := sum(cell.refused for cell in cells)) else ""
    n_samples = sum(cell.n_samples or 0 for cell in left)
    lines = [
        f"{count_noun(len(cells), 'cell')} on {count_noun(len(sweep.groups), 'server')}, {refused}"
        f"{sum(cell.done for cell in cells)} of them done; {count_noun(n_samples, 'sample')} in the others; folder "
        f"{visible(str(sweep.out))}"
    ]
    forecasts = [cell.forecast for cell in left if cell.forecast is not None]
    if forecasts:
        tokens = sum(forecast.tokens for forecast in forecasts)
        least = sum(forecast.least_s for forecast in forecasts)
        most = sum(forecast.most_s for forecast in forecasts)
        lines.append(
            f"{len(forecasts)} of them estimated from earlier runs' replies: {tokens:,.0f} new tokens, "
            f"{duration(least)} to {duration(most)} one after the other, without the servers' starts"
        )
        sources = sorted({cell.source for cell in left if cell.source})
        lines += [f"  from {visible(path)}" for path in sources[:SHOWN_SOURCES]]
        if len(sources) > SHOWN_SOURCES:
            lines.append(f"  and {len(sources) - SHOWN_SOURCES} more")
    if len(forecasts) < len(left):
        lines.append("?: no earlier run shows how long replies are; run the cell with --samples 2 to measure them")
    return lines
