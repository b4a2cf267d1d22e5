"""`harness score --follow`: grades a growing run from another process, until the run has ended; `harness run --score`
starts this process itself.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

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
    from harness.runs.merging import join_shards
    from harness.scoring import pipeline

    printed = ""
    while True:
        going = _goes_on(folder)  # Checked before the look, so that nothing is stored after the last look.
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
        line = " · ".join(_words(score) for score in scores if score.accuracy is not None)
        if line and line != printed:
            click.echo(line, err=True)
            printed = line
        next_look = clock() + LEISURE * (clock() - began)
        sleep(PAUSE_S)
        while clock() < next_look and _goes_on(folder):
            sleep(PAUSE_S)


NICENESS = 19
"""The process that scores beside a run takes only the processor time that nothing else wants."""

END_SECONDS = 10.0
"""Seconds that this process has to end by itself when the run breaks off."""


class ScoredTerminal(Terminal):
    """A terminal whose run is scored meanwhile by `harness score --follow`, a process of its own; the display of
    progress shows the accuracy that this process stores. A run is never stopped or held up by it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._folder: RunFolder | None = None
        """The run that is to be scored; None before its session begins."""
        self._scoring: subprocess.Popen[bytes] | None = None
        """The process that scores, also after its end; None before it is started, and if it cannot be."""
        self._warned_unscored = False
        """Whether the user was warned that the run is not scored meanwhile."""

    def __enter__(self) -> Self:
        # What the process that scores prints on standard output, and on standard error.
        self._out, self._errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        super().__exit__(kind, error, tb)
        if kind is not None:
            with self._out, self._errors:
                self._end()

    def sampling(self, what: str, folder: RunFolder) -> None:
        """As `Terminal`; notes which run is to be scored."""
        super().sampling(what, folder)
        self._folder = folder

    def progressed(self, progress: Progress) -> None:
        """As `Terminal`; the first call starts the scoring, since the run then holds its folder. Warns once if the
        process cannot be started, or ended with an error while the run goes on; it is not started again then.
        """
        super().progressed(progress)
        if self._scoring is None and self._folder is not None and not self._warned_unscored:
            self._start(self._folder)
        if self._scoring is not None and self._scoring.poll():  # None: it goes on; 0: it ended in order
            self._warn_unscored()

    def _start(self, folder: RunFolder) -> None:
        """Start the process that scores; if it cannot be started, say so."""
        command = isolated.command("harness", "score", str(folder.path), "--follow")
        with contextlib.suppress(OSError):
            self._scoring = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._errors, start_new_session=True
            )
            os.setpriority(os.PRIO_PROCESS, self._scoring.pid, NICENESS)
        if self._scoring is None:
            self._warn_unscored()

    def _warn_unscored(self) -> None:
        """Warn once that the run is not scored, with the last words of the process."""
        if not self._warned_unscored:
            self._warned_unscored = True
            self._errors.seek(0)
            printed = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            why = printed[-1] if printed else "no process could be started"
            self.warn(f"the accuracy so far cannot be shown, and the run goes on: {visible(why, 400)}")

    def tables(self) -> str:
        """Wait until all samples are scored; return what the scoring printed."""
        with self._out, self._errors:
            if self._folder is None:
                return ""
            # A run that misses nothing has shown no progress. Else the process may have taken the run for ended, as on
            # a file system without locks: what it printed is of an earlier time.
            if self._scoring is None or self._scoring.poll() is not None:
                self._out.seek(0)
                self._out.truncate()
                self._start(self._folder)
            if self._scoring is None:
                return ""
            try:
                code = self._scoring.wait()
            finally:
                self._end()
            self._out.seek(0)
            printed = self._out.read().decode("utf-8", "replace")
            if code and not printed:  # The code may also be about samples that no verifier could judge.
                self._warn_unscored()
            return printed

    def _end(self) -> None:
        """Leave no process behind."""
        if self._scoring is not None and self._scoring.poll() is None:
            self._scoring.terminate()
            try:
                self._scoring.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._scoring.kill()
                self._scoring.wait()


def _goes_on(folder: RunFolder) -> bool:
    """Whether a process holds the run or a shard of it. Reads no samples."""
    from harness.runs.lock import holder_of

    return any(map(holder_of, (folder, *folder.shards())))


def _words(score: Score) -> str:
    """The benchmark and its accuracy, in the words of the progress display."""
    from harness.progress.lines import score_in_words

    return f"{visible(score.benchmark, 60)} {score_in_words(score)}"
