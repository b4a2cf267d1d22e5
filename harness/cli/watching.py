"""Warnings, the start of a server and the progress of a run, shown on standard error."""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import AbstractContextManager
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from harness.asking.watching import ByteProgress, Watcher
from harness.cli import terminal
from harness.core.inert import visible
from harness.core.secret import command_words
from harness.core.wording import Sentence
from harness.showing.display import ProgressDisplay
from harness.showing.lines import counted
from server_launchers.engines import table as engines
from server_launchers.keeping.progress import Heartbeat

if TYPE_CHECKING:
    from harness.generation.progress import Progress
    from harness.runs.layout import RunFolder
    from server_launchers.keeping.progress import StartProgress
    from server_launchers.keeping.supervisor import RunningServer

GRADED_SECONDS = 5.0
"""Seconds between two lines about grading."""


class Terminal(Watcher):
    """A context manager: the display of progress ends with its block.

    progress: whether it is shown; None: unless the flags of the command that runs say no.
    """

    def __init__(self, *, progress: bool | None = None) -> None:
        if progress is None:
            context = click.get_current_context(silent=True)
            flags = {} if context is None else context.params
            progress = flags.get("progress", True) and not flags.get("quiet", False)
        self._shows_progress = progress
        self._display: ProgressDisplay | None = None
        self._graded_due = time.monotonic() + GRADED_SECONDS

    @property
    def resume_command(self) -> str:
        """The command that was typed, without its keys."""
        return shlex.join(["harness", *command_words(sys.argv[1:])])

    @cached_property
    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(terminal.note)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the display of progress: what is printed from now on stands below its last state."""
        if self._display is not None:
            self._display.close()

    def warn(self, sentence: Sentence) -> None:
        """See `Watcher.warn`."""
        terminal.warn(sentence)

    def fetching(self, what: str) -> AbstractContextManager[ByteProgress]:
        """A bar on a terminal, silence elsewhere."""
        return terminal.byte_progress(f"fetching {what}")

    def starting(self, progress: StartProgress) -> None:
        """Print a line when the phase changes, and now and then between."""
        self._heartbeat(progress)

    def started(self, server: RunningServer, seconds: float) -> None:
        """Print the address of the server."""
        urls = ", ".join(server.base_urls)
        terminal.note(f"{server.name}: {visible(server.model)} answers at {urls} after {seconds:.1f} s")
        neutral = [" ".join(engine.neutral_words) for engine in engines.every().values() if engine.neutral_words]
        if (state := server.state) and any(words in line for line in state.commands for words in neutral):
            terminal.note(
                "a sampling field that a request leaves open has the engine's neutral value; --sampling-defaults model "
                "takes that of the model's generation_config.json"
            )

    def checking(self, check: str) -> None:
        """Print the name of the check; on a terminal the next name replaces it."""
        terminal.passing(f"probe: {check} …")

    def checked(self) -> None:
        """See `Watcher.checked`."""
        terminal.passing("")

    def sampling(self, what: str, folder: RunFolder) -> None:
        """See `Watcher.sampling`."""
        self.close()  # the display of the session before
        if self._shows_progress:
            self._display = ProgressDisplay(folder)
        terminal.note(what)

    def sampled(self) -> None:
        """The last state of the progress stands, above what follows."""
        self.close()

    def metered(self, address: str) -> None:
        """Print the address of the metrics."""
        terminal.note(f"metrics at {address}")

    def standing(self, sentence: Sentence) -> None:
        """Print the sentence."""
        terminal.note(sentence)

    def progressed(self, progress: Progress) -> None:
        """See `Watcher.progressed`."""
        if self._shows_progress:
            self._display = self._display or ProgressDisplay()
            self._display(progress)

    def graded(self, benchmark: str, n: int) -> None:
        """Print now and then how many samples are graded."""
        if n == 1:  # a pass over a few samples needs no word
            self._graded_due = time.monotonic() + GRADED_SECONDS
        if time.monotonic() >= self._graded_due:
            self._graded_due = time.monotonic() + GRADED_SECONDS
            terminal.note(f"{benchmark}: {counted(n, 'sample')} graded")
