"""Events of a command that the command line or Python may show: a `Watcher`, whose methods do nothing, a watcher that
draws a run's progress, and the watcher of `harness.api`, which also collects warnings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.core import channel

if TYPE_CHECKING:
    from harness.generation.run_progress import Progress
    from harness.progress.display import ProgressDisplay
    from harness.runs.layout import RunFolder

OnProgress = Callable[["Progress"], None]


class Watcher:
    """A watcher that shows nothing; a subclass overrides the events that it shows."""

    def warn(self, sentence: str) -> None:
        """A warning: an allowed but unusual setting, or something to know in addition to the score."""
        channel.warn(sentence)

    def advise(self, sentence: str) -> None:
        """A warning about a setting that is allowed but rarely intended, before the run's first request."""
        self.warn(sentence)

    def warn_of(self, cell: str, sentence: str, common: str) -> None:
        """A warning about one cell of a sweep. common: the wording that may also apply to other cells."""
        del common
        self.warn(f"{cell}: {sentence}")

    def starting(self, seconds: float, line: str) -> None:
        """Progress of a server's start."""

    def probing(self, what: str) -> None:
        """A probe begins. what: the server and the cost of its checks, in one line."""

    def checking(self, check: str) -> None:
        """A probe begins this check."""

    def checked(self, finding: str = "") -> None:
        """A check has ended. finding: its name, outcome and what it found; empty once the checks have ended."""

    def entering(self, cell: str) -> None:
        """A sweep begins this cell: the next session belongs to the cell, and its progress is shown under this name."""

    def sampling(self, what: str, folder: RunFolder) -> None:
        """A session begins. what: model, benchmarks and run folder in one line. folder: the run folder."""

    def sampled(self) -> None:
        """The session has ended; later events do not belong to it."""

    def standing(self, sentence: str) -> None:
        """Something has happened or is awaited (a download, a server, batches), as described by this sentence."""

    def progressed(self, progress: Progress) -> None:
        """Progress, sent from time to time while samples are requested; an exception raised here ends the session."""

    def graded(self, benchmark: str, n: int) -> None:
        """`n` samples of the benchmark have been graded so far."""


class Drawing(Watcher):
    """Draws the progress of a session, under the name of its cell in a sweep. shown: whether to draw it. `close` ends
    the display. The drawing code is imported on first use.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._display: ProgressDisplay | None = None
        self._cell = ""

    def close(self) -> None:
        """End the display; later output appears below its last state."""
        if self._display is not None:
            self._display.close()

    def entering(self, cell: str) -> None:
        """Show the progress of the next session under the name of its cell."""
        self._cell = cell

    def sampling(self, what: str, folder: RunFolder) -> None:
        """Begin a display of the session in `folder` if progress is shown."""
        del what
        self.close()  # the previous session's display
        if self._shown:
            from harness.progress.display import ProgressDisplay

            self._display = ProgressDisplay(folder, self._cell)

    def sampled(self) -> None:
        """End the display of the session."""
        self.close()

    def progressed(self, progress: Progress) -> None:
        """Redraw the display."""
        if self._shown:
            from harness.progress.display import ProgressDisplay

            self._display = self._display or ProgressDisplay()
            self._display(progress)


class Collecting(Drawing):
    """Collects the warnings of a command and reports its progress to a Python caller.

    warnings: all warnings so far. on_progress: called with each progress. shown: also draw the progress.
    """

    def __init__(self, on_progress: OnProgress | None = None, *, shown: bool = False) -> None:
        super().__init__(shown=shown)
        self.warnings: list[str] = []
        self._on_progress = on_progress

    def warn(self, sentence: str) -> None:
        """Collect the warning in `warnings`."""
        self.warnings.append(sentence)

    def progressed(self, progress: Progress) -> None:
        """Redraw the display, and pass the progress to the caller's function."""
        super().progressed(progress)
        if self._on_progress is not None:
            self._on_progress(progress)
