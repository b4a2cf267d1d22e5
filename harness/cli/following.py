"""`harness score --follow`: grades a growing run from another process, until the run has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from harness.core.errors import StoreError
from harness.core.inert import visible

if TYPE_CHECKING:
    from harness.presets.grading import GradingOptions
    from harness.runs.layout import RunFolder
    from harness.scoring import Score

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
    from harness.scoring import pipeline

    printed = ""
    while True:
        going = _goes_on(folder)  # Checked before the look, so that nothing is stored after the last look.
        began = clock()
        try:
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


def _goes_on(folder: RunFolder) -> bool:
    """Whether a process holds the run. Reads no samples."""
    from harness.runs.lock import holder_of

    return holder_of(folder) is not None


def _words(score: Score) -> str:
    """The benchmark and its accuracy, in the words of the progress display."""
    from harness.showing.lines import score_in_words
    from harness.showing.running_score import RunningEstimate, RunningScore, UndecidedBounds

    accuracy, bounds = score.accuracy, score.undecided_bounds
    running = RunningScore(
        accuracy=accuracy and RunningEstimate(accuracy.value, accuracy.sampling and (*accuracy.sampling,)),
        n_samples=score.n_samples,
        n_undecided=score.n_undecided,
        undecided_bounds=None if bounds is None else UndecidedBounds(bounds.low, bounds.high),
    )
    return f"{visible(score.benchmark, 60)} {score_in_words(running)}"
