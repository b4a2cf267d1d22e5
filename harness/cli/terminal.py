"""Output that commands share: a console, plain tables, a progress line for downloads."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from harness.cli.help import spelt
from harness.core.inert import visible

if TYPE_CHECKING:
    from rich.console import Console


PIPED_COLUMNS = 1000
"""Width of output that is no terminal: rows stay whole for grep and cut."""


def console(*, stderr: bool = False) -> Console:
    """A console that never reads markup in foreign text and never guesses highlights."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPED_COLUMNS
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, width=width)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header; foreign text is made visible. Piped output is not wrapped."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in header:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*(visible(cell) for cell in row))
    console().print(shown)


def note(text: str) -> None:
    """Print progress in words on standard error, unless the command runs with --quiet."""
    context = click.get_current_context(silent=True)
    if context is None or not context.params.get("quiet"):
        click.echo(spelt(text), err=True)


def passing(text: str) -> None:
    """Print a note that the next one replaces on a terminal; elsewhere a plain line.

    Empty text: the last note is over.
    """
    from harness.showing.display import can_redraw

    if not can_redraw():
        if text:
            note(text)
        return
    context = click.get_current_context(silent=True)
    if context is None or not context.params.get("quiet"):
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)


def warn(sentence: str) -> None:
    """Print a warning on standard error."""
    click.echo(f"harness: warning: {spelt(sentence)}", err=True)


@contextlib.contextmanager
def byte_progress(label: str) -> Iterator[Callable[[int, int | None], None]]:
    """A callback that shows the bytes so far on standard error: a bar on a terminal, nothing elsewhere."""
    from harness.showing.display import can_redraw

    if not can_redraw():
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
