"""The watcher that `harness.api` hands to a verb: it collects warnings, and shows progress if the caller wants it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.asking.watching import Watcher
from harness.showing.display import ProgressDisplay

if TYPE_CHECKING:
    from harness.generation.progress import Progress
    from harness.runs.layout import RunFolder

OnProgress = Callable[["Progress"], None]


class Collecting(Watcher):
    """Collects the warnings of a verb and reports its progress to a Python caller.

    warnings: all warnings so far. on_progress: called with each progress. shown: also draw the progress on the terminal
    or in the notebook. `close` ends the display.
    """

    def __init__(self, on_progress: OnProgress | None = None, *, shown: bool = False) -> None:
        self.warnings: list[str] = []
        self._on_progress = on_progress
        self._shown = shown
        self._display: ProgressDisplay | None = None
        self._cell = ""

    def close(self) -> None:
        """End the display; the last state stays visible."""
        if self._display is not None:
            self._display.close()

    def entering(self, cell: str) -> None:
        """Show the progress of the next session under the name of its cell."""
        self._cell = cell

    def sampling(self, what: str, folder: RunFolder) -> None:
        """Show the progress of the session in `folder`, where progress is shown."""
        del what
        self.close()  # the display of the session before
        if self._shown:
            self._display = ProgressDisplay(folder, self._cell)

    def sampled(self) -> None:
        """End the display of the session."""
        self.close()

    def warn(self, sentence: str) -> None:
        """Collect the warning in `warnings`."""
        self.warnings.append(sentence)

    def progressed(self, progress: Progress) -> None:
        """Redraw the display, and hand the progress to the caller's function."""
        if self._shown:
            self._display = self._display or ProgressDisplay()
            self._display(progress)
        if self._on_progress is not None:
            self._on_progress(progress)
