"""What an undertaking shows on the terminal: warnings, a server's start, a progress line. All on standard error."""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from harness.cli import terminal
from harness.cli.progress import ProgressLine
from harness.core.hidden import command_words
from harness.core.inert import visible
from harness.core.wording import Sentence
from harness.experiments.watching import ByteProgress, Watcher
from server_launchers.keeping.progress import Heartbeat

if TYPE_CHECKING:
    from harness.generation.progress import Progress
    from server_launchers.keeping.progress import Progress as StartProgress
    from server_launchers.keeping.supervisor import RunningServer

GRADED_SECONDS = 5.0
"""Seconds between two lines about grading."""


class Terminal(Watcher):
    """A context manager: the progress line ends with its block."""

    def __init__(self) -> None:
        self.resume_command = shlex.join(["harness", *command_words(sys.argv[1:])])
        self._line = ProgressLine()
        self._heartbeat = Heartbeat(lambda line: click.echo(line, err=True))
        self._graded_due = time.monotonic() + GRADED_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._line.close()

    def warn(self, sentence: Sentence) -> None:
        """See `Watcher.warn`."""
        terminal.warn(sentence)

    def fetching(self, what: str) -> AbstractContextManager[ByteProgress]:
        """A bar on a terminal, silence elsewhere."""
        return terminal.byte_progress(f"fetching {what}")

    def starting(self, progress: StartProgress) -> None:
        """A line when the phase changes, and one a while in between."""
        self._heartbeat(progress)

    def started(self, server: RunningServer, seconds: float) -> None:
        """Where it answers."""
        urls = ", ".join(server.base_urls)
        click.echo(f"{server.name}: {visible(server.model)} answers at {urls} after {seconds:.1f} s", err=True)

    def sampling(self, what: str) -> None:
        """See `Watcher.sampling`."""
        click.echo(what, err=True)

    def progressed(self, progress: Progress) -> None:
        """See `Watcher.progressed`."""
        self._line(progress)

    def graded(self, benchmark: str, n: int) -> None:
        """A line now and then while grading takes its time."""
        if time.monotonic() >= self._graded_due:
            self._graded_due = time.monotonic() + GRADED_SECONDS
            click.echo(f"{benchmark}: {n} samples graded", err=True)
