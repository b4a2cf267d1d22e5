"""`harness score --follow`: grades a run in progress from a separate process until the run ends; `harness run --score`
starts that process itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from harness.cli.terminal import Terminal
from harness.core.errors import StoreError
from harness.core.sanitize import visible
from server_launchers import isolated

if TYPE_CHECKING:
    from types import TracebackType

    from harness.generation.run_progress import Progress
    from harness.presets.grading import GradingOptions
    from harness.runs.layout import RunFolder
    from harness.scoring.score import Score

PAUSE_S = 5.0
"""Minimum number of seconds between two passes over the stored samples."""

LEISURE = 10.0
"""Ratio of the pause between two passes to the duration of the last pass, so that the run keeps the processor. The
pause ends early if the run ends.
"""


def follow(
    folder: RunFolder,
    grading: GradingOptions,
    on_graded: Callable[[str, int], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Score]:
    """Score repeatedly while the run is in progress, and once more after it has ended. Returns the last scores.

    Each pass grades only new samples. The run's own display shows these scores. on_graded: called with the benchmark
    and the number of its samples graded so far. Raises `StoreError`.
    """
    from harness.progress.lines import score_text
    from harness.runs.merging import join_shards
    from harness.scoring import pipeline

    printed = ""
    while True:
        going = folder.is_active()  # checked before the pass, so that nothing is stored after the last pass
        began = clock()
        try:
            join_shards(folder)
            scores = pipeline.score_run(folder, grading, on_graded)
        except StoreError:
            if not going:
                raise
            scores = []  # The run has only just begun.
        if not going:
            return scores
        grading = grading.replace(fresh=False)
        line = " · ".join(
            f"{visible(score.benchmark, 60)} {score_text(score)}" for score in scores if score.accuracy is not None
        )
        if line and line != printed:
            click.echo(line, err=True)
            printed = line
        next_look = clock() + LEISURE * (clock() - began)
        sleep(PAUSE_S)
        while clock() < next_look and folder.is_active():
            sleep(PAUSE_S)


NICENESS = 19
"""Niceness of the process that scores during a run, which uses only spare processor time."""

END_SECONDS = 10.0
"""Number of seconds that this process has to exit by itself after the run has ended."""


class ScoredTerminal(Terminal):
    """A terminal whose run is scored at the same time by a separate process, `harness score --follow`; the progress
    display shows the accuracy that this process stores. Scoring never stops or delays a run.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folder: RunFolder | None = None
        """The run to score; None before its session begins."""
        self._scoring: subprocess.Popen[bytes] | None = None
        """The scoring process; None before it is started, and if it cannot be started."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Leave no process behind."""
        super().__exit__(kind, error, tb)
        if self._scoring is not None:
            self._scoring.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._scoring.wait(END_SECONDS)
            self._scoring.kill()

    def sampling(self, what: str, folder: RunFolder) -> None:
        """Do the same as `Terminal`, and remember which run to score."""
        super().sampling(what, folder)
        self._folder = folder

    def progressed(self, progress: Progress) -> None:
        """Do the same as `Terminal`; the first call starts the scoring, since by then the run has locked its folder."""
        super().progressed(progress)
        if self._scoring is None and self._folder is not None:
            command = isolated.command("harness", "score", str(self._folder.path), "--follow")
            silent = subprocess.DEVNULL
            with contextlib.suppress(OSError):
                self._scoring = subprocess.Popen(
                    command,
                    stdin=silent,
                    stdout=silent,
                    stderr=silent,
                    start_new_session=True,
                    env=isolated.environment(*isolated.HARNESS),
                )
                os.setpriority(os.PRIO_PROCESS, self._scoring.pid, NICENESS)

    def print_tables(self, *, stderr: bool) -> None:
        """Score the finished run, of which only a few samples remain ungraded. stderr: print the tables on standard
        error.
        """
        if self._folder is not None:
            sys.stdout.flush()
            command = isolated.command("harness", "score", str(self._folder.path))
            environment = isolated.environment(*isolated.HARNESS)
            subprocess.run(command, check=False, stdout=2 if stderr else None, env=environment)
