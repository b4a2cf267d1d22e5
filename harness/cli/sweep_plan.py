"""`harness sweep --dry-run`: the servers, the cells, and what they will take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from harness.cli import terminal
from harness.core.errors import HarnessError
from harness.core.inert import visible
from harness.showing.lines import duration
from server_launchers.errors import LaunchError

if TYPE_CHECKING:
    from harness.verbs.sweep.cells import Group, Sweep
    from harness.verbs.sweep.expected import Expected

SHOWN_SOURCES = 3
"""Former runs that are named."""


def show(sweep: Sweep) -> None:
    """Print the plan; start and ask nothing."""
    from harness.verbs.sweep.expected import expected

    found = {one.cell.name: one for one in expected(sweep)}
    for group in sweep.groups:
        click.echo(f"{group.name}: {_server(group)}")
        terminal.table(
            ("cell", "benchmark", "questions", "samples", "new tokens at most", "new tokens", "time"),
            [_row(found[cell.name]) for cell in group.cells],
        )
    for line in _totals(sweep, list(found.values())):
        click.echo(line)


def _server(group: Group) -> str:
    """What would be started, in one line a process."""
    from harness.asking import servers
    from harness.cli.watching import Terminal
    from server_launchers.keeping.supervisor import dry_run as command_lines

    if group.spec is None:
        return "a server that runs already"
    fields = dict(group.spec)
    engine, model = fields.pop("engine"), fields.pop("model") or ""
    try:
        return "\n  ".join(["", *command_lines(servers.spec(engine, model, Terminal(progress=False), **fields))])
    except (HarnessError, LaunchError) as error:
        return f"cannot be started here: {visible(str(error))}"


def _row(one: Expected) -> tuple[str, ...]:
    ahead = one.forecast
    asked = "?" if one.n_questions is None else f"{'≤ ' if one.at_most else ''}{one.n_questions:,}"
    most = "?" if one.most_tokens is None else f"{one.most_tokens:,}"
    if one.done:
        return one.cell.name, one.benchmark, asked, str(one.samples), most, "done", "–"
    tokens = (
        "?"
        if ahead is None
        else f"{ahead.tokens:,.0f}{f' ± {ahead.tokens_error:,.0f}' if ahead.tokens_error >= 1 else ''}"
    )
    time = "?" if ahead is None else f"{duration(ahead.least_s)} to {duration(ahead.most_s)}"
    return one.cell.name, one.benchmark, asked, str(one.samples), most, tokens, time


def _totals(sweep: Sweep, found: list[Expected]) -> list[str]:
    left = [one for one in found if not one.done]
    n_samples = sum(one.n_samples or 0 for one in left)
    said = [
        f"{len(found)} cells on {len(sweep.groups)} servers, {len(found) - len(left)} of them done; "
        f"{n_samples:,} samples in the others; folder {visible(str(sweep.out))}"
    ]
    known = [one.forecast for one in left if one.forecast is not None]
    if known:
        tokens, least, most = (sum(getattr(one, key) for one in known) for key in ("tokens", "least_s", "most_s"))
        said.append(
            f"{len(known)} of them as long as former runs' replies: {tokens:,.0f} new tokens, "
            f"{duration(least)} to {duration(most)} one after the other, without the servers' starts"
        )
        sources = sorted({one.source for one in left if one.source})
        said += [f"  from {visible(path)}" for path in sources[:SHOWN_SOURCES]]
        if len(sources) > SHOWN_SOURCES:
            said.append(f"  and {len(sources) - SHOWN_SOURCES} more")
    if len(known) < len(left):
        said.append("? no former run says how long replies are: a run of two samples (--samples 2) would")
    return said
