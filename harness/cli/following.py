"""`harness score --follow`: grades a growing run from another process, until the run has ended; `harness run --score`
starts this process itself.
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
from harness.core.inert import visible
from server_launchers import isolated

if TYPE_CHECKING:
    from types import TracebackType

    from harness.generation.run_progress import Progress
    from harness.presets.grading import GradingOptions
    from harness.runs.layout import RunFolder
    from harness.scoring.score import Score

PAUSE_S = 5.0
"""Smallest number of seconds between two looks at what is stored."""

LEISURE = 10.0
"""The pause between two looks is this many times as long as the last look, so that the run keeps the processor. The
pause ends early when the run has ended.
"""


def follow(
    folder: RunFolder,
    grading: GradingOptions,
    on_graded: Callable[[str, int], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Score]:
    """Score repeatedly while the run goes on, and once more when it has ended. Returns the last scores.

    Each look grades only new samples. The run's own display shows these scores. on_graded: receives the benchmark and
    the number of its samples graded so far. Raises `StoreError`.
    """
    from harness.progress.lines import score_in_words
    from harness.runs.merging import join_shards
    from harness.scoring import pipeline

    printed = ""
    while True:
        going = folder.goes_on()  # Checked before the look, so that nothing is stored after the last look.
        began = clock()
        try:
            join_shards(folder)
            scores = pipeline.score_run(folder, grading, on_graded)
        except StoreError:
            if not going:
                raise
            scores = []  # The run has only begun.
        if not going:
            return scores
        grading = grading.but(fresh=False)
        line = " · ".join(
            f"{visible(score.benchmark, 60)} {score_in_words(score)}" for score in scores if score.accuracy is not None
        )
        if line and line != printed:
            click.echo(line, err=True)
            printed = line
        next_look = clock() + LEISURE * (clock() - began)
        sleep(PAUSE_S)
        while clock() < next_look and folder.goes_on():
            sleep(PAUSE_S)


NICENESS = 19
"""The process that scores beside a run takes only the processor time that nothing else wants."""

END_SECONDS = 10.0
"""Seconds that this process has to end by itself when the run has ended."""


class ScoredTerminal(Terminal):
    """A terminal whose run is scored meanwhile by `harness score --follow`, a process of its own; the display of
    progress shows the accuracy that this process stores. A run is never stopped or held up by it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folder: RunFolder | None = None
        """The run that is to be scored; None before its session begins."""
        self._scoring: subprocess.Popen[bytes] | None = None
        """The process that scores; None before it is started, and if it cannot be."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Leave no process behind."""
        super().__exit__(kind, error, tb)
        if self._scoring is not None:
            self._scoring.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._scoring.wait(END_SECONDS)
            self._scoring.kill()

    def sampling(self, what: str, folder: RunFolder) -> None:
        """As `Terminal`; notes which run is to be scored."""
        super().sampling(what, folder)
        self._folder = folder

    def progressed(self, progress: Progress) -> None:
        """As `Terminal`; the first call starts the scoring, since the run then holds its folder."""
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
        """Score the run that has ended, of which few samples are not graded yet. stderr: where the tables go."""
        if self._folder is not None:
            sys.stdout.flush()
            command = isolated.command("harness", "score", str(self._folder.path))
            environment = isolated.environment(*isolated.HARNESS)
            subprocess.run(command, check=False, stdout=2 if stderr else None, env=environment)
