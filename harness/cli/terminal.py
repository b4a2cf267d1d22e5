"""Output shared by the commands: a console, plain tables, notes, a progress line for downloads, and `Terminal`, which
shows the start of a server and the progress of a run on standard error.

Drawing code is imported only when it is used, because most commands only print.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from harness.cli.flag_spelling import as_typed
from harness.core.number_text import count_noun
from harness.core.sanitize import visible
from harness.core.secret import without_typed_secrets
from harness.progress.events import Drawing

if TYPE_CHECKING:
    from rich.console import Console

    from harness.generation.network.control import Signals
    from harness.runs.layout import RunFolder


def console() -> Console:
    """Make a console; rich is imported here because few commands need it."""
    from harness.reports.console import PlainConsole

    return PlainConsole()


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header, fitted to the console width; control characters are made visible."""
    from harness.reports.console import Fitted

    console().print(Fitted(header, rows))


def _is_quiet() -> bool:
    """Whether the command runs with --quiet."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet"))


def note(text: str) -> None:
    """Print a progress message on standard error, unless the command runs with --quiet."""
    if not _is_quiet():
        click.echo(as_typed(text), err=True)


def passing(text: str) -> None:
    """Print a note; on a terminal, the next note replaces it, and an empty text erases it. Elsewhere, the note is a
    plain line, and an empty text prints nothing.
    """
    from harness.progress.display import can_redraw

    if not can_redraw():
        if text:
            note(text)
        return
    if not _is_quiet():
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)


def warn(sentence: str) -> None:
    """Print a warning on standard error, with typed API keys removed."""
    click.echo(f"harness: warning: {without_typed_secrets(as_typed(sentence), sys.argv[1:])}", err=True)


BEAT_SECONDS = 15.0
"""Number of seconds between two lines about a server's start."""
GRADED_SECONDS = 5.0
"""Minimum number of seconds between two lines about grading."""


def stopped_with_a_line() -> Signals:
    """A `with` block in which a signal ends the command with a line on how to resume; sessions in it print their own
    line.
    """
    from harness.generation.network.control import Signals
    from harness.generation.runner import RESUME

    return Signals(lambda signum: f"stopped by {signal.Signals(signum).name}. Stored results are kept.{RESUME}")


class Terminal(Drawing):
    """Shows a command's progress on standard error. A context manager: leaving it ends the progress display.

    progress: whether to show progress; None: unless the command runs with --quiet. A warning that repeats an earlier
    one word for word is not printed again. advice: the warnings about settings so far.
    """

    def __init__(self, *, progress: bool | None = None) -> None:
        super().__init__(shown=not _is_quiet() if progress is None else progress)
        self._warned = set[str]()
        self.advice: list[str] = []
        self._next_beat = 0.0
        """When to print the last line of the server's log next, in seconds since the server's start."""
        self._graded_due = time.monotonic() + GRADED_SECONDS
        """Time on the monotonic clock after which the number of graded samples is printed next."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def warn(self, sentence: str) -> None:
        """Print the warning, unless it repeats an earlier one word for word."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            warn(sentence)

    def advise(self, sentence: str) -> None:
        """Print the warning, and keep it in `advice`, because at the end of a long run its first lines have scrolled
        away.
        """
        self.advice.append(sentence)
        self.warn(sentence)

    def warn_of(self, cell: str, sentence: str, common: str) -> None:
        """Print the warning with the cell's name, unless another cell has already given one with the same `common`
        words.
        """
        if common not in self._warned:
            self._warned.add(common)
            warn(f"{cell}: {sentence}")

    def starting(self, seconds: float, line: str) -> None:
        """Periodically print the last line of the engine's log."""
        if seconds >= self._next_beat:
            self._next_beat = seconds + BEAT_SECONDS
            note(f"{seconds:5.0f} s  {line}")

    def probing(self, what: str) -> None:
        """Print how much a probe will take, even with --quiet, because it may print nothing else for minutes."""
        click.echo(visible(what), err=True)

    def checking(self, check: str) -> None:
        """Print the name of the check; on a terminal the next name replaces it."""
        passing(f"probe: {check} …")

    def checked(self, finding: str = "") -> None:
        """Print the finding in place of the check's name."""
        passing("")
        if finding:
            note(f"probe: {finding}")

    def sampling(self, what: str, folder: RunFolder) -> None:
        """Print `what`, and start the progress display where one is shown."""
        super().sampling(what, folder)
        note(what)

    def standing(self, sentence: str) -> None:
        """Print the state of the run in a sentence."""
        note(sentence)

    def graded(self, benchmark: str, n: int) -> None:
        """Periodically print how many samples are graded."""
        if n == 1:  # A pass over only a few samples needs no line.
            self._graded_due = time.monotonic() + GRADED_SECONDS
        if time.monotonic() >= self._graded_due:
            self._graded_due = time.monotonic() + GRADED_SECONDS
            note(f"{benchmark}: {count_noun(n, 'sample')} graded")
