"""Watchers that draw a run's progress, and the one of `harness.api`, which collects warnings, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.progress.watching import Watcher

if TYPE_CHECKING:
    from harness.generation.run_progress import Progress
    from harness.progress.display import ProgressDisplay
    from harness.runs.layout import RunFolder

OnProgress = Callable[["Progress"], None]


class Drawing(Watcher):
    """Draws the progress of a session, under the name of its cell in a sweep. shown: whether it does. `close` ends the
    display. What draws is imported when it draws.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._display: ProgressDisplay | None = None
        self._cell = ""

    def close(self) -> None:
        """End the display; later output stands below its last state."""
        if self._display is not None:
            self._display.close()

    def entering(self, cell: str) -> None:
        """Show the progress of the next session under the name of its cell."""
        self._cell = cell

    def sampling(self, what: str, folder: RunFolder) -> None:
        """Begin a display of the session in `folder`, where progress is shown."""
        del what
        self.close()  # the display of the session before
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
        """Redraw the display, and hand the progress to the caller's function."""
        super().progressed(progress)
        if self._on_progress is not None:
            self._on_progress(progress)
