"""Shows a run's progress on standard error; standard output is for the result.

On a terminal, several lines are kept up to date. Otherwise, a plain line is printed from time to time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.core import channel
from harness.progress.lines import Line, Span, line, panel
from harness.progress.running_score import RunningScores

if TYPE_CHECKING:
    from rich.text import Text

    from harness.generation.run_progress import Progress
    from harness.progress.running_score import RunningScore
    from harness.runs.layout import RunFolder

PLAIN_SECONDS = 30.0
"""Seconds between two lines if the output is not a terminal."""

FIRST_PLAIN_SECONDS = 10.0
"""Seconds from the first progress to the first plain line, so that a log has a line early on."""

SPARE_ROWS = 3
"""Number of terminal rows left free for earlier output and the cursor."""

STYLES = {
    "done": "green",
    "in flight": "cyan",
    "retrying": "yellow",
    "given up": "red",
    "rest": "dim",
    "label": "dim",
}

Scores = dict[str, "RunningScore"]


def can_redraw() -> bool:
    """Whether lines on standard error can be redrawn, with bars; not in a log or by a command in a notebook cell."""
    notebook = "JPY_PARENT_PID" in os.environ  # set for a Jupyter kernel, but not for Jupyter's terminals
    writes_bars = (sys.stderr.encoding or "").lower().startswith("utf")
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not notebook and writes_bars


class TerminalScreen:
    """Draws lines on standard error with rich, which is imported only after the first requests are sent.

    The cursor stays on an empty line below, so that echoed keys such as ^C do not break a line.
    """

    def __init__(self) -> None:
        from rich.live import Live

        from harness.reports.console import PlainConsole

        self._console = PlainConsole(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=False, vertical_overflow="crop")
        self._live.start()

    def draw(self, progress: Progress, scores: Scores, cell: str, *, last: bool) -> None:
        """Redraw the panel on the terminal. last: whether to leave it there."""
        from rich.constrain import Constrain

        width, height = self._console.size
        lines = panel(progress, width - 1, max(3, height - SPARE_ROWS), scores, cell)
        text = render_lines(lines if last else [*lines, (Span(" "),)])
        self._live.update(Constrain(text, width - 1), refresh=True)
        if last:
            self._live.stop()


class ProgressDisplay:
    """Shows a run's progress; call it with each `Progress`. `close` leaves the last state on the screen.

    folder: the run folder, whose scores are shown for the samples graded so far; None: no scores are shown. cell: the
    run's name in a sweep; empty for a run outside a sweep.
    """

    def __init__(self, folder: RunFolder | None = None, cell: str = "") -> None:
        self._cell = cell
        self._running = None if folder is None else RunningScores(folder)
        self._last: Progress | None = None
        """The latest progress; None before the first one and once the display has ended."""
        self._redraws = can_redraw()
        self._screen: TerminalScreen | None = None
        # Without a screen, single lines are printed:
        self._due = 0.0
        """Monotonic time, in seconds, at which the next line is due; 0 before the first progress."""
        self._stopping = self._waits = False
        """Whether, at the last line, the run was ending, and whether all endpoints were waiting."""
        self._printed: Progress | None = None
        """The progress shown by the last line."""

    def __call__(self, progress: Progress) -> None:
        """Show `progress`; without a terminal, only if a line is due or the run starts to end or to wait."""
        self._last = progress
        if self._redraws:
            self._screen = self._screen or TerminalScreen()
            self._screen.draw(progress, self._scores(progress), self._cell, last=False)
            return
        now = time.monotonic()
        if not self._due:
            self._due = now + FIRST_PLAIN_SECONDS
        waits = not progress.in_flight and min((e.wait_s for e in progress.endpoints), default=0.0) > channel.QUIET_S
        begins = (progress.stopping, waits) > (self._stopping, self._waits)
        if now >= self._due or begins:
            self._stopping, self._waits = progress.stopping, waits
            self._due = now + PLAIN_SECONDS
            self._print(progress)

    def close(self) -> None:
        """Stop the display; the last state stays visible."""
        last, self._last, self._due = self._last, None, 0.0
        if last is None:
            return
        if self._screen is not None:
            self._screen.draw(last, self._scores(last), self._cell, last=True)
            self._screen = None
        elif last is not self._printed:
            self._print(last)

    def _scores(self, progress: Progress) -> Scores:
        """The scores of the benchmarks in `progress` for the samples graded so far; {} without a folder."""
        return self._running.current([benchmark.name for benchmark in progress.benchmarks]) if self._running else {}

    def _print(self, progress: Progress) -> None:
        """Print one line on standard error."""
        self._printed = progress
        sys.stderr.write(f"{line(progress, self._scores(progress), self._cell)}\n")
        sys.stderr.flush()


def render_lines(lines: Sequence[Line]) -> Text:
    """Return the lines as one rich text with colors; markup inside them has no effect."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis", end="")
    for number, row in enumerate(lines):
        if number:
            text.append("\n")
        for span in row:
            text.append(span.text, STYLES.get(span.kind, ""))
    return text
