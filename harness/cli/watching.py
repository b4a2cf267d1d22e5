"""Shows warnings, the start of a server and the progress of a run on standard error."""

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
from harness.showing.lines import count_noun
from server_launchers.engines import table as engines
from server_launchers.keeping.progress import Heartbeat

if TYPE_CHECKING:
    from harness.generation.progress import Progress
    from harness.runs.layout import RunFolder
    from server_launchers.keeping.progress import StartProgress
    from server_launchers.keeping.supervisor import RunningServer

GRADED_SECONDS = 5.0
"""Least seconds between two lines about grading."""


class Terminal(Watcher):
    """A context manager: the display of progress ends with its block.

    progress: whether progress is shown; None: unless flags of the running command switch it off.
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
        """The typed command without its keys."""
        return shlex.join(["harness", *command_words(sys.argv[1:])])

    @cached_property
    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(terminal.note)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the display of progress; later output stands below its last state."""
        if self._display is not None:
            self._display.close()

    def warn(self, sentence: Sentence) -> None:
        """See `Watcher.warn`."""
        terminal.warn(sentence)

    def fetching(self, what: str) -> AbstractContextManager[ByteProgress]:
        """A download bar on a terminal; nothing elsewhere."""
        return terminal.byte_progress(f"fetching {what}")

    def starting(self, progress: StartProgress) -> None:
        """Print a line when the phase of a start changes, and from time to time in between."""
        self._heartbeat(progress)

    def started(self, server: RunningServer, seconds: float) -> None:
        """Print the address of the server."""
        urls = ", ".join(server.base_urls)
        terminal.note(f"{server.name}: {visible(server.model)} answers at {urls} after {seconds:.1f} s")
        neutral = [" ".join(engine.neutral_words) for engine in engines.every().values() if engine.neutral_words]
        if (state := server.state) and any(words in line for line in state.commands for words in neutral):
            terminal.note(
                "sampling fields that a request leaves out get the engine's neutral values; --sampling-defaults model "
                "takes them from the model's generation_config.json"
            )

    def checking(self, check: str) -> None:
        """Print the name of the check; on a terminal the next name replaces it."""
        terminal.passing(f"probe: {check} …")

    def checked(self) -> None:
        """See `Watcher.checked`."""
        terminal.passing("")

    def sampling(self, what: str, folder: RunFolder) -> None:
        """See `Watcher.sampling`."""
        self.close()  # Close the display of the previous session.
        if self._shows_progress:
            self._display = ProgressDisplay(folder)
        terminal.note(what)

    def sampled(self) -> None:
        """Keep the last state of the progress on screen, above later output."""
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
        """Print from time to time how many samples are graded."""
        if n == 1:  # A pass over a few samples needs no line.
            self._graded_due = time.monotonic() + GRADED_SECONDS
        if time.monotonic() >= self._graded_due:
            self._graded_due = time.monotonic() + GRADED_SECONDS
            terminal.note(f"{benchmark}: {count_noun(n, 'sample')} graded")
